/**
 * One schedule: a cluster, a graph, faults, all drawn from one seed. First safety: faults strike while edges stream in,
 * and the checkers look on. Then liveness: the faults stop, and everything must come to rest at the end of the log.
 */

import { newestGeneration } from '../../../libs/dataflow/graph-config.ts';
import { INSTANCES_BUCKET, LEASES_BUCKET, rejectedLog } from '../../../libs/dataflow/names.ts';
import type { LogMessage } from '../../../libs/stage/ports.ts';
import { EdgesChecker } from './checkers/edges.ts';
import { LogsChecker } from './checkers/logs.ts';
import { PositionsChecker } from './checkers/positions.ts';
import { PrefixChecker } from './checkers/prefix.ts';
import { PurgesChecker } from './checkers/purges.ts';
import { Records } from './checkers/records.ts';
import { RestChecker } from './checkers/rest.ts';
import { SnapshotsChecker } from './checkers/snapshots.ts';
import { FAULTS, type Fault, heal, loseEdges, rebuild, startMissing } from './faults.ts';
import { type Random, randomOf } from './random.ts';
import { World, type WorldOptions } from './world.ts';

export interface Outcome {
  readonly seed: number;
  readonly options: WorldOptions;
  readonly faults: readonly string[];
  /** Empty: all held. */
  readonly breaches: readonly string[];
  readonly trace: readonly string[];
  readonly counts: Counts;
}

/** What a schedule did, so that a run can show that it did something. */
export interface Counts {
  readonly messages: number;
  readonly strikes: Readonly<Record<string, number>>;
  readonly snapshots: number;
  readonly generations: number;
  readonly virtualMs: number;
}

/** How often a fault is part of a schedule: few faults at a time find what many drown. */
const FAULT_SHARES = [0.08, 0.15, 0.15, 0.3];
/** How many schedules are about EDGES itself: there nothing may heal, but all must be named. */
const EDGES_LOST_SHARE = 0.04;
const STRIKE_MS_MIN = 500;
const STRIKE_MS_MAX = 5_000;
const REST_POLL_MS = 250;
const FULL_CHECK_EVERY = 8;
/** Back-offs of tasks whose owners died again and again included. */
const REST_MS_MAX = 20 * 60_000;
const EDGES_LOST = 'EDGES lost';
/** Within this a stage that holds what EDGES has lost must say so. */
const NAMED_MS = 30_000;
/** A graph that is not at the end of its log by then may have lost what only a rebuilding brings back. */
const OPERATOR_MS = 60_000;

export async function runSchedule(seed: number, isTraced = false): Promise<Outcome> {
  const random = randomOf(seed);
  const options = drawOptions(random, isTraced);
  const losesEdges = random.chance(EDGES_LOST_SHARE);
  const share = random.of(FAULT_SHARES);
  const faults = losesEdges ? [] : FAULTS.filter(() => random.chance(share));
  // Where chunks are lost and EDGES is purged behind snapshots, nothing may be left to go on from, and all say so.
  const purgeEdges = options.graph.purgeEdges === true && !faults.some(({ losesChunks }) => losesChunks);
  const world = new World(random, { ...options, graph: { ...options.graph, purgeEdges } });
  const schedule = new Schedule(world, faults);
  try {
    if (losesEdges) await schedule.runLosingEdges();
    else await schedule.run();
  } catch (error) {
    world.breach(`the schedule failed: ${error instanceof Error ? error.stack : String(error)}`);
  }
  return {
    seed,
    options,
    faults: losesEdges ? [EDGES_LOST] : faults.map(({ name }) => name),
    breaches: world.breaches,
    trace: world.trace.lines,
    counts: schedule.counts,
  };
}

function drawOptions(random: Random, isTraced: boolean): WorldOptions {
  const keep = 2 + random.below(2);
  return {
    instances: random.of([1, 2, 2, 2, 2, 3, 3, 4]),
    leaseMs: 1_000 + random.below(1_000),
    pollMs: 250 + random.below(200),
    graph: {
      partitions: random.of([1, 1, 1, 2, 2, 2, 3, 3, 6]),
      snapshots: { interval: random.of([0, 1, 1, 2, 3]), keep },
      purgeEdges: random.chance(0.1),
    },
    publisher: {
      vertices: random.of([8, 20, 60]),
      messages: 4 + random.below(22),
      pauseMs: random.of([5, 60, 200, 400]),
      rejectRate: random.of([0, 0.1]),
      repeatRate: random.of([0, 0.2]),
      numberedRate: random.of([0, 0.5, 1]),
      largest: random.chance(0.02) ? 1_500 : 0,
    },
    clockSkew: random.of([0, 0, 0.05]),
    isTraced,
  };
}

