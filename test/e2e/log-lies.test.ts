/**
 * Logs that are not what they were: deleted and created again, cut at the head or the tail, replaced by an older
 * copy. EDGES is the truth, so there each lie is found and named, and what was counted stays as it was; PARTS and
 * FOREST are functions of EDGES, so they heal.
 */
import { cp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { type JetStreamManager, jetstreamManager } from '@nats-io/jetstream';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Cluster as ClusterAnswer } from '../../libs/api/cluster.ts';
import type { GraphStatus } from '../../libs/api/graph.ts';
import type { Problem } from '../../libs/api/problem.ts';
import { connectNats, NatsBus } from '../../libs/bus/nats-bus.ts';
import { edgesLog, edgesSubjects, forestLog, partsLog } from '../../libs/dataflow/names.ts';
import { type Answers, answersOf, reached } from './harness/answers.ts';
import { Cluster, until } from './harness/cluster.ts';
import { expectOracle, Publisher } from './harness/publisher.ts';

const PARTITIONS = 2;
const MESSAGES = 10;
/** Messages that are stored after the copy of the store was made, and lost with it. */
const LOST_MESSAGES = 6;

/** A cluster of one instance with everything, graphs in it, and a hand on the server's streams. */
class Bench {
  readonly publishers = new Map<string, Publisher>();
  readonly before = new Map<string, Answers>();
  readonly cluster: Cluster;
  readonly bus: NatsBus;
  readonly manager: JetStreamManager;

  private constructor(cluster: Cluster, bus: NatsBus, manager: JetStreamManager) {
    this.cluster = cluster;
    this.bus = bus;
    this.manager = manager;
  }

  static async create(graphs: readonly string[]): Promise<Bench> {
    const cluster = await Cluster.single();
    const connection = await connectNats({ url: cluster.nats.url, name: 'test', wait: true });
    const bench = new Bench(cluster, new NatsBus(connection), await jetstreamManager(connection));
    for (const graph of graphs) {
      const created = await cluster.watershed(['graph', 'create', graph, '--partitions', String(PARTITIONS)]);
      expect(created.status).toBe(0);
      const publisher = await Publisher.connect(cluster.nats.url, graph);
      bench.publishers.set(graph, publisher);
      await publisher.messages(MESSAGES);
    }
    for (const graph of graphs) await reached(cluster, graph, MESSAGES);
    return bench;
  }

  publisher(graph: string): Publisher {
    return this.publishers.get(graph)!;
  }

  /** Remembers what is answered now of every graph. */
  async remember(): Promise<void> {
    for (const [graph, { last }] of this.publishers) {
      await reached(this.cluster, graph, last);
      this.before.set(graph, await answersOf(this.cluster, graph, last));
    }
  }

  async recreateEdges(graph: string): Promise<void> {
    const { stream } = edgesLog(graph);
    await this.manager.streams.delete(stream);
    await this.bus.create(stream, { subjects: edgesSubjects(graph), discard: 'new', denyDelete: true });
  }

  /** Messages that the oracle does not hear of. */
  async publishOthers(graph: string, count: number): Promise<void> {
    for (let n = 0; n < count; n++) {
      const payload = new TextEncoder().encode(`{"source":"other-${n}","target":"other-${n + 1}"}`);
      expect((await this.bus.append(edgesLog(graph), payload, {})).kind).toBe('stored');
    }
  }

  /** The answers are those from before; each problem is named wherever a person or a program looks. */
  async expectNamed(graph: string, code: string, words: RegExp): Promise<void> {
    const { cluster } = this;
    const { stream } = edgesLog(graph);
    const before = this.before.get(graph)!;
    const detail = await cluster.unready(new RegExp(`graph ${graph}: `));
    const about = detail.split('; graph ').find((part) => part.includes(`${graph}: `))!;
    expect(about).toContain(stream);
    expect(about).toContain(`(${code})`);
    expect(about).toMatch(words);

    const status = await cluster.get<GraphStatus>(`/v1/graphs/${graph}`);
    expect(status.problem?.code).toBe(code);
    expect(status.problem?.message).toMatch(words);
    expect(status.totals).toEqual(before.totals);
    expect(await answersOf(cluster, graph, before.totals.sequence)).toEqual(before);
  }

  /** The program says so too, and with which exit status. */
  async expectTold(codes: Readonly<Record<string, string>>): Promise<void> {
    const { cluster } = this;
    const told = await cluster.watershed(['status']);
    expect(told.status).toBe(0);
    const json = await cluster.watershed(['status', '--json']);
    expect(json.status).toBe(0);
    const { graphs } = JSON.parse(json.stdout) as { graphs: GraphStatus[] };
    for (const [graph, code] of Object.entries(codes)) {
      const problem = graphs.find(({ config }) => config.name === graph)?.problem;
      expect(problem?.code).toBe(code);
      expect(told.stdout).toContain(`! ${problem?.message} (${code})`);
    }
    const [graph = ''] = Object.keys(codes);
    const { id } = this.before.get(graph)!.components[0]!;
    const shown = await cluster.watershed(['graph', 'show', graph]);
    expect(shown.status).toBe(0);
    expect(shown.stdout).toContain(`(${codes[graph]})`);
    expect((await cluster.watershed(['component', '--graph', graph, id])).status).toBe(0);
    const awaited = await cluster.watershed(['component', '--graph', graph, '--at-least', '1', id]);
    expect(awaited.status).toBe(5);
    expect(awaited.stderr).toContain(edgesLog(graph).stream);
  }

