import {
  Dictionary,
  Float64,
  Int32,
  Int64,
  LargeUtf8,
  Null,
  RecordBatchFileWriter,
  Table,
  TimestampMillisecond,
  tableToIPC,
  Utf8,
  vectorFromArray,
} from 'apache-arrow';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { EdgeColumns } from '../../../libs/dataflow/edge-columns.ts';
import { decodePayload, decodePayloadAs } from '../../../libs/dataflow/payload.ts';
import { splitPayload } from '../../../libs/dataflow/split-payload.ts';
import { type EdgeSeen, edgesOf } from './edges-of.ts';

const encoder = new TextEncoder();
const ARROW = 'application/vnd.apache.arrow.stream';

/** Reasons name lines and bytes of the part, and only the first of a message are kept. */
const withoutReason = (edge: EdgeSeen): EdgeSeen => (edge.rejected === undefined ? edge : { rejected: '' });

function edges(payload: Uint8Array, contentType: string): EdgeSeen[] {
  const columns = new EdgeColumns();
  expect(decodePayload(payload, contentType, columns)).toBeUndefined();
  return edgesOf(columns).map(withoutReason);
}

/** Splits, and checks that the parts are small enough and have the edges of the whole. */
function split(payload: string | Uint8Array, contentType: string, bytesMax: number): Uint8Array[] {
  const bytes = typeof payload === 'string' ? encoder.encode(payload) : payload;
  const parts = splitPayload(bytes, contentType, bytesMax);
  if (typeof parts === 'string') throw new Error(parts);
  for (const part of parts) expect(part.length).toBeLessThanOrEqual(bytesMax);
  expect(parts.flatMap((part) => edges(part, contentType))).toEqual(edges(bytes, contentType));
  expect(splitPayload(bytes, contentType, bytesMax)).toEqual(parts);
  return parts;
}

const texts = (parts: readonly Uint8Array[]) => parts.map((part) => new TextDecoder().decode(part));

