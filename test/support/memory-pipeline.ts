/**
 * The whole pipeline in one process: the real cores in the real stage runtime, on the in-memory bus, records, chunks
 * and disks. Any of its tasks can be killed, in the middle of whatever it does, and started again. As instances do, it
 * follows the graph's record: workers of new generations are started, those of generations given up stopped.
 */
import { MemoryBus } from '../../libs/bus/memory-bus.ts';
import { MemoryKv } from '../../libs/bus/memory-kv.ts';
import { Registry } from '../../libs/bus/registry.ts';
import { type GraphConfig, type GraphWish, newGraphConfig } from '../../libs/dataflow/graph-config.ts';
import { edgesLog, edgesSubjects, type LogName } from '../../libs/dataflow/names.ts';
import { SnapshotRecords } from '../../libs/snapshot/records.ts';
import type { SnapshotHost } from '../../libs/snapshot/task-snapshots.ts';
import type { Bus, Clock, Log, ProducerHeaders } from '../../libs/stage/ports.ts';
import type { StageCore } from '../../libs/stage/stage-core.ts';
import type { StageHost, StageTask } from '../../libs/stage/stage-task.ts';
import { MemoryChunks } from '../../libs/store/memory-chunks.ts';
import { MemoryDisk } from '../../libs/store/memory-store.ts';
import { LiveGraph } from '../../services/cli/live-graph.ts';
import { GraphHost } from '../../services/gateway/graph-host.ts';
import type { View } from '../../services/gateway/view.ts';
import { PartitionerTask } from '../../services/partitioner/task.ts';
import { workerTask } from '../../services/worker/task.ts';

const POLL_MS = 10;

const quiet: Log = { info() {}, warn() {}, error() {} };

export const realClock: Clock = {
  now: () => performance.now(),
  sleep: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
  after: (ms, then) => {
    const timer = setTimeout(then, ms);
    return () => clearTimeout(timer);
  },
  yield: () => new Promise((resolve) => setImmediate(resolve)),
};

/** Time that passes faster. */
function hasty(clock: Clock, haste: number): Clock {
  return {
    now: () => clock.now() * haste,
    sleep: (ms) => clock.sleep(ms / haste),
    after: (ms, then) => clock.after(ms / haste, then),
    yield: () => clock.yield(),
  };
}

/** What a killed process does at its next step: nothing, for ever. */
const never = (): Promise<never> => new Promise(() => {});

export type PortName = 'bus' | 'kv' | 'chunks' | 'disk';

/** A call that a process makes to the world outside: before it has an effect, or after it had. */
export interface Step {
  readonly stage: StageName;
  readonly moment: 'before' | 'after';
  readonly port: PortName;
  readonly call: string;
  /** The call's first argument, and its second. */
  readonly about: readonly unknown[];
}

/** A process of a task: it can be killed at any call it makes. */
class Life {
  private killed = false;
  private readonly stage: StageName;
  private readonly onKill: () => void;
  private readonly onStep: (step: Step) => void;

  constructor(stage: StageName, onKill: () => void, onStep: (step: Step) => void) {
    this.stage = stage;
    this.onKill = onKill;
    this.onStep = onStep;
  }

  get dead(): boolean {
    return this.killed;
  }

  kill(): void {
    if (this.killed) return;
    this.killed = true;
    this.onKill();
  }

  clock(clock: Clock): Clock {
    return {
      now: () => clock.now(),
      sleep: (ms) => this.unlessDead(() => clock.sleep(ms)),
      after: (ms, then) =>
        clock.after(ms, () => {
          if (!this.killed) then();
        }),
      yield: () => this.unlessDead(() => clock.yield()),
    };
  }

  bus(bus: Bus): Bus {
    const guarded = this.port('bus', bus);
    return new Proxy(guarded, {
      get: (target, name) =>
        name === 'read'
          ? async (stream: string, from: number) => this.port('bus', await target.read(stream, from))
          : (Reflect.get(target, name) as unknown),
    });
  }

