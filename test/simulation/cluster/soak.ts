/**
 * Many schedules one after the other: `node --single-threaded dist/test/simulation/cluster/soak.js [first seed] [schedules]`.
 * Ends at the first that fails: its seed, its faults, what broke, the end of its trace, and how to see it again.
 */
import { runSchedules } from './run.ts';

const [first = 1, count = 1_000] = process.argv.slice(2).map(Number);
const { summary, failure } = await runSchedules(first, count, (line) => console.log(line));
console.log(summary);
if (failure !== undefined) {
  console.log(failure);
  process.exitCode = 1;
}