describe('splitPayload', () => {
  it('leaves alone what is small enough', () => {
    const payload = encoder.encode('[]');
    expect(splitPayload(payload, 'application/json', 2)).toEqual([payload]);
  });

  it('cuts a JSON array between its elements', () => {
    const e = (id: string): string => `{"source":"${id}","target":"b"}`;
    expect(texts(split(`[ ${e('a')} , ${e('c')},\n1,${e('d')}]`, 'application/json', 60))).toEqual([
      `[${e('a')} , ${e('c')}]`,
      `[1,${e('d')}]`,
    ]);
  });

  it('cuts NDJSON between its lines, broken and blank ones too', () => {
    const line = '{"source":"a","target":"b"}';
    expect(texts(split(`\ufeff${line}\n\n${line}\nbroken\n${line}`, 'application/x-ndjson', 60))).toEqual([
      `${line}\n\n${line}\n`,
      `broken\n${line}`,
    ]);
  });

  it('cuts CSV between its records and repeats the header', () => {
    expect(texts(split('source,target\r\na,b\r\n\r\n"c\nd",e\r\nf,"g\r\nh,i', 'text/csv', 29))).toEqual([
      'source,target\r\na,b\r\n',
      'source,target\r\n"c\nd",e\r\n',
      'source,target\r\nf,"g\r\nh,i',
    ]);
  });

  it('names an edge that alone is too large, and its size', () => {
    const big = 'x'.repeat(100);
    const json = encoder.encode(`[{"source":"a","target":"b"},{"source":"${big}","target":"b"}]`);
    expect(splitPayload(json, 'application/json', 100)).toBe('edge 1 alone takes 128 bytes of at most 100');
    const csv = encoder.encode(`source,target\na,b\n${big},b\n`);
    expect(splitPayload(csv, 'text/csv', 100)).toBe('edge 1 alone takes 117 bytes of at most 100');
    expect(splitPayload(csv, 'text/csv', 10)).toBe('the header line alone takes 14 bytes of at most 10');
    const table = new Table({
      source: vectorFromArray(['a', 'x'.repeat(1000)], new Utf8()),
      target: vectorFromArray(['b', 'b'], new Utf8()),
    });
    expect(splitPayload(tableToIPC(table, 'stream'), ARROW, 1000)).toMatch(
      /^edge 1 alone takes \d+ bytes of at most 1000$/,
    );
  });

  it('gives the reason of a payload that does not decode', () => {
    expect(splitPayload(encoder.encode('[1,'), 'application/json', 2)).toMatch(/^not valid JSON/);
  });

  it('cuts a payload whose format only its first bytes tell', () => {
    const payload = encoder.encode('{"source":"a","target":"b"}\n{"source":"c","target":"d"}\nx');
    const decoded = decodePayloadAs(payload, undefined, new EdgeColumns());
    expect(decoded).toEqual({ kind: 'decoded', format: 'application/x-ndjson' });
    expect(splitPayload(payload, undefined, 30)).toEqual(splitPayload(payload, 'application/x-ndjson', 30));
  });

  it('keeps the edges of any JSON, NDJSON and CSV', () => {
    const id = fc.string({ maxLength: 12 });
    const edge = fc.oneof(
      fc.record({ source: id, target: id, op: fc.constantFrom('add', 'remove', 'x') }, { requiredKeys: [] }),
      fc.jsonValue({ maxDepth: 1 }),
    );
    fc.assert(
      fc.property(fc.array(edge), fc.integer({ min: 300, max: 600 }), (values, bytesMax) => {
        const json = values.map((value) => JSON.stringify(value));
        split(`[${json.join(', ')}]`, 'application/json', bytesMax);
        split(json.join('\n'), 'application/x-ndjson', bytesMax);
        split(
          json.map((text, i) => (i % 5 === 1 ? text.slice(1) : text)).join('\n'),
          'application/x-ndjson',
          bytesMax,
        );
      }),
      { numRuns: 300 },
    );
    const field = fc.oneof(id, fc.constantFrom('"a"', '"b""c"', '"d\ne"', '"open', '"x"y'));
    const line = fc.array(field, { minLength: 1, maxLength: 3 }).map((fields) => fields.join(','));
    fc.assert(
      fc.property(fc.array(line), fc.integer({ min: 500, max: 600 }), (lines, bytesMax) => {
        split(`source,target\n${lines.join('\n')}`, 'text/csv', bytesMax);
      }),
      { numRuns: 300 },
    );
  });

  it('keeps the edges of Arrow of any types, over batches and nulls', () => {
    const rows = Array.from({ length: 500 }, (_, i) => i);
    const sources = {
      utf8: vectorFromArray(
        rows.map((i) => (i % 11 === 3 ? null : `v${i}`)),
        new Utf8(),
      ),
      large: vectorFromArray(
        rows.map((i) => `é${i}`),
        new LargeUtf8(),
      ),
      dictionary: vectorFromArray(
        rows.map((i) => (i % 7 === 3 ? null : `d${i % 9}`)),
        new Dictionary(new Utf8(), new Int32()),
      ),
      integer: vectorFromArray(
        rows.map((i) => BigInt(i) << 50n),
        new Int64(),
      ),
    };
    for (const source of Object.values(sources)) {
      const table = new Table({
        extra: vectorFromArray(
          rows.map((i) => 'y'.repeat(i % 5)),
          new Utf8(),
        ),
        source,
        target: vectorFromArray(
          rows.map((i) => (i % 13 === 5 ? null : i)),
          new Int32(),
        ),
        time: vectorFromArray(
          rows.map((i) => (i % 3 === 0 ? null : i * 1e9)),
          new TimestampMillisecond(),
        ),
        weight: vectorFromArray(
          rows.map((i) => (i % 17 === 1 ? Number.NaN : i)),
          new Float64(),
        ),
        op: vectorFromArray(
          rows.map((i) => ['add', 'remove', null, 'x'][i % 4]!),
          new Utf8(),
        ),
        id: vectorFromArray(
          rows.map(() => null),
          new Null(),
        ),
      });
      const payload = tableToIPC(table, 'stream');
      const parts = split(payload, ARROW, 4096);
      expect(parts.length).toBeGreaterThan(4);
      expect(parts.length).toBeLessThan(12);
      const file = RecordBatchFileWriter.writeAll([...table.batches, ...table.batches]).toUint8Array(true);
      split(file, 'application/vnd.apache.arrow.file', 10_000);
    }
  });
});
