/**
 * The whole pipeline in one process: the real cores in the real stage runtime, on the in-memory bus and
 * disks. Any of its tasks can be killed, in the middle of whatever it does, and started again.
 */
import { MemoryBus } from '../../libs/bus/memory-bus.ts';
import type { GraphConfig } from '../../libs/bus/registry.ts';
import { edgesLog, edgesSubjects, type LogName } from '../../libs/dataflow/names.ts';
import type { Bus, Clock, Log, Store } from '../../libs/stage/ports.ts';
import type { StageCore } from '../../libs/stage/stage-core.ts';
import type { StageTask } from '../../libs/stage/stage-task.ts';
import { MemoryDisk } from '../../libs/store/memory-store.ts';
import { GraphHost } from '../../services/gateway/graph-host.ts';
import type { View } from '../../services/gateway/view.ts';
import { partitionerTask } from '../../services/partitioner/task.ts';
import { workerTask } from '../../services/worker/task.ts';

const quiet: Log = { info() {}, warn() {}, error() {} };

export const realClock: Clock = {
  now: () => performance.now(),
  sleep: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
  yield: () => new Promise((resolve) => setImmediate(resolve)),
};

/** What a killed process does at its next step: nothing, for ever. */
const never = (): Promise<never> => new Promise(() => {});

/** A process of a task: it can be killed at any call it makes. */
class Life {
  private killed = false;
  private readonly onKill: () => void;

  constructor(onKill: () => void) {
    this.onKill = onKill;
  }

  get dead(): boolean {
    return this.killed;
  }

  kill(): void {
    this.killed = true;
    this.onKill();
  }

  bus(bus: Bus): Bus {
    return {
      describe: (stream) => this.call(() => bus.describe(stream)),
      message: (stream, sequence) => this.call(() => bus.message(stream, sequence)),
      append: (log, payload, options) => this.call(() => bus.append(log, payload, options)),
      create: (stream, options) => this.call(() => bus.create(stream, options)),
      remove: (stream) => this.call(() => bus.remove(stream)),
      read: async (stream, from) => {
        const reader = await this.call(() => bus.read(stream, from));
        return {
          next: (waitMs) => this.call(() => reader.next(waitMs)),
          close: () => this.call(() => reader.close()),
        };
      },
    };
  }

  store(store: Store): Store {
    const life = this;
    return {
      get: (key) => this.call(() => store.get(key)),
      async *entries(from, to) {
        if (life.killed) await never();
        yield* store.entries(from, to);
      },
      write: (puts, deletes, sync) => this.call(() => store.write(puts, deletes, sync)),
      close: () => this.call(() => store.close()),
    };
  }

  private async call<T>(make: () => Promise<T>): Promise<T> {
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

export type StageName = 'partitioner' | 'view' | `worker-${number}`;

export class MemoryPipeline {
  readonly bus: MemoryBus;
  readonly config: GraphConfig;
  readonly disks = new Map<StageName, MemoryDisk>();
  readonly log: Log;
  private readonly lives = new Map<StageName, Life>();
  private readonly tasks = new Map<StageName, StageTask<StageCore>>();
  private host: GraphHost | undefined;
  private time = 1_700_000_000_000_000_000n;

  constructor(partitions: number, log: Log = quiet) {
    this.log = log;
    // Messages arrive a millisecond apart, so that the arrival times are the same in every run.
    this.bus = new MemoryBus(() => {
      this.time += 1_000_000n;
      return this.time;
    });
    this.config = {
      name: 'g',
      id: '0123456789abcdef0123456789abcdef',
      generation: 1,
      partitions,
      created: '',
    };
  }

  get stages(): StageName[] {
    return [
      'partitioner',
      ...Array.from({ length: this.config.partitions }, (_, p): StageName => `worker-${p}`),
      'view',
    ];
  }

  get edges(): LogName {
    return edgesLog(this.config.name);
  }

  get view(): View | undefined {
    return this.host?.view;
  }

  task(stage: StageName): StageTask<StageCore> {
    return this.tasks.get(stage)!;
  }

  async createEdges(): Promise<void> {
    const options = { subjects: edgesSubjects(this.config.name), discard: 'new', denyDelete: true } as const;
    await this.bus.create(this.edges.stream, options);
  }

  async publish(payload: string | Uint8Array, contentType?: string): Promise<number> {
    const bytes = typeof payload === 'string' ? new TextEncoder().encode(payload) : payload;
    const appended = await this.bus.append(
      this.edges,
      bytes,
      contentType === undefined ? {} : { contentType },
    );
    if (appended.kind !== 'stored') throw new Error(appended.kind);
    return appended.sequence;
  }

  start(...stages: StageName[]): void {
    for (const stage of stages.length === 0 ? this.stages : stages) this.startStage(stage);
  }

  /** The process is gone at once; what it had not finished never happens. */
  kill(stage: StageName): void {
    this.lives.get(stage)?.kill();
    if (stage === 'view') this.host = undefined;
  }

  isDead(stage: StageName): boolean {
    return this.lives.get(stage)?.dead ?? true;
  }

  async stop(): Promise<void> {
    for (const stage of this.stages) {
      if (this.isDead(stage)) continue;
      if (stage === 'view') await this.host?.stop();
      else await this.tasks.get(stage)?.stop();
    }
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
    const problems = this.stages.map(
      (stage) => `${stage}: ${this.tasks.get(stage)?.problem?.message ?? 'well'}`,
    );
    throw new Error(`the view is at ${this.view?.sequence}, not at ${sequence}; ${problems.join('; ')}`);
  }

  /** What a reader finds who waits for `sequence`, once. */
  async waitFor(sequence: number, timeoutMs: number): Promise<View | undefined> {
    await this.host!.waitFor(sequence, timeoutMs);
    return this.view;
  }

  disk(stage: StageName): MemoryDisk {
    let disk = this.disks.get(stage);
    if (disk === undefined) {
      disk = new MemoryDisk();
      this.disks.set(stage, disk);
    }
    return disk;
  }

  private startStage(stage: StageName): void {
    const disk = this.disk(stage);
    const life = new Life(() => disk.release());
    this.lives.set(stage, life);
    const host = {
      bus: life.bus(this.bus),
      openStore: async () => life.store(disk.openStore()),
      clock: realClock,
      log: this.log,
      isCurrent: async () => true,
    };
    if (stage === 'view') {
      this.host = new GraphHost({ config: this.config, stage: host, visible: () => {} });
      this.tasks.set(stage, this.host.task as StageTask<StageCore>);
    } else if (stage === 'partitioner') {
      this.tasks.set(stage, partitionerTask(this.config, host) as StageTask<StageCore>);
    } else {
      this.tasks.set(stage, workerTask(this.config, Number(stage.slice(7)), host) as StageTask<StageCore>);
    }
    this.tasks.get(stage)!.start();
  }
}
