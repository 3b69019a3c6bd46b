/**
 * Members on one in-memory KV and one virtual clock. Each is a process of its own that can be killed or suspended at any
 * point; calls take time, and fail as they are told to. Tasks are counters.
 *
 * What is checked all the time: a healthy member (never suspended, killed or without KV just now) starts a task only when
 * no other healthy one runs it; and what a healthy member runs without its lease it has stopped soon.
 */
import { type KvFault, MemoryKv } from '../../../libs/bus/memory-kv.ts';
import { assign } from '../../../libs/cluster/assignment.ts';
import { Member, type TaskRun, type TaskSpec } from '../../../libs/cluster/member.ts';
import { INSTANCES_BUCKET, LEASES_BUCKET } from '../../../libs/dataflow/names.ts';
import type { Clock, Kv, Log } from '../../../libs/stage/ports.ts';
import { seeded } from '../../support/seeded.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';

export const LEASE_MS = 6_000;
export const POLL_MS = 500;
const CALL_MS_MAX = 20;
/** How long a call that gets no answer waits for it. */
const TIMEOUT_MS = 5_000;

export class Process {
  readonly name: string;
  readonly member: Member;
  readonly warnings: string[] = [];
  isKilled = false;
  isSuspended = false;
  isLeaving = false;
  /** What was to happen while it was suspended. */
  private readonly late: (() => void)[] = [];
  /** Until when what it does is excused. */
  excusedUntil = 0;
  readonly clock: Clock;

  constructor(sim: ClusterSim, name: string, incarnation: string, roles: readonly string[]) {
    this.name = name;
    const base = sim.clock;
    this.clock = {
      now: () => base.now(),
      sleep: (ms) => new Promise((resolve) => void this.clock.after(ms, resolve)),
      after: (ms, then) => {
        let isCancelled = false;
        const cancel = base.after(ms, () => this.do(() => isCancelled || then()));
        return () => {
          isCancelled = true;
          cancel();
        };
      },
      yield: () => this.clock.sleep(0),
    };
    const log: Log = {
      info: () => {},
      warn: (_, message) => this.warnings.push(message),
      error: (_, message) => this.warnings.push(message),
    };
    const options = { name, incarnation, roles, leaseMs: LEASE_MS, pollMs: POLL_MS, log };
    this.member = new Member(
      { ...options, clock: this.clock, kv: sim.kvOf(this), report: () => ({ version: '1' }) },
      () => sim.tasks,
      (spec) => sim.begin(this, spec),
    );
  }

  get isHealthy(): boolean {
    return !this.isKilled && !this.isSuspended;
  }

  /** Now, after the suspension, or never. */
  do(what: () => void): void {
    if (this.isKilled) return;
    if (this.isSuspended) this.late.push(what);
    else what();
  }

  resume(): void {
    this.isSuspended = false;
    for (const what of this.late.splice(0)) what();
  }
}

export interface Run extends TaskRun {
  readonly process: Process;
  readonly key: string;
  isRunning: boolean;
  position: number;
  failed: boolean;
}

export class ClusterSim {
  readonly random: () => number;
  readonly clock: VirtualClock;
  readonly kv = new MemoryKv();
  tasks: TaskSpec[];
  processes: Process[] = [];
  /** All runs that were not stopped, those of the dead included. */
  runs: Run[] = [];
  starts = 0;
  /** Every start and end of a task, a line each. */
  readonly trace: string[] = [];
  readonly breaches: string[] = [];
  /** Asked at each call of a process. */
  fault: (process: Process) => KvFault = () => 'none';
  /** Told of each task that starts. */
  started: (run: Run) => void = () => {};
  stopMsMax = 100;
  private incarnations = 0;

  constructor(seed: number, tasks: readonly TaskSpec[]) {
    this.random = seeded(seed);
    this.clock = new VirtualClock(this.random);
    this.tasks = [...tasks];
  }

  join(name: string, roles: readonly string[] = ['worker']): Process {
    const process = new Process(this, name, `${name}#${this.incarnations++}`, roles);
    this.processes.push(process);
    process.member.start();
    return process;
  }

  kill(process: Process): void {
    process.isKilled = true;
    this.processes = this.processes.filter((other) => other !== process);
    this.runs = this.runs.filter((run) => run.process !== process);
  }

  async leave(process: Process): Promise<void> {
    process.isLeaving = true;
    await process.member.stop();
    this.processes = this.processes.filter((other) => other !== process);
  }

  suspend(process: Process): void {
    process.isSuspended = true;
  }

  resume(process: Process): void {
    // Its first read shows it what it lost.
    process.excusedUntil = this.clock.now() + POLL_MS + TIMEOUT_MS;
    process.resume();
  }

  async run(ms: number): Promise<void> {
    await this.clock.run(ms);
  }

  /** A clock tick by tick, with what must hold at all times checked. */
  async runChecked(ms: number): Promise<void> {
    const until = this.clock.now() + ms;
    while (this.clock.now() < until) {
      await this.clock.run(Math.min(50, until - this.clock.now()));
      await this.checkLeases();
    }
  }

  /** The tasks that run, with who runs them, one line each; healthy members' only. */
  running(): string[] {
    return this.runs
      .filter((run) => run.isRunning && run.process.isHealthy)
      .map((run) => `${run.key} ${run.process.name}`)
      .sort();
  }

  owners(): Map<string, string[]> {
    const owners = new Map<string, string[]>(this.tasks.map(({ key }) => [key, []]));
    for (const run of this.runs) {
      if (run.isRunning && run.process.isHealthy) owners.get(run.key)?.push(run.process.name);
    }
    return owners;
  }