class Schedule {
  private readonly world: World;
  private readonly faults: readonly Fault[];
  private readonly records: Records;
  private readonly snapshots: SnapshotsChecker;
  private readonly purges: PurgesChecker;
  private isSafety = true;
  private readonly strikes: Record<string, number> = {};

  constructor(world: World, faults: readonly Fault[]) {
    this.world = world;
    this.faults = faults;
    this.records = new Records(this.breach);
    const { records } = this;
    const { oracle, chunks } = world;
    this.purges = new PurgesChecker(records, (stream) => world.bus.describe(stream), this.breach);
    this.snapshots = new SnapshotsChecker(
      {
        graphId: world.graphId,
        chunks,
        oracle,
        records,
        losesChunks: () => faults.some(({ losesChunks }) => losesChunks),
      },
      this.breach,
    );
  }

  get counts(): Counts {
    return {
      messages: this.world.oracle.sequence,
      strikes: this.strikes,
      snapshots: this.snapshots.restored,
      generations: this.records.config === undefined ? 0 : newestGeneration(this.records.config).generation,
      virtualMs: this.world.clock.now(),
    };
  }

  async run(): Promise<void> {
    await this.begin();
    for (const fault of this.faults) this.strikeOn(fault);
    await this.runFor(this.world.random.between(1_000, 5_000));
    if (this.world.breaches.length > 0) return;
    this.isSafety = false;
    heal(this.world);
    await this.comeToRest();
  }

  /**
   * EDGES loses its tail, or is made anew, when all stages are at its end. From then on no stage may go on, and every one
   * must say why.
   */
  async runLosingEdges(): Promise<void> {
    const { world } = this;
    await this.begin();
    await this.comeToRest(world.random.chance(0.5));
    if (world.breaches.length > 0) return;
    await loseEdges(world);
    this.struck(EDGES_LOST);
    await this.runFor(NAMED_MS);
    startMissing(world);
    await this.runFor(NAMED_MS);
    for (const seat of world.up) world.ask(seat);
    for (const { name, instance } of world.seats) {
      const view = instance?.graphs.reports.find(({ task }) => task.startsWith('view'));
      const code = view?.problem?.code ?? 'nothing';
      if (!code.startsWith('log-'))
        this.breach(`EDGES lost messages that the view of ${name} holds, and it says ${code}`);
    }
  }

  private async begin(): Promise<void> {
    const { world, records } = this;
    await world.begin([
      records,
      new LogsChecker(records, this.breach),
      new EdgesChecker(world.oracle, this.breach),
      new PositionsChecker(records, this.breach),
      new PrefixChecker(
        world.oracle,
        world.options.publisher.largest > 0 ? 1 : FULL_CHECK_EVERY,
        this.breach,
      ),
      this.snapshots,
      this.purges,
      new RestChecker(
        {
          oracle: world.oracle,
          acknowledged: world.publisher.acknowledged,
          edges: () => messagesOf(world, world.edges.stream),
          rejected: () => messagesOf(world, rejectedLog('g').stream),
        },
        this.breach,
      ),
    ]);
    this.askOn();
  }

  private readonly breach = (what: string): void => this.world.breach(what);

  private struck(fault: string): void {
    this.strikes[fault] = (this.strikes[fault] ?? 0) + 1;
  }

  /** Ends early when something is broken. */
  private async runFor(ms: number): Promise<void> {
    const { world } = this;
    const until = world.clock.now() + ms;
    while (world.clock.now() < until && world.breaches.length === 0) {
      await world.clock.run(Math.min(REST_POLL_MS, until - world.clock.now()));
    }
  }

  private strikeOn(fault: Fault): void {
    const { world } = this;
    const pauseMs = world.random.between(STRIKE_MS_MIN, STRIKE_MS_MAX);
    const again = (): void => {
      world.clock.after(pauseMs * 2 * world.random(), () => {
        if (!this.isSafety) return;
        this.struck(fault.name);
        void Promise.resolve(fault.strike(world)).catch((error: unknown) =>
          this.breach(`${fault.name}: ${error}`),
        );
        again();
      });
    };
    again();
  }

  /** Clients ask a view now and then. */
  private askOn(): void {
    const { world } = this;
    world.clock.after(1_000 * world.random(), () => {
      const { up } = world;
      if (up.length > 0) world.ask(world.random.of(up));
      this.askOn();
    });
  }

