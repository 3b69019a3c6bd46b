/** What nobody waits for: a graph that is idle, a cluster without a gateway, a gateway that was away. */
import { afterEach, describe, expect, it } from 'vitest';
import { Registry } from '../../../libs/bus/registry.ts';
import type { Bus, Clock, LogReader } from '../../../libs/stage/ports.ts';
import { MemoryDisk } from '../../../libs/store/memory-store.ts';
import { LiveGraph } from '../../../services/cli/live-graph.ts';
import { GraphHost } from '../../../services/gateway/graph-host.ts';
import { MemoryPipeline, realClock } from '../../support/memory-pipeline.ts';
import { LoggedLines, Publisher, takeSnapshot, until } from './snapshot-cases.ts';

const HASTE = 50;

let pipeline: MemoryPipeline;

afterEach(() => pipeline.stop());

describe('an idle graph', () => {
  it('gives its old generation up, and then takes no more snapshots', async () => {
    pipeline = new MemoryPipeline(2, { haste: HASTE, wish: { snapshots: { interval: 2, keep: 2 } } });
    const publisher = new Publisher(pipeline);
    await pipeline.createEdges();
    pipeline.start();
    await publisher.publish(50);
    await pipeline.change({ partitions: 3 });
    await until(
      'the first generation to go',
      async () =>
        pipeline.config.generations[0]?.generation === 2 &&
        pipeline.config.retired.length === 0 &&
        (await pipeline.bus.describe('GRAPH_g_PARTS_1_0')) === undefined,
      pipeline,
    );
    const { manifests } = await pipeline.records.read();
    // Ten intervals in which nothing is due: only the passing of time can show that nothing comes.
    await realClock.sleep((10 * 2_000) / HASTE);
    expect((await pipeline.records.read()).manifests).toEqual(manifests);
  });
});

describe('without a gateway', () => {
  it('barriers and parts do not pile up', async () => {
    pipeline = new MemoryPipeline(2, { haste: HASTE, wish: { snapshots: { interval: 2, keep: 2 } } });
    const publisher = new Publisher(pipeline);
    await pipeline.createEdges();
    pipeline.start('partitioner', 'worker-0', 'worker-1');
    await publisher.publish(20);
    let most = 0;
    await until(
      'the twentieth barrier',
      async () => {
        const { barriers } = await pipeline.records.read();
        most = Math.max(most, barriers.length);
        return (barriers.at(-1)?.barrier ?? 0) >= 20;
      },
      pipeline,
    );
    expect(most).toBeLessThanOrEqual(10);
  });
});

describe('a gateway that was away during a rescale', () => {
  it('comes back by a snapshot when the logs that it read are gone', async () => {
    const log = new LoggedLines();
    pipeline = new MemoryPipeline(2, { log, haste: HASTE });
    const publisher = new Publisher(pipeline);
    await pipeline.createEdges();
    pipeline.start();
    await publisher.publish(30);
    const link = { isUp: true };
    const graph = new LiveGraph(pipeline.config, new Registry(pipeline.kv));
    const host = new GraphHost({
      graph,
      snapshots: { kv: pipeline.kv, chunks: pipeline.chunks, clock: HASTY, log, instance: 'away' },
      storesView: () => false,
      stage: {
        bus: cuttable(pipeline.bus, link),
        openStore: async () => disk.openStore(),
        clock: HASTY,
        log,
        isCurrent: async () => true,
      },
      visible: () => {},
    });
    const disk = new MemoryDisk();
    host.task.start();
    try {
      await until('the other gateway to have all', () => host.view?.sequence === 30, pipeline);
      link.isUp = false;
      await publisher.publish(30);
      await pipeline.change({ partitions: 3 });
      await until('the next generation', () => pipeline.config.generations.length === 2, pipeline);
      for (let snapshot = 0; snapshot < 4; snapshot++) {
        await publisher.publish(10);
        await takeSnapshot(pipeline);
      }
      await until(
        'the first generation to go',
        async () => (await pipeline.bus.describe('GRAPH_g_FOREST_1_0')) === undefined,
        pipeline,
      );
      link.isUp = true;
      await graph.read();
      await publisher.publish(10);
      await until('the other gateway to be back', () => host.view?.sequence === publisher.last, pipeline);
    } finally {
      await host.stop();
    }
  });
});

const HASTY: Clock = {
  now: () => realClock.now() * HASTE,
  sleep: (ms) => realClock.sleep(ms / HASTE),
  after: (ms, then) => realClock.after(ms / HASTE, then),
  yield: () => realClock.yield(),
};

/** The bus as a process has it whose connection can be cut. */
function cuttable(bus: Bus, link: { isUp: boolean }): Bus {
  const through = <T>(ask: () => Promise<T>): Promise<T> =>
    link.isUp ? ask() : Promise.reject(new Error('NATS is not connected'));
  const cut = (reader: LogReader): LogReader => ({
    next: async (waitMs) => {
      const messages = await through(() => reader.next(waitMs));
      return await through(async () => messages);
    },
    close: () => reader.close(),
  });
  return {
    describe: (stream) => through(() => bus.describe(stream)),
    message: (stream, sequence) => through(() => bus.message(stream, sequence)),
    append: (log, payload, options) => through(() => bus.append(log, payload, options)),
    read: async (stream, from) => cut(await through(() => bus.read(stream, from))),
    create: (stream, options) => through(() => bus.create(stream, options)),
    remove: (stream) => through(() => bus.remove(stream)),
    purge: (stream, sequence) => through(() => bus.purge(stream, sequence)),
  };
}
