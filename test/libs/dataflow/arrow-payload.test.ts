import { tableFromIPC } from 'apache-arrow';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ArrowBatchBuilder } from '../../../libs/dataflow/arrow-payload.ts';
import { EdgeColumns } from '../../../libs/dataflow/edge-columns.ts';
import { decodePayload } from '../../../libs/dataflow/payload.ts';
import { edgesOf } from './edges-of.ts';

const encoder = new TextEncoder();

interface Edge {
  readonly source: string;
  readonly target: string;
  readonly time?: number | undefined;
  readonly weight?: number | undefined;
}

function build(builder: ArrowBatchBuilder, edges: readonly Edge[]): Uint8Array {
  for (const { source, target, time, weight } of edges) {
    // Ids are ranges in bytes of something larger.
    const bytes = encoder.encode(`<${source}|${target}>`);
    const middle = 1 + encoder.encode(source).length;
    builder.append(bytes, 1, middle, bytes, middle + 1, bytes.length - 1, time, weight);
  }
  expect(builder.count).toBe(edges.length);
  const bytesMax = builder.bytes;
  const payload = builder.finish();
  expect(payload.length).toBeLessThanOrEqual(bytesMax);
  return payload;
}

function decode(payload: Uint8Array) {
  const columns = new EdgeColumns();
  return decodePayload(payload, undefined, columns) ?? edgesOf(columns);
}

const id = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 20 });
const edge = fc.record(
  {
    source: id,
    target: id,
    time: fc.integer({ min: -62_135_596_800_000, max: 253_402_300_799_999 }),
    weight: fc.double({ noNaN: true, noDefaultInfinity: true }),
  },
  { requiredKeys: ['source', 'target'] },
);

describe('ArrowBatchBuilder', () => {
  it('makes payloads that decode to what was appended, one after the other', () => {
    const builder = new ArrowBatchBuilder();
    fc.assert(
      fc.property(fc.array(edge, { maxLength: 200 }), (edges) => {
        const payload = build(builder, edges);
        expect(decode(payload)).toEqual(
          edges.map(({ source, target, time }) => ({
            source,
            target,
            ...(time === undefined ? {} : { time }),
          })),
        );
        const weights = tableFromIPC(payload).getChild('weight');
        expect(edges.map((_, i) => weights?.get(i) ?? undefined)).toEqual(edges.map(({ weight }) => weight));
      }),
    );
  });

  it('writes time and weight only if an edge of the batch has one', () => {
    const builder = new ArrowBatchBuilder();
    const names = (edges: readonly Edge[]) =>
      tableFromIPC(build(builder, edges)).schema.fields.map(({ name, type }) => `${name}: ${type}`);
    const edges = Array.from({ length: 100 }, (_, i) => ({ source: `${i}`, target: 'b' }));
    expect(names(edges)).toEqual(['source: Utf8', 'target: Utf8']);
    expect(names([...edges, { source: 'a', target: 'b', time: 5, weight: 1 }])).toEqual([
      'source: Utf8',
      'target: Utf8',
      'time: Timestamp<MILLISECOND>',
      'weight: Float64',
    ]);
    expect(names([...edges, { source: 'a', target: 'b', weight: 1 }])).toHaveLength(3);
    expect(names(edges)).toHaveLength(2);
  });

  it('gives an empty payload for no edges', () => {
    expect(decode(build(new ArrowBatchBuilder(), []))).toEqual([]);
  });

  it('keeps ids larger than its first buffers', () => {
    const builder = new ArrowBatchBuilder();
    const edges = [
      { source: 'x'.repeat(1024), target: 'y'.repeat(1024) },
      { source: 'z'.repeat(1000), target: 'b' },
    ];
    expect(decode(build(builder, edges))).toEqual(edges);
  });
});
