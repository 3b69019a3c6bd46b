/**
 * Whatever the number of partitions, however epochs are cut, wherever processes die: at every sequence the
 * view is the graph of exactly that prefix. The oracle recomputes each prefix from scratch with graphology.
 */
import fc from 'fast-check';
import { UndirectedGraph } from 'graphology';
import { connectedComponents } from 'graphology-components';
import { describe, expect, it } from 'vitest';
import { FrameColumns, readFrame } from '../../libs/dataflow/frame.ts';
import { FNV_OFFSET, fnv1a, hashPartition } from '../../libs/partitioning/hash.ts';
import { ALGORITHMS, readPartitionerConfig } from '../../libs/partitioning/partitioner-config.ts';
import { Reading } from '../../services/gateway/answers.ts';
import type { View } from '../../services/gateway/view.ts';
import { CorePipeline, GRAPH_ID } from '../support/core-pipeline.ts';

interface Edge {
  readonly source: string;
  readonly target: string;
}

type Message = readonly Edge[];

const PARTITIONS = [1, 2, 3, 4, 8];

const vertex = fc
  .integer({ min: 0, max: 11 })
  .map((n) => ['a', 'b', 'é', 'x y', '10', '9', '', 'b'.repeat(3), '😀', '*', '>', '.'][n]!);
const edge = fc.record({ source: vertex, target: vertex });
const message = fc.array(edge, { maxLength: 6 });

/** One step of a schedule; every number is taken modulo what there is. */
const step = fc.record({
  stage: fc.nat(20),
  what: fc.constantFrom('read', 'read', 'cut', 'die-in-cut', 'die', 'compact'),
  count: fc.integer({ min: 0, max: 5 }),
});

/** The components of the prefix's valid edges, each a sorted list, in a list sorted likewise. */
function oracle(messages: readonly Message[]): string[][] {
  const graph = new UndirectedGraph({ allowSelfLoops: true });
  for (const { source, target } of messages.flat()) {
    if (source === '' || target === '') continue;
    graph.mergeNode(source);
    graph.mergeNode(target);
    graph.mergeEdge(source, target);
  }
  return connectedComponents(graph)
    .map((component) => component.toSorted())
    .sort((a, b) => (a[0]! < b[0]! ? -1 : 1));
}

function componentsAt(view: View, sequence: number): string[][] {
  const { forest } = view;
  const cut = forest.cutAt(sequence);
  const components = new Map<number, string[]>();
  for (let row = 0; row < cut.rows; row++) {
    const root = forest.root(row, cut.links);
    components.set(root, [
      ...(components.get(root) ?? []),
      new TextDecoder().decode(forest.vertices.idOf(row)),
    ]);
  }
  return [...components.values()]
    .map((component) => component.sort())
    .sort((a, b) => (a[0]! < b[0]! ? -1 : 1));
}

function runStep(
  pipeline: CorePipeline,
  { stage: number, what, count }: { stage: number; what: string; count: number },
): void {
  const stages = [pipeline.partitioner, ...pipeline.workers, pipeline.gateway];
  const stage = stages[number % stages.length]!;
  switch (what) {
    case 'read':
      for (let input = 0; input < (stage === pipeline.gateway ? pipeline.partitions : 1); input++)
        stage.read(input, count);
      stage.advance();
      return;
    case 'cut':
      stage.cut();
      return;
    case 'die-in-cut':
      stage.cut(count);
      return;
    case 'die':
      stage.restart();
      return;
    default:
      stage.compact();
  }
}

describe('the view', () => {
  for (const partitions of PARTITIONS) {
    it(`is exact at every sequence, on any schedule with crashes, for ${partitions} partitions`, () => {
      fc.assert(
        fc.property(
          fc.array(message, { maxLength: 14 }),
          fc.array(step, { maxLength: 120 }),
          (messages, steps) => {
            const pipeline = new CorePipeline(partitions);
            pipeline.onAdvance = (view, sequence) => {
              expect(componentsAt(view, sequence)).toEqual(oracle(messages.slice(0, sequence)));
              expect(view.forest.rows - view.forest.links).toBe(oracle(messages.slice(0, sequence)).length);
            };
            let published = 0;
            for (const [at, one] of steps.entries()) {
              while (published < messages.length && published * steps.length <= at * messages.length) {
                pipeline.publish(JSON.stringify(messages[published++]));
              }
              runStep(pipeline, one);
            }
            while (published < messages.length) pipeline.publish(JSON.stringify(messages[published++]));
            const view = pipeline.settle();
            for (let sequence = 0; sequence <= messages.length; sequence++) {
              const prefix = messages.slice(0, sequence);
              expect(componentsAt(view, sequence)).toEqual(oracle(prefix));
              const valid = prefix
                .flat()
                .filter(({ source, target }) => source !== '' && target !== '').length;
              const totals = view.messages.through(sequence);
              expect([totals.edges, totals.rejected]).toEqual([valid, prefix.flat().length - valid]);
            }
            expect(
              pipeline.rejected.messages.map((m) => JSON.parse(new TextDecoder().decode(m.payload)).sequence),
            ).toEqual(
              messages.flatMap((one, at) =>
                one.some((e) => e.source === '' || e.target === '') ? [at + 1] : [],
              ),
            );
          },
        ),
        { numRuns: 500 },
      );
    });
  }
});

