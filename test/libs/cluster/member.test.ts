import { describe, expect, it } from 'vitest';
import { capacity } from '../../../libs/cluster/assignment.ts';
import { LEASES_BUCKET } from '../../../libs/dataflow/names.ts';
import { ClusterSim, LEASE_MS, POLL_MS, type Process, workers } from './cluster-sim.ts';

const MINUTE = 60_000;

/** Three members that have settled, with 20 tasks as the assignment says. */
async function settled(seed = 1): Promise<{ sim: ClusterSim; members: Process[] }> {
  const sim = new ClusterSim(seed, workers(20));
  const members = ['a', 'b', 'c'].map((name) => sim.join(name));
  await sim.runChecked(3 * MINUTE);
  expect(sim.breaches).toEqual([]);
  expect(sim.running()).toEqual(sim.assigned());
  return { sim, members };
}

describe('a cluster of members', () => {
  it('runs every task once, as the assignment says', async () => {
    await settled();
  });

  it('that is alone begins at once', async () => {
    const sim = new ClusterSim(1, workers(20));
    sim.join('a');
    await sim.run(400);
    expect(sim.isWhole).toBe(true);
  });

  it('runs the tasks of a killed member within a term and three polls', async () => {
    const { sim, members } = await settled();
    sim.kill(members[1]!);
    expect(await sim.clock.runUntil(() => sim.isWhole, LEASE_MS + 3 * POLL_MS)).toBe(true);
    await sim.runChecked(3 * MINUTE);
    expect(sim.running()).toEqual(sim.assigned());
    expect(sim.breaches).toEqual([]);
  });

  it('gives a member that was killed and is back its tasks without waiting a term', async () => {
    const sim = new ClusterSim(1, workers(20));
    const first = sim.join('a');
    await sim.run(MINUTE);
    sim.kill(first);
    sim.join('a');
    expect(await sim.clock.runUntil(() => sim.isWhole, 3 * POLL_MS)).toBe(true);
  });

  it('respects the leases of an instance whose record may be a corpse’s for a term', async () => {
    const sim = new ClusterSim(1, workers(20));
    const first = sim.join('a');
    await sim.run(MINUTE);
    sim.kill(first);
    await sim.run(MINUTE);
    const second = sim.join('b');
    await sim.run(LEASE_MS - POLL_MS);
    expect(sim.running()).toEqual([]);
    expect(second.member.status().instances.find(({ name }) => name === 'a')?.live).toBe(false);
    expect(await sim.clock.runUntil(() => sim.isWhole, 3 * POLL_MS)).toBe(true);
  });

  it('does nothing when KV is away for long, nor when it is back', async () => {
    const { sim } = await settled();
    const { starts } = sim;
    const running = sim.running();
    for (const fault of ['lost-before', 'lost-after'] as const) {
      sim.fault = () => fault;
      await sim.run(30_000);
      expect(sim.running()).toEqual(running);
      sim.fault = () => 'none';
      await sim.run(MINUTE);
    }
    expect(sim.starts).toBe(starts);
    expect(sim.running()).toEqual(running);
    for (const { warnings } of sim.processes) {
      expect(warnings.filter((text) => text.includes('cannot be read'))).toHaveLength(2);
      expect(warnings.filter((text) => text.includes('cannot be written'))).toHaveLength(2);
    }
  });

  it('moves to a new member its share, once it has been there for two terms, and each task once', async () => {
    const { sim } = await settled();
    sim.join('d');
    await sim.runChecked(2 * LEASE_MS);
    expect(sim.loads()['d']).toBe(0);
    const { starts } = sim;
    await sim.runChecked(4 * LEASE_MS);
    expect(sim.starts - starts).toBeLessThanOrEqual(2 * sim.loads()['d']!);
    expect(sim.running()).toEqual(sim.assigned());
    expect(Math.max(...Object.values(sim.loads()))).toBeLessThanOrEqual(capacity(20, 4));
    expect(sim.breaches).toEqual([]);
  });

  it('hands the tasks of one that leaves over within two polls', async () => {
    const { sim, members } = await settled();
    const left = sim.leave(members[0]!);
    const isOver = (): boolean => sim.isWhole && !sim.running().some((line) => line.endsWith(' a'));
    expect(await sim.clock.runUntil(isOver, 2 * POLL_MS)).toBe(true);
    await sim.runChecked(MINUTE);
    await left;
    expect(await sim.instances()).toEqual(['b', 'c']);
    expect(sim.running()).toEqual(sim.assigned());
    expect(sim.breaches).toEqual([]);
  });

  it('that ends whole leaves no owner and no instance behind', async () => {
    const { sim, members } = await settled();
    const left = Promise.all(members.map((member) => sim.leave(member)));
    await sim.run(MINUTE);
    await left;
    expect(await sim.instances()).toEqual([]);
    for (const { key } of sim.tasks) {
      expect(await sim.lease(key)).toMatchObject({ owner: null, attempts: 0 });
    }
  });

  it('lets a member leave that finds no KV', async () => {
    const { sim, members } = await settled();
    sim.fault = (process) => (process === members[0] ? 'lost-before' : 'none');
    let isGone = false;
    const left = sim.leave(members[0]!).then(() => {
      isGone = true;
    });
    expect(await sim.clock.runUntil(() => isGone, LEASE_MS + 2_000)).toBe(true);
    await left;
    expect(await sim.clock.runUntil(() => sim.isWhole, LEASE_MS + 3 * POLL_MS)).toBe(true);
  });

  it('has a member that was suspended stop at its next poll what it lost, and take nothing for it', async () => {
    const { sim, members } = await settled();
    const zombie = members[2]!;
    const before = zombie.member.owned.size;
    sim.suspend(zombie);
    await sim.runChecked(MINUTE);
    expect(sim.isWhole).toBe(true);
    const { starts } = sim;
    expect(zombie.member.owned.size).toBe(before);
    sim.resume(zombie);
    await sim.run(POLL_MS + 200);
    expect(zombie.member.owned.size).toBe(0);
    expect(sim.isWhole).toBe(true);
    await sim.runChecked(LEASE_MS);
    expect(sim.starts).toBe(starts);
    await sim.runChecked(3 * MINUTE);
    expect(sim.running()).toEqual(sim.assigned());
    expect(sim.breaches).toEqual([]);
  });

  it('parks a task that kills its owners, and tries it seldom', async () => {
    const sim = new ClusterSim(1, workers(6));
    const killer = sim.tasks[0]!.key;
    const deaths: number[] = [];
    let names = 0;
    sim.started = (run) => {
      run.position = run.key === killer ? 0 : Math.floor(sim.clock.now());
      if (run.key !== killer) return;
      deaths.push(sim.clock.now());
      sim.clock.after(100, () => {
        sim.kill(run.process);
        sim.join(`m${names++}`);
      });
    };
    sim.join('x');
    sim.join('y');
    await sim.run(60 * MINUTE);
    const gaps = deaths.slice(1).map((at, index) => at - deaths[index]!);
    for (const [index, gap] of gaps.slice(0, 6).entries()) {
      // The first take-overs find no reason to wait.
      const due = [0, 0, 0, 2, 4].map((terms) => terms * LEASE_MS)[index] ?? 10 * MINUTE;
      expect(gap).toBeGreaterThan(due);
      expect(gap).toBeLessThan(due + 3 * LEASE_MS);
    }
    expect(deaths.length).toBeLessThan(13);
    const { tasks } = sim.processes[0]!.member.status();
    expect(tasks.find(({ key }) => key === killer)).toMatchObject({ parked: true });
    expect(tasks.filter(({ parked }) => parked)).toHaveLength(1);
    expect(sim.processes[0]!.warnings.some((text) => text.includes('is parked'))).toBe(true);
  });

  it('forgets failed take-overs when the task makes progress', async () => {
    const { sim, members } = await settled();
    const lost = [...members[0]!.member.owned.keys()][0]!;
    sim.kill(members[0]!);
    await sim.run(2 * LEASE_MS);
    expect(await sim.lease(lost)).toMatchObject({ attempts: 1, position: 0 });
    sim.runs.find(({ key }) => key === lost)!.position = 17;
    await sim.run(2 * POLL_MS);
    expect(await sim.lease(lost)).toMatchObject({ attempts: 0, position: 17 });
  });

  it('runs a task again that was fenced off though its lease is held', async () => {
    const { sim } = await settled();
    const run = sim.runs[0]!;
    run.failed = true;
    await sim.runChecked(4 * POLL_MS);
    expect(sim.runs).not.toContain(run);
    expect(sim.running()).toEqual(sim.assigned());
    expect(sim.breaches).toEqual([]);
  });

  it('tries a task again that cannot be started', async () => {
    const sim = new ClusterSim(1, workers(1));
    let failures = 3;
    sim.started = (run) => {
      if (failures-- <= 0) return;
      sim.runs = sim.runs.filter((other) => other !== run);
      throw new Error('no disk');
    };
    const { warnings } = sim.join('a');
    await sim.run(4 * LEASE_MS);
    expect(sim.isWhole).toBe(true);
    expect(warnings).toEqual(['worker 0 of g cannot be started (Error: no disk): retrying']);
  });

  it('stops tasks that are no more, and removes their leases; starts new ones', async () => {
    const { sim } = await settled();
    const [first, ...rest] = sim.tasks;
    sim.tasks = [...rest, { key: 'h.worker.1.0', role: 'worker', name: 'worker 0 of h' }];
    await sim.runChecked(3 * POLL_MS);
    expect(sim.isWhole).toBe(true);
    expect(await sim.lease(first!.key)).toBeUndefined();
    expect(sim.runs.some(({ key }) => key === first!.key)).toBe(false);
    expect(sim.breaches).toEqual([]);
  });

  it('goes on when its records are lost, and writes them again', async () => {
    const { sim } = await settled();
    const { starts } = sim;
    const running = sim.running();
    for (const { key } of sim.tasks) await sim.kv.remove(LEASES_BUCKET, key);
    await sim.runChecked(MINUTE);
    for (const { key } of sim.tasks) expect(await sim.lease(key)).toBeDefined();
    // An owner that is late to write again loses the task to whom it belongs, which is itself.
    expect(sim.running()).toEqual(running);
    expect(sim.starts).toBe(starts);
  });

  it('gives tasks to instances of their role only', async () => {
    const sim = new ClusterSim(1, [...workers(4), { key: 'g.view', role: 'gateway', name: 'view of g' }]);
    sim.join('a', ['worker']);
    await sim.run(MINUTE);
    expect(sim.owners().get('g.view')).toEqual([]);
    sim.join('b', ['gateway']);
    await sim.run(2 * POLL_MS);
    expect(sim.owners().get('g.view')).toEqual(['b']);
    expect(sim.isWhole).toBe(true);
  });

  it('does not mistake records that are no JSON for leases or instances', async () => {
    const { sim } = await settled();
    await sim.kv.put(LEASES_BUCKET, sim.tasks[3]!.key, 'nonsense');
    await sim.kv.put(LEASES_BUCKET, 'other', 'null');
    await sim.kv.put('watershed_instances', 'other', '[]');
    await sim.run(MINUTE);
    expect(sim.running()).toEqual(sim.assigned());
  });

  it('names an instance that runs under the name of another', async () => {
    const sim = new ClusterSim(1, workers(2));
    const first = sim.join('a');
    await sim.run(MINUTE);
    sim.join('a');
    await sim.run(2 * LEASE_MS);
    expect(first.warnings).toContain('another instance runs under the name a: stop one of the two');
  });
});
