import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type DelimitedFormat, DelimitedReader, RECORD_BYTES_MAX } from '../../../libs/dataflow/delimited.ts';

const encoder = new TextEncoder();
const CSV: DelimitedFormat = { delimiter: 44, quote: 34 };
const TSV: DelimitedFormat = { delimiter: 9 };
const TRIMMED: DelimitedFormat = { delimiter: 44, quote: 34, trim: true };
const BLANKS: DelimitedFormat = { delimiter: 'blanks', quote: 34 };

interface Seen {
  readonly line: number;
  readonly fields: readonly string[];
  readonly broken?: string;
  readonly place: readonly [number, number];
}

/** All records of an input that comes in the given chunks. */
function read(format: DelimitedFormat, chunks: readonly Uint8Array[]): Seen[] {
  const reader = new DelimitedReader(format);
  const seen: Seen[] = [];
  for (const [i, chunk] of chunks.entries()) {
    reader.push(chunk, i === chunks.length - 1);
    while (reader.next()) {
      const fields: string[] = [];
      for (let f = 0; f < reader.fieldCount; f++) {
        fields.push(new TextDecoder().decode(reader.bytes.subarray(reader.start[f], reader.end[f])));
      }
      seen.push({
        line: reader.line,
        fields,
        ...(reader.broken === undefined ? {} : { broken: reader.broken }),
        place: [reader.recordStart, reader.recordEnd],
      });
    }
  }
  return seen;
}

const whole = (text: string, format: DelimitedFormat): Seen[] => read(format, [encoder.encode(text)]);
const fields = (text: string, format: DelimitedFormat = CSV) =>
  whole(text, format).map((record) => record.fields);
const broken = (text: string, format: DelimitedFormat = CSV) =>
  whole(text, format).map((record) => record.broken ?? record.fields.join('|'));

describe('records', () => {
  it('end with LF, CRLF or CR, and the last without any', () => {
    expect(fields('a,b\nc,d\r\ne,f\rg,h')).toEqual([
      ['a', 'b'],
      ['c', 'd'],
      ['e', 'f'],
      ['g', 'h'],
    ]);
    expect(fields('a,b\rc,d\r')).toEqual([
      ['a', 'b'],
      ['c', 'd'],
    ]);
    expect(fields('')).toEqual([]);
  });

  it('are no blank lines', () => {
    expect(fields('\n\r\n\ra\n\n\nb\n\n')).toEqual([['a'], ['b']]);
  });

  it('have the number of the line where they begin', () => {
    expect(whole('a\n\nb\r\n"c\nd\r\ne\rf"\ng', CSV).map(({ line }) => line)).toEqual([1, 3, 4, 8]);
  });

  it('have a place in the input, line end included', () => {
    expect(whole('\ufeffa,b\r\n\n"c""d"\ne', CSV).map(({ place }) => place)).toEqual([
      [3, 8],
      [9, 16],
      [16, 17],
    ]);
  });

  it('may have empty fields, first and last too', () => {
    expect(fields(',\n,a,\n"",')).toEqual([
      ['', ''],
      ['', 'a', ''],
      ['', ''],
    ]);
    expect(fields('""')).toEqual([['']]);
  });

  it('may have more fields than the reader has room for at first', () => {
    const many = Array.from({ length: 100 }, (_, i) => (i % 7 === 0 ? `"${i}"""` : `${i}`));
    expect(fields(many.join(','))[0]).toEqual(many.map((text) => text.replace(/^"(\d+)"""$/, '$1"')));
  });
});

