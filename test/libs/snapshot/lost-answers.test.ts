/** Each call to the records, one after the other, has no answer once, made or not, while a graph is snapshot and rescaled. */
import { describe, expect, it } from 'vitest';
import type { KvFault } from '../../../libs/bus/memory-kv.ts';
import { MemoryPipeline } from '../../support/memory-pipeline.ts';
import { expectAllRestore, LoggedLines, Publisher, takeSnapshot, until } from './snapshot-cases.ts';

const MINUTES = 60_000;
const AT_ONCE = 8;

async function run(fault: KvFault, faultAt: number): Promise<boolean> {
  const log = new LoggedLines();
  const pipeline = new MemoryPipeline(2, { haste: 20, log });
  const publisher = new Publisher(pipeline, faultAt);
  await pipeline.createEdges();
  pipeline.start();
  let calls = 0;
  let lost = '';
  try {
    await publisher.publish(20);
    await takeSnapshot(pipeline);
    await pipeline.change({ partitions: 3 });
    pipeline.kv.onCall = (what, bucket, key) => {
      // Those that only read are made all the time.
      if (what === 'get' || what === 'list' || what === 'revision') return 'none';
      calls += 1;
      if (calls !== faultAt) return 'none';
      lost = `${what} ${bucket} ${key}`;
      return fault;
    };
    await publisher.publish(30, 2);
    await until('three partitions', () => pipeline.view?.generation?.partitions === 3, pipeline);
    await publisher.expectExact();
    await pipeline.records.create('request', 'fault', {}).catch(() => {});
    await publisher.publish(10, 2);
    await publisher.expectExact();
    pipeline.kv.onCall = undefined;
    for (let n = 0; n < 3; n++) await takeSnapshot(pipeline);
    await until('one generation', () => pipeline.config.generations.length === 1, pipeline);
    await expectAllRestore(pipeline, publisher);
  } catch (error) {
    throw new Error(`${fault} ${lost} (${faultAt})\n${log.tail()}`, { cause: error });
  } finally {
    pipeline.kv.onCall = undefined;
    await pipeline.stop();
  }
  return lost !== '';
}

describe('a record that is written without an answer', () => {
  for (const fault of ['lost-before', 'lost-after'] as const) {
    it(`does no harm: ${fault}`, { timeout: 5 * MINUTES }, async () => {
      for (let from = 1; ; from += AT_ONCE) {
        const runs = Array.from({ length: AT_ONCE }, (_, n) => run(fault, from + n));
        const reached = await Promise.all(runs);
        if (reached.every(Boolean)) continue;
        expect(from - 1 + reached.filter(Boolean).length).toBeGreaterThan(8);
        return;
      }
    });
  }
});
