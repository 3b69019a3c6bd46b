/**
 * Random schedules: members join, leave, are killed, suspended and woken, and calls of KV get lost, each alone or for
 * some time all together. While that lasts the simulation checks safety (cluster-sim.ts); when it is over, every task
 * must come to run once, and where the assignment says.
 *
 * Others than the usual ones: SCHEDULES=<first>,<count> npx vitest run test/libs/cluster/schedules.test.ts
 */
import { expect, it } from 'vitest';
import { ClusterSim, LEASE_MS, POLL_MS, type Process, workers } from './cluster-sim.ts';

const [FIRST = 0, COUNT = 300] = process.env['SCHEDULES']?.split(',').map(Number) ?? [];
const TASKS = 5;
const MEMBERS_MAX = 4;
const EVENTS = 12;
/** Back-offs of tasks that never made progress included. */
const REST_MS_MAX = 30 * 60_000;

it(`${COUNT} schedules keep every task with one owner and end as the assignment says`, {
  timeout: 60_000 + 500 * COUNT,
}, async () => {
  let starts = 0;
  for (let seed = FIRST; seed < FIRST + COUNT; seed++) {
    const sim = await schedule(seed);
    starts += sim.starts;
    expect(sim.breaches, `seed ${seed}`).toEqual([]);
    expect(sim.running(), `seed ${seed}`).toEqual(sim.assigned());
  }
  // They must have had something to do.
  expect(starts / COUNT).toBeGreaterThan(2 * TASKS);
});

it('a schedule is the same one every time', async () => {
  const [one, other] = [await schedule(17), await schedule(17)];
  expect(one.trace).toEqual(other.trace);
  expect((await schedule(18)).trace).not.toEqual(one.trace);
});

async function schedule(seed: number): Promise<ClusterSim> {
  const sim = new ClusterSim(seed, workers(TASKS));
  const { random } = sim;
  const lossRate = random() < 0.5 ? 0 : random() * 0.2;
  let isLossy = true;
  let awayUntil = 0;
  sim.fault = () => {
    if (sim.clock.now() < awayUntil) return 'lost-before';
    if (!isLossy || random() >= lossRate) return 'none';
    return random() < 0.5 ? 'lost-before' : 'lost-after';
  };
  sim.started = (run) => {
    if (random() < 0.3) return;
    sim.clock.after(random() * LEASE_MS, () => {
      run.position = Math.floor(sim.clock.now());
    });
  };
  let names = 0;
  const join = (): void => {
    sim.join(`m${names++}`);
  };
  join();
  for (let event = 0; event < EVENTS; event++) {
    await sim.runChecked(random() * (random() < 0.5 ? POLL_MS : 2 * LEASE_MS));
    const healthy = sim.processes.filter((one) => one.isHealthy && !one.isLeaving);
    const one: Process | undefined = healthy[Math.floor(random() * healthy.length)];
    const what = random();
    if (one === undefined || what < 0.35) {
      if (sim.processes.length < MEMBERS_MAX) join();
    } else if (what < 0.5) {
      sim.kill(one);
      // Now and then a supervisor starts it again.
      if (random() < 0.5) sim.join(one.name);
    } else if (what < 0.65) {
      // One that is killed while it leaves never has left.
      sim.leave(one).catch((error: unknown) => sim.breaches.push(String(error)));
    } else if (what < 0.8) {
      sim.suspend(one);
    } else if (what < 0.9) {
      awayUntil = sim.clock.now() + random() * 2 * LEASE_MS;
    } else {
      resumeAll(sim);
    }
  }
  isLossy = false;
  resumeAll(sim);
  if (sim.processes.every(({ isLeaving }) => isLeaving)) join();
  // Before all have settled, it may look as if it were over.
  await sim.runChecked(3 * LEASE_MS);
  const until = sim.clock.now() + REST_MS_MAX;
  while (!(await isAtRest(sim)) && sim.clock.now() < until) await sim.runChecked(POLL_MS);
  await sim.runChecked(2 * LEASE_MS);
  return sim;
}

function resumeAll(sim: ClusterSim): void {
  for (const process of sim.processes) if (process.isSuspended) sim.resume(process);
}

async function isAtRest(sim: ClusterSim): Promise<boolean> {
  const assigned = `${sim.assigned()}`;
  if (sim.processes.some(({ isLeaving }) => isLeaving) || `${sim.running()}` !== assigned) return false;
  return `${await sim.leased()}` === assigned;
}