  /** As `running`, by what the leases say. */
  async leased(): Promise<string[]> {
    const owners = [...(await this.leases())].map(([key, { owner }]) => `${key} ${owner}`);
    return owners.sort();
  }

  /** As `running` should be when all has come to rest. */
  assigned(): string[] {
    const candidates = this.processes
      .filter((process) => !process.isLeaving)
      .map(({ name }) => ({ name, roles: ['worker'] }));
    return [...assign(this.tasks, candidates)].map(([key, name]) => `${key} ${name}`).sort();
  }

  /** Whether every task has exactly one runner. */
  get isWhole(): boolean {
    return [...this.owners().values()].every((names) => names.length === 1);
  }

  loads(): Record<string, number> {
    const loads = Object.fromEntries(this.processes.map(({ name }) => [name, 0]));
    for (const names of this.owners().values()) for (const name of names) loads[name]! += 1;
    return loads;
  }

  begin(process: Process, spec: TaskSpec): Run {
    const { key } = spec;
    for (const other of this.runs) {
      if (other.key !== key || !other.isRunning) continue;
      if (this.isAnswerable(process) && this.isAnswerable(other.process)) {
        this.breach(`${process.name} starts ${key} while ${other.process.name} runs it`);
      } else if (other.process === process) {
        this.breach(`${process.name} starts ${key} twice`);
      }
    }
    let isStopping = false;
    const run: Run = {
      process,
      key,
      isRunning: true,
      position: 0,
      failed: false,
      stop: async () => {
        if (isStopping) this.breach(`${process.name} stops ${key} twice`);
        isStopping = true;
        await process.clock.sleep(this.random() * this.stopMsMax);
        run.isRunning = false;
        this.note(process, `stopped ${key}`);
        this.runs = this.runs.filter((other) => other !== run);
      },
    };
    this.starts += 1;
    this.note(process, `starts ${key}`);
    this.runs.push(run);
    this.started(run);
    return run;
  }

  /** The process's own KV: calls take time, and what it gets while it is suspended it gets later. */
  kvOf(process: Process): Kv {
    const call = <T>(make: () => Promise<T>): Promise<T> =>
      new Promise((resolve, reject) => {
        const late = (what: () => void, ms: number): void => {
          this.clock.after(ms, () => process.do(what));
        };
        const fault = this.fault(process);
        const givesUp = (): void => late(() => reject(new Error('no answer')), TIMEOUT_MS);
        if (fault !== 'none') process.excusedUntil = this.clock.now() + LEASE_MS + TIMEOUT_MS;
        if (fault === 'lost-before') {
          givesUp();
          return;
        }
        // The request is on its way, whatever becomes of who sent it.
        this.clock.after(this.random() * CALL_MS_MAX, () => {
          make().then(
            (result) =>
              fault === 'lost-after' ? givesUp() : late(() => resolve(result), this.random() * CALL_MS_MAX),
            reject,
          );
        });
      });
    const { kv } = this;
    return {
      get: (bucket, key) => call(() => kv.get(bucket, key)),
      list: (bucket, prefix) => call(() => kv.list(bucket, prefix)),
      revision: (bucket) => call(() => kv.revision(bucket)),
      put: (bucket, key, value) => call(() => kv.put(bucket, key, value)),
      create: (bucket, key, value) => call(() => kv.create(bucket, key, value)),
      update: (bucket, key, value, revision) => call(() => kv.update(bucket, key, value, revision)),
      remove: (bucket, key) => call(() => kv.remove(bucket, key)),
      erase: (bucket, key) => call(() => kv.erase(bucket, key)),
      isRemoved: (bucket, key) => call(() => kv.isRemoved(bucket, key)),
    };
  }

  async lease(key: string): Promise<object | undefined> {
    return (await this.leases()).get(key);
  }

  async instances(): Promise<string[]> {
    return (await this.kv.list(INSTANCES_BUCKET, '')).map(({ key }) => key);
  }

  private async leases(): Promise<Map<string, { readonly owner: string | null }>> {
    const entries = await this.kv.list(LEASES_BUCKET, '');
    return new Map(entries.map(({ key, value }) => [key, JSON.parse(value) as { owner: string | null }]));
  }

  private isAnswerable(process: Process): boolean {
    return process.isHealthy && this.clock.now() >= process.excusedUntil;
  }

  private readonly strayedAt = new Map<Run, number>();

  /** Who runs a task without its lease must notice. */
  private async checkLeases(): Promise<void> {
    const now = this.clock.now();
    const leases = await this.leases();
    for (const run of this.runs) {
      const isOwner = leases.get(run.key)?.owner === run.process.name;
      if (isOwner || !this.isAnswerable(run.process)) {
        this.strayedAt.delete(run);
        continue;
      }
      const at = this.strayedAt.get(run) ?? now;
      this.strayedAt.set(run, at);
      if (now - at > POLL_MS + this.stopMsMax + 8 * CALL_MS_MAX + 50) {
        this.breach(`${run.process.name} runs ${run.key} without its lease`);
      }
    }
  }

  private note(process: Process, what: string): void {
    this.trace.push(`${this.clock.now().toFixed(3)} ${process.name} ${what}`);
  }

  private breach(what: string): void {
    if (this.breaches.length < 5) this.breaches.push(`${this.clock.now().toFixed(0)} ms: ${what}`);
  }
}

export function workers(count: number): TaskSpec[] {
  return Array.from({ length: count }, (_, at) => ({
    key: `g.worker.1.${at}`,
    role: 'worker',
    name: `worker ${at} of g`,
  }));
}
