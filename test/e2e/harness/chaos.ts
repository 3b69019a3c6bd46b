/**
 * Machines die at random under load, come back with their disks or without, while the graph is rescaled again and
 * again and its logs are purged behind its snapshots. One seed makes one run, up to the moments.
 */
import { seeded } from '../../support/seeded.ts';
import { expectSnapshots } from './kept-snapshots.ts';
import { expectOracle, Publisher } from './publisher.ts';
import { COUNT, type Machine, Trio } from './trio.ts';

/** What the issue promises. */
export const FAIL_OVER_MS_MAX = { instance: 15_000, nats: 30_000 } as const;

type Kind = keyof typeof FAIL_OVER_MS_MAX;

/** Taken in turn, so that the last is the first again. */
const PARTITIONS = [4, 3, 8, 1];
/** How long a fail-over is waited for, so that one which takes too long is told by its time. */
const VISIBLE_MS = 180_000;

export interface ChaosOptions {
  readonly kills: number;
  readonly seed: number;
  readonly rescales: number;
  readonly log: (line: string) => void;
}

export interface FailOver {
  readonly kind: Kind;
  readonly ms: number;
  readonly what: string;
}

export interface ChaosResult {
  readonly messages: number;
  readonly failOvers: readonly FailOver[];
  readonly emptied: number;
  readonly snapshots: number;
  /** Lines of the logs that no death explains. */
  readonly complaints: readonly string[];
}

const GRAPH = 'chaos';

export async function runChaos({ kills, seed, rescales, log }: ChaosOptions): Promise<ChaosResult> {
  log(`chaos: seed ${seed}, ${kills} kills`);
  const random = seeded(seed);
  const trio = await Trio.create();
  try {
    const snapshots = { interval: 3, keep: 2 };
    await trio.put(GRAPH, { partitions: 1, replicas: COUNT, snapshots, purgeEdges: true });
    const publisher = await Publisher.connect(trio.nats.urls, GRAPH, seed);
    publisher.start();
    const failOvers: FailOver[] = [];
    let emptied = 0;
    let layouts = 0;
    await trio.visible(GRAPH, await publisher.nextMessage(VISIBLE_MS), VISIBLE_MS);

    /** From now until a message that is published from now on is in somebody's answers. */
    const measure = async (kind: Kind, what: string): Promise<void> => {
      const began = performance.now();
      const sequence = await publisher.nextMessage(VISIBLE_MS);
      await trio.visible(GRAPH, sequence, VISIBLE_MS);
      const ms = Math.round(performance.now() - began);
      failOvers.push({ kind, ms, what });
      log(`chaos: ${failOvers.length}. ${what}: ${ms} ms`);
    };
    const killInstance = async (victim: Machine): Promise<void> => {
      const isLeftDead = random() < 0.5;
      const isEmptied = random() < 0.3;
      await victim.kill();
      if (isEmptied) {
        victim.loseData();
        emptied += 1;
      }
      const what = `${victim.name}${isEmptied ? ', with its data,' : ''} ${isLeftDead ? 'stays dead' : 'restarts'}`;
      if (!isLeftDead) victim.start();
      await measure('instance', what);
      if (isLeftDead) victim.start();
    };
    const killServer = async (server: number): Promise<void> => {
      await trio.nats.kill(server);
      await measure('nats', `nats-server ${server}`);
      await trio.nats.restart(server);
      // Two servers without the newest messages would be a majority that has none.
      await trio.healthy();
    };

    for (let kill = 0; kill < kills; kill++) {
      if (Math.floor((kill * rescales) / kills) > Math.floor(((kill - 1) * rescales) / kills)) {
        const partitions = PARTITIONS[layouts++ % PARTITIONS.length]!;
        log(`chaos: ${partitions} partitions`);
        await trio.put(GRAPH, { partitions });
      }
      // The moment is what is random here: there is no condition to wait for.
      await new Promise((resolve) => setTimeout(resolve, 300 + random() * 1_200));
      const victim = Math.floor(random() * COUNT);
      if (random() < 0.2) await killServer(victim);
      else await killInstance(trio.machines[victim]!);
    }

    await publisher.disconnect();
    const { last } = publisher;
    for (const machine of trio.machines) {
      await trio.visible(GRAPH, last, VISIBLE_MS);
      await machine.ready();
      await expectOracle(machine, GRAPH, publisher);
    }
    const { config } = await trio.machines[0]!.get<{ config: { id: string } }>(`/v1/graphs/${GRAPH}`);
    const checked = await expectSnapshots(trio.nats.urls, config.id, last, publisher.oracle);
    const complaints = trio.machines.flatMap(complaintsOf);
    return { messages: last, failOvers, emptied, snapshots: checked, complaints };
  } catch (error) {
    for (const machine of trio.machines)
      log(`${machine.name}, at the end of its log:\n${machine.readLog().slice(-6_000)}`);
    throw error;
  } finally {
    await trio.stop();
  }
}

/**
 * That state was damaged, or a log is not the one that was read, no kill may bring about. But a log may have been purged
 * behind snapshots while its reader was away.
 */
function complaintsOf(machine: Machine): string[] {
  const never =
    /is damaged|"code":"log-(?:recreated|truncated|diverged)"|differs from that of|cannot be read back/;
  return machine
    .readLog()
    .split('\n')
    .filter((line) => never.test(line) && !/now begins at message/.test(line))
    .map((line) => `${machine.name}: ${line}`);
}

/** One line each for people. */
export function summaryOf({ messages, failOvers, emptied, snapshots }: ChaosResult): string[] {
  const lines = [
    `${failOvers.length} kills, ${emptied} with the data folder lost, ${messages} messages: answers equal the oracle on ` +
      `all gateways, ${snapshots} snapshots restore to their prefix`,
  ];
  for (const kind of ['instance', 'nats'] as const) {
    const times = failOvers.flatMap((one) => (one.kind === kind ? [one.ms] : [])).sort((a, b) => a - b);
    if (times.length === 0) continue;
    const median = times[Math.floor(times.length / 2)]!;
    const name = kind === 'nats' ? 'a nats-server' : 'an instance';
    lines.push(
      `after ${times.length} deaths of ${name}: visible again after ${median} ms (median), ${times.at(-1)} ms (worst)`,
    );
  }
  return lines;
}
