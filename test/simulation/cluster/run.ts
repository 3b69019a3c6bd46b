/** Runs schedules by seed, and tells of one that fails so that it can be seen again. */
import { type Counts, type Outcome, runSchedule } from './schedule.ts';

const TRACE_LINES = 200;
const TELL_EVERY = 5_000;

export interface Result {
  readonly summary: string;
  /** Of the first schedule that failed. */
  readonly failure: string | undefined;
  readonly failedSeed: number | undefined;
  readonly counts: Counts;
}

export async function runSchedules(
  first: number,
  count: number,
  tell: (line: string) => void = () => {},
): Promise<Result> {
  const began = process.cpuUsage();
  let counts: Counts = { messages: 0, strikes: {}, snapshots: 0, generations: 0, virtualMs: 0 };
  let done = 0;
  const summary = (): string => {
    const { user, system } = process.cpuUsage(began);
    const seconds = (user + system) / 1e6;
    const { messages, strikes, snapshots, generations, virtualMs } = counts;
    return (
      `${done} schedules from seed ${first} in ${seconds.toFixed(1)} s of CPU ` +
      `(${Math.round((60 * done) / seconds)} a minute): ${messages} messages, ` +
      `${snapshots} snapshots restored, ${generations} generations, ${Math.round(virtualMs / 3_600_000)} h of virtual time; faults: ` +
      Object.entries(strikes)
        .sort(([a], [b]) => (a < b ? -1 : 1))
        .map(([fault, count]) => `${count} ${fault}`)
        .join(', ')
    );
  };
  for (let seed = first; seed < first + count; seed++) {
    const outcome = await runSchedule(seed);
    done += 1;
    counts = sum(counts, outcome.counts);
    if (outcome.breaches.length > 0) {
      // The same schedule again, told.
      return { summary: summary(), failure: report(await runSchedule(seed, true)), failedSeed: seed, counts };
    }
    if (done % TELL_EVERY === 0) tell(summary());
  }
  return { summary: summary(), failure: undefined, failedSeed: undefined, counts };
}

export function report({ seed, options, faults, breaches, trace }: Outcome): string {
  return [
    `seed ${seed}`,
    `faults: ${faults.join(', ') || 'none'}`,
    `options: ${JSON.stringify(options)}`,
    ...breaches,
    `--- the last ${TRACE_LINES} of ${trace.length} lines of the trace`,
    ...trace.slice(-TRACE_LINES),
    '--- to see it again',
    `SIM_SEED=${seed} npx vitest run test/simulation/cluster/schedules.test.ts`,
  ].join('\n');
}

function sum(one: Counts, other: Counts): Counts {
  const strikes = { ...one.strikes };
  for (const [fault, count] of Object.entries(other.strikes)) strikes[fault] = (strikes[fault] ?? 0) + count;
  return {
    messages: one.messages + other.messages,
    strikes,
    snapshots: one.snapshots + other.snapshots,
    generations: one.generations + other.generations,
    virtualMs: one.virtualMs + other.virtualMs,
  };
}
