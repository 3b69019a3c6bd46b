/**
 * The whole store of a nats-server is replaced by an older copy: logs, leases and records are all as they were then.
 * That what was counted is not there any more is found and named every time, nothing that comes instead is counted, and
 * when the right store is back, so is everything else.
 */
import { cp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { GraphStatus } from '../../libs/api/graph.ts';
import { connectNats, NatsBus } from '../../libs/bus/nats-bus.ts';
import { edgesLog } from '../../libs/dataflow/names.ts';
import { seeded } from '../support/seeded.ts';
import { answersOf, reached } from './harness/answers.ts';
import { Cluster, until } from './harness/cluster.ts';
import { expectOracle, Publisher } from './harness/publisher.ts';

const ROUNDS = 5;
const GRAPH = 'old-store';
/** Stored after the copy was made. */
const LOST_MESSAGES = 6;
const SETTLE_MS = 60_000;

describe('a nats-server whose store is replaced by an older copy', () => {
  const seed = Date.now() % 1_000_000;
  const random = seeded(seed);
  let cluster: Cluster;
  let publisher: Publisher;

  beforeAll(async () => {
    cluster = await Cluster.single();
    expect((await cluster.watershed(['graph', 'create', GRAPH, '--partitions', '2'])).status).toBe(0);
    publisher = await Publisher.connect(cluster.nats.url, GRAPH, seed);
    await publisher.messages(10);
  }, 60_000);

  afterAll(async () => {
    await publisher?.disconnect();
    await cluster?.stop();
  });

  /** While nats-server is down. */
  async function withServerDown(work: (storeDir: string) => Promise<void>): Promise<void> {
    const { nats } = cluster;
    await nats.halt();
    await work(nats.storeDir);
    await nats.restart();
  }

  async function replace(target: string, source: string): Promise<void> {
    await rm(target, { recursive: true, force: true });
    await cp(source, target, { recursive: true });
  }

  /** Of somebody who does not know: they get numbers that were given out before. */
  async function publishOthers(count: number): Promise<void> {
    const connection = await connectNats({ url: cluster.nats.url, name: 'others', wait: true });
    const bus = new NatsBus(connection);
    await until(
      async () => (await bus.describe(edgesLog(GRAPH).stream)) !== undefined,
      'the stream to be there',
    );
    for (let n = 0; n < count; n++) {
      const payload = new TextEncoder().encode(`{"source":"other-${n}","target":"other-${n + 1}"}`);
      expect((await bus.append(edgesLog(GRAPH), payload, {})).kind).toBe('stored');
    }
    await connection.close();
  }

  it.each(Array.from({ length: ROUNDS }, (_, round) => round + 1))(
    'is found out, time %i',
    {
      timeout: 180_000,
    },
    async (round) => {
      const old = join(cluster.folder, 'old');
      const newest = join(cluster.folder, 'newest');
      await withServerDown((storeDir) => replace(old, storeDir));
      await publisher.messages(LOST_MESSAGES);
      await reached(cluster, GRAPH, publisher.last, SETTLE_MS);
      const before = await answersOf(cluster, GRAPH, publisher.last);
      const isStopped = round % 2 === 0;
      if (isStopped) await cluster.stopInstance('all');
      await withServerDown(async (storeDir) => {
        await replace(newest, storeDir);
        await replace(storeDir, old);
      });
      const others = Math.floor(random() * 2 * LOST_MESSAGES);
      await publishOthers(others);
      if (isStopped) await cluster.restart('all');
      const detail = await cluster.unready(/log-(?:truncated|diverged)/, SETTLE_MS);
      console.log(`${isStopped ? 'stopped' : 'running'}, ${others} other messages: ${detail}`);
      expect(detail).toContain(edgesLog(GRAPH).stream);
      expect(detail).toContain(others < LOST_MESSAGES ? '(log-truncated)' : '(log-diverged)');
      expect(await answersOf(cluster, GRAPH, publisher.last)).toEqual(before);

      await withServerDown((storeDir) => replace(storeDir, newest));
      await until(
        async () => {
          const { problem } = await cluster.get<GraphStatus>(`/v1/graphs/${GRAPH}`);
          if (problem !== undefined) throw new Error(problem.message);
          return true;
        },
        'all to be well again',
        SETTLE_MS,
      );
      await publisher.messages(3);
      await reached(cluster, GRAPH, publisher.last, SETTLE_MS);
      await expectOracle(cluster, GRAPH, publisher);
    },
  );
});
