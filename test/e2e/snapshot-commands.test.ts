/**
 * The commands around snapshots on a real nats-server: taken, checked, carried away, restored under another name, gone
 * back to. Whatever a graph began with, its answers are those of the graph that it came from.
 */
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Graph } from '../../libs/api/graph.ts';
import type { Snapshot, SnapshotList } from '../../libs/api/snapshot.ts';
import { answersOf, reached } from './harness/answers.ts';
import { Cluster, type Ran, until } from './harness/cluster.ts';

const MANIFEST = 'manifest.json';

describe.each(['nats', 'file'])('snapshots in the store %s', (kind) => {
  let cluster: Cluster;
  let store: string;

  beforeAll(async () => {
    cluster = await Cluster.create();
    store = kind === 'nats' ? 'nats' : `file:${join(cluster.folder, 'snapshots')}`;
    cluster.start('all', ['--roles', 'partitioner,worker,gateway'], { WATERSHED_SNAPSHOT_STORE: store });
    await cluster.ready();
    await ok(['graph', 'create', 'g', '--partitions', '2', '--snapshot-interval', '0']);
    await publish('g', 0, 500);
  });

  afterAll(() => cluster?.stop());

  async function ran(args: readonly string[], input?: string): Promise<Ran> {
    const isPast = ['verify', 'export', 'import', 'restore'].includes(args[1] ?? '');
    return await cluster.watershed(isPast ? [...args, '--snapshot-store', store] : args, input);
  }

  /** Runs a command that must succeed; gives what it printed. */
  async function ok(args: readonly string[], input?: string): Promise<string> {
    const { status, stdout, stderr } = await ran(args, input);
    expect(status, `${args.join(' ')}: ${stderr}`).toBe(0);
    return stdout;
  }

  async function json<Answer>(args: readonly string[], input?: string): Promise<Answer> {
    return JSON.parse(await ok([...args, '--json'], input)) as Answer;
  }

  /** Runs a command that must fail at its work; gives what it said. */
  async function refused(args: readonly string[], status = 1): Promise<string> {
    const result = await ran(args);
    expect(result.status, `${args.join(' ')}: ${result.stdout}`).toBe(status);
    expect(result.stderr).not.toMatch(/\n\s+at /);
    return result.stderr;
  }

  /** Edges `from` to `to` of a fixed row of them; waits until the answers hold them. */
  async function publish(graph: string, from: number, to: number): Promise<number> {
    const lines = Array.from({ length: to - from }, (_, at) => {
      const n = from + at;
      return JSON.stringify({ source: `v${(n * 7919) % 1009}`, target: `v${(n * 104_729) % 1013}` });
    });
    const { sequence } = await json<{ sequence: number }>(['publish', '--graph', graph], lines.join('\n'));
    await reached(cluster, graph, sequence);
    return sequence;
  }

  it('are taken with a name, listed, shown, and read back', { timeout: 120_000 }, async () => {
    const first = await json<Snapshot>(['snapshot', 'create', '--graph', 'g', '--name', 'first']);
    expect(first).toMatchObject({ snapshot: 1, sequence: 1, name: 'first', partitions: 2, verified: true });
    await publish('g', 500, 700);
    const text = await ok(['snapshot', 'create', '--graph', 'g']);
    expect(text).toMatch(/^snapshot 2\n {2}as of message 2, /);
    const { snapshots } = await json<SnapshotList>(['snapshot', 'list', '--graph', 'g']);
    expect(snapshots.map(({ snapshot, sequence, name }) => ({ snapshot, sequence, name }))).toEqual([
      { snapshot: 2, sequence: 2, name: undefined },
      { snapshot: 1, sequence: 1, name: 'first' },
    ]);
    expect(await json(['snapshot', 'show', 'first', '--graph', 'g'])).toEqual(first);
    expect(await ok(['snapshot', 'list', '--graph', 'g'])).toMatch(
      /^snapshot .*verified\n2 .* yes\n1 +first/,
    );
    expect(await ok(['snapshot', 'verify', 'all', '--graph', 'g'])).toMatch(
      /^snapshot 2, at message 2: whole\nsnapshot 1, at message 1: whole\n\d+ chunks/,
    );
    expect(await refused(['snapshot', 'create', '--graph', 'g', '--name', 'first'])).toContain(
      'has the name',
    );
    await refused(['snapshot', 'show', '9', '--graph', 'g'], 3);
    await refused(['snapshot', 'verify', '9', '--graph', 'g'], 3);
    await refused(['snapshot', 'verify', 'all', '--graph', 'nobody'], 3);
    expect(await ok(['status'])).toMatch(/newest snapshot 2 at message 2, .*nothing came after it/);
  });

  it('make a graph of another name, which answers the same and goes on by itself', {
    timeout: 120_000,
  }, async () => {
    await ok(['snapshot', 'restore', 'first', '--graph', 'g', '--as', 'restored', '--partitions', '3']);
    const folder = join(cluster.folder, 'archive');
    await ok(['snapshot', 'export', 'first', folder, '--graph', 'g']);
    expect(await refused(['snapshot', 'export', 'first', folder, '--graph', 'g'])).toContain('is not empty');
    await ok(['snapshot', 'import', folder, '--graph', 'imported']);
    const before = await answersOf(cluster, 'g', 1);
    const after = await answersOf(cluster, 'g', 2);
    for (const graph of ['restored', 'imported']) {
      await reached(cluster, graph, 1);
      expect(await answersOf(cluster, graph, 1)).toEqual(before);
      expect(await publish(graph, 500, 700)).toBe(2);
      expect(await answersOf(cluster, graph, 2)).toEqual(after);
    }
    // Neither needs the graph that it came from any longer, not even to begin anew.
    await ok(['snapshot', 'restore', '2', '--graph', 'g', '--as', 'other']);
    await ok(['graph', 'remove', 'other']);
    const other = await json<Graph>(['graph', 'rebuild', 'restored', '--from-start']);
    expect(other.generation).toBe(2);
    await until(
      async () => (await cluster.graph('restored', 2)).generation === 2,
      'the rebuilt graph to be at its new generation',
    );
    expect(await answersOf(cluster, 'restored', 2)).toEqual(after);

    expect(await refused(['snapshot', 'import', folder, '--graph', 'g'])).toContain('is a graph g already');
    expect(await refused(['snapshot', 'restore', '1', '--graph', 'g', '--as', 'restored'])).toContain(
      'already',
    );
    expect(await refused(['snapshot', 'import', cluster.folder, '--graph', 'x'])).toContain(
      'holds no exported snapshot',
    );
    expect(await refused(['snapshot', 'import', folder, '--graph', 'x', '--replicas', '3'])).toMatch(
      /the streams of x cannot be made with 3 replicas.*--replicas/,
    );
  });

  it.runIf(kind === 'nats')(
    'are refused with the reason where an archive is damaged, or newer than this program',
    async () => {
      const folder = join(cluster.folder, 'damaged');
      await ok(['snapshot', 'export', '2', folder, '--graph', 'g']);
      const path = join(folder, MANIFEST);
      const text = readFileSync(path, 'utf8');
      writeFileSync(path, text.replace('"format": 1', '"format": 2'));
      expect(await refused(['snapshot', 'import', folder, '--graph', 'x'])).toContain('use a newer one');
      writeFileSync(path, text.replace('"sequence": 2', '"sequence": 3'));
      expect(await refused(['snapshot', 'import', folder, '--graph', 'x'])).toContain('its checksum');
      writeFileSync(path, text);
      const [chunk] = chunksIn(join(folder, 'chunks'));
      const bytes = readFileSync(chunk!);
      bytes[bytes.length >> 1]! ^= 1;
      writeFileSync(chunk!, bytes);
      expect(await refused(['snapshot', 'import', folder, '--graph', 'x'])).toMatch(
        /part \S+: chunk [0-9a-f]{64} is damaged/,
      );
      rmSync(chunk!);
      expect(await refused(['snapshot', 'import', folder, '--graph', 'x'])).toContain('is missing');
      expect((await cluster.watershed(['graph', 'show', 'x'])).status).toBe(3);
    },
  );

  it.runIf(kind === 'nats')(
    'are what a graph is rebuilt from, and rescaling goes on from there',
    { timeout: 120_000 },
    async () => {
      const answers = await answersOf(cluster, 'g', 2);
      for (const from of [[], ['--snapshot', 'first'], ['--from-start']]) {
        const { generation } = await json<Graph>(['graph', 'rebuild', 'g', ...from]);
        await until(
          async () => (await cluster.graph('g', 2)).generation === generation,
          `generation ${generation} to answer`,
        );
        expect(await answersOf(cluster, 'g', 2)).toEqual(answers);
      }
      const set = await json<Graph>(['graph', 'set', 'g', '--partitions', '5', '--snapshots-kept', '2']);
      expect(set).toMatchObject({ partitions: 5, snapshots: { interval: 0, keep: 2 } });
      await until(
        async () => (await cluster.graph('g', 2)).partitions.length === 5,
        'the answers to come from five partitions',
      );
      expect(await answersOf(cluster, 'g', 2)).toEqual(answers);
      const last = await publish('g', 700, 800);
      expect((await cluster.graph('g', last)).totals).toMatchObject({ sequence: last, edges: 800 });
      await ok(['snapshot', 'remove', 'first', '--graph', 'g']);
      await refused(['snapshot', 'show', 'first', '--graph', 'g'], 3);
      expect(await refused(['graph', 'set', 'nobody', '--partitions', '5'], 3)).toContain('graph create');
      expect(await refused(['graph', 'set', 'g', '--snapshots-kept', '1'], 2)).toContain('keep');
    },
  );

  it.runIf(kind === 'file')('are said to be damaged where their store is, part and chunk', async () => {
    const [chunk] = chunksIn(join(cluster.folder, 'snapshots', 'chunks'));
    writeFileSync(chunk!, 'another');
    const { status, stdout, stderr } = await ran(['snapshot', 'verify', 'all', '--graph', 'g']);
    expect(status, stderr).toBe(1);
    expect(stdout).toMatch(/snapshot \d+, at message \d+: part \S+: chunk [0-9a-f]{64} is damaged/);
    // Nothing was mended or removed behind anybody's back.
    expect(readFileSync(chunk!, 'utf8')).toBe('another');
  });

  it.runIf(kind === 'file')('are looked for where they are said to be, and nowhere else', async () => {
    const elsewhere = join(cluster.folder, 'elsewhere');
    mkdirSync(elsewhere);
    const { status, stdout } = await cluster.watershed([
      'snapshot',
      'verify',
      'all',
      '--graph',
      'g',
      '--snapshot-store',
      `file:${elsewhere}`,
    ]);
    expect(status).toBe(1);
    expect(stdout).toContain('is missing');
  });
});

/** The files of all chunks. */
function chunksIn(folder: string): string[] {
  return readdirSync(folder).flatMap((prefix) =>
    readdirSync(join(folder, prefix)).map((name) => join(folder, prefix, name)),
  );
}
