/**
 * nats-server goes away and comes back: whoever used it goes on by itself, says meanwhile what is wrong, and
 * nothing is lost or counted twice.
 */
import { createWriteStream } from 'node:fs';
import { join } from 'node:path';
import { finished } from 'node:stream/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Health } from '../../libs/api/cluster.ts';
import type { GraphStatus } from '../../libs/api/graph.ts';
import type { Problem } from '../../libs/api/problem.ts';
import { connectNats, NatsBus } from '../../libs/bus/nats-bus.ts';
import { edgesLog } from '../../libs/dataflow/names.ts';
import type { LoadSummary } from '../../services/cli/load/command.ts';
import { seeded } from '../support/seeded.ts';
import { reached } from './harness/answers.ts';
import { Cluster, until } from './harness/cluster.ts';
import { startProgram } from './harness/processes.ts';
import { expectOracle, Publisher } from './harness/publisher.ts';

/** All stages resume within this after nats-server takes connections again, on a busy machine. */
const RESUME_MS = 10_000;

/** The file's edges: enough for a second or more, so that the end of the server falls into the load. */
const EDGES = 300_000;
/** Of each side: sparse enough for many components. */
const VERTICES = 150_000;

type End = 'kill9' | 'halt';
const ENDS: [string, End][] = [
  ['is killed with -9 and started again', 'kill9'],
  ['ends in order and is started again', 'halt'],
];

describe('when nats-server', () => {
  let cluster: Cluster;

  beforeAll(async () => {
    cluster = await Cluster.create();
    cluster.start('partitioner', ['--roles', 'partitioner,worker']);
    cluster.start('worker', ['--roles', 'worker']);
    cluster.start('gateway', ['--roles', 'gateway']);
    await cluster.ready();
  });

  afterAll(() => cluster.stop());

  it.each(ENDS)(
    '%s under load, all stages resume by themselves and nothing is lost or counted twice',
    {
      timeout: 120_000,
    },
    async (_, end) => {
      const graph = `load-${end.toLowerCase()}`;
      expect((await cluster.watershed(['graph', 'create', graph, '--partitions', '2'])).status).toBe(0);
      const publisher = await Publisher.connect(cluster.nats.url, graph);
      publisher.start();
      // Once more after a kill: what came back from an outage must bear the next one.
      for (let outage = 0; outage < (end === 'kill9' ? 2 : 1); outage++) {
        await until(() => publisher.last >= 60 * (outage + 1), 'some messages to be published');
        await reached(cluster, graph, publisher.last);
        await cluster.nats[end]();
        const detail = await cluster.unready(/NATS is not connected since/);
        expect(detail).toContain('NATS is not connected since');
        await expectHealthy();
        await expectAnswersWithoutNats(graph);
        const before = publisher.last;
        await cluster.nats.restart();
        const began = performance.now();
        await cluster.ready(RESUME_MS);
        await until(() => publisher.last > before, 'the publisher to go on', RESUME_MS);
        await reached(cluster, graph, publisher.last, RESUME_MS);
        console.log(`${graph}: all stages resumed after ${Math.round(performance.now() - began)} ms`);
        await expectHealthy();
      }
      await publisher.disconnect();
      await expectOracle(cluster, graph, publisher);
      await until(async () => {
        const { lag, problem } = await cluster.get<GraphStatus>(`/v1/graphs/${graph}`);
        return lag?.messages === 0 && problem === undefined;
      }, 'the lag to be 0 and no problem to be left');
    },
  );

  it.each(ENDS)(
    '%s, a load of a file survives it with nothing lost or doubled',
    {
      timeout: 120_000,
    },
    async (_, end) => {
      const graph = `file-${end.toLowerCase()}`;
      const file = join(cluster.folder, `${graph}.csv`);
      const oracle = await writeEdges(file, EDGES);
      expect((await cluster.watershed(['graph', 'create', graph, '--partitions', '2'])).status).toBe(0);
      const load = startProgram(['load', '--graph', graph, '--json', file], cluster.env);
      const connection = await connectNats({ url: cluster.nats.url, name: 'test', wait: true });
      const bus = new NatsBus(connection);
      const { stream } = edgesLog(graph);
      await until(async () => ((await bus.describe(stream))?.last ?? 0) > 5, 'the load to be under way');
      await connection.close();
      await cluster.nats[end]();
      await until(() => /gives no answer .* trying again/.test(load.stderr()), 'the load to notice');
      await cluster.unready(/NATS is not connected since/);
      await cluster.nats.restart();
      const { status, stdout, stderr } = await load.ended;
      expect(stderr).toMatch(/gives no answer .* trying again[\s\S]*it goes on/);
      expect(status).toBe(0);
      const summary = JSON.parse(stdout) as LoadSummary;
      expect(summary).toMatchObject({ edges: EDGES, duplicates: 0, refused: 0, error: null });
      const { totals } = await cluster.graph(graph, summary.sequence!.last);
      expect(totals.edges).toBe(EDGES);
      // After a failure the load sends again what is not stored, behind what is: the order, and with it which
      // vertex is the oldest of its component, may be another. The components are not.
      expect(await componentsOf(cluster, graph)).toEqual(oracle);
    },
  );

  async function expectHealthy(): Promise<void> {
    expect((await cluster.get<Health>('/healthz')).status).toBe('ok');
  }

  /** What the gateway holds it still answers; what it cannot do it says, with a problem and in good time. */
  async function expectAnswersWithoutNats(graph: string): Promise<void> {
    const status = await cluster.get<GraphStatus>(`/v1/graphs/${graph}`);
    expect(status.totals.vertices).toBeGreaterThan(0);
    const began = performance.now();
    const response = await fetch(`${cluster.url}/v1/graphs/${graph}/edges`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{"source":"during","target":"outage"}',
    });
    expect(response.status).toBe(503);
    expect(response.headers.get('retry-after')).toBe('1');
    expect(((await response.json()) as Problem).code).toBe('nats-unavailable');
    expect(performance.now() - began).toBeLessThan(10_000);
  }
});

