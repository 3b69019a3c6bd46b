import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ArrowBatchBuilder } from '../../../libs/dataflow/arrow-payload.ts';
import { EdgeColumns } from '../../../libs/dataflow/edge-columns.ts';
import { CONTENT_TYPES, decodePayload, decodePayloadAs } from '../../../libs/dataflow/payload.ts';
import { type EdgeSeen, edgesOf } from './edges-of.ts';

const encoder = new TextEncoder();
const EDGE = '{"source":"a","target":"b"}';
const AB = [{ source: 'a', target: 'b' }];

function decode(payload: string | Uint8Array, contentType?: string): EdgeSeen[] | string {
  const columns = new EdgeColumns();
  const bytes = typeof payload === 'string' ? encoder.encode(payload) : payload;
  return decodePayload(bytes, contentType, columns) ?? edgesOf(columns);
}

function arrow(): Uint8Array {
  const builder = new ArrowBatchBuilder();
  builder.append(encoder.encode('a'), 0, 1, encoder.encode('b'), 0, 1);
  return builder.finish();
}

describe('the content type', () => {
  it('chooses the decoder, whatever its case and parameters', () => {
    expect(decode(EDGE, 'application/json')).toEqual(AB);
    expect(decode(EDGE, ' Application/JSON ; charset=utf-8')).toEqual(AB);
    expect(decode('source,target\na,b', 'text/csv;header=present')).toEqual(AB);
    expect(decode(EDGE, 'APPLICATION/X-NDJSON')).toEqual(AB);
    expect(decode(arrow(), 'application/vnd.apache.arrow.stream')).toEqual(AB);
  });

  it('is not overruled by the payload', () => {
    expect(decode(`${EDGE}\n${EDGE}`, 'application/json')).toMatch(/^not valid JSON at byte 28/);
    expect(decode(EDGE, 'text/csv')).toMatch(/^CSV header: /);
    expect(decode(EDGE, 'application/vnd.apache.arrow.stream')).toMatch(/^Arrow: /);
  });

  it('is named with the accepted ones if it is unknown', () => {
    for (const name of ['text/plain', '__proto__', 'constructor', 'application/json+x']) {
      const reason = decode(EDGE, name);
      expect(reason).toContain(`content type "${name}" is none of application/json, `);
      for (const accepted of Object.keys(CONTENT_TYPES)) expect(reason).toContain(accepted);
    }
  });
});

describe('without a content type', () => {
  const formatOf = (payload: string | Uint8Array): string => {
    const bytes = typeof payload === 'string' ? encoder.encode(payload) : payload;
    const decoded = decodePayloadAs(bytes, undefined, new EdgeColumns());
    return decoded.kind === 'decoded' ? decoded.format : decoded.reason;
  };

  it('a whole document is JSON, several lines are NDJSON', () => {
    expect(formatOf(` \n${EDGE}\n`)).toBe('application/json');
    expect(formatOf(`\ufeff[${EDGE}]`)).toBe('application/json');
    expect(formatOf(`${EDGE}\n${EDGE}`)).toBe('application/x-ndjson');
    expect(formatOf(`${EDGE}\nbroken`)).toBe('application/x-ndjson');
    expect(formatOf(`\ufeff${EDGE}\n${EDGE}`)).toBe('application/x-ndjson');
    expect(decode(`${EDGE}\n${EDGE}`)).toEqual([...AB, ...AB]);
  });

  it('what begins with a bracket is JSON only', () => {
    expect(formatOf(`[${EDGE}]\n[${EDGE}]`)).toMatch(/^not valid JSON at byte 30/);
  });

  it('the marker of a stream is Arrow', () => {
    expect(formatOf(arrow())).toBe('application/vnd.apache.arrow.stream');
    expect(formatOf(Uint8Array.of(255, 255, 255, 255))).toMatch(/^Arrow: /);
  });

  it('all else is rejected, saying what was found', () => {
    expect(decode('source,target\na,b')).toBe(
      'no Content-Type, and the payload begins with "source,targe": neither JSON nor an Arrow stream',
    );
    expect(decode('  \n')).toMatch(/begins with nothing/);
    expect(decode(Uint8Array.of(255, 255, 255))).toMatch(/neither JSON nor an Arrow stream$/);
    expect(decode('', '')).toMatch(/begins with nothing/);
  });
});

it('takes a Buffer at any place in its memory', () => {
  const buffer = Buffer.from(`xx${'{"source":"\\u0061","target":"b"}'}yy`).subarray(2, -2);
  expect(decode(buffer)).toEqual(AB);
  expect(buffer.toString()).toBe('{"source":"\\u0061","target":"b"}');
});

describe('garbage', () => {
  const contentType = fc.constantFrom(undefined, 'text/plain', ...Object.keys(CONTENT_TYPES));
  const check = (payload: Uint8Array, type: string | undefined): void => {
    const columns = new EdgeColumns();
    const before = payload.slice();
    const reason = decodePayload(payload, type, columns);
    expect(payload).toEqual(before);
    if (reason === undefined) {
      const edges = edgesOf(columns);
      expect(edges.filter(({ rejected }) => rejected !== undefined)).toHaveLength(columns.rejectedCount);
    } else expect([columns.count, reason.length > 0]).toEqual([0, true]);
  };

  it('of random bytes never throws', () => {
    fc.assert(fc.property(fc.uint8Array({ maxLength: 200 }), contentType, check), { numRuns: 5000 });
  });

  it('of tokens never throws', () => {
    const token = fc.constantFrom(
      '{',
      '}',
      '[',
      ']',
      ',',
      ':',
      '"',
      '\\',
      '\\u',
      'd800',
      '\n',
      '\r',
      '\ufeff',
      '\u0000',
      '1',
      '-',
      'e',
      'null',
      '"source"',
      '"target"',
      '"time"',
      '"weight"',
      '"op"',
      'source',
      'target',
      'time',
      'weight',
      'op',
      'id',
      '"a"',
    );
    fc.assert(
      fc.property(fc.array(token, { maxLength: 40 }), contentType, (tokens, type) =>
        check(encoder.encode(tokens.join('')), type),
      ),
      { numRuns: 20_000 },
    );
  });
});