  /** The port as this process has it. */
  port<Port extends object>(name: PortName, port: Port): Port {
    return new Proxy(port, {
      get: (target, call) => {
        const member: unknown = Reflect.get(target, call);
        if (typeof member !== 'function' || typeof call !== 'string') return member;
        // The one call that gives no promise.
        if (call === 'entries') return (...args: unknown[]) => this.entries(() => member.apply(target, args));
        return async (...args: unknown[]) => {
          const step = { stage: this.stage, port: name, call, about: args.slice(0, 2) };
          return await this.unlessDead(async () => {
            this.onStep({ ...step, moment: 'before' });
            if (this.killed) return await never();
            const result: unknown = await member.apply(target, args);
            if (!this.killed) this.onStep({ ...step, moment: 'after' });
            return result;
          });
        };
      },
    });
  }

  private async *entries(make: () => AsyncIterable<unknown>): AsyncIterable<unknown> {
    if (this.killed) await never();
    yield* make();
  }

  private async unlessDead<T>(make: () => Promise<T>): Promise<T> {
    if (this.killed) return await never();
    try {
      const result = await make();
      return this.killed ? await never() : result;
    } catch (error) {
      if (this.killed) return await never();
      throw error;
    }
  }
}

/** What a task has on disk: a store for each folder. */
class TaskDisk {
  private readonly folders = new Map<string, MemoryDisk>();
  /** Called before each write; throwing makes the write fail and the handle dead. */
  beforeWrite: () => void = () => {};

  folder(name: string): MemoryDisk {
    let disk = this.folders.get(name);
    if (disk === undefined) {
      disk = new MemoryDisk();
      disk.beforeWrite = () => this.beforeWrite();
      this.folders.set(name, disk);
    }
    return disk;
  }

  /** The process that held the handles is gone. */
  release(): void {
    for (const disk of this.folders.values()) disk.release();
  }

  /** All is gone. */
  lose(): void {
    for (const disk of this.folders.values()) disk.lose();
  }

  powerCut(survives: (write: number) => boolean): void {
    for (const disk of this.folders.values()) disk.powerCut(survives);
  }

  flip(value: number, bit: number): void {
    for (const disk of this.folders.values()) disk.flip(value, bit);
  }
}

/** Workers of the first generation go by their partition, others by generation and partition. */
export type StageName = 'partitioner' | 'view' | `worker-${number}` | `worker-${number}-${number}`;

/** What `task` gives: a stage's task whatever its core. */
export type AnyStage = Pick<
  StageTask<StageCore>,
  'options' | 'state' | 'problem' | 'core' | 'fenced' | 'healed' | 'stop'
>;

interface Run {
  readonly life: Life;
  readonly graph: LiveGraph;
  readonly task: AnyStage;
  stop(): Promise<void>;
}

export interface MemoryPipelineOptions {
  readonly log?: Log;
  readonly wish?: GraphWish;
  /** How many times faster than the clock the tasks' time passes: they wait that much less. */
  readonly haste?: number;
}

export class MemoryPipeline {
  readonly bus: MemoryBus;
  readonly kv = new MemoryKv();
  readonly chunks = new MemoryChunks(realClock);
  readonly registry = new Registry(this.kv);
  readonly records: SnapshotRecords;
  readonly disks = new Map<StageName, TaskDisk>();
  readonly log: Log;
  private readonly clock: Clock;
  /** Told of each call of a process to bus, records, chunks and disk; may kill it. */
  onStep: (step: Step) => void = () => {};
  /** Asked by each view whether it stores its state at the barriers. */
  storesView = (): boolean => true;
  private readonly graph: LiveGraph;
  private readonly runs = new Map<StageName, Run>();
  /** Runs whose stage was started again beside them. */
  private readonly rivals: Run[] = [];
  private host: GraphHost | undefined;
  private time = 1_700_000_000_000_000_000n;
  private followed: Promise<void> | undefined;
  private isStopping = false;

