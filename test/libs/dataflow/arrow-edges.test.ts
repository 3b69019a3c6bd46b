import {
  Bool,
  CompressionType,
  compressionRegistry,
  type DataType,
  DateDay,
  DateMillisecond,
  Dictionary,
  Field,
  Float16,
  Float32,
  Float64,
  Int8,
  Int16,
  Int32,
  Int64,
  LargeUtf8,
  List,
  makeData,
  Null,
  RecordBatch,
  RecordBatchFileWriter,
  RecordBatchStreamWriter,
  Schema,
  Struct,
  Table,
  TimestampMicrosecond,
  TimestampMillisecond,
  TimestampNanosecond,
  TimestampSecond,
  tableFromArrays,
  tableToIPC,
  Uint8,
  Uint16,
  Uint32,
  Uint64,
  Utf8,
  Utf8View,
  type Vector,
  vectorFromArray,
} from 'apache-arrow';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { EdgeColumns } from '../../../libs/dataflow/edge-columns.ts';
import { decodePayload } from '../../../libs/dataflow/payload.ts';
import { type EdgeSeen, edgesOf } from './edges-of.ts';

const ARROW = 'application/vnd.apache.arrow.stream';

function decode(payload: Uint8Array): EdgeSeen[] | string {
  const columns = new EdgeColumns();
  return decodePayload(payload, ARROW, columns) ?? edgesOf(columns);
}

/** A stream of one batch. */
function stream(columns: Record<string, Vector>): Uint8Array {
  return tableToIPC(new Table(columns), 'stream');
}

function column(type: DataType, values: readonly unknown[]): Vector {
  return vectorFromArray(values as unknown[], type);
}

const utf8 = (values: readonly (string | null)[]) => column(new Utf8(), values);
const AB = [{ source: 'a', target: 'b' }];

/** Integers of a wide type as the library stores them. */
function timeColumn(type: DataType, values: readonly bigint[]): Vector {
  const data = BigInt64Array.from(values);
  return new Table(
    new Schema([new Field('x', type)]),
    new RecordBatch(
      new Schema([new Field('x', type)]),
      makeData({
        type: new Struct([new Field('x', type)]),
        length: values.length,
        children: [makeData({ type: type as Int64, length: values.length, data })],
      }),
    ),
  ).getChildAt(0)!;
}

