/**
 * One instance's part in the cluster: it says that it lives, judges who else does, and runs the tasks that are its own.
 *
 * Two loops, so that neither holds up the other: one writes the instance's record, one polls the leases and the others'
 * records and acts on what it read. A task runs because a lease that was *read* names this very process; never because a
 * write seemed to succeed. So a write whose answer is lost needs no case of its own: the next poll shows what became of
 * it.
 *
 * Who takes a task:
 *   - A lease that is released, or of an owner that is gone: whom the assignment over all instances that are not known
 *     to be dead names. Compare-and-set decides between two who differ.
 *   - A lease of a live owner: whom the assignment over the settled instances (live for two terms) names asks in the
 *     lease, and the owner, if its own assignment names the same, stops the task and hands over, a task at most once
 *     a term. All that is to move moves at once: one short pause of a graph, not one after the other. A settled instance is asked by settled ones only: what a
 *     young one took because nobody had it will be judged when it has settled.
 *
 * A task of a lost lease is stopped, but nothing here waits for that: an owner that does not notice (it is suspended, or
 * cut off from KV) is fenced by its successor's appends.
 */
import { INSTANCES_BUCKET, LEASES_BUCKET } from '../dataflow/names.ts';
import type { Clock, Kv, Log } from '../stage/ports.ts';
import { Signal } from '../stage/signal.ts';
import { assign, type Task } from './assignment.ts';
import {
  backOffMs,
  type Holder,
  isParked,
  isSame,
  type Lease,
  type LeaseEntry,
  leaseText,
  progressed,
  readLease,
  released,
  requested,
  taken,
} from './lease.ts';
import { readRecord, Sessions } from './sessions.ts';

const POLL_MS = 500;
/** Beats in a term: so many must be lost in a row before others take an instance for dead. */
const BEATS = 6;
/** Terms after which a task that makes no progress (an idle one) counts as sound. */
const PROVEN_TERMS = 10;
/** A record that could not be written for this share of a term is worth a word. */
const UNWRITTEN_SHARE = 0.7;

export interface MemberOptions {
  readonly name: string;
  /** Of this process alone, random. */
  readonly incarnation: string;
  readonly roles: readonly string[];
  /** An instance whose record stands for so long is dead. */
  readonly leaseMs: number;
  readonly pollMs?: number;
  readonly heartbeatMs?: number;
  readonly kv: Kv;
  readonly clock: Clock;
  readonly log: Log;
  /** What else the instance's record says. */
  readonly report: () => object;
}

export interface TaskSpec extends Task {
  /** For people: "worker 2 of social". */
  readonly name: string;
}

/** A task that runs. */
export interface TaskRun {
  /** Ends when nothing of it runs any more. */
  stop(): Promise<void>;
  /** How far it has come: what grows is progress. */
  readonly position: number;
  /** It ended by itself: another owner fenced it off. */
  readonly failed: boolean;
}

export interface ClusterStatus {
  readonly instances: readonly InstanceStatus[];
  readonly tasks: readonly TaskStatus[];
}

export interface InstanceStatus {
  readonly name: string;
  readonly roles: readonly string[];
  readonly live: boolean;
  readonly leaving: boolean;
  /** Since its record changed. */
  readonly lastSeenMs: number;
  /** Its whole record. */
  readonly fields: Readonly<Record<string, unknown>>;
}

export interface TaskStatus {
  readonly key: string;
  readonly name: string;
  readonly role: string;
  /** As the lease says, dead or alive; null: nobody. */
  readonly owner: string | null;
  readonly turn: number;
  readonly attempts: number;
  /** Its owners die without progress: it is tried seldom. */
  readonly parked: boolean;
}

interface Held {
  readonly run: TaskRun;
  readonly startedAt: number;
}

export class Member<Spec extends TaskSpec = TaskSpec> {
  private readonly options: MemberOptions;
  private readonly self: Holder;
  private readonly pollMs: number;
  private readonly kv: Kv;
  private readonly clock: Clock;
  private readonly log: Log;
  private readonly tasks: () => readonly Spec[];
  private readonly run: (spec: Spec) => TaskRun;

  private readonly sessions: Sessions;
  private leases = new Map<string, LeaseEntry>();
  /** The bucket's, before the leases were listed. */
  private leasesRevision: number | undefined;

