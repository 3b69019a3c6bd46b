/**
 * Any process is killed with -9 at any time, under load, and started again: the answers and the totals are
 * those of a run without.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { GraphStatus } from '../../libs/api/graph.ts';
import { Cluster, until } from './harness/cluster.ts';
import { expectOracle, Publisher } from './harness/publisher.ts';

const KILLS = 56;
const GRAPH = 'kill';
const VICTIMS = ['partitioner', 'worker-a', 'worker-b', 'gateway'];

describe('after kill -9', () => {
  let cluster: Cluster;

  beforeAll(async () => {
    cluster = await Cluster.create();
    cluster.start('partitioner', ['--roles', 'partitioner']);
    cluster.start('worker-a', ['--roles', 'worker']);
    cluster.start('worker-b', ['--roles', 'worker']);
    cluster.start('gateway', ['--roles', 'gateway']);
    await cluster.ready();
    expect((await cluster.watershed(['graph', 'create', GRAPH, '--partitions', '3'])).status).toBe(0);
  });

  afterAll(() => cluster.stop());

  it(`of ${KILLS} processes at random times nothing is lost and nothing counts twice`, {
    timeout: 300_000,
  }, async () => {
    const publisher = await Publisher.connect(cluster.nats.url, GRAPH);
    publisher.start();
    for (let kill = 0; kill < KILLS; kill++) {
      const victim = VICTIMS[kill % VICTIMS.length]!;
      // The moment is what is random here: there is no condition to wait for.
      await new Promise((resolve) => setTimeout(resolve, 100 + Math.random() * 300));
      await cluster.kill9(victim);
      await cluster.restart(victim);
      // Now and then wait until the process is in the middle of its work again, not only of its start.
      if (kill % 4 === 3) {
        const target = publisher.last;
        await until(
          async () => (await cluster.get<GraphStatus>(`/v1/graphs/${GRAPH}`)).totals.sequence >= target,
          `the answers to reach ${target} after kill ${kill} (${victim})`,
          60_000,
        );
      }
    }
    await publisher.disconnect();
    await expectOracle(cluster, GRAPH, publisher);
    const { problem } = await cluster.get<GraphStatus>(`/v1/graphs/${GRAPH}`);
    expect(problem).toBeUndefined();
  });
});