describe('fields', () => {
  it('keep the blanks around them', () => {
    expect(fields(' a , b \n')).toEqual([[' a ', ' b ']]);
    expect(fields('  \n')).toEqual([['  ']]);
  });

  it('lose them with trim, quoted ones only outside of their quotes', () => {
    expect(fields(' a ,\tb c\t\n', TRIMMED)).toEqual([['a', 'b c']]);
    expect(fields(' " a " ,"b"  \n  \n', TRIMMED)).toEqual([[' a ', 'b']]);
  });

  it('do not lose a tab that delimits', () => {
    expect(fields(' a \t\t b', { ...TSV, trim: true })).toEqual([['a', '', 'b']]);
  });

  it('hold delimiters, line ends and doubled quotes in quotes', () => {
    expect(fields('"a,b","c\r\nd","e""f""","""",""\n')).toEqual([['a,b', 'c\r\nd', 'e"f"', '"', '']]);
  });

  it('hold quotes as they are, except at their start', () => {
    expect(fields('a"b,c""d,e"\n')).toEqual([['a"b', 'c""d', 'e"']]);
    expect(fields(' "a"')).toEqual([[' "a"']]);
  });

  it('hold quotes as they are if the format has none', () => {
    expect(fields('"a\t"b"\n', TSV)).toEqual([['"a', '"b"']]);
  });

  it('hold any bytes', () => {
    const bytes = Uint8Array.of(0, 255, 44, 0xed, 0xa0, 10);
    const reader = new DelimitedReader(CSV);
    reader.push(bytes, true);
    expect(reader.next()).toBe(true);
    expect(reader.bytes.subarray(reader.start[0], reader.end[0])).toEqual(Uint8Array.of(0, 255));
    expect(reader.bytes.subarray(reader.start[1], reader.end[1])).toEqual(Uint8Array.of(0xed, 0xa0));
  });

  it('are separated by runs of blanks, none at the ends of a line', () => {
    expect(fields('a b\n\t a \t b  \n \n  a\t"b c"\t\na', BLANKS)).toEqual([
      ['a', 'b'],
      ['a', 'b'],
      ['a', 'b c'],
      ['a'],
    ]);
    expect(fields('a b  ', BLANKS)).toEqual([['a', 'b']]);
  });

  it('leave the input as it was', () => {
    const bytes = encoder.encode('"a""b","c"\n');
    const before = bytes.slice();
    read(CSV, [bytes]);
    expect(bytes).toEqual(before);
  });

  it('are ranges in the input itself unless quotes are doubled', () => {
    const bytes = encoder.encode('"a",b\nc,d');
    const reader = new DelimitedReader(CSV);
    reader.push(bytes, true);
    while (reader.next()) expect(reader.bytes).toBe(bytes);
  });
});

describe('broken records', () => {
  it('have text after a closing quote, and end with that line', () => {
    expect(broken('a\n"b"c,d\ne\n"f\ng"h,"i\nj')).toEqual([
      'a',
      'line 2: text after a closing quote',
      'e',
      'line 4: text after a closing quote',
      'j',
    ]);
    expect(broken('"a" ,b\nc')).toEqual(['line 1: text after a closing quote', 'c']);
  });

  it('have a quote that nothing closes, and cost one line', () => {
    expect(broken('a,b\nc,"d\ne,f\ng,h')).toEqual([
      'a|b',
      'line 2: quoted field still open at the end of the input',
      'e|f',
      'g|h',
    ]);
    expect(broken('"')).toEqual(['line 1: quoted field still open at the end of the input']);
  });

  it('do not swallow more than their line of a long input', () => {
    const rest = 'a,b\n'.repeat(RECORD_BYTES_MAX / 2);
    const records = whole(`x,"y\n${rest}`, CSV);
    expect(records).toHaveLength(1 + RECORD_BYTES_MAX / 2);
    expect(records[0]!.broken).toBe('line 1: quoted field still open after 1048576 bytes');
    expect(records[1]).toEqual({ line: 2, fields: ['a', 'b'], place: [5, 9] });
  });

  it('are too long, in one line or in many', () => {
    const long = 'x'.repeat(RECORD_BYTES_MAX);
    expect(broken(`a\n${long}\nb`)).toEqual(['a', 'line 2: longer than 1048576 bytes', 'b']);
    expect(broken(`"a\nb",${long}\nc`)).toEqual(['line 1: longer than 1048576 bytes', 'c']);
    expect(fields(`${long.slice(1)}\n`)).toEqual([[long.slice(1)]]);
  });

  it('are not kept in memory while their line end is looked for', () => {
    const reader = new DelimitedReader(CSV);
    const chunk = encoder.encode('x'.repeat(1 << 18));
    for (let i = 0; i < 64; i++) {
      reader.push(chunk, false);
      expect(reader.next()).toBe(false);
      expect(reader.bytes.length).toBeLessThan(2 * RECORD_BYTES_MAX);
    }
    reader.push(encoder.encode('\na,b'), true);
    expect(reader.next()).toBe(true);
    expect(reader.broken).toBe('line 1: longer than 1048576 bytes');
    expect(reader.next()).toBe(true);
    expect([reader.line, reader.recordStart]).toEqual([2, (1 << 24) + 1]);
  });
});

