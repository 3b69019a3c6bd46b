/** Which partitions a vertex is in: what the views say is what the partitioner did, whatever dies when. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { FrameColumns, readFrame } from '../../libs/dataflow/frame.ts';
import { type PartitionerConfig, readPartitionerConfig } from '../../libs/partitioning/partitioner-config.ts';
import { CorePipeline } from '../support/core-pipeline.ts';

const decoder = new TextDecoder();

/** The partitions of every vertex, by the frames of PARTS. */
function placed(pipeline: CorePipeline): Map<string, number[]> {
  const parts = new Map<string, Set<number>>();
  const columns = new FrameColumns();
  for (const [partition, log] of pipeline.parts.entries()) {
    for (const { payload } of log.messages) {
      readFrame(payload, columns);
      for (let id = 0; id < columns.count * 2; id++) {
        const text = decoder.decode(columns.bytes.subarray(columns.idStart[id]!, columns.idEnd[id]!));
        parts.set(text, (parts.get(text) ?? new Set()).add(partition));
      }
    }
  }
  return new Map([...parts].map(([id, set]) => [id, [...set].sort((a, b) => a - b)]));
}

function inView({ view }: CorePipeline): Map<string, number[]> {
  const { vertices } = view.forest;
  return new Map(
    Array.from({ length: view.forest.rows }, (_, row) => [
      decoder.decode(vertices.idOf(row)),
      view.parts.partsOf(row),
    ]),
  );
}

test.each(['hash', 'grid', 'hdrf', 'ldg'])(
  'a view knows the partitions of every vertex, by %s',
  (algorithm) => {
    const reading = readPartitionerConfig({ algorithm });
    const partitioner = (reading as { config: PartitionerConfig }).config;
    const edge = fc.tuple(fc.nat(9), fc.nat(9)).map(([a, b]) => ({ source: `v${a}`, target: `v${b}` }));
    const step = fc.constantFrom('settle', 'view dies', 'worker dies', 'partitioner dies', 'compact');
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.array(edge, { minLength: 1, maxLength: 5 }), step), {
          minLength: 1,
          maxLength: 12,
        }),
        (rounds) => {
          const pipeline = new CorePipeline(4, partitioner);
          for (const [edges, what] of rounds) {
            pipeline.publish(JSON.stringify(edges));
            pipeline.settle();
            if (what !== 'settle') pipeline.gateway.cut();
            if (what === 'compact') pipeline.gateway.compact();
            if (what === 'view dies') pipeline.gateway.restart();
            if (what === 'worker dies') pipeline.workers[1]!.restart();
            if (what === 'partitioner dies') pipeline.partitioner.restart();
          }
          pipeline.settle();
          const expected = placed(pipeline);
          expect(inView(pipeline)).toEqual(expected);
          const counts = [0, 1, 2, 3].map(
            (part) => [...expected.values()].filter((set) => set.includes(part)).length,
          );
          expect([...pipeline.view.parts.counts]).toEqual(counts);
          expect(pipeline.view.parts.distinct).toBe(expected.size);
        },
      ),
      { numRuns: 40 },
    );
  },
);

test('a new layout begins with nothing', () => {
  const pipeline = new CorePipeline(4);
  pipeline.publish(JSON.stringify([{ source: 'a', target: 'b' }]));
  const view = pipeline.settle();
  expect(view.parts.distinct).toBe(2);
  view.begin({ generation: 2, partitions: 16, after: 1 });
  expect(view.parts.distinct).toBe(0);
  expect(view.parts.partsOf(0)).toEqual([]);
});
