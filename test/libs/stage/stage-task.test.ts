/**
 * The stage runtime on the in-memory bus and disks: a process may die at any append and any commit, a disk
 * may be lost, a log may lie; the answers stay those of the prefix, or the lie is named.
 */
import { afterEach, describe, expect, it } from 'vitest';
import type { LogName } from '../../../libs/dataflow/names.ts';
import { contents } from '../../support/contents.ts';
import { CorePipeline } from '../../support/core-pipeline.ts';
import { MemoryPipeline, realClock, type StageName } from '../../support/memory-pipeline.ts';

const PAYLOADS = [
  '{"source":"a","target":"b"}',
  '[{"source":"c","target":"d"},{"source":"b","target":""},{"source":"e","target":"e"}]',
  '{"source":"d","target":"a","time":"2020-01-01T00:00:00Z"}',
  'not an edge',
  '[{"source":"e","target":"f"},{"source":"f","target":"g"},{"source":"g","target":"e"}]',
  '{"source":"x","target":"y","op":"remove"}',
  '{"source":"g","target":"a"}',
];
const PARTITIONS = 2;

function expected(count = PAYLOADS.length): object {
  const pipeline = new CorePipeline(1);
  for (const payload of PAYLOADS.slice(0, count)) pipeline.publish(payload);
  return contents(pipeline.settle());
}

let pipeline: MemoryPipeline;

afterEach(async () => {
  await pipeline.stop();
});

async function publishAll(): Promise<number> {
  let last = 0;
  for (const payload of PAYLOADS) last = await pipeline.publish(payload);
  return last;
}

function ownerOf(log: LogName): StageName {
  const match = /FOREST_1_(\d+)$/.exec(log.stream);
  return match === null ? 'partitioner' : `worker-${Number(match[1])}`;
}

/** Calls `at` before and after every append, and before every write, of a stage; numbered from 1. */
function watchBoundaries(stage: StageName, at: (boundary: number) => void): () => number {
  let count = 0;
  const isMine = (log: LogName): boolean => log.stream !== pipeline.edges.stream && ownerOf(log) === stage;
  pipeline.bus.onAppend = (log) => {
    if (isMine(log)) at(++count);
    return pipeline.isDead(stage) && isMine(log) ? 'lost-before' : 'none';
  };
  pipeline.bus.afterAppend = (log) => {
    if (isMine(log)) at(++count);
  };
  pipeline.disk(stage).beforeWrite = () => {
    at(++count);
    if (pipeline.isDead(stage)) throw new Error('the process is dead');
  };
  return () => count;
}

