import { describe, expect, it } from 'vitest';
import { CliError, EXIT } from '../../../../services/cli/exit.ts';
import type { LoadFlags } from '../../../../services/cli/load/load-options.ts';
import { loadedText } from './loaded.ts';

async function problemOf(text: string, flags: LoadFlags = {}): Promise<string> {
  const error = await loadedText(text, flags).then(
    ({ description }) => `no problem: ${description}`,
    (caught: unknown) => caught,
  );
  expect(error).toBeInstanceOf(CliError);
  expect((error as CliError).status).toBe(EXIT.usage);
  return (error as CliError).message;
}

async function edgesOf(text: string, flags: LoadFlags = {}): Promise<string> {
  const { edges } = await loadedText(text, flags);
  return edges.map((edge) => edge.join('-')).join(' ');
}

async function describedAs(text: string, flags: LoadFlags = {}): Promise<string> {
  return (await loadedText(text, flags)).description;
}

describe('the delimiter', () => {
  it('is what cuts the lines evenly', async () => {
    expect(await edgesOf('a,b\nc,d\n')).toBe('a-b c-d');
    expect(await edgesOf('a\tb\nc\td\n')).toBe('a-b c-d');
    expect(await edgesOf('a;b\nc;d\n')).toBe('a-b c-d');
    expect(await edgesOf('a|b\nc|d\n')).toBe('a-b c-d');
    expect(await edgesOf('a%b\nc%d\n')).toBe('a-b c-d');
    expect(await edgesOf('a b\nc  d \n')).toBe('a-b c-d');
  });

  it('is none of those inside of fields', async () => {
    expect(await edgesOf('Jon Snow,Arya Stark\nNed Stark,Jon Snow\n')).toBe(
      'Jon Snow-Arya Stark Ned Stark-Jon Snow',
    );
    expect(await edgesOf('Snow, Jon\tStark, Arya\nStark, Ned\tSnow, Jon\n')).toContain(
      'Snow, Jon-Stark, Arya',
    );
    expect(await edgesOf('"a,b";c\n"d,e";f\n')).toBe('a,b-c d,e-f');
    expect(await edgesOf('a;b;1,5\nc;d;2,5\n')).toBe('a-b c-d');
  });

  it('is any blank if a tab follows numbers with blanks between them', async () => {
    expect(await edgesOf('1 2\t7\n2 3\t8\n')).toBe('1-2 2-3');
  });

  it('can be said', async () => {
    expect(await edgesOf('a:b\nc:d\n', { delimiter: ':' })).toBe('a-b c-d');
    expect(await edgesOf('a b\tc d\n', { delimiter: 'tab' })).toBe('a b-c d');
    expect(await edgesOf('a b\tc\n', { delimiter: 'blank' })).toBe('a-b');
    await expect(loadedText('a b', { delimiter: '::' })).rejects.toThrow('no single ASCII character');
  });

  it('is asked for if none is found', async () => {
    expect(await problemOf('a\nb\nc\n')).toContain('--delimiter');
  });

  it('leaves quotes alone that are not closed', async () => {
    expect(await edgesOf('"a\tb\nc\t"d\n')).toBe('"a-b c-"d');
    expect(await edgesOf('"a\tx"\tb\n"c"\td\n')).toBe('a\tx-b c-d');
    expect(await describedAs('"a\tb\nc\t"d\n')).toContain('quotes are text');
  });

  it('closes a quote that is left open once, and refuses that line alone', async () => {
    const file = await loadedText('"a","b"\n"b","c"x\n"c","d"\n');
    expect(file.edges.map((edge) => edge.join('-'))).toEqual(['a-b', 'c-d']);
    expect(file.reasons).toEqual([{ place: 'line 2', reason: 'text after a closing quote' }]);
  });
});