  private readonly held = new Map<string, Held>();
  /** What is under way, by task; a poll leaves such tasks alone. */
  private readonly actions = new Map<string, Promise<void>>();
  /** Tasks that something was under way for since the last poll began to read: what it read of them may be old. */
  private touched = new Set<string>();
  /** Since when a lease is seen as a dead owner's, by task. */
  private readonly orphanedAt = new Map<string, { readonly turn: number; readonly at: number }>();
  private readonly requestedAt = new Map<string, number>();
  /** When a task that failed or could not be started is tried again. */
  private readonly retryAt = new Map<string, number>();

  private beat = 0;
  private lastRecord: Readonly<Record<string, unknown>> = {};
  /** When the first record was written: no lease is taken before, for others would not know the owner. */
  private announcedAt: number | undefined;
  private recordAt = 0;
  private leaving = false;
  /** Leaving: when the last task was seen to have stopped. */
  private stoppedAt: number | undefined;
  private hasLeft = false;
  private readonly beatWake: Signal;
  private readonly pollWake: Signal;
  /** Nothing is left to do here, or to wait for. */
  private readonly left: Signal;
  private stopped: Promise<void> | undefined;
  /** Writes of the record without an answer so far: as many as are sent in the time a request may take. */
  private readonly beats = new Set<Promise<void>>();
  private beating: Promise<void> | undefined;
  private polling: Promise<void> | undefined;
  /** What is wrong now, by what it is wrong with. */
  private readonly troubles = new Map<string, string>();

  /**
   * `tasks`: all tasks of the cluster, whoever can run them; one that is missing is stopped and its lease removed, so
   * what cannot be read must not be left out. `run` starts a task; what it throws is tried again.
   */
  constructor(options: MemberOptions, tasks: () => readonly Spec[], run: (spec: Spec) => TaskRun) {
    const { name, incarnation, kv, clock, log } = options;
    this.options = options;
    this.self = { name, incarnation };
    this.pollMs = options.pollMs ?? POLL_MS;
    this.kv = kv;
    this.clock = clock;
    this.log = log;
    this.tasks = tasks;
    this.run = run;
    this.sessions = new Sessions(options.leaseMs, this.pollMs);
    this.beatWake = new Signal(clock);
    this.pollWake = new Signal(clock);
    this.left = new Signal(clock);
  }

  /** What runs here, the tasks that are just being stopped included. */
  get owned(): ReadonlyMap<string, TaskRun> {
    return new Map([...this.held].map(([key, { run }]) => [key, run]));
  }

  start(): void {
    this.recordAt = this.clock.now();
    this.beating = this.keepBeating();
    this.polling = this.keepPolling();
  }

  /**
   * Hands everything over and leaves. Where KV does not answer it gives up a term after the last task has stopped;
   * then the others find out by themselves.
   */
  async stop(): Promise<void> {
    this.stopped ??= this.leave();
    await this.stopped;
  }

  private async leave(): Promise<void> {
    this.leaving = true;
    if (this.polling === undefined) return;
    this.beatWake.raise();
    this.stopAll();
    this.pollWake.raise();
    await this.left.wait(undefined);
    this.hasLeft = true;
    this.beatWake.raise();
    this.pollWake.raise();
    if (this.isOverdue()) {
      this.log.warn(
        {},
        'the leases could not be given back: others take them when this instance counts as dead',
      );
      return;
    }
    await Promise.all([this.beating, this.polling]);
    try {
      await this.kv.erase(INSTANCES_BUCKET, this.self.name);
    } catch (error) {
      this.log.warn({ error: String(error) }, 'the record of this instance could not be removed');
    }
  }

  status(): ClusterStatus {
    const now = this.clock.now();
    const own: InstanceStatus = {
      name: this.self.name,
      roles: this.options.roles,
      live: true,
      leaving: this.leaving,
      lastSeenMs: now - this.recordAt,
      fields: this.lastRecord,
    };
    const others = this.sessions.sightings().map(
      ({ name, record, live, changedAt }): InstanceStatus => ({
        name,
        roles: record.roles,
        live,
        leaving: record.leaving,
        lastSeenMs: now - changedAt,
        fields: record.fields,
      }),
    );
    return {
      instances: [own, ...others].sort((a, b) => (a.name < b.name ? -1 : 1)),
      tasks: this.tasks().map(({ key, name, role }): TaskStatus => {
        const lease = this.leases.get(key)?.lease;
        return {
          key,
          name,
          role,
          owner: lease?.owner?.name ?? null,
          turn: lease?.turn ?? 0,
          attempts: lease?.attempts ?? 0,
          parked: lease !== undefined && isParked(lease),
        };
      }),
    };
  }