describe('Arrow ids', () => {
  const ids = ['ann', 'b', 'é€😀', 'x'.repeat(1024), 'ann', '\u0000'];

  it.each([
    ['utf8', () => new Utf8()],
    ['large utf8', () => new LargeUtf8()],
    ['a dictionary', () => new Dictionary(new Utf8(), new Int32())],
    ['a dictionary of small indices', () => new Dictionary(new Utf8(), new Int8())],
    ['a dictionary of unsigned indices', () => new Dictionary(new Utf8(), new Uint16())],
    ['a dictionary of large utf8', () => new Dictionary(new LargeUtf8(), new Int16())],
  ])('may be %s', (_, type) => {
    const source = column(type(), ids);
    const target = column(type(), ids.toReversed());
    expect(decode(stream({ source, target }))).toEqual(
      ids.map((id, i) => ({ source: id, target: ids.at(-1 - i) })),
    );
  });

  it.each<[string, DataType, (number | bigint)[]]>([
    ['int8', new Int8(), [-128, 0, 127]],
    ['int16', new Int16(), [-32768, 10, 32767]],
    ['int32', new Int32(), [-2147483648, -1, 2147483647]],
    ['int64', new Int64(), [-9223372036854775808n, 9007199254740993n, 9223372036854775807n]],
    ['uint8', new Uint8(), [0, 9, 255]],
    ['uint16', new Uint16(), [0, 99, 65535]],
    ['uint32', new Uint32(), [0, 100, 4294967295]],
    ['uint64', new Uint64(), [0n, 9007199254740992n, 18446744073709551615n]],
  ])('may be %s, as their digits', (_, type, values) => {
    // Two columns that share memory would come out of the library's writer as one.
    expect(decode(stream({ source: column(type, values), target: column(type, values) }))).toEqual(
      values.map((value) => ({ source: String(value), target: String(value) })),
    );
  });

  it('reject their edge if null, empty, too long or no UTF-8', () => {
    const source = utf8(['a', null, '', 'x'.repeat(1025), 'e']);
    const target = column(new Int32(), [1, 2, 3, 4, null]);
    expect(decode(stream({ source, target }))).toEqual([
      { source: 'a', target: '1' },
      { rejected: 'source is null' },
      { rejected: 'source is empty: an id has 1 to 1024 bytes' },
      { rejected: 'source has 1025 bytes: an id has 1 to 1024' },
      { rejected: 'target is null' },
    ]);
    const dictionary = () => column(new Dictionary(new Utf8(), new Int32()), ['a', null, 'b']);
    expect(decode(stream({ source: dictionary(), target: dictionary() }))).toEqual([
      { source: 'a', target: 'a' },
      { rejected: 'source is null' },
      { source: 'b', target: 'b' },
    ]);
  });

  it.each<[string, DataType, unknown[]]>([
    ['Bool', new Bool(), [true]],
    ['Float64', new Float64(), [1]],
    ['Null', new Null(), [null]],
    ['List<Utf8>', new List(new Field('item', new Utf8())), [['a']]],
    ['Utf8View', new Utf8View(), ['a']],
  ])('of type %s reject the message', (name, type, values) => {
    const reason = decode(stream({ source: column(type, values), target: utf8(['b']) }));
    expect(reason).toBe(`Arrow: the column source is of type ${name}, not text or integers`);
  });

  it('are not copied if one batch has them as text', () => {
    const payload = stream({ source: utf8(['a', 'b']), target: utf8(['c', 'd']) });
    const columns = new EdgeColumns();
    expect(decodePayload(payload, ARROW, columns)).toBeUndefined();
    expect(columns.source.bytes.buffer).toBe(payload.buffer);
    expect(columns.target.bytes.buffer).toBe(payload.buffer);
  });

  it('are found in a payload at any place in memory', () => {
    const payload = stream({ source: utf8(['a']), target: column(new Int64(), [5n]) });
    for (let shift = 0; shift < 9; shift++) {
      const memory = new Uint8Array(payload.length + shift);
      memory.set(payload, shift);
      expect(decode(memory.subarray(shift))).toEqual([{ source: 'a', target: '5' }]);
    }
  });
});

