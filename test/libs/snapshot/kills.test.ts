/**
 * A process dies before or after anything it writes, to logs, records, chunks or disk, while a snapshot is made, and
 * while a graph is rescaled: the answers stay exact, a later snapshot completes, and every snapshot is its message's.
 */
import { describe, expect, it } from 'vitest';
import { MemoryPipeline, type StageName, type Step } from '../../support/memory-pipeline.ts';
import {
  expectAllRestore,
  LoggedLines,
  loseAllDisks,
  Publisher,
  takeSnapshot,
  until,
} from './snapshot-cases.ts';

const MINUTES = 60_000;
/** Runs that wait for their timers side by side. */
const AT_ONCE = 8;
const WRITES = new Set(['append', 'create', 'remove', 'purge', 'put', 'update', 'erase', 'write']);

interface Scenario {
  readonly pipeline: MemoryPipeline;
  readonly publisher: Publisher;
  /** Kills the stage at the boundary of that number from now on, and starts it again. */
  readonly arm: () => void;
  /** Whether it was killed. */
  readonly disarm: () => Promise<boolean>;
}

async function run(
  stage: StageName,
  dieAt: number,
  partitions: number,
  act: (scenario: Scenario) => Promise<void>,
): Promise<boolean> {
  const log = new LoggedLines();
  const pipeline = new MemoryPipeline(partitions, { haste: 20, log });
  const publisher = new Publisher(pipeline, dieAt);
  await pipeline.createEdges();
  pipeline.start();
  let boundary = 0;
  let killed: Step | undefined;
  const arm = (): void => {
    pipeline.onStep = (step) => {
      if (step.stage !== stage || !WRITES.has(step.call)) return;
      boundary += 1;
      if (boundary !== dieAt) return;
      killed = step;
      pipeline.kill(stage);
      setTimeout(() => {
        if (pipeline.stages.includes(stage)) pipeline.start(stage);
      }, 10);
    };
  };
  const disarm = async (): Promise<boolean> => {
    const isBack = (): boolean => !pipeline.isDead(stage) || !pipeline.stages.includes(stage);
    await until('another life', isBack, pipeline);
    pipeline.onStep = () => {};
    return killed !== undefined;
  };
  try {
    await act({ pipeline, publisher, arm, disarm });
  } catch (error) {
    const where = killed === undefined ? 'nothing' : `${killed.moment} ${killed.port}.${killed.call}`;
    const about = killed?.about.map((one) => (typeof one === 'string' ? one : JSON.stringify(one, short)));
    throw new Error(`${stage} died ${where} ${about?.join(' ').slice(0, 200)} (${dieAt})\n${log.tail()}`, {
      cause: error,
    });
  } finally {
    await pipeline.stop();
  }
  return killed !== undefined;
}

function short(_: string, value: unknown): unknown {
  return value instanceof Uint8Array || Array.isArray(value) ? `${value.length} long` : value;
}

/** Every boundary there is; gives how many. */
async function everyBoundary(
  stage: StageName,
  partitions: number,
  act: (scenario: Scenario) => Promise<void>,
): Promise<number> {
  for (let from = 1; ; from += AT_ONCE) {
    const boundaries = Array.from({ length: AT_ONCE }, (_, n) => from + n);
    const reached = await Promise.all(boundaries.map((dieAt) => run(stage, dieAt, partitions, act)));
    if (!reached.every(Boolean)) return from - 1 + reached.filter(Boolean).length;
  }
}

describe('a snapshot is made', () => {
  for (const stage of ['partitioner', 'worker-0', 'view'] as const) {
    it(`while the ${stage} dies anywhere`, { timeout: 5 * MINUTES }, async () => {
      const boundaries = await everyBoundary(stage, 2, async ({ pipeline, publisher, arm, disarm }) => {
        await publisher.publish(20);
        for (let n = 0; n < 2; n++) await takeSnapshot(pipeline);
        arm();
        await publisher.publish(5);
        const asked = takeSnapshot(pipeline).catch(() => undefined);
        await publisher.publish(5, 2);
        await asked;
        await publisher.expectExact();
        await disarm();
        await publisher.publish(5);
        await publisher.expectExact();
        await takeSnapshot(pipeline);
        await expectAllRestore(pipeline, publisher);
        await loseAllDisks(pipeline);
        pipeline.start();
        await publisher.expectExact();
      });
      expect(boundaries).toBeGreaterThan(8);
    });
  }
});

describe('a graph is rescaled', () => {
  for (const stage of ['partitioner', 'worker-0', 'worker-2-1', 'view'] as const) {
    it(`while the ${stage} dies anywhere`, { timeout: 5 * MINUTES }, async () => {
      const boundaries = await everyBoundary(stage, 2, async ({ pipeline, publisher, arm, disarm }) => {
        await publisher.publish(20);
        await takeSnapshot(pipeline);
        await publisher.expectExact();
        arm();
        await pipeline.change({ partitions: 3 });
        const asked = takeSnapshot(pipeline).catch(() => undefined);
        await publisher.publish(10, 2);
        await until('three partitions', () => pipeline.view?.generation?.partitions === 3, pipeline);
        await publisher.expectExact();
        await asked;
        await publisher.publish(5);
        for (let n = 0; n < 2; n++) await takeSnapshot(pipeline).catch(() => {});
        await disarm();
        await publisher.publish(5);
        await publisher.expectExact();
        for (let n = 0; n < 2; n++) await takeSnapshot(pipeline);
        await until('one generation', () => pipeline.config.generations.length === 1, pipeline);
        await expectAllRestore(pipeline, publisher);
        for (const log of ['PARTS_1_0', 'PARTS_1_1', 'FOREST_1_0', 'FOREST_1_1']) {
          const isGone = async (): Promise<boolean> =>
            (await pipeline.bus.describe(`GRAPH_g_${log}`)) === undefined;
          await until(`the removal of ${log}`, isGone, pipeline, 2_000);
        }
        await loseAllDisks(pipeline);
        pipeline.start();
        await publisher.expectExact();
      });
      expect(boundaries).toBeGreaterThan(5);
    });
  }
});
