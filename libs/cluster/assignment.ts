/**
 * Which instance a task belongs to: a function of the tasks and the instances alone, so that all instances that see the
 * same cluster agree without a master.
 *
 * Rendezvous hashing (Thaler, Ravishankar 1998): a task goes to the instance that scores highest for it, so an instance
 * that joins or leaves moves its own share only. With bounded load (Mirrokni, Thorup, Zadimoghaddam 2016): an instance
 * has room for ⌊1.25 · tasks / instances⌋ of a role, at least for its share rounded up; a task that finds no room goes
 * to its next best. Tasks choose in the order of their keys.
 */
import { finish, hashId, viewOf } from '../graph/id-hash.ts';

export interface Task {
  readonly key: string;
  /** Only an instance of this role can run it. */
  readonly role: string;
}

export interface Candidate {
  readonly name: string;
  readonly roles: readonly string[];
}

/** The owner's name by task key; tasks of a role that no instance has are left out. */
export function assign(tasks: readonly Task[], instances: readonly Candidate[]): Map<string, string> {
  const keys = new Map<string, string[]>();
  for (const { key, role } of tasks) {
    const ofRole = keys.get(role);
    if (ofRole === undefined) keys.set(role, [key]);
    else ofRole.push(key);
  }
  const owners = new Map<string, string>();
  for (const [role, ofRole] of keys) {
    const names = instances.filter(({ roles }) => roles.includes(role)).map(({ name }) => name);
    assignRole(ofRole.sort(), names.sort(), owners);
  }
  return owners;
}

/** The most tasks of one role that an instance gets. */
export function capacity(tasks: number, instances: number): number {
  // Rounded down, so that two tasks on two instances are one on each. In integers: a quotient of 1.25 · tasks may differ.
  return Math.max(Math.ceil(tasks / instances), Math.floor((5 * tasks) / (4 * instances)));
}

function assignRole(keys: readonly string[], names: readonly string[], owners: Map<string, string>): void {
  const seeds = names.map(hashText);
  const room = names.map(() => capacity(keys.length, names.length));
  for (const key of keys) {
    const hash = hashText(key);
    let best = -1;
    let bestScore = -1;
    for (const [at, seed] of seeds.entries()) {
      if (room[at] === 0) continue;
      const score = finish(finish(hash + seed) ^ seed) >>> 0;
      // Of equal scores the smaller name's.
      if (score > bestScore) {
        best = at;
        bestScore = score;
      }
    }
    if (best === -1) return;
    room[best]! -= 1;
    owners.set(key, names[best]!);
  }
}

const encoder = new TextEncoder();

function hashText(text: string): number {
  const bytes = encoder.encode(text);
  return hashId(viewOf(bytes), 0, bytes.length);
}
