/**
 * Three instances on three nats-servers lose one machine after the other, with its disk or without, while edges stream
 * in, the graph is rescaled, snapshots are taken and the logs purged behind them. `node dist/test/e2e/soak.js` does the
 * same for as long as one likes.
 */
import { expect, it } from 'vitest';
import { FAIL_OVER_MS_MAX, runChaos, summaryOf } from './harness/chaos.ts';

const KILLS = 40;
/** 1 → 4 → 3 → 8 → 1. */
const RESCALES = 4;

it(`of ${KILLS} kills of instances and nats-servers nothing is lost or counted twice`, {
  timeout: 900_000,
}, async () => {
  const seed = Date.now() % 1_000_000;
  const result = await runChaos({ kills: KILLS, seed, rescales: RESCALES, log: console.log });
  for (const line of summaryOf(result)) console.log(line);
  expect(result.complaints).toEqual([]);
  expect(result.snapshots).toBeGreaterThanOrEqual(2);
  expect(result.failOvers).toHaveLength(KILLS);
  // Medians: a single one is also a matter of what else the machine does. The long run names each that is late.
  for (const kind of ['instance', 'nats'] as const) {
    const times = result.failOvers.filter((one) => one.kind === kind).map(({ ms }) => ms);
    times.sort((a, b) => a - b);
    expect(times[times.length >> 1] ?? 0, kind).toBeLessThanOrEqual(FAIL_OVER_MS_MAX[kind]);
  }
});
