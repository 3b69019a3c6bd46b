/**
 * The owner of a task is suspended, so long that another instance takes the task over, and goes on where it was, as if
 * nothing had happened: what it appends is refused, it notices and says so, and the answers are exact.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { TestNatsCluster } from '../integration/harness/nats.ts';
import { FAIL_OVER_MS_MAX } from './harness/chaos.ts';
import { until } from './harness/cluster.ts';
import { expectOracle, Publisher } from './harness/publisher.ts';
import { COUNT, type Machine, Trio } from './harness/trio.ts';

/** Long enough for a fail-over. The 30 s are one command away. */
const PAUSE_MS = 1000 * Number(process.env['ZOMBIE_SECONDS'] ?? 10);
const SETTLE_MS = 60_000;

const BUSY = 'busy';
const IDLE = 'idle';
const PARTITIONS = 3;

describe('an owner that is suspended and comes back', () => {
  let trio: Trio<TestNatsCluster>;
  let publisher: Publisher;
  let idle: Publisher;

  beforeAll(async () => {
    trio = await Trio.create();
    const snapshots = { interval: 5, keep: 2 };
    for (const graph of [BUSY, IDLE])
      await trio.put(graph, { partitions: PARTITIONS, replicas: COUNT, snapshots });
    publisher = await Publisher.connect(trio.nats.urls, BUSY);
    idle = await Publisher.connect(trio.nats.urls, IDLE);
    await idle.messages(20);
    publisher.start();
    await trio.visible(BUSY, await publisher.nextMessage(SETTLE_MS), SETTLE_MS);
  }, 180_000);

  afterAll(async () => {
    await publisher?.disconnect();
    await idle?.disconnect();
    await trio?.stop();
  });

  it.each([
    ['the partitioner', `partitioner of ${BUSY}`],
    ['a worker', `worker 0 of ${BUSY}`],
    ['a worker of a graph that nobody publishes to', `worker 0 of ${IDLE}`],
  ])(
    'as the owner of %s is fenced off and says so, and nothing is lost or counted twice',
    {
      timeout: 180_000,
    },
    async (_, task) => {
      const owner = await trio.ownerOf(new RegExp(`^${task}`));
      const logged = owner.readLog().length;
      const began = performance.now();
      owner.pause();
      const sequence = await publisher.nextMessage(SETTLE_MS);
      await trio.visible(BUSY, sequence, SETTLE_MS);
      const ms = Math.round(performance.now() - began);
      console.log(`${task}: visible again ${ms} ms after its owner was suspended`);
      expect(ms).toBeLessThan(FAIL_OVER_MS_MAX.instance);
      // Whatever else it owned is taken over as well.
      await until(async () => !(await ownsAny(owner)), 'its tasks to run elsewhere', SETTLE_MS);
      await new Promise((resolve) =>
        setTimeout(resolve, Math.max(0, PAUSE_MS - (performance.now() - began))),
      );
      owner.resume();
      await until(
        () => /"code":"fenced"|the lease of the task is lost/.test(owner.readLog().slice(logged)),
        'the zombie to notice',
        SETTLE_MS,
      );
      await owner.ready();
      // It takes part again, and whoever appends next is the one owner.
      await trio.visible(BUSY, await publisher.nextMessage(SETTLE_MS), SETTLE_MS);
      await idle.messages(3);
      await publisher.stop();
      for (const machine of trio.machines) {
        await expectOracle(machine, BUSY, publisher);
        await expectOracle(machine, IDLE, idle);
      }
      publisher.start();
    },
  );

  /** Whether one of the others' leases still is this machine's. */
  async function ownsAny(machine: Machine): Promise<boolean> {
    const other = trio.live.find(({ name }) => name !== machine.name)!;
    const { tasks } = await other.get<{ tasks: readonly { owner: string | null }[] }>('/v1/cluster');
    return tasks.some(({ owner }) => owner === machine.name);
  }
});
