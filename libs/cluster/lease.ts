/**
 * A lease: who runs a task, as a record that only compare-and-set changes, and only when something is new.
 *
 * Leases are for liveness: that two owners do no harm is the fence's doing (libs/stage/output.ts). So nothing here
 * expires by itself; whether an owner is alive its session says (sessions.ts).
 */
import type { KvEntry } from '../stage/ports.ts';

/** A parked task is tried this often. */
const BACK_OFF_MS_MAX = 600_000;
/** So many take-overs in a row without progress may be chance: an idle task makes none either. */
const FREE_ATTEMPTS = 2;
/** So many take-overs in a row without progress: the task is named as one that kills its owners. */
const PARKED_ATTEMPTS = 5;

/** One run of an instance: a later process of the same name is another one. */
export interface Holder {
  readonly name: string;
  readonly incarnation: string;
}

export interface Lease {
  /** Undefined: released. */
  readonly owner: Holder | undefined;
  /** Grows with each change of owner. */
  readonly turn: number;
  /** The task's progress, as of when it was last written here. */
  readonly position: number;
  /** Take-overs from dead owners in a row that brought no progress. */
  readonly attempts: number;
  /** Who asks the owner to hand over. */
  readonly request: Holder | undefined;
}

export interface LeaseEntry {
  readonly lease: Lease;
  readonly revision: number;
}

const NEW: Lease = { owner: undefined, turn: 0, position: 0, attempts: 0, request: undefined };

/** `taker` becomes the owner. That the owner before had to be declared dead is one more attempt. */
export function taken(lease: Lease | undefined, taker: Holder): Lease {
  const { owner, turn, position, attempts } = lease ?? NEW;
  return {
    owner: taker,
    turn: turn + 1,
    position,
    attempts: owner === undefined ? attempts : attempts + 1,
    request: undefined,
  };
}

/** The owner gives it up, to `successor` or to whom it may concern. */
export function released(lease: Lease, successor: Holder | undefined, position: number): Lease {
  return {
    owner: successor,
    turn: successor === undefined ? lease.turn : lease.turn + 1,
    position: Math.max(lease.position, position),
    attempts: lease.attempts,
    request: undefined,
  };
}

export function requested(lease: Lease, requester: Holder): Lease {
  return { ...lease, request: requester };
}

/** The task has come on since it was taken over. */
export function progressed(lease: Lease, position: number): Lease {
  return { ...lease, position: Math.max(lease.position, position), attempts: 0 };
}

/** How long a lease of a dead owner is left alone: 2^k terms after the k-th take-over in vain that counts. */
export function backOffMs({ attempts }: Lease, leaseMs: number): number {
  if (attempts <= FREE_ATTEMPTS) return 0;
  if (attempts >= PARKED_ATTEMPTS) return BACK_OFF_MS_MAX;
  return Math.min(2 ** (attempts - FREE_ATTEMPTS) * leaseMs, BACK_OFF_MS_MAX);
}

export function isParked({ attempts }: Lease): boolean {
  return attempts >= PARKED_ATTEMPTS;
}

export function isSame(one: Holder | undefined, other: Holder | undefined): boolean {
  return one?.name === other?.name && one?.incarnation === other?.incarnation;
}

export function leaseText({ owner, turn, position, attempts, request }: Lease): string {
  return JSON.stringify({
    owner: owner?.name ?? null,
    incarnation: owner?.incarnation ?? null,
    turn,
    position,
    attempts,
    ...(request === undefined ? {} : { request: { by: request.name, incarnation: request.incarnation } }),
  });
}

/** A record that is none is as good as a released lease: whom the task belongs to writes it anew. */
export function readLease({ value, revision }: KvEntry): LeaseEntry {
  let fields: Record<string, unknown>;
  try {
    fields = (JSON.parse(value) ?? {}) as Record<string, unknown>;
  } catch {
    fields = {};
  }
  const { owner, incarnation, turn, position, attempts } = fields;
  const request = (fields['request'] ?? {}) as Record<string, unknown>;
  return {
    lease: {
      owner: holder(owner, incarnation),
      turn: count(turn),
      position: count(position),
      attempts: count(attempts),
      request: holder(request['by'], request['incarnation']),
    },
    revision,
  };
}

function holder(name: unknown, incarnation: unknown): Holder | undefined {
  return typeof name === 'string' && typeof incarnation === 'string' ? { name, incarnation } : undefined;
}

function count(value: unknown): number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : 0;
}
