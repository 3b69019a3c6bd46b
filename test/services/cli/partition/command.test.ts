import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable, Writable } from 'node:stream';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ALGORITHMS } from '../../../../libs/partitioning/partitioner-config.ts';
import type { Quality } from '../../../../libs/partitioning/quality.ts';
import { runPartition } from '../../../../services/cli/partition/command.ts';
import type { PartitionFlags } from '../../../../services/cli/partition/partition-options.ts';
import { DATA_FOLDER } from '../../../support/data-files.ts';
import { Feed } from '../../../support/feed.ts';
import { seeded } from '../../../support/seeded.ts';

const FLAGS: PartitionFlags = { parts: '4', order: 'file', seed: '1' };

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'watershed-partition-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

interface Result {
  readonly partitioner: { readonly algorithm: string };
  readonly quality: Quality;
  readonly edges: number[];
  readonly vertices: number[];
}

class Collected extends Writable {
  text = '';

  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    this.text += chunk.toString();
    done();
  }
}

async function run(
  flags: Partial<PartitionFlags>,
  input: string | { readonly path: string },
): Promise<{ status: number; out: string; err: string }> {
  const stdout = new Collected();
  const stderr = new Collected();
  const paths = typeof input === 'string' ? ['-'] : [input.path];
  const stdin = Readable.from([Buffer.from(typeof input === 'string' ? input : '')]);
  const deps = { stdin, stdout, stderr, isTTY: false };
  const status = await runPartition(paths, { ...FLAGS, ...flags }, deps);
  return { status, out: stdout.text, err: stderr.text };
}

async function results(
  flags: Partial<PartitionFlags>,
  input: string | { readonly path: string },
): Promise<Result[]> {
  const { out } = await run({ ...flags, json: true }, input);
  return (JSON.parse(out) as { results: Result[] }).results;
}

function randomEdges(count: number): string[] {
  const random = seeded(5);
  return Array.from(
    { length: count },
    () => `v${Math.floor(random() ** 2 * 300)},v${Math.floor(random() * 300)}`,
  );
}