describe('an Arrow message', () => {
  it('must have source and target, once', () => {
    expect(decode(stream({ source: utf8(['a']), to: utf8(['b']) }))).toBe(
      'Arrow: no column target, only "source", "to"',
    );
    const fields = ['source', 'target', 'source'].map((name) => new Field(name, new Utf8()));
    const children = fields.map(() => utf8(['a']).data[0]!);
    const struct = makeData({ type: new Struct(fields), length: 1, children });
    const batch = new RecordBatch(new Schema(fields), struct);
    expect(decode(RecordBatchStreamWriter.writeAll([batch]).toUint8Array(true))).toBe(
      'Arrow: the column source is there more than once',
    );
  });

  it('may have other columns, of any type', () => {
    expect(
      decode(
        stream({
          tags: column(new List(new Field('item', new Utf8())), [['x', 'y'], []]),
          source: utf8(['a', 'c']),
          flag: column(new Bool(), [true, null]),
          target: utf8(['b', 'd']),
          label: column(new Dictionary(new Utf8(), new Int8()), ['p', 'q']),
        }),
      ),
    ).toEqual([
      { source: 'a', target: 'b' },
      { source: 'c', target: 'd' },
    ]);
  });

  it('may be made by tableFromArrays', () => {
    const table = tableFromArrays({
      source: ['a', 'b'],
      target: Int32Array.of(1, 2),
      weight: Float64Array.of(0.5, Number.NaN),
    });
    expect(decode(tableToIPC(table, 'stream'))).toEqual([
      { source: 'a', target: '1' },
      { rejected: 'weight is not a finite number' },
    ]);
  });

  it('counts on through its batches, with new dictionaries and additions to them', () => {
    const type = new Dictionary(new Utf8(), new Int32(), 7);
    const batches = [['a', 'b'], [], ['c', null, 'c'], ['a']].map((values) => {
      const source = column(type, values);
      return new Table({ source, target: utf8(values.map((value) => `${value}!`)) }).batches[0]!;
    });
    const payload = RecordBatchStreamWriter.writeAll(batches).toUint8Array(true);
    expect(decode(payload)).toEqual([
      { source: 'a', target: 'a!' },
      { source: 'b', target: 'b!' },
      { source: 'c', target: 'c!' },
      { rejected: 'source is null' },
      { source: 'c', target: 'c!' },
      { source: 'a', target: 'a!' },
    ]);
  });

  it('may be cut out of a larger table, nulls included', () => {
    const table = new Table({
      source: utf8(['a', null, 'c', 'd', null, 'f', 'g', 'h', 'i', null]),
      target: column(new Int16(), [0, 1, 2, null, 4, 5, 6, 7, 8, 9]),
      time: column(new TimestampMillisecond(), [0, 1, 2, 3, 4, null, 6, 7, 8, 9]),
    });
    expect(decode(tableToIPC(table.slice(2, 10), 'stream'))).toEqual([
      { source: 'c', target: '2', time: 2 },
      { rejected: 'target is null' },
      { rejected: 'source is null' },
      { source: 'f', target: '5' },
      { source: 'g', target: '6', time: 6 },
      { source: 'h', target: '7', time: 7 },
      { source: 'i', target: '8', time: 8 },
      { rejected: 'source is null' },
    ]);
  });

  it('may have no rows and no batches', () => {
    expect(decode(stream({ source: utf8([]), target: utf8([]) }))).toEqual([]);
    const schema = new Schema([new Field('source', new Utf8()), new Field('target', new Utf8())]);
    const writer = new RecordBatchStreamWriter();
    writer.reset(undefined, schema);
    expect(decode(writer.finish().toUint8Array(true))).toEqual([]);
  });

  it('may have the file format', () => {
    const table = new Table({
      source: column(new Dictionary(new Utf8(), new Int32()), ['a', 'c']),
      target: utf8(['b', 'd']),
    });
    const batches = [...table.batches, ...table.batches];
    const payload = RecordBatchFileWriter.writeAll(batches).toUint8Array(true);
    expect(decode(payload)).toEqual([
      { source: 'a', target: 'b' },
      { source: 'c', target: 'd' },
      { source: 'a', target: 'b' },
      { source: 'c', target: 'd' },
    ]);
  });
});

