/**
 * Strategy. Syntax: random JSON texts, as they are and with bytes changed, must be accepted exactly when
 * JSON.parse accepts them. Rules: random edges, written with random escapes, white space, unknown and duplicate
 * keys, are decoded and compared with an oracle over JSON.parse; numbers, which JSON.parse rounds, by cases.
 */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { EdgeColumns } from '../../../libs/dataflow/edge-columns.ts';
import { DEPTH_MAX, JsonScanner } from '../../../libs/dataflow/json-scanner.ts';
import { decodePayload } from '../../../libs/dataflow/payload.ts';
import { type EdgeSeen, edgesOf } from './edges-of.ts';

const encoder = new TextEncoder();

function decode(text: string | Uint8Array, contentType = 'application/json'): EdgeSeen[] | string {
  const columns = new EdgeColumns();
  const payload = typeof text === 'string' ? encoder.encode(text) : text;
  return decodePayload(payload, contentType, columns) ?? edgesOf(columns);
}

const lines = (text: string | Uint8Array) => decode(text, 'application/x-ndjson');

/** The only edge of a document. */
function one(text: string): EdgeSeen {
  const edges = decode(text);
  if (typeof edges === 'string') throw new Error(edges);
  expect(edges).toHaveLength(1);
  return edges[0]!;
}

/** An edge with one field written as given. */
const withSource = (source: string): EdgeSeen => one(`{"source":${source},"target":"b"}`);
const withField = (name: string, value: string): EdgeSeen =>
  one(`{"source":"a","target":"b","${name}":${value}}`);

describe('JSON syntax', () => {
  const accepts = (bytes: Uint8Array): boolean => {
    const scanner = new JsonScanner(bytes);
    const behind = scanner.value(scanner.blank(0), 0);
    return behind >= 0 && scanner.blank(behind) === bytes.length;
  };
  const parses = (bytes: Uint8Array): boolean => {
    try {
      JSON.parse(new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes));
      return true;
    } catch {
      return false;
    }
  };
  const tokens = [
    '{',
    '}',
    '[',
    ']',
    ',',
    ':',
    '"',
    '\\',
    '0',
    '-',
    '1',
    '.',
    'e',
    'E',
    '+',
    'u',
    'true',
    'null',
  ];

  it('accepts what JSON.parse accepts', () => {
    fc.assert(
      fc.property(fc.json(), fc.nat(4), (text, indent) => {
        const spaced = JSON.stringify(JSON.parse(text), null, indent);
        expect(accepts(encoder.encode(spaced))).toBe(true);
      }),
      { numRuns: 1000 },
    );
  });

  it('refuses what JSON.parse refuses, after any change of bytes', () => {
    const change = fc.record({
      at: fc.nat(),
      byte: fc.nat(255),
      kind: fc.constantFrom('set', 'insert', 'cut'),
    });
    fc.assert(
      fc.property(fc.json(), fc.array(change, { minLength: 1, maxLength: 3 }), (text, changes) => {
        const bytes = Array.from(encoder.encode(text));
        for (const { at, byte, kind } of changes) {
          const place = at % (bytes.length + 1);
          bytes.splice(place, kind === 'insert' ? 0 : 1, ...(kind === 'cut' ? [] : [byte]));
        }
        expect(accepts(Uint8Array.from(bytes))).toBe(parses(Uint8Array.from(bytes)));
      }),
      { numRuns: 5000 },
    );
  });

  it('agrees with JSON.parse about any sequence of tokens', () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...tokens, ' ', '\n', 'a', '\u0001', 'é')), (sequence) => {
        const bytes = encoder.encode(sequence.join(''));
        expect(accepts(bytes)).toBe(parses(bytes));
      }),
      { numRuns: 20_000 },
    );
  });

  it.each([
    '01',
    '-',
    '+1',
    '.5',
    '1.',
    '1e',
    '1e+',
    '0x1',
    'NaN',
    'Infinity',
    'tru',
    'nulll',
    "'a'",
    '"\t"',
    '"\\x"',
    '"\\u12G4"',
    '"\\u12',
    '{"a":1,}',
    '[1,]',
    '[,]',
    '{a:1}',
    '{"a" 1}',
    '[1 2]',
    '',
    ' ',
    '"',
    '\u00a01',
    '1 2',
  ])('refuses %j', (text) => {
    expect(accepts(encoder.encode(text))).toBe(false);
  });

  it('allows values to nest to the limit, and says so beyond it', () => {
    const nested = (levels: number): string => '['.repeat(levels) + ']'.repeat(levels);
    // The edge itself is the first level.
    expect(withField('x', nested(DEPTH_MAX - 1)).source).toBe('a');
    const tooDeep = decode(`{"source":"a","target":"b","x":${nested(DEPTH_MAX)}}`);
    expect(tooDeep).toBe('not valid JSON at byte 94: nested deeper than 64');
  });

  it('survives a payload of nothing but brackets', () => {
    expect(decode('['.repeat(1_000_000))).toMatch(/nested deeper than 64/);
    expect(decode('{"a":'.repeat(200_000))).toMatch(/nested deeper than 64/);
  });

  it('names the byte at which a document breaks', () => {
    expect(decode('[{"source":"a","target":"b"},\n{"source":"a" "target":"b"}]')).toBe(
      'not valid JSON at byte 44: unexpected "\\""',
    );
    expect(decode('{"source":"a"')).toBe('not valid JSON at byte 13: unexpected end');
    expect(decode('')).toBe('not valid JSON at byte 0: unexpected end');
  });

  it('refuses anything behind the document', () => {
    expect(decode('{"source":"a","target":"b"} x')).toMatch(/^not valid JSON at byte 28: unexpected "x"/);
    expect(decode('{"source":"a","target":"b"}{}')).toMatch(/^not valid JSON at byte 27/);
  });
});