describe('a stage', () => {
  for (const stage of ['partitioner', 'worker-0', 'worker-1', 'view'] as const) {
    it(`loses and repeats nothing when the ${stage} dies before or after any append and any commit`, async () => {
      let boundaries = 1;
      for (let dieAt = 1; dieAt <= boundaries; dieAt++) {
        pipeline = new MemoryPipeline(PARTITIONS);
        await pipeline.createEdges();
        const counted = watchBoundaries(stage, (boundary) => {
          if (boundary === dieAt) pipeline.kill(stage);
        });
        pipeline.start();
        const last = await publishAll();
        for (let wait = 0; wait < 40 && !pipeline.isDead(stage); wait++) await realClock.sleep(10);
        // A run that ends before the boundary shows how many there are.
        const reached = counted() >= dieAt;
        if (reached) boundaries = dieAt + 1;
        if (pipeline.isDead(stage)) pipeline.start(stage);
        expect(contents(await pipeline.visible(last)), `died at boundary ${dieAt}`).toEqual(expected());
        await pipeline.stop();
        if (!reached) break;
      }
      expect(boundaries).toBeGreaterThan(stage === 'view' ? 1 : 6);
    });
  }

  it('goes on from its disk, and from nothing when the disk is lost, with the same answers', async () => {
    pipeline = new MemoryPipeline(PARTITIONS);
    await pipeline.createEdges();
    pipeline.start();
    const last = await publishAll();
    await pipeline.visible(last);
    for (const lost of ['none', 'partitioner', 'worker-0', 'view'] as const) {
      await pipeline.stop();
      if (lost !== 'none') pipeline.disk(lost).lose();
      pipeline.start();
      expect(contents(await pipeline.visible(last)), `lost: ${lost}`).toEqual(expected());
    }
  });

  it('wakes a reader that waits for a sequence when the view can be asked, and not before', async () => {
    pipeline = new MemoryPipeline(PARTITIONS);
    await pipeline.createEdges();
    pipeline.start();
    expect((await pipeline.waitFor(0, 10_000))?.sequence).toBe(0);
    const last = await publishAll();
    await pipeline.visible(last);
    await pipeline.stop();
    pipeline.start();
    expect((await pipeline.waitFor(last, 10_000))?.sequence).toBe(last);
  });

  it('makes its output anew when the output log was lost, and what reads it heals', async () => {
    pipeline = new MemoryPipeline(PARTITIONS);
    await pipeline.createEdges();
    pipeline.start();
    await pipeline.visible(await pipeline.publish(PAYLOADS[0]!));
    for (const payload of PAYLOADS.slice(1, 4)) await pipeline.publish(payload);
    await pipeline.visible(4);
    await pipeline.stop();
    await pipeline.bus.remove('GRAPH_g_PARTS_1_0');
    await pipeline.bus.remove('GRAPH_g_FOREST_1_1');
    pipeline.start();
    for (const payload of PAYLOADS.slice(4)) await pipeline.publish(payload);
    expect(contents(await pipeline.visible(PAYLOADS.length))).toEqual(expected());
    expect(pipeline.task('worker-0').healed).toBe(1);
    expect(pipeline.task('view').healed).toBe(1);
  });

  it('appends again what an output has lost of its tail', async () => {
    pipeline = new MemoryPipeline(PARTITIONS);
    await pipeline.createEdges();
    pipeline.start();
    const last = await publishAll();
    await pipeline.visible(last);
    await pipeline.stop();
    pipeline.disk('view').lose();
    for (const stream of ['GRAPH_g_PARTS_1_0', 'GRAPH_g_FOREST_1_0', 'GRAPH_g_REJECTED']) {
      const state = await pipeline.bus.describe(stream);
      pipeline.bus.cutTail(stream, state!.last - 2);
    }
    pipeline.start();
    expect(contents(await pipeline.visible(last))).toEqual(expected());
    await pipeline.stop();
    const rejects: number[] = [];
    const { last: rejected } = (await pipeline.bus.describe('GRAPH_g_REJECTED'))!;
    for (let at = 1; at <= rejected; at++) {
      const message = await pipeline.bus.message('GRAPH_g_REJECTED', at);
      rejects.push((JSON.parse(new TextDecoder().decode(message!.payload)) as { sequence: number }).sequence);
    }
    expect(rejects).toEqual([2, 4, 6]);
  });

  it('gets over appends whose answer is lost, stored or not', async () => {
    pipeline = new MemoryPipeline(PARTITIONS);
    await pipeline.createEdges();
    let appends = 0;
    pipeline.bus.onAppend = (log) => {
      if (log.stream === pipeline.edges.stream) return 'none';
      appends += 1;
      if (appends % 5 === 0) return 'lost-after';
      return appends % 7 === 0 ? 'lost-before' : 'none';
    };
    pipeline.start();
    const last = await publishAll();
    expect(contents(await pipeline.visible(last))).toEqual(expected());
  });

  it('opens its store anew after a failed write, and goes on', async () => {
    pipeline = new MemoryPipeline(PARTITIONS);
    await pipeline.createEdges();
    const writes = new Map<StageName, number>();
    for (const stage of pipeline.stages) {
      pipeline.disk(stage).beforeWrite = () => {
        const count = (writes.get(stage) ?? 0) + 1;
        writes.set(stage, count);
        if (count === 2) throw new Error('no space left on device');
      };
    }
    pipeline.start();
    for (const payload of PAYLOADS) await pipeline.visible(await pipeline.publish(payload));
    expect(contents(pipeline.view!)).toEqual(expected());
    expect(writes.get('partitioner')).toBeGreaterThan(2);
  });

  it('steps down when another owner has fenced it off', async () => {
    pipeline = new MemoryPipeline(1);
    await pipeline.createEdges();
    pipeline.start();
    await pipeline.visible(await pipeline.publish(PAYLOADS[0]!));
    const zombie = pipeline.task('worker-0');
    // The zombie's process keeps running; another one, with a disk of its own, takes the task.
    pipeline.disks.delete('worker-0');
    pipeline.start('worker-0');
    const until = performance.now() + 10_000;
    while (pipeline.task('worker-0').state !== 'running' && performance.now() < until)
      await realClock.sleep(10);
    await pipeline.visible(await pipeline.publish(PAYLOADS[1]!));
    while (zombie.state !== 'stopped' && performance.now() < until) await realClock.sleep(10);
    expect(zombie.problem?.code).toBe('fenced');
    expect(contents(pipeline.view!)).toEqual(expected(2));
    await zombie.stop();
  });
});

