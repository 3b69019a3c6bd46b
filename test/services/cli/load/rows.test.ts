/** What becomes of single rows, in each format. */

import {
  Field,
  Float64,
  Int64,
  List,
  makeData,
  RecordBatch,
  RecordBatchFileWriter,
  RecordBatchStreamWriter,
  Schema,
  Struct,
  TimestampMillisecond,
  tableFromArrays,
  tableToIPC,
  Utf8,
  vectorFromArray,
} from 'apache-arrow';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CliError, EXIT } from '../../../../services/cli/exit.ts';
import type { LoadFlags } from '../../../../services/cli/load/load-options.ts';
import { type Loaded, loadedText } from './loaded.ts';

async function reasonsOf(text: string | Uint8Array, flags: LoadFlags = {}): Promise<string[]> {
  const { reasons } = await loadedText(text, flags);
  return reasons.map(({ place, reason }) => `${place}: ${reason}`);
}

const seen = ({ rows, refused, reasons, edges, times, error }: Loaded): object => ({
  rows,
  refused,
  reasons,
  edges,
  times,
  error: error instanceof Error ? error.message : error,
});

describe('delimited rows', () => {
  it('are the same wherever chunks are cut', async () => {
    const piece = fc.constantFrom(
      'a',
      'b,c',
      ',',
      '\n',
      '\r',
      '\r\n',
      '"',
      '""',
      '"x,y"',
      '# ',
      ' ',
      'é',
      '\n#',
    );
    await fc.assert(
      fc.asyncProperty(
        fc.array(piece, { maxLength: 40 }),
        fc.integer({ min: 1, max: 9 }),
        async (pieces, size) => {
          const text = `# head\nsource,target\na,b\n${pieces.join('')}`;
          const flags = { delimiter: ',', header: true };
          expect(seen(await loadedText(text, flags, size))).toEqual(
            seen(await loadedText(text, flags, 10_000)),
          );
        },
      ),
      { numRuns: 300 },
    );
  });

  it('give back every id that a CSV writer can write', async () => {
    const id = fc.string({ unit: 'binary', minLength: 1, maxLength: 12 }).filter((text) => text !== '\\N');
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(id, id), { minLength: 1 }),
        fc.integer({ min: 1, max: 50 }),
        async (edges, size) => {
          const quoted = (text: string): string => `"${text.replaceAll('"', '""')}"`;
          const lines = edges.map((edge) => edge.map(quoted).join(','));
          const file = await loadedText(
            ['"source","target"', ...lines].join('\r\n'),
            { delimiter: ',' },
            size,
          );
          expect(file.edges).toEqual(edges.map((edge) => edge.map((text) => text)));
        },
      ),
      { numRuns: 300 },
    );
  });

  it('are refused alone, with their line', async () => {
    const long = 'x'.repeat(1025);
    const rows = `source,target\na,b\n,c\nd,\n\\N,e\n${long},f\n"g"h,i\nj\nk,l,m\n\nn,o`;
    expect((await loadedText(rows)).edges).toEqual([
      ['a', 'b'],
      ['n', 'o'],
    ]);
    expect(await reasonsOf(rows)).toEqual([
      'line 3: source is empty',
      'line 4: target is empty',
      'line 5: source "\\\\N" stands for no value',
      'line 6: source has 1025 bytes: an id has 1 to 1024',
      'line 7: text after a closing quote',
      'line 8: 1 field in place of 2',
      'line 9: 3 fields in place of 2',
    ]);
    const latin1 = Buffer.from('source,target\ncaf\xe9,b\n', 'latin1');
    expect(await reasonsOf(latin1)).toEqual(['line 2: source "caf\ufffd" is not UTF-8 text']);
  });

  it('count all refusals and keep the first ten', async () => {
    const file = await loadedText(`source,target\na,b\n${'x,\n'.repeat(25)}`);
    expect([file.rows, file.refused, file.reasons.length]).toEqual([26, 25, 10]);
  });

  it('take the words of a person for null beside \\N', async () => {
    const text = 'source,target\na,NULL\na,NA\na,b\n';
    expect((await loadedText(text)).edges).toHaveLength(3);
    expect((await loadedText(text, { null: ['NULL', 'NA'] })).edges).toEqual([['a', 'b']]);
  });

  it('are refused for a bad time, weight or op, and not for an absent weight', async () => {
    const text = [
      'source,target,time,weight,op',
      'a,b,2024-01-01,1.5,add',
      'c,d,,2,add',
      'e,f,2024-02-30,2,add',
      'g,h,2024-01-01,,',
      'i,j,2024-01-01,1e999,',
      'k,l,2024-01-01,2,remove',
    ].join('\n');
    expect(await reasonsOf(text)).toEqual([
      'line 3: time "" is empty',
      'line 4: time "2024-02-30" is no time',
      'line 6: weight "1e999" is not a finite number',
      'line 7: op "remove" is not "add"',
    ]);
  });

  it('may have more columns or fewer, as long as the ids are there', async () => {
    const file = await loadedText(`${'a b\n'.repeat(10)}c d 7\ne\nf g 7 8\n`);
    expect(file.edges).toHaveLength(12);
    expect(file.reasons).toEqual([{ place: 'line 12', reason: '1 field, and 2 are needed' }]);
  });
});