describe('JSON edges', () => {
  it('gives what JSON.parse gives, with any escapes, white space, unknown and duplicate keys', () => {
    const escaped = (text: string, choice: number): string =>
      `"${Array.from(
        JSON.stringify(text)
          .slice(1, -1)
          .match(/\\u....|\\.|[^\\]/gsu) ?? [],
      )
        .map((part, i) =>
          part.length === 1 && ((choice >> (i % 30)) & 1) === 1
            ? `\\u${part.charCodeAt(0).toString(16).padStart(4, '0')}`
            : part,
        )
        .join('')}"`;
    const key = fc.oneof(
      { weight: 8, arbitrary: fc.constantFrom('source', 'target') },
      { weight: 1, arbitrary: fc.constantFrom('time', 'weight', 'op', 'id', '__proto__', 'constructor') },
      { weight: 1, arbitrary: fc.string() },
    );
    const text = fc.string({ unit: 'binary', minLength: 0, maxLength: 8 });
    const value = fc.oneof(
      { weight: 6, arbitrary: fc.tuple(text, fc.nat()).map(([t, choice]) => escaped(t, choice)) },
      {
        weight: 1,
        arbitrary: fc.constantFrom('"add"', '"remove"', '"2024-05-06"', 'null', 'true', '7', '1.5'),
      },
      { weight: 1, arbitrary: fc.json() },
    );
    const blank = fc.constantFrom('', ' ', '\n', '\r\n\t');
    const edge = fc
      .array(fc.tuple(key, fc.nat(), value, blank), { maxLength: 6 })
      .map(
        (fields) => `{${fields.map(([k, c, v, w]) => `${w}${escaped(k, c)}${w}:${w}${v}${w}`).join(',')}}`,
      );
    let accepted = 0;
    fc.assert(
      fc.property(fc.array(edge, { maxLength: 4 }), blank, (edges, w) => {
        const text = `${w}[${w}${edges.join(`${w},${w}`)}${w}]${w}`;
        const parsed: unknown[] = JSON.parse(text);
        const seen = decode(text);
        expect(seen).toHaveLength(parsed.length);
        for (const [i, object] of parsed.entries()) {
          const expected = oracle(object as Record<string, unknown>);
          if (expected === 'rejected') expect(seen[i]).toHaveProperty('rejected');
          else {
            expect(seen[i]).toEqual(expected);
            accepted += 1;
          }
        }
      }),
      { numRuns: 3000 },
    );
    expect(accepted).toBeGreaterThan(100);
  });

  it('takes one edge or an array of edges, an empty one too', () => {
    expect(decode(' {"source":"ann","target":"bob"} ')).toEqual([{ source: 'ann', target: 'bob' }]);
    expect(decode('[{"source":"a","target":"b"},{"target":"d","source":"c"}]')).toEqual([
      { source: 'a', target: 'b' },
      { source: 'c', target: 'd' },
    ]);
    expect(decode('[]')).toEqual([]);
    expect(decode('\ufeff[ ]')).toEqual([]);
  });

  it.each(['5', '"a"', 'null', 'true'])('rejects the whole document %s', (text) => {
    expect(decode(text)).toBe(`JSON is neither an edge nor an array of edges: ${text}`);
  });

  it('rejects an element that is no object alone, and counts it', () => {
    expect(decode('[1,{"source":"a","target":"b"},[{"source":"a","target":"b"}],null]')).toEqual([
      { rejected: '1 is not an edge object' },
      { source: 'a', target: 'b' },
      { rejected: '[{"source":"a","target":"b"}] is not an edge object' },
      { rejected: 'null is not an edge object' },
    ]);
  });

  it('takes an integer as its digits', () => {
    for (const digits of ['0', '7', '-7', '1234567890123456', '9007199254740991', '-9007199254740991']) {
      expect(withSource(digits).source).toBe(digits);
    }
  });

  it.each([
    ['9007199254740991.4', 'is not written as an integer'],
    ['9007199254740992', 'is beyond the safe integers'],
    ['9007199254740993', 'is beyond the safe integers'],
    ['-9007199254740993', 'is beyond the safe integers'],
    ['10000000000000000', 'is beyond the safe integers'],
    ['99999999999999999999', 'is beyond the safe integers'],
    ['1e3', 'is not written as an integer'],
    ['1E3', 'is not written as an integer'],
    ['1.0', 'is not written as an integer'],
    ['-0', 'is not written as an integer'],
    ['-0.0', 'is not written as an integer'],
  ])('rejects the number %s as an id', (number, rule) => {
    expect(withSource(number).rejected).toBe(`source ${number} ${rule}: quote it`);
  });

  it('finds a leading zero to be no JSON', () => {
    expect(decode('{"source":01,"target":"b"}')).toMatch(/^not valid JSON at byte 11/);
  });

  it.each(['null', 'true', 'false', '{}', '{"a":[1]}', '[]'])('rejects %s as an id', (value) => {
    expect(withSource(value).rejected).toBe(`source ${value} is not a string`);
    expect(one(`{"source":"a","target":${value}}`).rejected).toBe(`target ${value} is not a string`);
  });

  it('rejects an edge without source or target', () => {
    expect(one('{}').rejected).toBe('source is missing');
    expect(one('{"source":"a"}').rejected).toBe('target is missing');
  });

  it('shortens a value in a reason', () => {
    expect(withSource(`[${'9,'.repeat(500)}9]`).rejected).toBe(
      `source [${'9,'.repeat(19)}9… is not a string`,
    );
  });

  it('ignores unknown keys, __proto__ too, and takes __proto__ as an id', () => {
    expect(one('{"__proto__":{"source":"x"},"a":null,"source":"__proto__","target":"constructor"}')).toEqual({
      source: '__proto__',
      target: 'constructor',
    });
    expect(one('{"__proto__":{"source":"x"},"target":"b"}').rejected).toBe('source is missing');
  });

  it('lets the last of duplicate keys win, be it good or bad', () => {
    expect(one('{"source":"a","source":"c","target":"b"}').source).toBe('c');
    expect(one('{"source":null,"source":"c","target":"b"}').source).toBe('c');
    expect(one('{"source":"a","source":null,"target":"b"}').rejected).toBe('source null is not a string');
    expect(one('{"op":"remove","op":"add","source":"a","target":"b"}')).toEqual({ source: 'a', target: 'b' });
  });

  it('reads escapes in keys and ids', () => {
    expect(
      one('{"so\\u0075rce":"\\u0061\\n\\/\\u00e9\\u20AC\\ud83d\\ude00","\\u0074arget":"\\"\\\\"}'),
    ).toEqual({
      source: 'a\n/é€😀',
      target: '"\\',
    });
  });

  it('does not confuse ids with escapes that follow each other', () => {
    expect(decode('[{"source":"\\u0061","target":"b"},{"source":"\\u0063","target":"\\u0064"}]')).toEqual([
      { source: 'a', target: 'b' },
      { source: 'c', target: 'd' },
    ]);
  });

  it('leaves the payload as it was', () => {
    const payload = encoder.encode('{"source":"\\u0061","target":"\\u0062"}');
    const before = payload.slice();
    decode(payload);
    expect(payload).toEqual(before);
  });

  it.each([
    '\\ud800',
    '\\udc00',
    '\\ud800x',
    '\\ud800\\n',
    '\\ud800\\ud800',
    '\\udc00\\ud800',
    '\\ud800\\u0041',
  ])('rejects the lone surrogate in "%s"', (text) => {
    expect(withSource(`"${text}"`).rejected).toBe(`source "${text}" has half a surrogate pair`);
  });

  it('rejects ids whose bytes are no UTF-8, alone', () => {
    for (const bad of [[0xff], [0xc0, 0x80], [0xed, 0xa0, 0x80], [0xf4, 0x90, 0x80, 0x80], [0xe2, 0x82]]) {
      const payload = Uint8Array.of(
        ...encoder.encode('[{"source":"'),
        ...bad,
        ...encoder.encode('","target":"b"},1]'),
      );
      expect(decode(payload)).toEqual([
        { rejected: 'source is not valid UTF-8' },
        { rejected: '1 is not an edge object' },
      ]);
    }
  });

  it('takes ids with NUL and other control characters, if escaped', () => {
    expect(withSource('"a\\u0000b\\u001f"').source).toBe('a\u0000b\u001f');
    expect(decode('{"source":"a\u0000","target":"b"}')).toMatch(/control character inside of a string/);
  });

  it('takes ids of 1 to 1,024 bytes', () => {
    expect(withSource(`"${'x'.repeat(1024)}"`).source).toHaveLength(1024);
    expect(withSource(`"${'é'.repeat(512)}"`).source).toHaveLength(512);
    expect(withSource(`"${'é'.repeat(512)}x"`).rejected).toBe('source has 1025 bytes: an id has 1 to 1024');
    expect(withSource(`"${'x'.repeat(2_000_000)}"`).rejected).toBe(
      'source has 2000000 bytes: an id has 1 to 1024',
    );
    expect(withSource('""').rejected).toBe('source is empty: an id has 1 to 1024 bytes');
    expect(withSource(`"${'\\u0061'.repeat(1024)}"`).source).toHaveLength(1024);
  });

  it('never trims or normalises an id', () => {
    expect(withSource('" a\\t"').source).toBe(' a\t');
    expect(withSource('"e\u0301"').source).toBe('e\u0301');
  });

  it('takes a time as ISO 8601 or integer milliseconds', () => {
    expect(withField('time', '"2024-05-06T07:08:09+02:00"').time).toBe(Date.UTC(2024, 4, 6, 5, 8, 9));
    expect(withField('time', '"2024-05-0\\u0036"').time).toBe(Date.UTC(2024, 4, 6));
    expect(withField('time', '-1').time).toBe(-1);
    expect(withField('time', '0').time).toBe(0);
  });

  it.each([
    '"yesterday"',
    '"2024-02-30"',
    '""',
    '"12"',
    '1.5',
    '1e3',
    '-0',
    '253402300800000',
    'null',
    'true',
    '{}',
  ])('rejects the time %s', (value) => {
    expect(withField('time', value).rejected).toBe(
      `time ${value} is neither an ISO 8601 date nor integer milliseconds in the years 1 to 9999`,
    );
  });

  it('takes any finite weight, and rejects others', () => {
    for (const value of ['0', '-1.5', '1e308', '1e-999']) expect(withField('weight', value).source).toBe('a');
    for (const value of ['1e309', '-1e999', `${'9'.repeat(400)}`, '"1"', 'null', 'false']) {
      expect(withField('weight', value).rejected).toMatch(/^weight .* is not a finite number$/);
    }
  });

  it('takes an id of the edge as text or integer', () => {
    for (const value of ['"e1"', '""', '5']) expect(withField('id', value).source).toBe('a');
    expect(withField('id', '1.5').rejected).toBe('id 1.5 is not written as an integer: quote it');
    expect(withField('id', 'null').rejected).toBe('id null is neither a string nor an integer');
  });

  it('takes add and remove as op', () => {
    expect(withField('op', '"add"')).toEqual({ source: 'a', target: 'b' });
    expect(withField('op', '"r\\u0065move"').op).toBe('remove');
    for (const value of ['"Add"', '"delete"', '""', 'null', '1', 'true', '"\\ud800"']) {
      expect(withField('op', value).rejected).toBe(`op ${value} is neither "add" nor "remove"`);
    }
  });

  it('keeps the first hundred reasons in the order of the edges, and the exact count', () => {
    const columns = new EdgeColumns();
    // Two passes find these: the empty ids are found after all others.
    const edges = Array.from({ length: 300 }, (_, i) => (i % 2 === 0 ? '{"source":"","target":"b"}' : '7'));
    expect(
      decodePayload(encoder.encode(`[${edges.join(',')}]`), 'application/json', columns),
    ).toBeUndefined();
    expect(columns.rejectedCount).toBe(300);
    expect(columns.reasons.map(({ index }) => index)).toEqual(Array.from({ length: 100 }, (_, i) => i));
  });

  it('forgets what an earlier message left in the columns', () => {
    const columns = new EdgeColumns();
    decodePayload(
      encoder.encode('[1,{"source":"a","target":"b","op":"remove","time":5}]'),
      undefined,
      columns,
    );
    decodePayload(
      encoder.encode('[{"source":"x","target":"y"},{"source":"z","target":"z"}]'),
      undefined,
      columns,
    );
    expect(edgesOf(columns)).toEqual([
      { source: 'x', target: 'y' },
      { source: 'z', target: 'z' },
    ]);
    expect(decodePayload(encoder.encode('[{"source":"x","target":"y"},'), undefined, columns)).toMatch(
      /not valid/,
    );
    expect(columns.count).toBe(0);
  });
});

