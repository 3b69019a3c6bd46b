import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CliError, EXIT } from '../../../../services/cli/exit.ts';
import { InputFile, SAMPLE_BYTES } from '../../../../services/cli/load/input-file.ts';
import { loaded, loadedText } from './loaded.ts';

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'watershed-load-'));
});
afterAll(async () => {
  await rm(folder, { recursive: true, force: true });
});

async function fileOf(name: string, bytes: Uint8Array | string): Promise<string> {
  const path = join(folder, name);
  await writeFile(path, bytes);
  return path;
}

async function contentOf(input: Uint8Array, chunkBytes: number, skipLines = 0): Promise<Buffer> {
  const parts: Uint8Array[] = [];
  for (let at = 0; at < input.length; at += chunkBytes) parts.push(input.subarray(at, at + chunkBytes));
  const file = await InputFile.at('-', Readable.from(parts), skipLines);
  await file.sample(SAMPLE_BYTES);
  const chunks: Uint8Array[] = [];
  for await (const chunk of file.content().chunks()) chunks.push(chunk);
  return Buffer.concat(chunks);
}

const rows = (count: number): string =>
  Array.from({ length: count }, (_, i) => `v${i},v${(i * 7919) % count}\n`).join('');

describe('gzip', () => {
  it('is found by its first bytes, and all members are read, wherever chunks are cut', async () => {
    const members = [gzipSync('source,target\na,b\n'), gzipSync(''), gzipSync('c,d\n'), gzipSync('e,f')];
    const bytes = Buffer.concat(members);
    for (let chunkBytes = 1; chunkBytes <= bytes.length; chunkBytes++) {
      expect((await contentOf(bytes, chunkBytes)).toString()).toBe('source,target\na,b\nc,d\ne,f');
    }
  });

  it('may be padded with zeros', async () => {
    const bytes = Buffer.concat([gzipSync('a,b\n'), Buffer.alloc(700)]);
    for (const chunkBytes of [1, 100, 1000]) {
      expect((await contentOf(bytes, chunkBytes)).toString()).toBe('a,b\n');
    }
  });

  it('that is cut anywhere gives an error behind the rows that it has', async () => {
    const text = rows(30_000);
    const bytes = gzipSync(text);
    for (const cut of [1, 8, 9, bytes.length >> 1]) {
      const path = await fileOf('cut.csv.gz', bytes.subarray(0, bytes.length - cut));
      const file = await loaded(path);
      expect(file.error).toBeInstanceOf(CliError);
      expect((file.error as CliError).message).toBe(`${path} cannot be read: the gzip file is cut short`);
      expect((file.error as CliError).status).toBe(EXIT.failed);
      if (cut <= 8) expect(file.edges).toHaveLength(30_000);
      else expect(file.edges.length).toBeGreaterThan(10_000);
      expect(file.refused).toBe(0);
    }
    await expect(loadedText(bytes.subarray(0, 5))).rejects.toThrow('cut short');
  });

  it('that is damaged gives an error that names the file', async () => {
    const bytes = Buffer.from(gzipSync(rows(100_000)));
    bytes.fill(0x55, bytes.length - 2000, bytes.length - 1900);
    const path = await fileOf('damaged.csv.gz', bytes);
    const file = await loaded(path);
    expect((file.error as CliError).message).toContain(`${path} cannot be read: the gzip file is damaged`);
    expect(file.edges.length).toBeGreaterThan(10_000);
    const trailing = await loadedText(Buffer.concat([gzipSync('a,b\nc,d\n'), Buffer.from('junk')]));
    expect(trailing.error).toMatchObject({ status: EXIT.failed });
  });
});

describe('marks and lines', () => {
  it('a byte order mark is dropped, one of UTF-16 is refused', async () => {
    expect((await loadedText('\ufeffa,b\nb,c\n', {}, 1)).edges[0]).toEqual(['a', 'b']);
    await expect(loadedText(Buffer.from('\ufeffa,b\n', 'utf16le'))).rejects.toThrow('iconv -f UTF-16');
    await expect(loadedText(Uint8Array.of(0xfe, 0xff, 0, 97))).rejects.toThrow('UTF-16');
  });

  it('--skip leaves out lines of any end, and lines are counted from the start of the file', async () => {
    for (const end of ['\n', '\r\n', '\r']) {
      for (const chunkBytes of [1, 2, 100]) {
        const text = ['one', 'two', 'a,b', 'c,', 'd,e'].join(end);
        const file = await loadedText(text, { skip: '2' }, chunkBytes);
        expect(file.edges).toEqual([
          ['a', 'b'],
          ['d', 'e'],
        ]);
        expect(file.reasons).toEqual([{ place: 'line 4', reason: 'target is empty' }]);
      }
    }
    expect((await loadedText('a,b\n', { skip: '5' })).rows).toBe(0);
  });

  it('--skip drops exactly so many lines, wherever chunks are cut', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.constantFrom('\n', '\r', '\r\n', 'x', 'y'), { maxLength: 30 }),
        fc.integer({ min: 0, max: 8 }),
        fc.integer({ min: 1, max: 5 }),
        async (parts, lines, chunkBytes) => {
          const text = parts.join('');
          const pattern = new RegExp(`^(?:[^\\r\\n]*(?:\\r\\n|\\n|\\r)){0,${lines}}`);
          const left = text.replace(pattern, '');
          const isShort = (text.match(/\r\n|\n|\r/g)?.length ?? 0) < lines;
          expect((await contentOf(Buffer.from(text), chunkBytes, lines)).toString()).toBe(
            isShort ? '' : left,
          );
        },
      ),
    );
  });
});

describe('files', () => {
  it('that cannot be opened are named', async () => {
    await expect(loaded(join(folder, 'none.csv'))).rejects.toMatchObject({
      status: EXIT.failed,
      message: expect.stringContaining('none.csv cannot be read: there is no such file'),
    });
    await expect(loaded(folder)).rejects.toThrow('it is a directory');
  });

  it('larger than a sample are read whole, from a path as from standard input', async () => {
    const text = rows(60_000);
    expect(text.length).toBeGreaterThan(SAMPLE_BYTES * 2);
    const path = await fileOf('large.csv', text);
    const fromPath = await loaded(path);
    const fromStdin = await loadedText(text, {}, 65_536);
    expect(fromPath.edges).toHaveLength(60_000);
    expect(fromStdin.edges).toEqual(fromPath.edges);
    expect(fromPath.payloads.length).toBeGreaterThan(3);
    for (const payload of fromPath.payloads) expect(payload.length).toBeLessThan(70_000);
  });
});