  /** Nobody is told that something counts, or is in an answer, that does not. */
  async expectNothingPromised(graph: string): Promise<void> {
    const { cluster } = this;
    const awaited = await fetch(`${cluster.url}/v1/graphs/${graph}?atLeast=1`);
    expect(awaited.status).toBe(503);
    expect(((await awaited.json()) as Problem).code).toBe('not-ready');
    const posted = await fetch(`${cluster.url}/v1/graphs/${graph}/edges`, {
      method: 'POST',
      body: '{"source":"a","target":"b"}',
      headers: { 'content-type': 'application/json' },
    });
    expect(posted.status).toBe(503);
    expect(((await posted.json()) as Problem).code).toBe('not-ready');
  }

  async stop(): Promise<void> {
    for (const publisher of this.publishers.values()) await publisher.disconnect();
    await this.bus.connection.close();
    await this.cluster.stop();
  }
}

function partsOf(graph: string): string[] {
  return Array.from({ length: PARTITIONS }, (_, p) => partsLog(graph, 1, p).stream);
}

function forestOf(graph: string): string[] {
  return Array.from({ length: PARTITIONS }, (_, p) => forestLog(graph, 1, p).stream);
}

describe('while the instances were stopped', () => {
  const GRAPHS = ['recreated', 'purged', 'shorter', 'reused', 'restored', 'lawful', 'parts', 'forest'];
  let bench: Bench;
  /** What /readyz said from the start on. */
  const probes: number[] = [];

  beforeAll(async () => {
    bench = await Bench.create(GRAPHS);
    const { cluster } = bench;
    const { nats } = cluster;
    const copy = join(cluster.folder, 'copy');
    await nats.halt();
    await cp(nats.storeDir, copy, { recursive: true });
    await nats.restart();
    for (const graph of ['shorter', 'reused', 'restored']) {
      await bench.publisher(graph).messages(LOST_MESSAGES);
    }
    await bench.remember();
    expect(await cluster.stopInstance('all')).toBe(0);

    await nats.halt();
    const streams = join('jetstream', '$G', 'streams');
    const lost = ['shorter', 'reused', 'restored'].map((graph) => edgesLog(graph).stream);
    lost.push(...partsOf('restored'), ...forestOf('restored'));
    for (const stream of lost) {
      await rm(join(nats.storeDir, streams, stream), { recursive: true });
      await cp(join(copy, streams, stream), join(nats.storeDir, streams, stream), { recursive: true });
    }
    await nats.restart();

    const { manager } = bench;
    await until(async () => (await bench.bus.describe(lost[0]!)) !== undefined, 'the streams to be there');
    for (const stream of lost) expect((await bench.bus.describe(stream))?.last).toBeLessThanOrEqual(MESSAGES);
    await bench.publishOthers('reused', LOST_MESSAGES + 3);
    await bench.publishOthers('restored', LOST_MESSAGES + 3);
    await bench.recreateEdges('recreated');
    await bench.publishOthers('recreated', 3);
    await bench.publishOthers('purged', 5);
    await manager.streams.purge(edgesLog('purged').stream, { seq: MESSAGES + 3 });
    await manager.streams.purge(edgesLog('lawful').stream, { seq: MESSAGES + 1 });
    for (const stream of [...partsOf('parts'), ...forestOf('forest')]) await manager.streams.delete(stream);

    await cluster.restart('all');
    const until503 = async (): Promise<boolean> => {
      const { status } = await fetch(`${cluster.url}/readyz`);
      probes.push(status);
      return probes.filter((probe) => probe === 503).length > 10;
    };
    await until(until503, 'some probes');
  }, 120_000);

  afterAll(() => bench?.stop());

  it('an EDGES stream that was deleted and created again is named log-recreated and nothing of it counts', async () => {
    await bench.expectNamed('recreated', 'log-recreated', /was deleted and created again/);
    await bench.expectNothingPromised('recreated');
  });

  it('an EDGES stream whose head was purged beyond what was read is named log-truncated', async () => {
    await bench.expectNamed('purged', 'log-truncated', /now begins at message 13, but only message 10/);
    await bench.expectNothingPromised('purged');
  });

  it('an EDGES stream that ends before what was read is named log-truncated', async () => {
    await bench.expectNamed('shorter', 'log-truncated', /ends at message 10, but message 16 was read/);
    await bench.expectNothingPromised('shorter');
  });

  it('an EDGES stream that lost its tail and used the numbers again is named log-diverged', async () => {
    await bench.expectNamed(
      'reused',
      'log-diverged',
      /message 16 of stream \S+ is not the one that was read/,
    );
    await bench.expectNothingPromised('reused');
  });

  it('so it is where all streams lost their tails together, by an older copy of the store', async () => {
    await bench.expectNamed(
      'restored',
      'log-diverged',
      /message 16 of stream \S+ is not the one that was read/,
    );
    await bench.expectNothingPromised('restored');
  });

  it('watershed status tells them all, answers go on, and what waits for a sequence exits 5', async () => {
    await bench.expectTold({
      recreated: 'log-recreated',
      purged: 'log-truncated',
      shorter: 'log-truncated',
      reused: 'log-diverged',
      restored: 'log-diverged',
    });
  });

  it('and /readyz never says that all is well, not even in the first moment', () => {
    expect(probes).not.toContain(200);
  });

  it.each([
    ['messages that were read and lawfully removed since are not missed', 'lawful'],
    ['PARTS streams that were deleted heal with the same answers', 'parts'],
    ['FOREST streams that were deleted heal with the same answers', 'forest'],
  ])('%s, and new edges count', async (_, graph) => {
    const { cluster } = bench;
    const before = bench.before.get(graph)!;
    await until(async () => {
      const { problem } = await cluster.get<GraphStatus>(`/v1/graphs/${graph}`);
      return problem === undefined;
    }, 'no problem to be left');
    expect(await answersOf(cluster, graph, before.totals.sequence)).toEqual(before);
    const publisher = bench.publisher(graph);
    await publisher.messages(3);
    await reached(cluster, graph, publisher.last);
    await expectOracle(cluster, graph, publisher);
  });
});