describe('NDJSON rows', () => {
  it('are the same wherever chunks are cut', async () => {
    const piece = fc.constantFrom(
      '{"source":"a","target":"b"}',
      '\n',
      '\r\n',
      '{',
      '"',
      '\\',
      ' ',
      '7',
      '\n\n',
    );
    await fc.assert(
      fc.asyncProperty(
        fc.array(piece, { maxLength: 20 }),
        fc.integer({ min: 1, max: 30 }),
        async (pieces, size) => {
          const text = `{"source":"a","target":"b"}\n${pieces.join('')}`;
          expect(seen(await loadedText(text, {}, size))).toEqual(seen(await loadedText(text, {}, 10_000)));
        },
      ),
      { numRuns: 300 },
    );
  });

  it('give back every id', async () => {
    const id = fc.string({ unit: 'binary', minLength: 1, maxLength: 12 });
    await fc.assert(
      fc.asyncProperty(fc.array(fc.tuple(id, id), { minLength: 1 }), async (edges) => {
        const lines = edges.map(([source, target]) => JSON.stringify({ source, target }));
        expect((await loadedText(lines.join('\n'), {}, 64)).edges).toEqual(edges);
      }),
      { numRuns: 300 },
    );
  });

  it('are refused alone, with their line', async () => {
    const text = [
      '{"source":"a","target":"b"}',
      '{"source":"a","target":"b"',
      '{"source":"a"}',
      '{"source":1.5,"target":"b"}',
      '{"source":true,"target":"b"}',
      '["a","b"]',
      '{"source":"\\ud800","target":"b"}',
      '{"source":"a","target":"b","time":"soon"}',
      '{"source":"a","target":"b","weight":"1"}',
      '{"source":"a","target":""}',
      '',
      '{"source":9007199254740991,"target":"\\u0062","time":1700000000123}',
    ].join('\n');
    expect(await reasonsOf(text)).toEqual([
      'line 2: not valid JSON at byte 27: unexpected end',
      'line 3: target is missing',
      'line 4: source 1.5 is not written as an integer: quote it',
      'line 5: source true is not a string',
      'line 6: ["a","b"] is not an edge object',
      'line 7: source "\\ud800" has half a surrogate pair',
      'line 8: time "soon" is no time',
      'line 9: weight "1" is not a finite number',
      'line 10: target is empty',
    ]);
    const { edges, times } = await loadedText(text);
    expect(edges.at(-1)).toEqual(['9007199254740991', 'b']);
    expect(times.at(-1)).toBe(1_700_000_000_123);
  });

  it('have keys that their names tell, or that are chosen', async () => {
    const known = '{"from":"a","to":"b","at":1}\n{"from":"b","to":"c"}\n';
    expect((await loadedText(known)).description).toBe('NDJSON, source = "from", target = "to"');
    expect((await loadedText(known)).edges).toHaveLength(2);
    const odd = '{"x":"a","y":"b","z":"c"}\n';
    await expect(loadedText(odd)).rejects.toMatchObject({ status: EXIT.usage });
    expect((await loadedText(odd, { source: 'z', target: 'x' })).edges).toEqual([['c', 'a']]);
    expect((await loadedText('{"x":"a","y":"b"}\n')).edges).toEqual([['a', 'b']]);
  });

  it('may be longer than a sample, and no longer than 4 MiB', async () => {
    const line = (length: number): string => `{"source":"a","note":"${'n'.repeat(length)}","target":"b"}`;
    const text = [line(500_000), line(5_000_000), '{"source":"c","target":"d"}'].join('\n');
    const file = await loadedText(text, {}, 65_536);
    expect(file.edges).toEqual([
      ['a', 'b'],
      ['c', 'd'],
    ]);
    expect(file.reasons).toEqual([{ place: 'line 2', reason: 'longer than 4194304 bytes' }]);
  });

  it('are trimmed on request', async () => {
    expect((await loadedText('{"source":" a","target":"b "}\n', { trim: true })).edges).toEqual([['a', 'b']]);
  });
});

