/**
 * Runs the schedules against each mutant: `node dist/test/simulation/cluster/mutants-main.js [schedules] [name part …]`.
 * Ends with status 1 if one that should be found is not.
 */
import { runMutants } from './mutate.ts';

const [count = '1000', ...names] = process.argv.slice(2);
const results = await runMutants({
  schedules: Number(count),
  isWanted: ({ name }) => names.length === 0 || names.some((part) => name.includes(part)),
  tell: (line) => console.log(line),
});
process.exitCode = results.every(({ isAsExpected }) => isAsExpected) ? 0 : 1;
