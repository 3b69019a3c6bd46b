/**
 * Any process is killed with -9 at any time, under load, and started again: the answers and the totals are
 * those of a run without.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ComponentsPage } from '../../libs/api/component.ts';
import type { GraphStatus } from '../../libs/api/graph.ts';
import { connectNats, NatsBus } from '../../libs/bus/nats-bus.ts';
import { edgesLog } from '../../libs/dataflow/names.ts';
import { CorePipeline } from '../support/core-pipeline.ts';
import { seeded } from '../support/seeded.ts';
import { Cluster, until } from './harness/cluster.ts';

const KILLS = 56;
const GRAPH = 'kill';
const EDGES_PER_MESSAGE = 40;
const VICTIMS = ['partitioner', 'worker-a', 'worker-b', 'gateway'];

describe('after kill -9', () => {
  let cluster: Cluster;

  beforeAll(async () => {
    cluster = await Cluster.create();
    cluster.start('partitioner', ['--roles', 'partitioner']);
    cluster.start('worker-a', ['--roles', 'worker', '--partitions', '0,2']);
    cluster.start('worker-b', ['--roles', 'worker', '--partitions', '1']);
    cluster.start('gateway', ['--roles', 'gateway']);
    await cluster.ready();
    expect((await cluster.watershed(['graph', 'create', GRAPH, '--partitions', '3'])).status).toBe(0);
  });

  afterAll(() => cluster.stop());

  it(`of ${KILLS} processes at random times nothing is lost and nothing counts twice`, {
    timeout: 300_000,
  }, async () => {
    const seed = Date.now() % 1_000_000;
    console.log(`seed ${seed}`);
    const random = seeded(seed);
    const connection = await connectNats({ url: cluster.nats.url, name: 'publisher', wait: true });
    const bus = new NatsBus(connection);
    const oracle = new CorePipeline(1);
    let last = 0;
    let published = true;
    const publishing = (async () => {
      while (published) {
        const edges = Array.from({ length: EDGES_PER_MESSAGE }, () => ({
          source: `v${Math.floor(random() ** 2 * 20_000)}`,
          target: random() < 0.01 ? '' : `v${Math.floor(random() * 20_000)}`,
        }));
        const payload = new TextEncoder().encode(JSON.stringify(edges));
        const appended = await bus.append(edgesLog(GRAPH), payload, {});
        if (appended.kind !== 'stored') throw new Error(appended.kind);
        oracle.publish(payload);
        last = appended.sequence;
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
    })();
    for (let kill = 0; kill < KILLS; kill++) {
      const victim = VICTIMS[kill % VICTIMS.length]!;
      await new Promise((resolve) => setTimeout(resolve, 100 + random() * 300));
      await cluster.kill9(victim);
      await cluster.restart(victim);
      // Now and then wait until the process is in the middle of its work again, not only of its start.
      if (kill % 4 === 3) {
        const target = last;
        await until(
          async () => (await cluster.get<GraphStatus>(`/v1/graphs/${GRAPH}`)).totals.sequence >= target,
          `the answers to reach ${target} after kill ${kill} (${victim})`,
          60_000,
        );
      }
    }
    published = false;
    await publishing;
    await connection.close();
    const status = await cluster.graph(GRAPH, last);
    const view = oracle.settle();
    expect(status.totals).toEqual({
      sequence: last,
      vertices: view.forest.rows,
      components: view.forest.rows - view.forest.links,
      edges: view.messages.totals.edges,
      rejected: view.messages.totals.rejected,
    });
    expect(status.problem).toBeUndefined();
    const page = await cluster.get<ComponentsPage>(`/v1/graphs/${GRAPH}/components?limit=1000&asOf=${last}`);
    const expected = view.forest.order.page(undefined, 1000).map(({ oldest, size }) => ({
      id: new TextDecoder().decode(view.forest.vertices.idOf(oldest)),
      size,
    }));
    expect(page.components).toEqual(expected);
  });
});