describe('NDJSON edges', () => {
  it('reads an edge per line and skips blank lines', () => {
    expect(lines('\ufeff{"source":"a","target":"b"}\r\n\n  \t\n{"source":"c","target":"d"}')).toEqual([
      { source: 'a', target: 'b' },
      { source: 'c', target: 'd' },
    ]);
    expect(lines('')).toEqual([]);
    expect(lines('\n\n')).toEqual([]);
  });

  it('is also known as application/jsonl', () => {
    expect(decode('{"source":"a","target":"b"}\n', 'application/jsonl')).toEqual([
      { source: 'a', target: 'b' },
    ]);
  });

  it('rejects a broken line alone, with its line and byte', () => {
    expect(
      lines(
        '{"source":"a","target":"b"}\n\n{"source":"a","tar\n{"source":"c","target":"d"} x\n{"source":"e","target":"f"}',
      ),
    ).toEqual([
      { source: 'a', target: 'b' },
      { rejected: 'line 3, byte 47: not valid JSON: unexpected end' },
      { rejected: 'line 4, byte 76: not valid JSON: unexpected "x"' },
      { source: 'e', target: 'f' },
    ]);
  });

  it.each(['5', '"a"', '[{"source":"a","target":"b"}]', 'null'])('rejects the line %s alone', (line) => {
    expect(lines(`${line}\n{"source":"c","target":"d"}`)).toEqual([
      { rejected: `${line} is not an edge object` },
      { source: 'c', target: 'd' },
    ]);
  });

  it.each([
    '{',
    '{"source',
    '{"source"',
    '{"source":',
    '{"source":"a\\',
    '{"source":"a\\u12',
    '{"source":tr',
    '{"x":[',
    '-',
    '1e',
  ])('does not read on into the next line after %j', (line) => {
    const seen = lines(`${line}\n{"source":"c","target":"d"}`);
    expect(seen[0]).toHaveProperty('rejected');
    expect(seen[1]).toEqual({ source: 'c', target: 'd' });
    expect(seen).toHaveLength(2);
  });

  it('gives line by line what JSON gives for the same edges', () => {
    const edge = fc.oneof(
      fc.record({ source: fc.string({ unit: 'binary' }), target: fc.string() }, { requiredKeys: [] }),
      fc.jsonValue(),
    );
    fc.assert(
      fc.property(fc.array(edge), (edges) => {
        const texts = edges.map((value) => JSON.stringify(value));
        expect(lines(texts.join('\n'))).toEqual(decode(`[${texts.join(',')}]`));
      }),
      { numRuns: 500 },
    );
  });
});