  private async keepBeating(): Promise<void> {
    const beatMs = this.options.heartbeatMs ?? this.options.leaseMs / BEATS;
    while (!this.hasLeft) {
      // The next one does not wait for its answer: a request that is lost is waited for almost a term.
      const beat: Promise<void> = this.writeRecord().then(() => {
        this.beats.delete(beat);
      });
      this.beats.add(beat);
      if (this.leaving && this.held.size === 0) this.stoppedAt ??= this.clock.now();
      if (this.leaving && this.isOverdue()) this.left.raise();
      await this.beatWake.wait(beatMs);
    }
    // One that arrives after the record's removal would bring it back.
    await Promise.all(this.beats);
  }

  /** Never throws. */
  private async writeRecord(): Promise<void> {
    const before = this.clock.now();
    try {
      await this.kv.put(INSTANCES_BUCKET, this.self.name, this.recordText());
      this.recordAt = Math.max(this.recordAt, before);
      this.setTrouble('record', undefined);
      if (this.announcedAt === undefined) {
        this.announcedAt = before;
        this.pollWake.raise();
      }
    } catch (error) {
      // Nothing stops: should others take the tasks over, they fence them off.
      if (this.clock.now() - this.recordAt > UNWRITTEN_SHARE * this.options.leaseMs) {
        this.setTrouble('record', `the record of this instance cannot be written (${String(error)})`);
      }
    }
  }

  private recordText(): string {
    this.beat += 1;
    this.lastRecord = {
      ...this.options.report(),
      incarnation: this.self.incarnation,
      beat: this.beat,
      roles: this.options.roles,
      leaving: this.leaving,
    };
    return JSON.stringify(this.lastRecord);
  }

  private async keepPolling(): Promise<void> {
    let sleptMs = 0;
    while (!this.hasLeft) {
      // What is under way when the reading begins may not show in it.
      this.touched = new Set(this.actions.keys());
      try {
        await this.read(sleptMs);
        this.setTrouble('reading', undefined);
        this.act();
        if (this.leaving && this.hasGivenBack()) this.left.raise();
      } catch (error) {
        this.sessions.missed();
        this.setTrouble('reading', `the cluster's records cannot be read (${String(error)})`);
      }
      if (this.hasLeft) break;
      const before = this.clock.now();
      await this.pollWake.wait(this.pollMs);
      sleptMs = this.clock.now() - before;
    }
  }

  /** Leases first, then the instances: a record is then never older than the lease that names its instance. */
  private async read(sleptMs: number): Promise<void> {
    const revision = await this.kv.revision(LEASES_BUCKET);
    if (revision !== this.leasesRevision) {
      const entries = await this.kv.list(LEASES_BUCKET, '');
      this.leases = new Map(entries.map((entry) => [entry.key, readLease(entry)]));
      this.leasesRevision = revision;
    }
    const owners = new Set<string>();
    for (const { lease } of this.leases.values()) {
      if (lease.owner !== undefined && lease.owner.name !== this.self.name) owners.add(lease.owner.name);
    }
    const records = await this.kv.list(INSTANCES_BUCKET, '');
    const others = records.filter(({ key }) => key !== this.self.name);
    this.sessions.observe(others, owners, this.clock.now(), sleptMs);
    const own = records.find(({ key }) => key === this.self.name);
    const incarnation = own && this.announcedAt !== undefined ? readRecord(own)?.incarnation : undefined;
    this.setTrouble(
      'name',
      incarnation === undefined || incarnation === this.self.incarnation
        ? undefined
        : `another instance runs under the name ${this.self.name}: stop one of the two`,
    );
  }

