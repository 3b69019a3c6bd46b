/**
 * The long run of chaos.test.ts, for people:
 *
 *   node dist/test/e2e/soak.js [--kills 1000] [--seed <n>]
 *
 * Prints each kill with its fail-over, and at the end what came of all; exit status 0 if nothing was lost, counted
 * twice, or out of bounds.
 */
import { parseArgs } from 'node:util';
import { FAIL_OVER_MS_MAX, runChaos, summaryOf } from './harness/chaos.ts';

/** So many kills for each change of layout. */
const KILLS_PER_RESCALE = 10;

const { values } = parseArgs({ options: { kills: { type: 'string' }, seed: { type: 'string' } } });
const kills = Number(values.kills ?? 1_000);
const seed = Number(values.seed ?? Date.now() % 1_000_000);

const began = performance.now();
const rescales = 4 * Math.ceil(kills / (4 * KILLS_PER_RESCALE));
const result = await runChaos({ kills, seed, rescales, log: console.log });
for (const line of summaryOf(result)) console.log(line);
console.log(
  `seed ${seed}, ${rescales} rescales, ${Math.round((performance.now() - began) / 60_000)} minutes`,
);
const late = result.failOvers.filter(({ kind, ms }) => ms > FAIL_OVER_MS_MAX[kind]);
for (const { what, ms } of late) console.log(`too late: ${what}: ${ms} ms`);
for (const line of result.complaints) console.log(line);
process.exitCode = late.length + result.complaints.length > 0 ? 1 : 0;