describe('while everything runs', () => {
  const GRAPHS = ['recreated', 'parts', 'forest', 'twins'];
  let bench: Bench;

  beforeAll(async () => {
    bench = await Bench.create(GRAPHS);
    await bench.remember();
  }, 60_000);

  afterAll(() => bench?.stop());

  it.each([
    ['PARTS streams that are deleted', 'parts'],
    ['FOREST streams that are deleted', 'forest'],
  ])('%s heal by themselves with the same answers', { timeout: 90_000 }, async (_, graph) => {
    const { cluster } = bench;
    const publisher = bench.publisher(graph);
    const before = bench.before.get(graph)!;
    const streams = graph === 'parts' ? partsOf(graph) : forestOf(graph);
    for (const isBusy of [false, true]) {
      if (isBusy) publisher.start();
      for (const stream of streams) await bench.manager.streams.delete(stream);
      await until(async () => {
        for (const stream of streams) if ((await bench.bus.describe(stream)) === undefined) return false;
        const { instances } = await cluster.get<ClusterAnswer>('/v1/cluster');
        const tasks = instances.flatMap((instance) => instance.tasks).filter((task) => task.graph === graph);
        return tasks.every(({ problem, state }) => problem === undefined && state === 'running');
      }, `the streams of ${graph} to be there again and its tasks to be well`);
      await publisher.stop();
      expect(await answersOf(cluster, graph, before.totals.sequence)).toEqual(before);
      await publisher.messages(3);
      await reached(cluster, graph, publisher.last);
      await expectOracle(cluster, graph, publisher);
    }
  });

  // Instances that believe in the same task are set against each other in zombie.test.ts.
  it('a second instance gets its share of the tasks by hand-over, each runs once, and nothing is wrong', {
    timeout: 90_000,
  }, async () => {
    const { cluster } = bench;
    const publisher = bench.publisher('twins');
    publisher.start();
    cluster.start('second', ['--roles', 'partitioner,worker']);
    await until(
      async () => {
        const { instances } = await cluster.get<ClusterAnswer>('/v1/cluster');
        const running = instances.map(({ name, tasks }) => ({
          name,
          tasks: tasks.filter(({ task }) => !task.startsWith('view')),
        }));
        const tasks = running.flatMap((one) => one.tasks.filter(({ graph }) => graph === 'twins'));
        // Over all graphs: of one graph all tasks may fall to one instance.
        const isShared =
          ['all', 'second'].every((name) =>
            running.some((one) => one.name === name && one.tasks.length > 0),
          ) &&
          tasks.length === 1 + PARTITIONS &&
          new Set(tasks.map(({ task }) => task)).size === tasks.length &&
          tasks.every(({ state, problem }) => state === 'running' && problem === undefined);
        if (!isShared) throw new Error(JSON.stringify(running));
        return true;
      },
      'the tasks to be shared',
      60_000,
    );
    await publisher.stop();
    await publisher.messages(5);
    await reached(cluster, 'twins', publisher.last);
    await expectOracle(cluster, 'twins', publisher);
    const { problem } = await cluster.get<GraphStatus>('/v1/graphs/twins');
    expect(problem).toBeUndefined();
  });

  it('an EDGES stream that is deleted and created again is named log-recreated and nothing of it counts', async () => {
    await bench.recreateEdges('recreated');
    await bench.publishOthers('recreated', 3);
    await bench.expectNamed('recreated', 'log-recreated', /was deleted and created again/);
    await bench.expectNothingPromised('recreated');
  });
});