describe('the header line', () => {
  it('is found by its words', async () => {
    expect(await describedAs('source,target\na,b\n')).toBe(
      'comma-separated, header line, source = column 1 "source", target = column 2 "target"',
    );
    expect(await edgesOf('TO,FROM\na,b\n')).toBe('b-a');
    expect(await edgesOf('Target\tWeight\tSource\na\t1\tb\n')).toBe('b-a');
    expect(await edgesOf('hash,from_address,to_address\nx,a,b\n')).toBe('a-b');
    expect(await edgesOf('key,id1,id2,note,kind\nx,a,b,c,d\n')).toBe('a-b');
    expect(await edgesOf('src dst\na b\n')).toBe('a-b');
  });

  it('is found above numbers and times', async () => {
    expect(await edgesOf('a b\n1 2\n')).toBe('1-2');
    expect(await edgesOf('who,whom,when\na,b,2024-01-01\n')).toBe('a-b');
  });

  it('is not guessed where an edge could stand', async () => {
    expect(await edgesOf('a b\nb c\n')).toBe('a-b b-c');
    expect(await edgesOf('1 2\n2 3\n')).toBe('1-2 2-3');
    expect(await edgesOf('ann bob 3\nbob cid 4\n')).toBe('ann-bob bob-cid');
    expect(await edgesOf('i j\nk l\n')).toBe('i-j k-l');
  });

  it('can be said', async () => {
    expect(await edgesOf('a b\nb c\n', { header: true })).toBe('b-c');
    expect(await edgesOf('source target\nb c\n', { header: false })).toBe('source-target b-c');
    expect(await edgesOf('x y z\na b c\n', { source: 'z', target: 'x' })).toBe('c-a');
  });
});

describe('the columns', () => {
  it('are chosen by number or name', async () => {
    expect(await edgesOf('a,b,c\n', { source: '3', target: '1' })).toBe('c-a');
    expect(await edgesOf('rec, ssn ,source,target\na,b,c,d\n', { source: 'rec', target: 'SSN' })).toBe('a-b');
    expect(await problemOf('a,b\n', { source: '3', target: '1' })).toContain('numbered from 1 to 2');
    expect(await problemOf('source,target\na,b\n', { source: 'from' })).toContain('"source", "target"');
    expect(await problemOf('1,2\n', { source: 'from' })).toContain('--header');
    expect(await problemOf('id,id,source\na,b,c\n', { source: 'id' })).toContain(
      'columns 1 and 2: give the number',
    );
    expect(await problemOf('a,b\n', { source: '1', target: '1' })).toContain('the same');
  });

  it('are what is left when the time is known', async () => {
    expect(await edgesOf('t i j\n20 a b\n40 b c\n')).toBe('a-b b-c');
    expect(await edgesOf('20 1 2\n40 2 3\n60 1 3\n', { time: '1', timeUnit: 's' })).toBe('1-2 2-3 1-3');
    expect(await edgesOf('timestamp,payer,payee\n2024-01-01,a,b\n')).toBe('a-b');
    expect(await edgesOf(',a,b\n0,x,y\n1,y,z\n')).toBe('x-y y-z');
  });

  it('are asked for where the first looks like a time', async () => {
    expect(await problemOf('2024-01-01,a,b\n2024-01-02,b,c\n')).toContain('--source 2 --target 3');
    expect(await problemOf('1385982020 454 640\n1385982040 1 939\n')).toContain('--source 2 --target 3');
    const contacts = Array.from({ length: 300 }, (_, t) => `${t} ${t % 7} ${(t * 3 + 1) % 7}`).join('\n');
    expect(await problemOf(contacts)).toContain('--source 2 --target 3');
  });

  it('are the first two of a weighted list, sorted or not', async () => {
    expect(await edgesOf('1 2 5\n2 3 1\n3 1 2\n')).toBe('1-2 2-3 3-1');
    expect(await edgesOf('0 4 0.002 \n0 12 0.002 \n')).toBe('0-4 0-12');
    const karate = Array.from({ length: 80 }, (_, i) => `${i % 20} ${(i * 7 + 3) % 20} ${1 + (i % 5)}`);
    expect((await loadedText(karate.join('\n'))).edges).toHaveLength(80);
    expect(
      (await loadedText(karate.sort((a, b) => Number.parseInt(a, 10) - Number.parseInt(b, 10)).join('\n')))
        .edges,
    ).toHaveLength(80);
  });

  it('are asked for where there are many without names', async () => {
    expect(await problemOf('a,b,c,d,e\nf,g,h,i,j\n')).toContain('5 columns without names');
    expect(await problemOf('name,x,y,z,w\nf,1,2,3,4\n')).toContain('"name", "x"');
  });

  it('may be fewer than the names, not more', async () => {
    const row = (i: number, rest = ''): string => `${i},${i + 1}${rest}`;
    const rows = (rest = ''): string => Array.from({ length: 12 }, (_, i) => row(i, rest)).join('\n');
    const short = await loadedText(`source,target,note\n${rows()}\n7,8,9`);
    expect(short.edges).toHaveLength(12);
    expect(short.reasons).toEqual([{ place: 'line 14', reason: '3 fields in place of 2' }]);
    expect(short.description).toContain('rows have 2 fields and the header line 3');
    expect((await loadedText(`source,target,weight\n${rows()}`)).description).not.toContain('weight =');
    expect(await problemOf(`note,source,target\n${rows()}`)).toContain('by number');
    expect(await problemOf(`source,target\n${rows(',x')}`)).toContain('by number');
    const numbered = { source: '2', target: '1' };
    expect((await loadedText(`source,target\n${rows(',x')}`, numbered)).edges[0]).toEqual(['1', '0']);
  });

  it('hold blanks that a person might not expect', async () => {
    expect(await describedAs('1, 2\n2, 3\n')).toContain(
      'blanks around ids in column 2 are part of them (--trim)',
    );
    expect(await edgesOf('1, 2\n2, 3\n')).toBe('1- 2 2- 3');
    expect(await edgesOf('1, 2\n2, 3\n', { trim: true })).toBe('1-2 2-3');
  });
});