  constructor(partitions: number, { log = quiet, wish = {}, haste = 1 }: MemoryPipelineOptions = {}) {
    this.log = log;
    this.clock = hasty(realClock, haste);
    // Messages arrive a millisecond apart, so that the arrival times are the same in every run.
    this.bus = new MemoryBus(() => {
      this.time += 1_000_000n;
      return this.time;
    }, realClock);
    const config = newGraphConfig(
      { name: 'g', id: '0123456789abcdef0123456789abcdef', created: '' },
      { snapshots: { interval: 0, keep: 2 }, ...wish, partitions },
    );
    this.graph = new LiveGraph(config, this.registry);
    this.records = new SnapshotRecords(this.kv, config.id);
  }

  get config(): GraphConfig {
    return this.graph.config;
  }

  get stages(): StageName[] {
    const workers = this.config.generations.flatMap(({ generation, partitions }) =>
      Array.from({ length: partitions }, (_, partition) => workerStage(generation, partition)),
    );
    return ['partitioner', ...workers, 'view'];
  }

  get edges(): LogName {
    return edgesLog(this.config.name);
  }

  get view(): View | undefined {
    return this.host?.view;
  }

  task(stage: StageName): AnyStage {
    return this.runs.get(stage)!.task;
  }

  async createEdges(): Promise<void> {
    const options = { subjects: edgesSubjects(this.config.name), discard: 'new', denyDelete: true } as const;
    await this.bus.create(this.edges.stream, options);
    await this.registry.createGraph(this.config);
  }

  async publish(
    payload: string | Uint8Array,
    contentType?: string,
    producer?: ProducerHeaders,
  ): Promise<number> {
    const bytes = typeof payload === 'string' ? new TextEncoder().encode(payload) : payload;
    const appended = await this.bus.append(this.edges, bytes, {
      ...(contentType === undefined ? {} : { contentType }),
      ...(producer === undefined ? {} : { producer }),
    });
    if (appended.kind !== 'stored') throw new Error(appended.kind);
    return appended.sequence;
  }

  /** As a person does who changes a graph. */
  async change(wish: { readonly partitions: number }): Promise<void> {
    for (;;) {
      const config = await this.graph.read();
      if (await this.graph.update(config, { ...config, ...wish })) return;
    }
  }

  /** Without names: all, and those of later generations as they come. */
  start(...stages: StageName[]): void {
    this.isStopping = false;
    for (const stage of stages.length === 0 ? this.stages : stages) this.startStage(stage);
    this.followed ??= this.follow();
  }

  /** The process is gone at once; what it had not finished never happens. */
  kill(stage: StageName): void {
    this.runs.get(stage)?.life.kill();
    if (stage === 'view') this.host = undefined;
  }

  isDead(stage: StageName): boolean {
    return this.runs.get(stage)?.life.dead ?? true;
  }

  async stop(): Promise<void> {
    this.isStopping = true;
    await this.followed;
    this.followed = undefined;
    const runs = [...this.runs.values(), ...this.rivals.splice(0)];
    await Promise.all(runs.map(({ life, stop }) => (life.dead ? undefined : stop())));
  }

  /** Waits until the view holds all through `sequence`. */
  async visible(sequence: number, timeoutMs = 20_000): Promise<View> {
    const until = performance.now() + timeoutMs;
    while (performance.now() < until) {
      const { host } = this;
      if (host !== undefined && (await host.waitFor(sequence, 50)) && host.view !== undefined)
        return host.view;
      await realClock.sleep(1);
    }
    throw new Error(`the view is at ${this.view?.sequence}, not at ${sequence}; ${this.problems}`);
  }