  private act(): void {
    const now = this.clock.now();
    const specs = this.tasks();
    const { leaseMs, roles } = this.options;
    const own = { name: this.self.name, roles };
    const isPlaced = !this.leaving && this.announcedAt !== undefined;
    const isSettled = isPlaced && now - this.announcedAt! >= 2 * leaseMs;
    const settled = isSettled ? [...this.sessions.settled(now, 2 * leaseMs), own] : [];
    const settledNames = new Set(settled.map(({ name }) => name));
    const takers = isPlaced ? assign(specs, [...this.sessions.candidates(), own]) : new Map<string, string>();
    const movers = assign(specs, settled);

    const keys = new Set<string>();
    for (const spec of specs) {
      const { key } = spec;
      const entry = this.leases.get(key);
      keys.add(key);
      const isStuck = entry !== undefined && isParked(entry.lease);
      this.setTrouble(
        `parked ${key}`,
        isStuck ? `${spec.name} is parked: its owners die, and it makes no progress` : undefined,
      );
      if (this.touched.has(key)) continue;
      if (entry !== undefined && isSame(entry.lease.owner, this.self)) {
        this.keep(spec, entry, movers.get(key), now);
        continue;
      }
      if (this.held.has(key)) {
        // A record that is merely not there was lost: who runs the task writes it again.
        if (entry === undefined && !this.leaving) this.take(key, entry);
        else this.lose(key);
      } else if (this.isFree(key, entry?.lease, now)) {
        if (takers.get(key) === this.self.name) this.take(key, entry);
      } else if (entry?.lease.owner !== undefined && settledNames.has(entry.lease.owner.name)) {
        if (movers.get(key) === this.self.name) this.ask(key, entry, now);
      }
    }
    this.dropOthers(keys);
  }

  /** What is not among the tasks any more: its run ends, and its owner takes its lease away. */
  private dropOthers(keys: ReadonlySet<string>): void {
    for (const key of new Set([...this.held.keys(), ...this.leases.keys()])) {
      if (keys.has(key) || this.touched.has(key)) continue;
      const isOwn = isSame(this.leases.get(key)?.lease.owner, this.self);
      if (isOwn) this.end(key, () => this.removeLease(key));
      else if (this.held.has(key)) this.lose(key);
    }
    for (const known of [this.orphanedAt, this.requestedAt, this.retryAt]) {
      for (const key of known.keys()) if (!keys.has(key)) known.delete(key);
    }
    for (const about of this.troubles.keys()) {
      const key = about.split(' ')[1];
      if (key !== undefined && !keys.has(key)) this.troubles.delete(about);
    }
  }

  private async removeLease(key: string): Promise<void> {
    if (isSame(this.leases.get(key)?.lease.owner, this.self)) await this.kv.erase(LEASES_BUCKET, key);
  }

  /** A task whose lease is this process's. */
  private keep(spec: Spec, { lease }: LeaseEntry, mover: string | undefined, now: number): void {
    const { key } = spec;
    const held = this.held.get(key);
    const successor = this.successor(lease, mover);
    const mayMove = held === undefined || now - held.startedAt >= this.options.leaseMs;
    if (this.leaving) {
      this.end(key, () => this.handOver(key, undefined, held));
    } else if (successor !== undefined && mayMove) {
      this.log.info({ task: spec.name, to: successor.name }, 'the task moves to another instance');
      this.end(key, () => this.handOver(key, successor, held));
    } else if (held === undefined) {
      if (now >= (this.retryAt.get(key) ?? now)) this.begin(spec, lease, now);
    } else if (held.run.failed) {
      this.retryAt.set(key, now + 2 * this.pollMs);
      this.log.warn(
        { task: spec.name },
        'the task was fenced off though its lease is ours: starting it again',
      );
      this.end(key, async () => {});
    } else if (lease.attempts > 0 && this.isProven(held, lease, now)) {
      this.undertake(key, async () => {
        await this.write(key, progressed(lease, held.run.position));
      });
    }
  }

  /** It has come on, or runs for so long that it is not what kills its owners. */
  private isProven({ run, startedAt }: Held, lease: Lease, now: number): boolean {
    return run.position > lease.position || now - startedAt >= PROVEN_TERMS * this.options.leaseMs;
  }

  private successor({ request }: Lease, mover: string | undefined): Holder | undefined {
    if (request === undefined || request.name !== mover || request.name === this.self.name) return undefined;
    return this.sessions.isLive(request) ? request : undefined;
  }

  private isFree(key: string, lease: Lease | undefined, now: number): boolean {
    const owner = lease?.owner;
    const isOrphan = owner !== undefined && (owner.name === this.self.name || this.sessions.isGone(owner));
    if (!isOrphan) {
      this.orphanedAt.delete(key);
      return owner === undefined;
    }
    let orphaned = this.orphanedAt.get(key);
    if (orphaned?.turn !== lease!.turn) {
      orphaned = { turn: lease!.turn, at: now };
      this.orphanedAt.set(key, orphaned);
    }
    return now - orphaned.at >= backOffMs(lease!, this.options.leaseMs);
  }