describe('time and weight', () => {
  it('are taken from columns that are named so, and from no others', async () => {
    expect((await loadedText('a b 1700000000\n')).times).toEqual([Number.NaN]);
    expect((await loadedText('source target time\na b 1700000000\n')).times).toEqual([1_700_000_000_000]);
    expect(await describedAs('source,target,weight\na,b,2.5\n')).toContain('weight = column 3 "weight"');
    expect(await describedAs('source,target,weight\na,b,heavy\n')).toContain('no weight');
    expect(await describedAs('source,target,date_of_birth\na,b,2001-02-03\n')).not.toContain('time =');
  });

  it('have a unit that their size tells, or that is given', async () => {
    const timeOf = async (text: string, flags: LoadFlags = {}): Promise<number | undefined> =>
      (await loadedText(`a b ${text}\n`, { delimiter: 'blank', time: '3', header: false, ...flags }))
        .times[0];
    expect(await timeOf('1700000000')).toBe(1_700_000_000_000);
    expect(await timeOf('1700000000.9999')).toBe(1_700_000_000_999);
    expect(await timeOf('1700000000123')).toBe(1_700_000_000_123);
    expect(await timeOf('1700000000123456')).toBe(1_700_000_000_123);
    expect(await timeOf('1700000000123456789')).toBe(1_700_000_000_123);
    expect(await timeOf('20', { timeUnit: 's' })).toBe(20_000);
    expect(await timeOf('-1', { timeUnit: 'us' })).toBe(-1);
    expect(await timeOf('2024-01-01T00:00:00Z')).toBe(Date.UTC(2024, 0, 1));
    expect(await problemOf('a b 20\n', { time: '3' })).toContain('--time-unit');
    await expect(loadedText('a b 20\n', { timeUnit: 'h' })).rejects.toThrow('none of s, ms, us, ns');
  });

  it('that are small numbers under a name are left alone, and that is said', async () => {
    const { times, description } = await loadedText('src,dst,time\na,b,33\n');
    expect(times).toEqual([Number.NaN]);
    expect(description).toContain('do not tell their unit: no time');
  });

  it('can be refused as such', async () => {
    expect(await problemOf('source,target,date\na,b,13/06/2019\n')).toContain('--no-time');
    const flags = { time: false, weight: false } as const;
    expect(await describedAs('source,target,date,weight\na,b,13/06/2019,1\n', flags)).toBe(
      'comma-separated, header line, source = column 1 "source", target = column 2 "target"',
    );
  });
});