describe('a log that begins behind another message than the first', () => {
  let cluster: Cluster;

  beforeAll(async () => {
    cluster = await Cluster.create();
  });

  afterAll(() => cluster.stop());

  // nats-server 2.10.27 empties streams that have `first_seq` in their configuration, whenever it starts.
  it.each(ENDS)('keeps its messages when nats-server %s', async (_, end) => {
    const log = edgesLog(`late-${end.toLowerCase()}`);
    const options = {
      subjects: [log.subject],
      discard: 'new',
      denyDelete: true,
      firstSequence: 1001,
    } as const;
    let connection = await connectNats({ url: cluster.nats.url, name: 'test', wait: true });
    let bus = new NatsBus(connection);
    await bus.create(log.stream, options);
    for (let n = 0; n < 3; n++) {
      expect(await bus.append(log, new Uint8Array(1), {})).toMatchObject({ sequence: 1001 + n });
    }
    await connection.close();
    await cluster.nats[end]();
    await cluster.nats.restart();
    connection = await connectNats({ url: cluster.nats.url, name: 'test', wait: true });
    bus = new NatsBus(connection);
    await until(async () => (await bus.describe(log.stream)) !== undefined, 'the stream to be there');
    await bus.create(log.stream, options);
    expect(await bus.describe(log.stream)).toMatchObject({ first: 1001, last: 1003 });
    await connection.close();
  });
});

describe('instances that are started before nats-server', () => {
  let cluster: Cluster;

  beforeAll(async () => {
    cluster = await Cluster.create();
    await cluster.nats.kill9();
  });

  afterAll(() => cluster.stop());

  it('say that they wait for it, end when told to, and begin by themselves when it is there', {
    timeout: 60_000,
  }, async () => {
    const names = ['pipeline', 'gateway'];
    cluster.start('pipeline', ['--roles', 'partitioner,worker']);
    cluster.start('gateway', ['--roles', 'gateway']);
    for (const name of names) {
      await until(
        () => cluster.readLog(name).includes('waiting for nats-server'),
        `${name} to say that it waits`,
      );
      expect(cluster.readLog(name)).toContain(cluster.nats.url);
    }
    expect(await cluster.stopInstance('pipeline')).toBe(0);
    await cluster.restart('pipeline');
    await cluster.nats.restart();
    await cluster.ready();
    const published = await cluster.watershed(['publish', '--json'], '{"source":"a","target":"b"}\n');
    const { sequence } = JSON.parse(published.stdout) as { sequence: number };
    const { totals } = await cluster.graph('default', sequence);
    expect(totals).toMatchObject({ vertices: 2, components: 1, edges: 1 });
  });
});

/** A CSV file of random edges, and its components as `componentsOf` gives them. */
async function writeEdges(path: string, count: number): Promise<string[]> {
  const random = seeded(count);
  const file = createWriteStream(path);
  const parents = new Map<string, string>();
  const root = (id: string): string => {
    let at = id;
    for (let parent = parents.get(at); parent !== at && parent !== undefined; parent = parents.get(at)) {
      parents.set(at, parents.get(parent) ?? parent);
      at = parent;
    }
    return at;
  };
  file.write('source,target\n');
  for (let from = 0; from < count; from += 10_000) {
    let text = '';
    for (let edge = from; edge < from + 10_000; edge++) {
      const source = `account-of-the-left-side-number-${Math.floor(random() * VERTICES)}`;
      const target = `device-of-the-right-side-number-${Math.floor(random() ** 2 * VERTICES)}`;
      text += `${source},${target}\n`;
      for (const id of [source, target]) if (!parents.has(id)) parents.set(id, id);
      parents.set(root(source), root(target));
    }
    if (!file.write(text)) await new Promise<void>((resolve) => file.once('drain', () => resolve()));
  }
  file.end();
  await finished(file);
  const members = new Map<string, string[]>();
  for (const id of parents.keys()) addTo(members, root(id), id);
  return sortedComponents(members.values());
}

/** Every component of the graph as one line of its members, from an export. */
async function componentsOf(cluster: Cluster, graph: string): Promise<string[]> {
  const response = await fetch(`${cluster.url}/v1/graphs/${graph}/export?format=csv`);
  expect(response.status).toBe(200);
  const members = new Map<string, string[]>();
  for (const line of (await response.text()).trim().split(/\r?\n/).slice(1)) {
    const [vertex, component] = line.split(',') as [string, string];
    addTo(members, component, vertex);
  }
  return sortedComponents(members.values());
}

function addTo(members: Map<string, string[]>, component: string, id: string): void {
  const ids = members.get(component);
  if (ids === undefined) members.set(component, [id]);
  else ids.push(id);
}

function sortedComponents(components: Iterable<string[]>): string[] {
  return [...components].map((ids) => ids.sort().join(' ')).sort();
}