describe('Arrow times', () => {
  const timed = (time: Vector) => {
    const letters = Array.from({ length: time.length }, () => 'a');
    return decode(stream({ source: utf8(letters), target: utf8(letters), time }));
  };
  const times = (time: Vector) => {
    const edges = timed(time);
    return typeof edges === 'string' ? edges : edges.map((edge) => edge.rejected ?? edge.time);
  };

  it.each([
    ['seconds', new TimestampSecond(), [-2n, 1_700_000_000n], [-2000, 1_700_000_000_000]],
    ['milliseconds', new TimestampMillisecond(), [-1n, 1_700_000_000_123n], [-1, 1_700_000_000_123]],
    ['microseconds', new TimestampMicrosecond(), [-1n, 1_700_000_000_123_999n], [-1, 1_700_000_000_123]],
    [
      'nanoseconds',
      new TimestampNanosecond(),
      [-1n, 1_700_000_000_123_999_999n, 1_700_000_000_124_000_000n],
      [-1, 1_700_000_000_123, 1_700_000_000_124],
    ],
    ['date of milliseconds', new DateMillisecond(), [86_400_000n], [86_400_000]],
    ['int64', new Int64(), [-5n, 5n], [-5, 5]],
  ] as const)('in %s are rounded down to milliseconds', (_, type, values, ms) => {
    expect(times(timeColumn(type, values))).toEqual(ms);
  });

  it('may be days, int32, or ISO 8601 as text', () => {
    expect(times(column(new DateDay(), [new Date(0), new Date(86_400_000 * 3)]))).toEqual([
      0,
      86_400_000 * 3,
    ]);
    expect(times(column(new Int32(), [-7, 7]))).toEqual([-7, 7]);
    expect(times(utf8(['2024-05-06', 'noon', null]))).toEqual([
      Date.UTC(2024, 4, 6),
      'time "noon" is not an ISO 8601 date in the years 1 to 9999',
      undefined,
    ]);
    expect(times(column(new Dictionary(new Utf8(), new Int8()), ['2024-05-06']))).toEqual([
      Date.UTC(2024, 4, 6),
    ]);
  });

  it('that are null are absent', () => {
    expect(times(column(new TimestampMillisecond(), [null, 5]))).toEqual([undefined, 5]);
    expect(times(column(new Null(), [null]))).toEqual([undefined]);
  });

  it('out of range reject their edge', () => {
    expect(times(timeColumn(new TimestampSecond(), [9_223_372_036_854_775_807n, 1n]))).toEqual([
      'time 9223372036854775807 is not in the years 1 to 9999',
      1000,
    ]);
  });

  it('of another type reject the message', () => {
    expect(times(column(new Bool(), [true]))).toBe(
      'Arrow: the column time is of type Bool, not timestamps, dates, integers or text',
    );
  });
});

describe('Arrow weights, ids and ops', () => {
  const one = (name: string, vector: Vector) =>
    decode(stream({ source: utf8(['a']), target: utf8(['b']), [name]: vector }));

  it('a weight is any finite number', () => {
    for (const type of [new Float16(), new Float32(), new Float64()]) {
      expect(one('weight', column(type, [1.5]))).toEqual(AB);
      expect(one('weight', column(type, [Number.POSITIVE_INFINITY]))).toEqual([
        { rejected: 'weight is not a finite number' },
      ]);
      expect(one('weight', column(type, [Number.NaN]))).toEqual([
        { rejected: 'weight is not a finite number' },
      ]);
      expect(one('weight', column(type, [null]))).toEqual(AB);
    }
    expect(one('weight', column(new Int64(), [9223372036854775807n]))).toEqual(AB);
    expect(one('weight', utf8(['1']))).toBe('Arrow: the column weight is of type Utf8, not numbers');
  });

  it('an id is text or an integer', () => {
    expect(one('id', utf8(['e1']))).toEqual(AB);
    expect(one('id', column(new Int32(), [1]))).toEqual(AB);
    expect(one('id', column(new Float64(), [1]))).toBe(
      'Arrow: the column id is of type Float64, not text or integers',
    );
  });

  it('an op is add or remove', () => {
    expect(one('op', utf8(['remove']))).toEqual([{ source: 'a', target: 'b', op: 'remove' }]);
    expect(one('op', column(new Dictionary(new Utf8(), new Int8()), ['add']))).toEqual(AB);
    expect(one('op', utf8([null]))).toEqual(AB);
    expect(one('op', utf8(['drop']))).toEqual([{ rejected: 'op "drop" is neither "add" nor "remove"' }]);
    expect(one('op', column(new Int8(), [0]))).toBe('Arrow: the column op is of type Int8, not text');
  });
});