describe('comments', () => {
  it('are lines of # that the file begins with, there and further down', async () => {
    expect(await edgesOf('# nodes 3\n#\na b\n# more "text\nb c\n#end\n')).toBe('a-b b-c');
    expect(await edgesOf('#from\tto\na\tb\n')).toBe('a-b');
    expect(await edgesOf('a b\n# in the middle of it\nb c\n')).toBe('a-b b-c');
  });

  it('are lines of % in KONECT files, not ids that begin with an encoded character', async () => {
    expect(await edgesOf('% sym\n% 2 3 3\n1 2\n2 3\n')).toBe('1-2 2-3');
    expect(await edgesOf('%C3%A9\ta\nb\t%C3%A8\n')).toBe('%C3%A9-a b-%C3%A8');
  });

  it('are no ids that begin with #', async () => {
    expect(await edgesOf('#php,#js\n#c,php\n')).toBe('#php-#js #c-php');
    expect(await edgesOf('tag,other\n#php,js\n', { header: true })).toBe('#php-js');
    expect(await problemOf('#php,js\ncss,js\n#c,js\n')).toContain('--no-comment');
    expect(await edgesOf('#php,js\ncss,js\n#c,js\n', { comment: false })).toBe('#php-js css-js #c-js');
  });

  it('begin with what is said', async () => {
    expect(await edgesOf('a b\n; note\nb c\n', { comment: ';' })).toBe('a-b b-c');
  });
});

describe('Matrix Market', () => {
  const head = '%%MatrixMarket matrix coordinate pattern symmetric \n% note\n';

  it('has a size line that is no edge', async () => {
    const file = await loadedText(`${head}3 3 2\n2 1\n3 1\n`);
    expect(file.edges).toEqual([
      ['2', '1'],
      ['3', '1'],
    ]);
    expect(file.error).toBeUndefined();
  });

  it('is cut short if entries are missing', async () => {
    const file = await loadedText(`${head}3 3 3\n2 1\n3 1\n`);
    expect(file.edges).toHaveLength(2);
    expect(file.error).toMatchObject({ status: EXIT.failed, message: expect.stringContaining('promises 3') });
  });

  it('is refused where it is dense', async () => {
    expect(await problemOf('%%MatrixMarket matrix array real general\n2 2\n1\n0\n0\n1\n')).toContain('array');
  });
});

describe('files that are no lists of edges', () => {
  it.each([
    ['graph [\n  node [\n    id 0\n  ]\n]\n', 'GML'],
    ['Creator "x"\nVersion 1\ngraph\n[\n', 'GML'],
    ['<NUMBER OF ZONES> 38\n', 'TNTP'],
    ['<?xml version="1.0"?>\n<graphml>\n', 'XML'],
    ['digraph G {\n a -> b\n}\n', 'DOT'],
    ['*Vertices 3\n1 "a"\n', 'Pajek'],
    ['<!DOCTYPE html>\n<html>', 'web page'],
    ['version https://git-lfs.github.com/spec/v1\noid sha256:0\n', 'Git LFS'],
    ['PK\x03\x04....', 'zip'],
    ['PAR1....', 'Parquet'],
    ['BZh91AY', 'bzip2 -dc'],
    ['a\0b\n', 'binary'],
    ['{\n "nodes": [],\n "links": [\n {"source": 1}]}', "jq -c '.links[]'"],
    ['{"nodes":[],"edges":[{"source":"a","target":"b"}]}', "jq -c '.edges[]'"],
  ])('%j is refused', async (text, message) => {
    expect(await problemOf(text)).toContain(message);
  });

  it('are read as what the user says they are', async () => {
    expect(await edgesOf('graph [ x\n', { delimiter: 'blank', source: '1', target: '3' })).toBe('graph-x');
  });
});

describe('an empty file', () => {
  it('has no rows', async () => {
    for (const text of ['', '\n\n', '# only a comment\n']) {
      expect(await loadedText(text)).toMatchObject({ rows: 0, edges: [], error: undefined });
    }
  });
});