/** The rules for an edge over JSON.parse, for documents without numbers that it would round. */
function oracle(edge: Record<string, unknown>): EdgeSeen | 'rejected' {
  const has = (name: string): boolean => Object.hasOwn(edge, name);
  const isId = (value: unknown): boolean =>
    typeof value === 'string' &&
    !/[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/.test(value) &&
    value.length > 0;
  const { source, target } = edge;
  const ids = [source, target].map((value) => (Number.isSafeInteger(value) ? String(value) : value));
  if (!has('source') || !has('target') || !ids.every(isId)) return 'rejected';
  if (has('op') && edge['op'] !== 'add' && edge['op'] !== 'remove') return 'rejected';
  if (has('time') && edge['time'] !== '2024-05-06' && edge['time'] !== 7) return 'rejected';
  if (has('weight') && typeof edge['weight'] !== 'number') return 'rejected';
  if (has('id') && typeof edge['id'] !== 'string' && !Number.isSafeInteger(edge['id'])) return 'rejected';
  const time = edge['time'] === 7 ? 7 : Date.UTC(2024, 4, 6);
  return {
    source: String(ids[0]),
    target: String(ids[1]),
    ...(has('time') ? { time } : {}),
    ...(edge['op'] === 'remove' ? { op: 'remove' } : {}),
  };
}