  /** For people: what each task says is wrong. */
  get problems(): string {
    return [...this.runs]
      .map(([stage, { life, task }]) => {
        const says = task.problem === undefined ? 'well' : `${task.problem.code} ${task.problem.message}`;
        return `${stage}: ${life.dead ? 'dead' : `${task.state}, ${says}`}`;
      })
      .join('; ');
  }

  /** What a reader finds who waits for `sequence`, once. */
  async waitFor(sequence: number, timeoutMs: number): Promise<View | undefined> {
    await this.host!.waitFor(sequence, timeoutMs);
    return this.view;
  }

  disk(stage: StageName): TaskDisk {
    let disk = this.disks.get(stage);
    if (disk === undefined) {
      disk = new TaskDisk();
      this.disks.set(stage, disk);
    }
    return disk;
  }

  /** Reads the graph's record as every process does, and acts on it. */
  private async follow(): Promise<void> {
    while (!this.isStopping) {
      await realClock.sleep(POLL_MS);
      if (this.isStopping) return;
      const before = new Set(this.stages);
      await this.graph.read().catch(() => {});
      for (const { life, graph } of [...this.runs.values(), ...this.rivals]) {
        if (!life.dead) void graph.read().catch(() => {});
      }
      const now = new Set(this.stages);
      for (const stage of now) if (!before.has(stage)) this.startStage(stage);
      for (const stage of before) {
        const run = this.runs.get(stage);
        if (now.has(stage) || run === undefined) continue;
        this.runs.delete(stage);
        this.disks.delete(stage);
        if (!run.life.dead) await run.stop();
      }
    }
  }

  private startStage(stage: StageName): void {
    const disk = this.disk(stage);
    const earlier = this.runs.get(stage);
    if (earlier !== undefined && !earlier.life.dead && earlier.task.state !== 'stopped')
      this.rivals.push(earlier);
    const life = new Life(
      stage,
      () => disk.release(),
      (step) => this.onStep(step),
    );
    const clock = life.clock(this.clock);
    const kv = life.port('kv', this.kv);
    const graph = new LiveGraph(this.config, new Registry(kv));
    const { origin } = this.config;
    const host: StageHost = {
      bus: life.bus(this.bus),
      openStore: async (folder) => life.port('disk', disk.folder(folder).openStore()),
      clock,
      log: this.log,
      isCurrent: async () => (await graph.read()).origin === origin,
    };
    const snapshots: SnapshotHost = {
      kv,
      chunks: life.port('chunks', this.chunks),
      clock,
      log: this.log,
      instance: `i-${stage}`,
    };
    this.runs.set(stage, { life, graph, ...this.startTask(stage, graph, snapshots, host) });
  }

  private startTask(
    stage: StageName,
    graph: LiveGraph,
    snapshots: SnapshotHost,
    host: StageHost,
  ): Pick<Run, 'task' | 'stop'> {
    if (stage === 'view') {
      const view = new GraphHost({
        graph,
        snapshots,
        storesView: () => this.storesView(),
        stage: host,
        visible: () => {},
      });
      this.host = view;
      view.task.start();
      return { task: view.task as unknown as AnyStage, stop: () => view.stop() };
    }
    if (stage === 'partitioner') {
      const task = new PartitionerTask(graph, snapshots, host);
      task.start();
      return { task: task.stage as unknown as AnyStage, stop: () => task.stop() };
    }
    const numbers = stage.split('-').slice(1).map(Number);
    const [number, partition] = numbers.length === 1 ? [1, numbers[0]!] : [numbers[0]!, numbers[1]!];
    const generation = this.config.generations.find((one) => one.generation === number)!;
    const task = workerTask(graph, generation, partition, snapshots, host);
    task.start();
    return { task: task as unknown as AnyStage, stop: () => task.stop() };
  }
}

function workerStage(generation: number, partition: number): StageName {
  return generation === 1 ? `worker-${partition}` : `worker-${generation}-${partition}`;
}
