import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { assign, capacity } from '../../../libs/cluster/assignment.ts';
import { seeded } from '../../support/seeded.ts';

const ROLES = ['partitioner', 'worker', 'gateway'];
const task = fc.record({ key: fc.string({ minLength: 1 }), role: fc.constantFrom(...ROLES) });
const instance = fc.record({
  name: fc.string({ minLength: 1, maxLength: 8 }),
  roles: fc.subarray(ROLES),
});
const tasks = fc.uniqueArray(task, { selector: ({ key }) => key, maxLength: 60 });
const instances = fc.uniqueArray(instance, { selector: ({ name }) => name, maxLength: 9 });

describe('the assignment', () => {
  it('gives each task to one instance of its role, none more than it has room for', () => {
    fc.assert(
      fc.property(tasks, instances, (someTasks, someInstances) => {
        const owners = assign(someTasks, someInstances);
        for (const role of ROLES) {
          const ofRole = someTasks.filter((one) => one.role === role);
          const able = someInstances.filter(({ roles }) => roles.includes(role)).map(({ name }) => name);
          const loads = new Map<string, number>();
          for (const { key } of ofRole) {
            const owner = owners.get(key);
            if (able.length === 0) expect(owner).toBeUndefined();
            else expect(able).toContain(owner);
            if (owner !== undefined) loads.set(owner, (loads.get(owner) ?? 0) + 1);
          }
          for (const load of loads.values()) {
            expect(load).toBeLessThanOrEqual(capacity(ofRole.length, able.length));
          }
        }
      }),
    );
  });

  it('is the same whatever the order of its arguments', () => {
    fc.assert(
      fc.property(tasks, instances, fc.integer(), (someTasks, someInstances, seed) => {
        const shuffled = assign(shuffle(someTasks, seed), shuffle(someInstances, seed));
        expect([...shuffled].sort()).toEqual([...assign(someTasks, someInstances)].sort());
      }),
    );
  });

  it('has no role share the room of another', () => {
    const some = [...named('a', 4, 'worker'), ...named('b', 4, 'gateway')];
    const both = assign(some, [{ name: 'x', roles: ['worker', 'gateway'] }]);
    expect(both.size).toBe(8);
  });

  it.each([2, 3, 5, 10])('moves little more than its share when one of %i instances leaves', (count) => {
    let moved = 0;
    let share = 0;
    for (let round = 0; round < 50; round++) {
      const some = named(`g${round}.worker.1.`, 100, 'worker');
      const before = cluster(round, count);
      const owners = assign(some, before);
      const left = assign(some, before.slice(1));
      for (const [key, owner] of owners) {
        if (owner === before[0]!.name) share += 1;
        if (left.get(key) !== owner) moved += 1;
      }
    }
    // The leaver's own must move, and what no longer finds room elsewhere.
    expect(moved).toBeGreaterThanOrEqual(share);
    expect(moved / share).toBeLessThan(1.6);
  });

  it('spreads tasks as evenly as chance would, and names that differ in one digit as well', () => {
    const loads = new Map<string, number>();
    for (let round = 0; round < 200; round++) {
      // One task each, so that room never decides.
      const owner = assign(named(`g.worker.1.${round}.`, 1, 'worker'), cluster(0, 8)).get(
        `g.worker.1.${round}.0`,
      )!;
      loads.set(owner, (loads.get(owner) ?? 0) + 1);
    }
    const chi = [...loads.values()].reduce((sum, load) => sum + (load - 25) ** 2 / 25, 0);
    // 7 degrees of freedom: above 24.3 once in a thousand.
    expect(loads.size).toBe(8);
    expect(chi).toBeLessThan(24.3);
  });
});

function named(prefix: string, count: number, role: string): { key: string; role: string }[] {
  return Array.from({ length: count }, (_, at) => ({ key: `${prefix}${at}`, role }));
}

function cluster(round: number, count: number): { name: string; roles: string[] }[] {
  return Array.from({ length: count }, (_, at) => ({ name: `node-${round}-${at}`, roles: ['worker'] }));
}

function shuffle<T>(values: readonly T[], seed: number): T[] {
  const random = seeded(seed);
  return values
    .map((value) => ({ value, at: random() }))
    .sort((a, b) => a.at - b.at)
    .map(({ value }) => value);
}
