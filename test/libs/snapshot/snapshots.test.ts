import { afterEach, describe, expect, it } from 'vitest';
import { chunkNames, partBlocks } from '../../../libs/snapshot/part-chunks.ts';
import { type Manifest, tasksOf, VIEW_PART } from '../../../libs/snapshot/records.ts';
import type { LogState } from '../../../libs/stage/ports.ts';
import { MemoryPipeline, realClock } from '../../support/memory-pipeline.ts';
import {
  expectAllRestore,
  expectRestores,
  LoggedLines,
  loseAllDisks,
  Publisher,
  takeSnapshot,
  until,
} from './snapshot-cases.ts';

let pipeline: MemoryPipeline;
let publisher: Publisher;
let log: LoggedLines;

async function begin(partitions: number): Promise<void> {
  log = new LoggedLines();
  pipeline = new MemoryPipeline(partitions, { log, haste: 20 });
  publisher = new Publisher(pipeline);
  await pipeline.createEdges();
  pipeline.start();
}

afterEach(async () => {
  await pipeline.stop();
});

async function logOf(name: string): Promise<LogState> {
  return (await pipeline.bus.describe(`GRAPH_g_${name}`))!;
}

/** Waits until the logs between the stages begin behind their first message. */
async function purged(...names: string[]): Promise<void> {
  for (const name of names) {
    await until(`the purge of ${name}`, async () => (await logOf(name)).first > 1, pipeline);
  }
}

describe('a request', () => {
  it('leads to a snapshot of all parts that is read back, in a stream that goes on', async () => {
    await begin(3);
    await publisher.publish(50);
    const publishing = publisher.publish(200, 1);
    const manifest = await takeSnapshot(pipeline, 'monday');
    await publishing;
    await publisher.expectExact();
    expect(manifest.parts.map(({ task }) => task)).toEqual(tasksOf(3));
    expect(manifest).toMatchObject({ name: 'monday', generation: 1, partitions: 3 });
    expect(manifest.time).not.toBe('0');
    const { requests, verified } = await pipeline.records.read();
    expect(requests).toEqual([]);
    expect([...verified]).toEqual([manifest.barrier]);
    await expectRestores(pipeline, publisher, manifest);
  });

  it('leads to one of an idle graph too', async () => {
    await begin(2);
    await publisher.publish(20);
    await publisher.expectExact();
    const first = await takeSnapshot(pipeline);
    const second = await takeSnapshot(pipeline);
    expect([first.sequence, second.sequence]).toEqual([20, 20]);
    expect(second.barrier).toBeGreaterThan(first.barrier);
    await expectAllRestore(pipeline, publisher);
  });

  it('leads to one of an empty graph too', async () => {
    await begin(2);
    const manifest = await takeSnapshot(pipeline);
    expect(manifest).toMatchObject({ sequence: 0, time: '0' });
    await publisher.publish(20);
    await publisher.expectExact();
    await expectAllRestore(pipeline, publisher);
  });
});

describe('a snapshot', () => {
  it('and what was published behind it make the state again when every disk is lost', async () => {
    await begin(3);
    await publisher.publish(100);
    await takeSnapshot(pipeline);
    await publisher.publish(30);
    await publisher.expectExact();
    await loseAllDisks(pipeline);
    pipeline.start();
    await publisher.expectExact();
    await publisher.publish(30);
    await publisher.expectExact();
    expect(log.count(/restored from a snapshot/)).toBe(5);
  });

  it('does so when the logs before the kept ones are gone', async () => {
    await begin(2);
    const taken: number[] = [];
    for (let round = 0; round < 3; round++) {
      await publisher.publish(60);
      taken.unshift((await takeSnapshot(pipeline)).sequence);
    }
    const { manifests } = await until(
      'retention',
      async () => {
        const state = await pipeline.records.read();
        return state.manifests.length === 2 && state;
      },
      pipeline,
    );
    await purged('PARTS_1_0', 'PARTS_1_1', 'FOREST_1_0', 'FOREST_1_1');
    expect(manifests.map(({ sequence }) => sequence)).toEqual(taken.slice(0, 2));
    await publisher.publish(30);
    await publisher.expectExact();
    await loseAllDisks(pipeline);
    pipeline.start();
    await publisher.expectExact();
    await publisher.publish(30);
    await publisher.expectExact();
    await expectAllRestore(pipeline, publisher);
    await takeSnapshot(pipeline);
    await expectAllRestore(pipeline, publisher);
  });

  it('brings back each task alone', async () => {
    await begin(2);
    for (let round = 0; round < 3; round++) {
      await publisher.publish(60);
      await takeSnapshot(pipeline);
    }
    await purged('PARTS_1_0', 'PARTS_1_1', 'FOREST_1_0', 'FOREST_1_1');
    for (const stage of pipeline.stages) {
      await pipeline.stop();
      pipeline.disk(stage).lose();
      pipeline.start();
      await publisher.publish(5);
      await publisher.expectExact();
    }
    await takeSnapshot(pipeline);
    await expectAllRestore(pipeline, publisher);
  });
});