  private async comeToRest(asksSnapshot = true): Promise<void> {
    const { world } = this;
    const healedAt = world.clock.now();
    let request: string | undefined;
    let askedAt = healedAt;
    let operatedAt = healedAt;
    let missing = '';
    while (world.clock.now() < healedAt + REST_MS_MAX) {
      await this.runFor(REST_POLL_MS);
      if (world.breaches.length > 0) return;
      startMissing(world);
      missing = await this.missing(request);
      if (missing === '' && (request !== undefined || !asksSnapshot)) {
        await this.runFor(REST_POLL_MS);
        for (const seat of world.up) world.ask(seat);
        await world.rest();
        return;
      }
      const now = world.clock.now();
      const isVain = request !== undefined && now > askedAt + OPERATOR_MS;
      if (isVain && !this.isTampered) {
        this.breach(`who asked for snapshot ${request} waits in vain: ${missing}`);
        return;
      }
      if (missing === '' || isVain || this.isGivenUp(request)) {
        askedAt = now;
        request = await world.askSnapshot(undefined);
      }
      if (now > operatedAt + OPERATOR_MS && this.needsRebuilding()) {
        operatedAt = now;
        request = undefined;
        world.trace.note('operator', `sees that ${missing}`);
        await rebuild(world);
      }
    }
    this.breach(`it does not come to rest: ${missing}`);
  }

  /** What is not yet as it should be at rest. */
  private async missing(request: string | undefined): Promise<string> {
    const { world } = this;
    if (!world.publisher.isDone) return 'the publisher has not ended';
    const { sequence } = world.oracle;
    for (const { name, instance } of world.seats) {
      const at = instance?.view?.sequence;
      if (at !== sequence) return `the view of ${name} is at ${at} of ${sequence} (${this.problems()})`;
    }
    const config = await world.config();
    if (newestGeneration(config).partitions !== config.partitions) {
      return `there are ${newestGeneration(config).partitions} partitions instead of ${config.partitions}`;
    }
    const unowned = await this.unowned();
    if (unowned !== undefined) return unowned;
    if (request === undefined) return '';
    const isThere = [...this.records.verified].some(
      (barrier) => this.records.manifests.get(barrier)?.request === request,
    );
    return isThere ? '' : `the snapshot ${request} is not there (${this.problems()})`;
  }

  /** Whether a newer barrier has become a snapshot: then who asked for this one is told so, and asks again. */
  private isGivenUp(request: string | undefined): boolean {
    const { barriers, verified } = this.records;
    if (request === undefined) return false;
    const barrier = [...barriers.values()].findLast((known) => known.request === request)?.barrier;
    return barrier !== undefined && [...verified].some((newer) => newer > barrier);
  }

  /** A task that is not run by exactly the one whom its lease names. */
  private async unowned(): Promise<string | undefined> {
    const { world } = this;
    const runs = new Map<string, string[]>();
    const tasks = new Set(world.seats[0]!.instance!.graphs.specs.map(({ key }) => key));
    for (const { name, instance } of world.seats) {
      for (const key of instance?.member.owned.keys() ?? []) runs.set(key, [...(runs.get(key) ?? []), name]);
    }
    for (const { key, value } of await world.kv.list(LEASES_BUCKET, '')) {
      // Of a task that is given up, nobody may be there to remove it.
      if (!tasks.has(key)) continue;
      const { owner } = JSON.parse(value) as { owner: string | null };
      const names = runs.get(key) ?? [];
      if (owner === null || String(names) !== owner)
        return `${key} is run by ${names.join(' and ')}, leased by ${owner}`;
      runs.delete(key);
    }
    for (const [key, names] of runs) return `${key} is run by ${names} without a lease`;
    const records = await world.kv.list(INSTANCES_BUCKET, '');
    return records.length === world.seats.length ? undefined : `${records.length} instances have a record`;
  }

  private problems(): string {
    return this.world.seats
      .flatMap(({ name, instance }) =>
        (instance?.graphs.reports ?? []).flatMap(({ task, problem }) =>
          problem === undefined ? [] : [`${name} ${task}: ${problem.code} ${problem.message}`],
        ),
      )
      .join('; ');
  }

  /** Faults change PARTS and FOREST: then workers may be beyond the place of a barrier that is recorded afterwards. */
  private get isTampered(): boolean {
    return this.faults.some(({ isTampering }) => isTampering);
  }

  /** Where a fault took what only EDGES can bring back, and a task says so. */
  private needsRebuilding(): boolean {
    const isTaken = this.faults.some(({ isTaking }) => isTaking);
    // What the stages have given up behind snapshots they cannot make again.
    const isGivenUp = this.purges.count > 0 || this.counts.generations > 1;
    const codes = this.world.seats.flatMap(({ instance }) =>
      (instance?.graphs.reports ?? []).map(({ problem }) => problem?.code),
    );
    if (!codes.some((code) => code === 'state-missing' || code?.startsWith('log-'))) return false;
    return isTaken || (this.isTampered && isGivenUp);
  }
}

async function messagesOf(world: World, stream: string): Promise<LogMessage[]> {
  const { first, last } = (await world.bus.describe(stream))!;
  const messages: LogMessage[] = [];
  for (let sequence = first; sequence <= last; sequence++)
    messages.push((await world.bus.message(stream, sequence))!);
  return messages;
}