describe('JSON rows', () => {
  it('are the elements of an array, or objects over several lines', async () => {
    const edges = [
      { source: 'a"[', target: 'b\\' },
      { source: 'c', target: 'd}', more: [{ x: ['}'] }] },
    ];
    const expected = edges.map(({ source, target }) => [source, target]);
    for (const text of [
      JSON.stringify(edges),
      JSON.stringify(edges, null, 2),
      edges.map((edge) => JSON.stringify(edge, null, 2)).join('\n'),
      ` [ ${JSON.stringify(edges[0])}\n,\n${JSON.stringify(edges[1])} ] `,
    ]) {
      for (const size of [1, 5, 1000]) {
        const file = await loadedText(text, {}, size);
        expect(file.error).toBeUndefined();
        expect(file.edges).toEqual(expected);
      }
    }
  });

  it('may be a single edge, or none', async () => {
    expect((await loadedText('{\n"source": "a",\n"target": "b"\n}')).edges).toEqual([['a', 'b']]);
    expect(await loadedText('[]')).toMatchObject({ rows: 0, error: undefined });
  });

  it('are refused alone as long as their ends can be found', async () => {
    const text =
      '[{"source":"a","target":"b"},7,"x",[1],{"source":1,"target":tru},{"source":"c","target":"d"}]';
    const file = await loadedText(text, {}, 3);
    expect(file.edges).toHaveLength(2);
    expect(file.reasons.map(({ place, reason }) => `${place}: ${reason}`)).toEqual([
      'element 2: 7 is not an edge object',
      'element 3: "x" is not an edge object',
      'element 4: [1] is not an edge object',
      expect.stringMatching(/^element 5: not valid JSON/),
    ]);
  });

  it('end with an error where the array does not', async () => {
    const file = await loadedText('[{"source":"a","target":"b"},{"source":"c"');
    expect(file.edges).toEqual([['a', 'b']]);
    expect(file.error).toMatchObject({ status: EXIT.failed, message: expect.stringContaining('cut short') });
    const broken = await loadedText('[{"source":"a","target":"b"} {"source":"c","target":"d"}]');
    expect(broken.edges).toEqual([['a', 'b']]);
    expect(broken.error).toMatchObject({
      status: EXIT.failed,
      message: expect.stringContaining('not valid JSON at byte 30: unexpected "{"'),
    });
  });
});

