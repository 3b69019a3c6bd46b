/**
 * Who is alive, as one instance sees it.
 *
 * Every instance writes its own record again and again. It is dead when its record stood unchanged for `leaseMs` by the
 * watcher's own monotonic clock: clocks of two machines are never compared. The time counts only while the watcher
 * really watched:
 *   - between two reads that succeeded; after one that failed it counts anew, so that a server that was away, for
 *     watcher and watched alike, starts no storm of take-overs;
 *   - if the watcher slept for longer than it meant to (SIGSTOP, a suspended machine), it counts anew;
 *   - a step counts for two polls at most, however long the reads took: an answer may have waited in a socket.
 *
 * A record says nothing of its age. So one that is there when the watch begins may be a corpse's: it is live only
 * after it has changed, and dead only after it has stood. Until then its instance is given the benefit of the doubt:
 * its leases are respected, and nobody takes its share.
 */
import type { KvEntry } from '../stage/ports.ts';
import type { Candidate } from './assignment.ts';
import type { Holder } from './lease.ts';

/** An instance's record in the instances bucket. */
export interface InstanceRecord {
  readonly incarnation: string;
  readonly roles: readonly string[];
  /** It hands its tasks over and ends. */
  readonly leaving: boolean;
  /** All fields, these and those of its report. */
  readonly fields: Readonly<Record<string, unknown>>;
}

export interface Sighting {
  readonly name: string;
  readonly record: InstanceRecord;
  readonly live: boolean;
  /** When its record was last seen to change, or was first seen. */
  readonly changedAt: number;
}

interface Watched {
  /** As last read; undefined: leases name the instance, but it has no record. */
  record: InstanceRecord | undefined;
  revision: number;
  /** Whether the record was in the last read. */
  isThere: boolean;
  state: 'unproven' | 'live' | 'dead';
  unchangedMs: number;
  changedAt: number;
  liveSince: number;
}

export class Sessions {
  private readonly leaseMs: number;
  /** What a step between two reads counts at most; a longer sleep was none of the watcher's own. */
  private readonly stepMsMax: number;
  private readonly watched = new Map<string, Watched>();
  private readAt: number | undefined;

  constructor(leaseMs: number, pollMs: number) {
    this.leaseMs = leaseMs;
    this.stepMsMax = 2 * pollMs;
  }

  /**
   * Takes in all records (those of others), as read just now. `owners` are whom the leases name, read before; `sleptMs`
   * is how long the watcher paused since the last read.
   */
  observe(records: readonly KvEntry[], owners: ReadonlySet<string>, now: number, sleptMs: number): void {
    const isBroken = this.readAt === undefined || sleptMs > this.stepMsMax;
    const stepMs = isBroken ? undefined : Math.min(now - this.readAt!, this.stepMsMax);
    this.readAt = now;
    const changed = this.takeIn(records, now);
    for (const name of owners) if (!this.watched.has(name)) this.watched.set(name, unproven(now));
    for (const [name, watched] of this.watched) {
      if (changed.has(name)) continue;
      watched.unchangedMs = stepMs === undefined ? 0 : watched.unchangedMs + stepMs;
      if (watched.unchangedMs >= this.leaseMs) watched.state = 'dead';
      if (watched.state === 'dead' && !watched.isThere && !owners.has(name)) this.watched.delete(name);
    }
  }

  /** A read failed. */
  missed(): void {
    this.readAt = undefined;
    for (const watched of this.watched.values()) watched.unchangedMs = 0;
  }

  /**
   * Whether a lease of this owner may be taken. As leases are read before the records, a record of another incarnation
   * is a later one.
   */
  isGone({ name, incarnation }: Holder): boolean {
    const watched = this.watched.get(name);
    if (watched === undefined) return false;
    if (watched.state === 'dead') return true;
    return watched.isThere && watched.record!.incarnation !== incarnation;
  }

  /** Who may have a share of the tasks. */
  candidates(): Candidate[] {
    return this.listed(({ state }) => state !== 'dead');
  }

  /** Of these, who has been live for `ms` or more: tasks move between such instances only. */
  settled(now: number, ms: number): Candidate[] {
    return this.listed(({ state, liveSince }) => state === 'live' && now - liveSince >= ms);
  }

  isLive({ name, incarnation }: Holder): boolean {
    const watched = this.watched.get(name);
    return watched?.state === 'live' && watched.isThere && watched.record!.incarnation === incarnation;
  }

  sightings(): Sighting[] {
    return [...this.watched].flatMap(([name, { record, isThere, state, changedAt }]) =>
      record === undefined || !isThere ? [] : [{ name, record, live: state === 'live', changedAt }],
    );
  }

  /** The names whose records are other ones than before, or new. */
  private takeIn(records: readonly KvEntry[], now: number): Set<string> {
    const changed = new Set<string>();
    for (const watched of this.watched.values()) watched.isThere = false;
    for (const entry of records) {
      const record = readRecord(entry);
      if (record === undefined) continue;
      let watched = this.watched.get(entry.key);
      if (watched === undefined) {
        watched = unproven(now);
        this.watched.set(entry.key, watched);
        changed.add(entry.key);
      } else if (watched.revision !== entry.revision) {
        const isNew = watched.state !== 'live' || watched.record?.incarnation !== record.incarnation;
        if (isNew) watched.liveSince = now;
        watched.state = 'live';
        watched.unchangedMs = 0;
        watched.changedAt = now;
        changed.add(entry.key);
      }
      watched.isThere = true;
      watched.record = record;
      watched.revision = entry.revision;
    }
    return changed;
  }

  private listed(isListed: (watched: Watched) => boolean): Candidate[] {
    return [...this.watched].flatMap(([name, watched]) => {
      const { record, isThere } = watched;
      if (record === undefined || !isThere || record.leaving || !isListed(watched)) return [];
      return [{ name, roles: record.roles }];
    });
  }
}

function unproven(now: number): Watched {
  return {
    record: undefined,
    revision: 0,
    isThere: false,
    state: 'unproven',
    unchangedMs: 0,
    changedAt: now,
    liveSince: now,
  };
}

/** Undefined: it is not of an instance's making. */
export function readRecord({ value }: KvEntry): InstanceRecord | undefined {
  let fields: unknown;
  try {
    fields = JSON.parse(value);
  } catch {
    return undefined;
  }
  if (typeof fields !== 'object' || fields === null) return undefined;
  const { incarnation, roles, leaving } = fields as Record<string, unknown>;
  if (typeof incarnation !== 'string' || !Array.isArray(roles)) return undefined;
  return {
    incarnation,
    roles: roles.filter((role) => typeof role === 'string'),
    leaving: leaving === true,
    fields: fields as Record<string, unknown>,
  };
}