/** Every edge with its partition, in stream order, as the frames of PARTS have it. */
function placesOf(pipeline: CorePipeline): string[] {
  const places: [number, number, string][] = [];
  const columns = new FrameColumns();
  for (const [partition, log] of pipeline.parts.entries()) {
    for (const { payload } of log.messages) {
      readFrame(payload, columns);
      for (let edge = 0; edge < columns.count; edge++) {
        const place = `${columns.sequence[edge]}.${columns.index[edge]} ${partition}`;
        places.push([columns.sequence[edge]!, columns.index[edge]!, place]);
      }
    }
  }
  return places.sort((a, b) => a[0] - b[0] || a[1] - b[1]).map(([, , place]) => place);
}

describe('every partitioner', () => {
  for (const algorithm of Object.keys(ALGORITHMS)) {
    it(`${algorithm}: the same places and exact answers on any schedule with crashes`, () => {
      const read = readPartitionerConfig({ algorithm });
      if (read.kind === 'invalid') throw new Error(read.problem);
      fc.assert(
        fc.property(
          fc.array(message, { maxLength: 12 }),
          fc.array(step, { maxLength: 60 }),
          fc.constantFrom(1, 4, 6),
          (messages, steps, partitions) => {
            const plain = new CorePipeline(partitions, read.config);
            const pipeline = new CorePipeline(partitions, read.config);
            for (const one of messages) {
              plain.publish(JSON.stringify(one));
              pipeline.publish(JSON.stringify(one));
            }
            plain.settle();
            for (const one of steps) runStep(pipeline, one);
            const view = pipeline.settle();
            expect(componentsAt(view, messages.length)).toEqual(oracle(messages));
            expect(placesOf(pipeline)).toEqual(placesOf(plain));
            const { figures } = pipeline.partitioner.core;
            expect(figures).toEqual(plain.partitioner.core.figures);
            const valid = messages.flat().filter(({ source, target }) => source !== '' && target !== '');
            expect(figures.edges.reduce((sum, edges) => sum + edges, 0)).toBe(valid.length);
          },
        ),
        { numRuns: 150 },
      );
    });
  }
});

describe('a view that restarts while channel 0 is ahead of it', () => {
  it('still counts the messages that only channel 0 tells of', () => {
    const pipeline = new CorePipeline(2);
    const inPartition = (wanted: number): Edge => {
      for (let n = 0; ; n++) {
        const one = { source: `a${n}`, target: 'b' };
        const bytes = new TextEncoder().encode(`a${n}b`);
        if (hashPartition(fnv1a(FNV_OFFSET, bytes, 0, bytes.length), 2) === wanted) return one;
      }
    };
    const cutAll = (stage: { read(input: number, count: number): number; cut(): void }): void => {
      stage.read(0, 100);
      stage.cut();
    };
    pipeline.publish(JSON.stringify([inPartition(0)]));
    pipeline.publish(JSON.stringify([inPartition(1)]));
    cutAll(pipeline.partitioner);
    cutAll(pipeline.workers[1]!);
    pipeline.publish(JSON.stringify([inPartition(1)]));
    cutAll(pipeline.partitioner);
    cutAll(pipeline.workers[0]!);
    for (const input of [0, 1]) pipeline.gateway.read(input, 100);
    while (pipeline.gateway.advance());
    expect(pipeline.view.sequence).toBe(2);
    pipeline.gateway.cut();
    pipeline.gateway.restart();
    cutAll(pipeline.workers[1]!);
    const view = pipeline.settle();
    expect(view.messages.totals).toMatchObject({ sequence: 3, edges: 3 });
  });
});

/** Every answer there is about a prefix, as the bytes that HTTP would send. */
function answersAt(view: View, sequence: number): string {
  const reading = new Reading(view, sequence);
  const ids = [...reading.exportRows()].map(({ vertex: id }) => id);
  const components = finished(reading.components(GRAPH_ID, undefined, 1000, true));
  return JSON.stringify([
    reading.totals,
    components,
    components.components.map(({ id }) => reading.members(id, GRAPH_ID, undefined, 1000)),
    [...reading.exportRows()],
    ids.map((id) => reading.vertex(id)),
    ids.flatMap((a) => ids.map((b) => reading.connection(a, b))),
    ids.length === 0 ? undefined : reading.lookup([...ids, 'nobody']),
  ]);
}

function finished<T>(generator: Generator<undefined, T>): T {
  for (;;) {
    const { done, value } = generator.next();
    if (done === true) return value;
  }
}

describe('whole answers', () => {
  it('are the same bytes for any number of partitions and any schedule with crashes, at every sequence', () => {
    fc.assert(
      fc.property(
        fc.array(
          fc.array(
            fc.record({ source: vertex, target: vertex, time: fc.option(fc.integer(), { nil: undefined }) }),
            { maxLength: 6 },
          ),
          { maxLength: 10 },
        ),
        fc.array(step, { maxLength: 40 }),
        (messages, steps) => {
          const plain = new CorePipeline(1);
          for (const one of messages) plain.publish(JSON.stringify(one));
          const reference = plain.settle();
          for (const partitions of PARTITIONS) {
            const pipeline = new CorePipeline(partitions);
            for (const one of messages) pipeline.publish(JSON.stringify(one));
            for (const one of steps) runStep(pipeline, one);
            const view = pipeline.settle();
            for (let sequence = 0; sequence <= messages.length; sequence++) {
              expect(answersAt(view, sequence)).toBe(answersAt(reference, sequence));
            }
          }
        },
      ),
      { numRuns: 60 },
    );
  });
});