describe('chunks', () => {
  const text = '\ufeffa,b\r\n\r\n"c""d", "e"\r"f\r\n,g"\n\n"h"i,j\r\n"k\rl"m\n ,"",\n"n\no,p\n\r"';

  it.each([
    ['CSV', CSV],
    ['TSV', TSV],
    ['trimmed', TRIMMED],
    ['blanks', BLANKS],
  ])('make no difference to %s, cut at any two places', (_, format) => {
    const bytes = encoder.encode(text);
    const expected = read(format, [bytes]);
    for (let i = 0; i <= bytes.length; i++) {
      for (let j = i; j <= bytes.length; j++) {
        expect(read(format, [bytes.subarray(0, i), bytes.subarray(i, j), bytes.subarray(j)])).toEqual(
          expected,
        );
      }
    }
  });

  it('make no difference to any text, byte by byte', () => {
    const piece = fc.constantFrom('a', 'b', ',', '"', '""', '\n', '\r', '\r\n', ' ', '\t', 'é', '\ufeff');
    fc.assert(
      fc.property(
        fc.array(piece, { maxLength: 30 }),
        fc.constantFrom(CSV, TSV, TRIMMED, BLANKS),
        (pieces, format) => {
          const bytes = encoder.encode(pieces.join(''));
          const singles = Array.from(bytes, (byte) => Uint8Array.of(byte));
          expect(read(format, [...singles, new Uint8Array(0)])).toEqual(read(format, [bytes]));
        },
      ),
      { numRuns: 3000 },
    );
  });

  it('make no difference around the limit of a record', () => {
    for (const quoted of [false, true]) {
      for (const length of [-3, -2, -1, 0, 1]) {
        const long = 'x'.repeat(RECORD_BYTES_MAX + length - (quoted ? 2 : 0));
        const bytes = encoder.encode(`${quoted ? `"${long}"` : long}\r\na,b`);
        const expected = read(CSV, [bytes]);
        expect(expected[0]!.broken !== undefined).toBe(length >= 0);
        for (let cut = RECORD_BYTES_MAX - 5; cut < RECORD_BYTES_MAX + 5; cut++) {
          expect(read(CSV, [bytes.subarray(0, cut), bytes.subarray(cut)])).toEqual(expected);
        }
      }
    }
  });
});

describe('any records', () => {
  it('come back as they were written', () => {
    const field = fc.string({ unit: fc.constantFrom('a', 'é', ',', '"', '\n', '\r', ' ', '\t', '\u0000') });
    const lineEnd = fc.constantFrom('\n', '\r\n', '\r');
    fc.assert(
      fc.property(
        fc.array(fc.array(field, { minLength: 1 })),
        lineEnd,
        fc.boolean(),
        (records, end, always) => {
          const quoted = (text: string): string =>
            always || text === '' || /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
          const written = records.map((record) => record.map(quoted).join(',')).join(end);
          expect(fields(written)).toEqual(records);
        },
      ),
      { numRuns: 1000 },
    );
  });
});