/** The names of a snapshot's chunks. */
async function chunksOf(manifest: Manifest): Promise<string[]> {
  const names: string[] = [];
  for (const { index } of manifest.parts) names.push(...(await chunkNames(pipeline.chunks, index)));
  return names;
}

async function damage(name: string): Promise<void> {
  const names = (await pipeline.chunks.list()).map((chunk) => chunk.name).sort();
  pipeline.chunks.damage(names.indexOf(name), 1234);
}

describe('a damaged snapshot', () => {
  for (const what of ['its chunks', 'its indexes'] as const) {
    it(`is passed over for the one before it, and that is said: ${what}`, async () => {
      await begin(2);
      await publisher.publish(60);
      await takeSnapshot(pipeline);
      await publisher.publish(60);
      const manifest = await takeSnapshot(pipeline);
      await publisher.publish(10);
      await publisher.expectExact();
      const names =
        what === 'its chunks' ? await chunksOf(manifest) : manifest.parts.map(({ index }) => index);
      for (const name of names) await damage(name);
      await loseAllDisks(pipeline);
      pipeline.start();
      await publisher.expectExact();
      expect(log.count(/"barrier":2.*a snapshot is damaged: trying the one before it/)).toBe(4);
      const restored = /"barrier":1.*the state was restored from a snapshot/;
      await until('four restores', () => log.count(restored) === 4, pipeline);
      await publisher.publish(10);
      await takeSnapshot(pipeline);
      await publisher.expectExact();
    });
  }

  it('with no other one, and no logs that reach back, is a problem with a name, and there is no answer', async () => {
    await begin(2);
    for (let round = 0; round < 3; round++) {
      await publisher.publish(60);
      await takeSnapshot(pipeline);
    }
    await purged('PARTS_1_0', 'PARTS_1_1', 'FOREST_1_0', 'FOREST_1_1');
    const { manifests } = await pipeline.records.read();
    for (const manifest of manifests) for (const name of await chunksOf(manifest)) await damage(name);
    await loseAllDisks(pipeline);
    pipeline.start();
    const end = performance.now() + 1_000;
    while (performance.now() < end) {
      expect(pipeline.view?.sequence).toBeUndefined();
      await realClock.sleep(1);
    }
    for (const stage of ['worker-0', 'worker-1', 'view'] as const) {
      const problem = pipeline.task(stage).problem;
      expect([stage, problem?.code]).toEqual([stage, 'state-missing']);
      expect(problem?.message).toMatch(/rebuild/);
    }
  });
});

/** Edges of a path, from one vertex to the other, in messages of a thousand. */
async function publishPath(from: number, to: number): Promise<number> {
  let last = 0;
  for (let first = from; first < to; first += 1000) {
    const edges = Array.from({ length: Math.min(1000, to - first) }, (_, n) => ({
      source: `vertex-${first + n}`,
      target: `vertex-${first + n + 1}`,
    }));
    last = await pipeline.publish(JSON.stringify(edges));
  }
  return last;
}

