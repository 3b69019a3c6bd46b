import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { EdgeColumns } from '../../../libs/dataflow/edge-columns.ts';
import { decodePayload } from '../../../libs/dataflow/payload.ts';
import { type EdgeSeen, edgesOf } from './edges-of.ts';

function decode(text: string): EdgeSeen[] | string {
  const columns = new EdgeColumns();
  return decodePayload(new TextEncoder().encode(text), 'text/csv', columns) ?? edgesOf(columns);
}

describe('a CSV header', () => {
  it('names the columns in any order, unknown ones too', () => {
    expect(decode('\ufefftarget,colour,source\nb,red,a\r\n')).toEqual([{ source: 'a', target: 'b' }]);
    expect(decode('"source","target"\na,b')).toEqual([{ source: 'a', target: 'b' }]);
    expect(decode('source,target')).toEqual([]);
  });

  it('must name source and target', () => {
    expect(decode('source,Target\na,b')).toBe('CSV header has no column target, only "source", "Target"');
    expect(decode('a,b\nc,d')).toBe('CSV header has no column source, only "a", "b"');
    expect(decode('')).toBe('CSV has no header line');
    expect(decode('\n\n')).toBe('CSV has no header line');
    expect(decode('"source,target\na,b')).toMatch(/^CSV header: line 1: quoted field still open/);
  });

  it('must not name a column twice that means something', () => {
    expect(decode('source,target,source\na,b,c')).toBe(
      'CSV header has the column source more than once: "source", "target", "source"',
    );
    expect(decode('source,target,op,op\na,b,,')).toMatch(/^CSV header has the column op more than once/);
    expect(decode('source,target,x,x\na,b,,')).toEqual([{ source: 'a', target: 'b' }]);
  });
});

describe('CSV edges', () => {
  it('are exact about ids', () => {
    expect(decode('source,target\n a ,"b,""c"""\n007,1e3\n')).toEqual([
      { source: ' a ', target: 'b,"c"' },
      { source: '007', target: '1e3' },
    ]);
  });

  it('come back as they were written', () => {
    const id = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 10 });
    fc.assert(
      fc.property(fc.array(fc.tuple(id, id)), (pairs) => {
        const quoted = (text: string): string => `"${text.replaceAll('"', '""')}"`;
        const text = `source,target\n${pairs.map((pair) => pair.map(quoted).join(',')).join('\n')}`;
        expect(decode(text)).toEqual(pairs.map(([source, target]) => ({ source, target })));
      }),
    );
  });

  it('may have a time, a weight, an id and an op, or leave them empty', () => {
    expect(
      decode('source,target,time,weight,id,op\na,b,2024-05-06,1.5,e1,remove\na,b,-5,-1e3,,add\na,b,,,,\n'),
    ).toEqual([
      { source: 'a', target: 'b', time: Date.UTC(2024, 4, 6), op: 'remove' },
      { source: 'a', target: 'b', time: -5 },
      { source: 'a', target: 'b' },
    ]);
  });

  it('are rejected alone, with their line', () => {
    expect(
      decode(
        'source,target,time,weight,op\n\na,b\na,b,,,,\n,b,,,\na,,,,\na,b,noon,,\na,b,,heavy,\na,b,,NaN,\na,b,,,drop\na,"b"c,,,\na,b,,,\n',
      ),
    ).toEqual([
      { rejected: 'line 3: the number of fields is 2, of the header 5' },
      { rejected: 'line 4: the number of fields is 6, of the header 5' },
      { rejected: 'source is empty: an id has 1 to 1024 bytes' },
      { rejected: 'target is empty: an id has 1 to 1024 bytes' },
      {
        rejected:
          'line 7: time "noon" is neither an ISO 8601 date nor integer milliseconds in the years 1 to 9999',
      },
      { rejected: 'line 8: weight "heavy" is not a finite number' },
      { rejected: 'line 9: weight "NaN" is not a finite number' },
      { rejected: 'line 10: op "drop" is neither "add" nor "remove"' },
      { rejected: 'line 11: text after a closing quote' },
      { source: 'a', target: 'b' },
    ]);
  });

  it('are not swallowed by a quote that nothing closes', () => {
    expect(decode('source,target\na,"b\nc,d\n')).toEqual([
      { rejected: 'line 2: quoted field still open at the end of the input' },
      { source: 'c', target: 'd' },
    ]);
  });
});
