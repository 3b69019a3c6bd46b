/**
 * The simulated cluster under ten thousand schedules of faults (README.md one folder up).
 *
 *   SIM_SEED=123      this schedule alone, with its trace
 *   SIM_COUNT=100000  so many instead, from SIM_FIRST on
 */
import { spawn } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { expect, it } from 'vitest';
import { report } from './run.ts';
import { runSchedule } from './schedule.ts';
import { SEEDS } from './seeds.ts';

const ONE = process.env['SIM_SEED'];
const COUNT = Number(process.env['SIM_COUNT'] ?? 10_000);
const FIRST = Number(process.env['SIM_FIRST'] ?? 1);
/** A schedule leaves V8 nothing to do beside it: other threads would only take the CPU from its neighbours. */
const FLAGS = ['--single-threaded'];
/** Of a schedule on a busy machine. */
const MS_PER_SCHEDULE = 300;

it.runIf(ONE !== undefined)(`schedule ${ONE} holds`, async () => {
  const outcome = await runSchedule(Number(ONE), true);
  console.log(report(outcome));
  expect(outcome.breaches).toEqual([]);
});

it.skipIf(ONE !== undefined)('schedules that found something hold', async () => {
  for (const { seed, found } of SEEDS) {
    const outcome = await runSchedule(seed);
    expect(outcome.breaches, `seed ${seed}, which found: ${found}`).toEqual([]);
  }
});

it.skipIf(ONE !== undefined)('a schedule is the same one every time', async () => {
  const [one, again, other] = [
    await runSchedule(7, true),
    await runSchedule(7, true),
    await runSchedule(8, true),
  ];
  expect(again.trace).toEqual(one.trace);
  expect(other.trace).not.toEqual(one.trace);
});

it.skipIf(ONE !== undefined)(
  `${COUNT} schedules hold`,
  { timeout: 60_000 + MS_PER_SCHEDULE * COUNT },
  async () => {
    const runners = availableParallelism();
    const share = Math.ceil(COUNT / runners);
    const outputs = await Promise.all(
      Array.from({ length: runners }, (_, at) =>
        soak(FIRST + at * share, Math.min(share, COUNT - at * share)),
      ),
    );
    for (const { output, status } of outputs) {
      console.log(output);
      expect(status, output).toBe(0);
    }
  },
);

/** In a process of its own, as built. */
function soak(first: number, count: number): Promise<{ output: string; status: number | null }> {
  return new Promise((resolve, reject) => {
    const child = spawn(
      process.execPath,
      [...FLAGS, 'dist/test/simulation/cluster/soak.js', `${first}`, `${count}`],
      {
        stdio: ['ignore', 'pipe', 'inherit'],
      },
    );
    let output = '';
    child.stdout.on('data', (bytes: Buffer) => {
      output += bytes.toString();
    });
    child.on('error', reject);
    child.on('close', (status) => resolve({ output, status }));
  });
}