describe('a snapshot of a graph of some size', () => {
  const SIZE = 300_000;

  it('stores little more than what is new', { timeout: 120_000 }, async () => {
    await begin(1);
    await pipeline.visible(await publishPath(0, SIZE), 100_000);
    const full = await takeSnapshot(pipeline);
    expect(full.newBytes).toBe(full.bytes);
    expect(full.bytes).toBeGreaterThan(8_000_000);
    await pipeline.visible(await publishPath(SIZE, SIZE * 1.01), 60_000);
    const next = await takeSnapshot(pipeline);
    expect(next.bytes).toBeGreaterThan(full.bytes);
    expect(next.newBytes).toBeLessThan(full.bytes * 0.05);
    const idle = await takeSnapshot(pipeline);
    expect(idle.newBytes).toBeLessThan(full.bytes * 0.05);
  });

  it('is made whole again after a chunk was damaged', { timeout: 120_000 }, async () => {
    await begin(1);
    await pipeline.visible(await publishPath(0, 60_000), 100_000);
    const first = await takeSnapshot(pipeline);
    const view = first.parts.find(({ task }) => task === VIEW_PART)!;
    // The keeper of another process has not read it back yet.
    pipeline.kill('partitioner');
    await damage((await chunkNames(pipeline.chunks, view.index))[0]!);
    pipeline.start('partitioner');
    await pipeline.records.create('request', 'found', {});
    await until('the damage', () => log.count(/a snapshot cannot be read back/) > 0, pipeline);
    const second = await takeSnapshot(pipeline);
    const blocks = partBlocks(pipeline.chunks, second.parts.find(({ task }) => task === VIEW_PART)!.index);
    let bytes = 0;
    for await (const block of blocks) bytes += block.length;
    expect(bytes).toBeGreaterThan(1_000_000);
  });
});

describe('two owners of one task', () => {
  for (const stage of ['partitioner', 'worker-0'] as const) {
    it(`do no harm: one is fenced off (${stage})`, { timeout: 60_000 }, async () => {
      await begin(2);
      await publisher.publish(60);
      await takeSnapshot(pipeline);
      for (let round = 0; round < 4; round++) {
        const first = pipeline.task(stage);
        const publishing = publisher.publish(60, 1);
        const disk = pipeline.disk(stage);
        pipeline.disks.delete(stage);
        pipeline.start(stage);
        if (round === 1) await pipeline.records.create('request', `rival-${round}`, {});
        await publishing;
        await publisher.expectExact();
        await until('the fence', () => first.fenced, pipeline);
        expect(first.problem?.code).toBe('fenced');
        expect(first.state).toBe('stopped');
        disk.lose();
        await takeSnapshot(pipeline);
      }
      await expectAllRestore(pipeline, publisher);
    });
  }

  it('do no harm while the graph is rescaled', { timeout: 60_000 }, async () => {
    await begin(2);
    await publisher.publish(60);
    for (const partitions of [3, 2, 4, 1]) {
      const first = pipeline.task('partitioner');
      await pipeline.change({ partitions });
      pipeline.disks.delete('partitioner');
      pipeline.start('partitioner');
      await publisher.publish(60, 1);
      await until(`${partitions}`, () => pipeline.view?.generation?.partitions === partitions, pipeline);
      await publisher.expectExact();
      await until('the fence', () => first.fenced, pipeline);
    }
    for (let n = 0; n < 3; n++) await takeSnapshot(pipeline);
    await until('one generation', () => pipeline.config.generations.length === 1, pipeline);
    await expectAllRestore(pipeline, publisher);
  });
});

describe('a rescaled graph', () => {
  it('goes on exactly, from one number of partitions to the next, and gives up what is over', {
    timeout: 120_000,
  }, async () => {
    await begin(1);
    await publisher.publish(40);
    for (const partitions of [4, 3, 8, 1]) {
      const publishing = publisher.publish(150, 1);
      await pipeline.change({ partitions });
      await publishing;
      await until(
        `${partitions} partitions`,
        () => pipeline.view?.generation?.partitions === partitions,
        pipeline,
      );
      await publisher.expectExact();
    }
    expect(pipeline.config.generations.map(({ partitions }) => partitions)).toEqual([1, 4, 3, 8, 1]);
    for (let n = 0; n < 2; n++) {
      await publisher.publish(20);
      await takeSnapshot(pipeline);
    }
    await until('one generation', () => pipeline.config.generations.length === 1, pipeline);
    await until('removal', async () => (await pipeline.bus.describe('GRAPH_g_FOREST_4_7')) === undefined);
    for (const [at, partitions] of [1, 4, 3, 8].entries()) {
      for (let partition = 0; partition < partitions; partition++) {
        for (const kind of ['PARTS', 'FOREST']) {
          const stream = `GRAPH_g_${kind}_${at + 1}_${partition}`;
          expect(await pipeline.bus.describe(stream), stream).toBeUndefined();
        }
      }
    }
    await publisher.publish(40);
    await publisher.expectExact();
    await loseAllDisks(pipeline);
    pipeline.start();
    await publisher.expectExact();
    await expectAllRestore(pipeline, publisher);
  });
});