describe('partition', () => {
  test('writes the part of every edge, as published, as CSV or NDJSON', async () => {
    const edges = 'source,target\nwu,100:48069\n"a, ""b""",é\n';
    const csv = await run({ output: '-' }, edges);
    expect(csv.status).toBe(0);
    expect(csv.out).toMatch(/^source,target,part\r\nwu,100:48069,[0-3]\r\n"a, ""b""",é,[0-3]\r\n$/);
    expect(csv.err).toContain('2 edges, 4 vertices, 4 parts, in the order of the file');
    const path = join(folder, 'parts.ndjson');
    await run({ output: path }, edges);
    expect(readFileSync(path, 'utf8')).toMatch(
      /^\{"source":"wu","target":"100:48069","part":[0-3]\}\n\{"source":"a, \\"b\\"","target":"é","part":[0-3]\}\n$/,
    );
  });

  test('reads both orientations of an edge as one edge', async () => {
    const { out } = await run({ output: '-', header: false }, 'b,a\na,b\n-5,wu\nwu,-5\n');
    const parts = out
      .trim()
      .split('\r\n')
      .slice(1)
      .map((line) => line.split(',')[2]);
    expect(parts[0]).toBe(parts[1]);
    expect(parts[2]).toBe(parts[3]);
  });

  test.each(Object.keys(ALGORITHMS))('chooses as the service does, by %s', async (algorithm) => {
    const edges = randomEdges(2_000);
    const [result] = await results({ algorithm, header: false }, edges.join('\n'));
    const feed = new Feed({ partitions: 4, partitioner: result!.partitioner as never });
    feed.publish(
      edges.map((edge) => {
        const [source, target] = edge.split(',');
        return { source, target };
      }),
    );
    expect(result!.edges).toEqual(feed.partitioner.figures.edges);
    expect(result!.vertices).toEqual([...feed.view.parts.counts]);
  });

  test('compares all algorithms on one stream, and leaves out what cannot be', async () => {
    const edges = randomEdges(1_000).join('\n');
    const all = await results({ compare: 'all', header: false }, edges);
    expect(all.map(({ partitioner }) => partitioner.algorithm)).toEqual(Object.keys(ALGORITHMS));
    for (const { quality, edges } of all) {
      expect(quality.edges).toBe(1_000);
      expect(edges.reduce((sum, count) => sum + count, 0)).toBe(1_000);
      expect(quality.replicationFactor).toBeGreaterThanOrEqual(1);
    }
    const { out, err } = await run({ compare: 'grid, hash', parts: '7', header: false }, edges);
    expect(err).toContain('left out: grid needs parts');
    expect(out).toMatch(/^algorithm +replication +edge balance/m);
    expect(out).toMatch(/^hash 1 +\d\.\d{3}/m);
  });

  test('takes up to 1,024 parts', async () => {
    const [result] = await results(
      { algorithm: 'hdrf', parts: '1024', header: false },
      randomEdges(3_000).join('\n'),
    );
    expect(result!.edges.length).toBe(1024);
    await expect(run({ parts: '1025' }, 'a,b\n')).rejects.toThrow('1 to 1024');
  });

  test('shuffles by a seed: the same edges, the same order each time', async () => {
    const path = join(folder, 'edges.csv');
    writeFileSync(path, randomEdges(3_000).join('\n'));
    const orderOf = async (seed: string): Promise<string[]> => {
      const { out } = await run({ order: 'random', seed, output: '-', header: false }, { path });
      return out
        .trim()
        .split('\r\n')
        .slice(1)
        .map((line) => line.replace(/,\d+$/, ''));
    };
    const one = await orderOf('1');
    expect(await orderOf('1')).toEqual(one);
    expect(await orderOf('2')).not.toEqual(one);
    expect(one.toSorted()).toEqual(randomEdges(3_000).toSorted());
    expect(one).not.toEqual(randomEdges(3_000));
  });

  test.each([
    [{ algorithm: 'metis' }, /"metis" is none of hash/],
    [{ algorithm: 'hdrf', option: ['lambda'] }, /it is name=value/],
    [{ algorithm: 'hdrf', option: ['lambda=x'] }, /lambda must be a number/],
    [{ algorithm: '{"algorithm":"hdrf",' }, /neither an algorithm nor JSON/],
    [{ algorithm: 'grid', parts: '7' }, /7 do not/],
    [{ compare: 'all', output: '-' }, /without --compare/],
    [{ compare: 'hash,metis' }, /--compare: algorithm "metis"/],
    [{ order: 'sorted' }, /none of file, random/],
    [{ output: '-', format: 'xml' }, /none of csv, ndjson/],
    [{ parts: 'many' }, /no whole number/],
  ])('%j is refused', async (flags, message) => {
    await expect(run(flags, 'a,b\n')).rejects.toThrow(message);
  });

  test('fails where nothing is an edge, and where the output cannot be written', async () => {
    await expect(run({ header: true }, 'source,target\n')).rejects.toThrow('no row was accepted');
    const output = join(folder, 'no such folder', 'x.csv');
    await expect(run({ output, header: false }, 'a,b\n')).rejects.toThrow('cannot be written');
  });

  const enron = 'snap_Email-Enron.txt';
  test.skipIf(!existsSync(`${DATA_FOLDER}${enron}`))(
    `${enron}: hdrf beats greedy beats dbh beats hash at k = 30, in random order`,
    async () => {
      const compare = 'hash,dbh,greedy,hdrf';
      const found = await results(
        { compare, parts: '30', order: 'random' },
        { path: `${DATA_FOLDER}${enron}` },
      );
      const factors = found.map(({ quality }) => quality.replicationFactor!);
      expect(found[0]!.quality).toMatchObject({ edges: 367_660, vertices: 36_691 });
      expect(factors).toEqual(factors.toSorted((a, b) => b - a));
      expect(factors[3]).toBeLessThan(2.2);
    },
  );
});