describe('Arrow rows', () => {
  const table = tableFromArrays({
    from: ['a', 'b', 'c'],
    to: ['b', 'c', 'd'],
    weight: Float64Array.of(1, 2, 3),
  });

  it('come from the stream and from the file format, wherever chunks are cut', async () => {
    for (const container of ['stream', 'file'] as const) {
      for (const size of [1, 7, 100_000]) {
        const file = await loadedText(tableToIPC(table, container), {}, size);
        expect(file.error).toBeUndefined();
        expect(file.description).toBe(
          `Arrow ${container}, source = column 1 "from", target = column 2 "to", weight = column 3 "weight"`,
        );
        expect(file.edges).toEqual([
          ['a', 'b'],
          ['b', 'c'],
          ['c', 'd'],
        ]);
      }
    }
  });

  it('come from many batches, with integers, times and nulls', async () => {
    const schema = new Schema([
      new Field('id', new Int64(), true),
      new Field('name', new Utf8(), true),
      new Field('time', new TimestampMillisecond(), true),
    ]);
    const batch = (first: number): RecordBatch => {
      const ids = vectorFromArray([BigInt(first), BigInt(first + 1), null], new Int64());
      const names = vectorFromArray(['x', 'y', 'z'], new Utf8());
      const times = vectorFromArray([new Date(1000 * first), null, null], new TimestampMillisecond());
      const children = [ids, names, times].map((column) => column.data[0]!);
      return new RecordBatch(
        schema,
        makeData({ type: new Struct(schema.fields), length: 3, nullCount: 0, children }),
      );
    };
    const writer = new RecordBatchStreamWriter();
    for (const first of [900_719_925, 20, 30]) writer.write(batch(first));
    writer.finish();
    const file = await loadedText(writer.toUint8Array(true), { source: 'name', target: 'id' }, 100);
    expect(file.edges).toEqual([
      ['x', '900719925'],
      ['y', '900719926'],
      ['x', '20'],
      ['y', '21'],
      ['x', '30'],
      ['y', '31'],
    ]);
    expect(file.times.slice(2, 4)).toEqual([20_000, Number.NaN]);
    expect(file.reasons.map(({ place, reason }) => `${place}: ${reason}`)).toEqual([
      'row 3: target is null',
      'row 6: target is null',
      'row 9: target is null',
    ]);
  });

  it('have integer times in milliseconds, or in the unit given', async () => {
    const bytes = tableToIPC(
      tableFromArrays({ source: ['a'], target: ['b'], time: BigInt64Array.of(1_700_000_000n) }),
      'stream',
    );
    expect((await loadedText(bytes)).times).toEqual([1_700_000_000]);
    expect((await loadedText(bytes, { timeUnit: 's' })).times).toEqual([1_700_000_000_000]);
  });

  it('come from a file with its schema at the start, as all other libraries write it', async () => {
    const magic = Buffer.from('ARROW1');
    const bytes = Buffer.concat([
      magic,
      Buffer.alloc(2),
      tableToIPC(table, 'stream'),
      Buffer.alloc(64, 7),
      magic,
    ]);
    for (const size of [1, 1000]) {
      const file = await loadedText(bytes, {}, size);
      expect(file.error).toBeUndefined();
      expect(file.edges).toHaveLength(3);
    }
    const cut = await loadedText(bytes.subarray(0, bytes.length - 3));
    expect(cut.edges).toHaveLength(3);
    expect(cut.error).toMatchObject({ status: EXIT.failed, message: expect.stringContaining('cut short') });
  });

  it('end with an error where the file does', async () => {
    const stream = tableToIPC(table, 'stream');
    const cut = await loadedText(stream.subarray(0, stream.length - 300), {}, 50);
    expect(cut.error).toMatchObject({ status: EXIT.failed, message: expect.stringContaining('cut short') });
    const file = tableToIPC(table, 'file');
    await expect(loadedText(file.subarray(0, file.length - 3))).rejects.toThrow('no end mark');
    const trailing = await loadedText(Buffer.concat([stream, stream]));
    expect(trailing.edges).toHaveLength(3);
    expect(trailing.error).toMatchObject({
      message: expect.stringContaining('follow the end of the stream'),
    });
  });

  it('are never made of damage', async () => {
    const stream = tableToIPC(table, 'stream');
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(fc.nat(stream.length - 1), fc.nat(255)), { minLength: 1, maxLength: 4 }),
        async (changes) => {
          const damaged = Uint8Array.from(stream);
          for (const [at, byte] of changes) damaged[at] = byte;
          const outcome = await loadedText(damaged, {}, 64).catch((error: unknown) => ({ error }));
          if (outcome.error !== undefined) expect(outcome.error).toBeInstanceOf(CliError);
        },
      ),
      { numRuns: 2000 },
    );
  });

  it('need columns that can be ids and times', async () => {
    const item = new Field('item', new Utf8(), true);
    const schema = new Schema([
      new Field('source', new Utf8(), false),
      new Field('target', new Float64(), false),
      new Field('time', new List(item), true),
    ]);
    const writer = new RecordBatchFileWriter();
    const children = [
      vectorFromArray(['a'], new Utf8()).data[0]!,
      vectorFromArray([1.5], new Float64()).data[0]!,
      vectorFromArray([['x']], new List(item)).data[0]!,
    ];
    const struct = makeData({ type: new Struct(schema.fields), length: 1, nullCount: 0, children });
    writer.write(new RecordBatch(schema, struct));
    writer.finish();
    const file = await loadedText(writer.toUint8Array(true));
    expect(file.description).toContain('the type of column 3 "time" is none of times: no time');
    expect(file.error).toMatchObject({
      status: EXIT.failed,
      message: expect.stringContaining('the column target is of type Float64, not text or integers'),
    });
  });
});
