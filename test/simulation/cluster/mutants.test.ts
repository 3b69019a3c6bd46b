/**
 * Some of the mutants, so that the schedules are known to find what they should; all of them:
 * `node dist/test/simulation/cluster/mutants-main.js`.
 */
import { expect, it } from 'vitest';
import { MUTANTS } from './mutants.ts';
import { runMutants } from './mutate.ts';

/** Every so many of the list. */
const EVERY = 4;
const SCHEDULES = 400;

it('schedules find faults that are put into the protocol', { timeout: 600_000 }, async () => {
  const chosen = new Set(MUTANTS.filter(({ masked }, at) => masked === undefined && at % EVERY === 0));
  const lines: string[] = [];
  const results = await runMutants({
    schedules: SCHEDULES,
    isWanted: (mutant) => chosen.has(mutant),
    tell: (line) => lines.push(line),
  });
  expect(
    results.filter(({ isAsExpected }) => !isAsExpected),
    lines.join('\n'),
  ).toEqual([]);
});