  private take(key: string, entry: LeaseEntry | undefined): void {
    this.undertake(key, async () => {
      const lease = taken(entry?.lease, this.self);
      if (entry !== undefined) await this.write(key, lease);
      else await this.kv.create(LEASES_BUCKET, key, leaseText(lease));
    });
  }

  private ask(key: string, entry: LeaseEntry, now: number): void {
    const askedAt = this.requestedAt.get(key);
    if (isSame(entry.lease.request, this.self)) return;
    // Two instances that differ must not overwrite each other's requests at every poll.
    if (askedAt !== undefined && now - askedAt < this.options.leaseMs) return;
    this.requestedAt.set(key, now);
    this.undertake(key, async () => {
      await this.write(key, requested(entry.lease, this.self));
    });
  }

  private begin(spec: Spec, { turn, attempts }: Lease, now: number): void {
    const { key } = spec;
    try {
      this.held.set(key, { run: this.run(spec), startedAt: now });
      this.retryAt.delete(key);
      this.log.info({ task: spec.name, turn, attempts }, 'the task runs here now');
      this.setTrouble(`start ${key}`, undefined);
    } catch (error) {
      this.retryAt.set(key, now + this.options.leaseMs);
      this.setTrouble(`start ${key}`, `${spec.name} cannot be started (${String(error)}): retrying`);
    }
  }

  private lose(key: string): void {
    this.log.warn({ task: key }, 'the lease of the task is lost: stopping it');
    this.end(key, async () => {});
  }

  private async handOver(key: string, successor: Holder | undefined, held: Held | undefined): Promise<void> {
    const entry = this.leases.get(key);
    // While the task was stopping, the lease may have gone.
    if (entry === undefined || !isSame(entry.lease.owner, this.self)) return;
    await this.write(key, released(entry.lease, successor, held?.run.position ?? 0));
  }

  /** Only over what was read last: if that is not there any more, the next poll sees what is. */
  private async write(key: string, lease: Lease): Promise<void> {
    const revision = this.leases.get(key)?.revision;
    if (revision !== undefined) await this.kv.update(LEASES_BUCKET, key, leaseText(lease), revision);
  }

  /** At once, whether anything can be read or not. */
  private stopAll(): void {
    for (const [key, held] of this.held) {
      if (!this.actions.has(key)) this.end(key, () => this.handOver(key, undefined, held));
    }
  }

  /** Asked after a read: whether it shows no lease of this process, and nothing is under way. */
  private hasGivenBack(): boolean {
    if (this.held.size > 0 || this.actions.size > 0 || this.touched.size > 0) return false;
    return ![...this.leases.values()].some(({ lease }) => isSame(lease.owner, this.self));
  }

  private isOverdue(): boolean {
    const { announcedAt, stoppedAt } = this;
    if (this.held.size > 0) return false;
    if (announcedAt === undefined) return true;
    return stoppedAt !== undefined && this.clock.now() - stoppedAt >= this.options.leaseMs;
  }

  /** Stops the task's run, if there is one, then does `then`. */
  private end(key: string, then: () => Promise<void>): void {
    this.undertake(key, async () => {
      const held = this.held.get(key);
      try {
        await held?.run.stop();
      } finally {
        this.held.delete(key);
      }
      await then();
    });
  }

  /** Does `what` beside the loop; then looks at once what has come of it. */
  private undertake(key: string, what: () => Promise<void>): void {
    const action = async (): Promise<void> => {
      try {
        await what();
        this.setTrouble(`lease ${key}`, undefined);
        this.pollWake.raise();
      } catch (error) {
        this.setTrouble(
          `lease ${key}`,
          `the lease of ${key} could not be written (${String(error)}): retrying`,
        );
      }
      this.actions.delete(key);
      this.touched.add(key);
    };
    this.touched.add(key);
    this.actions.set(key, action());
  }

  private setTrouble(about: string, message: string | undefined): void {
    const before = this.troubles.get(about);
    if (message === before) return;
    if (message === undefined) {
      this.troubles.delete(about);
      this.log.info({ instance: this.self.name }, `over: ${before}`);
    } else {
      this.troubles.set(about, message);
      this.log.warn({ instance: this.self.name }, message);
    }
  }
}