describe('damaged Arrow', () => {
  const sample = (): Uint8Array =>
    stream({
      source: column(new Dictionary(new Utf8(), new Int32()), ['a', 'c', null]),
      target: utf8(['b', 'd', 'e']),
      time: column(new TimestampMillisecond(), [1, 2, null]),
      weight: column(new Float64(), [1, 2, 3]),
      tags: column(new List(new Field('item', new Utf8())), [['x'], [], ['y']]),
    });
  const file = (): Uint8Array =>
    RecordBatchFileWriter.writeAll(
      new Table({ source: utf8(['a', 'c']), target: utf8(['b', 'd']) }),
    ).toUint8Array(true);

  it('is noticed wherever it is cut', () => {
    for (const payload of [sample(), file()]) {
      // The mark at the end of a stream, 8 bytes, may be missing.
      const bytesAtLeast = payload.length - 8;
      for (let end = 0; end < bytesAtLeast; end++) {
        const seen = decode(payload.subarray(0, end));
        // A cut exactly between two messages leaves a whole stream of fewer batches.
        if (typeof seen !== 'string') expect(seen).toEqual([]);
      }
    }
  });

  it('never throws, loops or makes up edges that are not UTF-8, with any bytes changed', () => {
    const originals = [sample(), file()];
    const change = fc.tuple(fc.nat(), fc.oneof(fc.nat(255), fc.constantFrom(0, 1, 127, 128, 255)));
    fc.assert(
      fc.property(
        fc.constantFrom(...originals),
        fc.array(change, { minLength: 1, maxLength: 4 }),
        (original, changes) => {
          const payload = original.slice();
          for (const [at, byte] of changes) payload[at % payload.length] = byte;
          decode(payload);
        },
      ),
      { numRuns: 20_000 },
    );
  });

  it('never throws with any word of it set to any extreme', () => {
    for (const original of [sample(), file()]) {
      for (let at = 0; at + 4 <= original.length; at += 1) {
        for (const word of [-1, 0x7fffffff, -0x80000000, 0, 1, 0x10000, original.length]) {
          const payload = original.slice();
          new DataView(payload.buffer, payload.byteOffset).setInt32(at, word, true);
          decode(payload);
        }
      }
    }
  });

  it('of offsets that go back or beyond the values rejects the message', () => {
    const of = (offsets: Int32Array): Uint8Array => {
      const field = new Field('source', new Utf8());
      const data = makeData({
        type: new Utf8(),
        length: 2,
        valueOffsets: offsets,
        data: Uint8Array.of(97, 98),
      });
      const target = utf8(['x', 'y']).data[0]!;
      const fields = [field, new Field('target', new Utf8())];
      const struct = makeData({ type: new Struct(fields), length: 2, children: [data, target] });
      const good = RecordBatchStreamWriter.writeAll([new RecordBatch(new Schema(fields), struct)]);
      return good.toUint8Array(true);
    };
    const payload = of(Int32Array.of(0, 1, 2));
    expect(decode(payload)).toEqual([
      { source: 'a', target: 'x' },
      { source: 'b', target: 'y' },
    ]);
    const words = new Int32Array(payload.buffer, payload.byteOffset, payload.byteLength >> 2);
    const at = words.findIndex((word, i) => word === 0 && words[i + 1] === 1 && words[i + 2] === 2);
    for (const offsets of [
      [0, -1, 2],
      [0, 2, 1],
      [-1, 1, 2],
      [0, 1, 1000],
      [0, 1 << 30, 2],
    ]) {
      words.set(offsets, at);
      expect(decode(payload)).toBe('Arrow: offset outside of the values');
    }
  });

  it('of something behind the end of the stream rejects the message', () => {
    const payload = sample();
    expect(decode(Uint8Array.from([...payload, ...payload]))).toMatch(
      /^Arrow: \d+ bytes after the end of the stream$/,
    );
  });

  it('of compressed buffers says so', () => {
    // The library has no codec of its own; this one makes the least that it takes for LZ4.
    const frame = [4, 34, 77, 24, 0x40, 0x40, 0];
    compressionRegistry.set(CompressionType.LZ4_FRAME, {
      encode: (data) => Uint8Array.of(...frame, ...data),
    });
    const table = new Table({ source: utf8(['a']), target: utf8(['b']) });
    const writer = new RecordBatchStreamWriter({ compressionType: CompressionType.LZ4_FRAME });
    writer.writeAll(table);
    expect(decode(writer.toUint8Array(true))).toBe('Arrow: compressed buffers are not supported');
  });
});