describe('a log that lies is named', () => {
  async function waitForProblem(): Promise<void> {
    const until = performance.now() + 10_000;
    while (pipeline.task('partitioner').problem === undefined && performance.now() < until)
      await realClock.sleep(10);
  }

  /** Loads three messages, stops all, spoils EDGES, starts again; gives the partitioner's problem. */
  async function problemAfter(spoil: () => Promise<void>): Promise<string> {
    pipeline = new MemoryPipeline(PARTITIONS);
    await pipeline.createEdges();
    pipeline.start();
    for (const payload of PAYLOADS.slice(0, 3)) await pipeline.publish(payload);
    await pipeline.visible(3);
    await pipeline.stop();
    await spoil();
    pipeline.start();
    await waitForProblem();
    // Whatever is published now, the answers do not change behind the user's back.
    expect(contents(await pipeline.visible(3))).toEqual(expected(3));
    const { code, message } = pipeline.task('partitioner').problem!;
    expect(message).toMatch(/remove the graph/);
    return code;
  }

  it('stream deleted and made again', async () => {
    const code = await problemAfter(async () => {
      await pipeline.bus.remove(pipeline.edges.stream);
      await pipeline.createEdges();
      for (let n = 0; n < 5; n++) await pipeline.publish('{"source":"other","target":"graph"}');
    });
    expect(code).toBe('log-recreated');
  });

  it('stream gone', async () => {
    pipeline = new MemoryPipeline(PARTITIONS);
    await pipeline.createEdges();
    pipeline.start();
    await pipeline.visible(await pipeline.publish(PAYLOADS[0]!));
    await pipeline.stop();
    await pipeline.bus.remove(pipeline.edges.stream);
    pipeline.start();
    const until = performance.now() + 10_000;
    while (pipeline.task('partitioner').problem === undefined && performance.now() < until)
      await realClock.sleep(10);
    expect(pipeline.task('partitioner').problem?.code).toBe('log-missing');
  });

  it('head purged beyond the position', async () => {
    const code = await problemAfter(async () => {
      for (const payload of PAYLOADS.slice(3, 6)) await pipeline.publish(payload);
      await pipeline.bus.purge(pipeline.edges.stream, 6);
    });
    expect(code).toBe('log-truncated');
  });

  it('tail cut', async () => {
    expect(await problemAfter(async () => pipeline.bus.cutTail(pipeline.edges.stream, 1))).toBe(
      'log-truncated',
    );
  });

  it('tail cut of EDGES and of all that was made of it, as an older copy of the store has it', async () => {
    const code = await problemAfter(async () => {
      pipeline.bus.cutTail(pipeline.edges.stream, 1);
      for (const stream of ['PARTS_1_0', 'PARTS_1_1', 'FOREST_1_0', 'FOREST_1_1']) {
        pipeline.bus.cutTail(`GRAPH_g_${stream}`, 2);
      }
      pipeline.bus.cutTail('GRAPH_g_REJECTED', 0);
    });
    expect(code).toBe('log-truncated');
    // And it stays named: what told of it is not deleted.
    await pipeline.stop();
    pipeline.start();
    await waitForProblem();
    expect(pipeline.task('partitioner').problem?.code).toBe('log-truncated');
  });

  it('tail cut and its numbers used again', async () => {
    const code = await problemAfter(async () => {
      pipeline.bus.cutTail(pipeline.edges.stream, 1);
      for (let n = 0; n < 3; n++) await pipeline.publish('{"source":"other","target":"graph"}');
    });
    expect(code).toBe('log-diverged');
  });

  it('and the task goes on by itself once the operator has advanced the stream past what was counted', async () => {
    await problemAfter(async () => pipeline.bus.cutTail(pipeline.edges.stream, 1));
    await pipeline.bus.purge(pipeline.edges.stream, 4);
    const sequence = await pipeline.publish('{"source":"new","target":"edge"}');
    expect(sequence).toBe(4);
    const view = await pipeline.visible(4);
    expect(view.forest.rows).toBe(7);
    expect(pipeline.task('partitioner').problem).toBeUndefined();
  });

  it('a head that is lawfully gone, behind the position, is no lie', async () => {
    pipeline = new MemoryPipeline(PARTITIONS);
    await pipeline.createEdges();
    pipeline.start();
    for (const payload of PAYLOADS.slice(0, 3)) await pipeline.publish(payload);
    await pipeline.visible(3);
    await pipeline.stop();
    await pipeline.bus.purge(pipeline.edges.stream, 4);
    pipeline.start();
    for (const payload of PAYLOADS.slice(3)) await pipeline.publish(payload);
    expect(contents(await pipeline.visible(PAYLOADS.length))).toEqual(expected());
  });
});
