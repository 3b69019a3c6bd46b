/**
 * The simulated cluster: servers, instances with their disks, a publisher, and the checkers that watch over them.
 *
 * Everything in it happens on one virtual clock and is drawn from one seed, so a seed is a schedule: the same one
 * every time.
 */
import { createLogs } from '../../../libs/bus/graphs.ts';
import { MemoryBus } from '../../../libs/bus/memory-bus.ts';
import { MemoryKv } from '../../../libs/bus/memory-kv.ts';
import { Registry } from '../../../libs/bus/registry.ts';
import { type GraphConfig, type GraphWish, newGraphConfig } from '../../../libs/dataflow/graph-config.ts';
import { edgesLog, GRAPHS_BUCKET, SNAPSHOTS_BUCKET } from '../../../libs/dataflow/names.ts';
import { SnapshotRecords } from '../../../libs/snapshot/records.ts';
import type { Bus, Chunks, Kv } from '../../../libs/stage/ports.ts';
import { MemoryChunks } from '../../../libs/store/memory-chunks.ts';
import { MemoryDisk } from '../../../libs/store/memory-store.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';
import type { Checker } from './checkers/checker.ts';
import { type Disks, Instance } from './instance.ts';
import { Network } from './network.ts';
import { Oracle } from './oracle.ts';
import { Process, type Surroundings } from './process.ts';
import { Publisher, type PublisherOptions } from './publisher.ts';
import type { Random } from './random.ts';
import { Trace } from './trace.ts';

const GRAPH = 'g';
const GRAPH_ID = '0123456789abcdef0123456789abcdef';
const STARTED = 1_700_000_000_000_000_000n;

export interface WorldOptions {
  readonly instances: number;
  readonly leaseMs: number;
  readonly pollMs: number;
  readonly graph: GraphWish & { readonly partitions: number };
  readonly publisher: Omit<PublisherOptions, 'edges'>;
  /** How much the clocks of two instances may differ in speed, as a share. */
  readonly clockSkew: number;
  readonly isTraced: boolean;
}

/** Where an instance runs: its name and its disks, and the process if one is there. */
export interface Seat {
  readonly name: string;
  readonly disks: Disks;
  instance: Instance | undefined;
}

/** How often a write to a disk fails, and how often LevelDB begins a new log. */
export interface DiskRates {
  writeFails: number;
  logSwitches: number;
}

export class World {
  readonly options: WorldOptions;
  readonly random: Random;
  readonly clock: VirtualClock;
  readonly network: Network;
  readonly bus: MemoryBus;
  readonly kv = new MemoryKv();
  readonly chunks: MemoryChunks;
  readonly oracle = new Oracle();
  readonly trace: Trace;
  readonly seats: Seat[] = [];
  readonly publisher: Publisher;
  readonly registry: Registry;
  readonly records: SnapshotRecords;
  readonly edges = edgesLog(GRAPH);
  readonly diskRates: DiskRates = { writeFails: 0, logSwitches: 0 };
  /** What was found to be broken. */
  readonly breaches: string[] = [];
  readonly graphId = GRAPH_ID;
  /** EDGES is not the log that was counted: what it gets from now on must not count. */
  areEdgesLost = false;
  private requests = 0;
  private readonly around: Surroundings;
  private checkers: readonly Checker[] = [];
  private incarnations = 0;

  constructor(random: Random, options: WorldOptions) {
    this.options = options;
    this.random = random;
    this.clock = new VirtualClock(random);
    this.trace = new Trace(options.isTraced, () => this.clock.now());
    this.network = new Network(this.clock, random);
    // No two messages or logs are of one time.
    let messages = 0n;
    this.bus = new MemoryBus(
      () => STARTED + BigInt(Math.floor(this.clock.now() * 1_000)) * 1_000n + messages++,
      this.clock,
    );
    this.chunks = new MemoryChunks(this.clock);
    this.registry = new Registry(this.kv);
    this.records = new SnapshotRecords(this.kv, GRAPH_ID);
    const { clock, network } = this;
    this.around = {
      clock,
      random,
      network,
      bus: this.watchedBus(),
      kv: this.watchedKv(),
      chunks: this.chunks satisfies Chunks,
    };
    this.publisher = new Publisher(
      { ...options.publisher, edges: this.edges },
      new Process('publisher', this.around, 1),
      random,
    );
  }

  /** Makes the graph and the instances; `checkers` watch from here on. */
  async begin(checkers: readonly Checker[]): Promise<void> {
    this.checkers = checkers;
    const { graph, instances } = this.options;
    const config = newGraphConfig({ name: GRAPH, id: GRAPH_ID, created: '' }, graph);
    await createLogs(this.bus, config);
    await new Registry(this.around.kv).createGraph(config);
    for (let at = 0; at < instances; at++) {
      const seat: Seat = { name: `i${at}`, disks: new Map(), instance: undefined };
      this.seats.push(seat);
      this.start(seat);
    }
    void this.publisher.run();
  }

  async config(): Promise<GraphConfig> {
    return (await this.registry.graph(GRAPH))!.config;
  }

  /** As somebody who changes the graph's record. */
  async change(what: (config: GraphConfig) => GraphConfig): Promise<GraphConfig> {
    const { config, revision } = (await this.registry.graph(GRAPH))!;
    const changed = what(config);
    await new Registry(this.around.kv).updateGraph(changed, revision);
    return changed;
  }

  /** Publishes so many edges at once. */
  async publish(messages: number): Promise<void> {
    for (let message = 0; message < messages; message++) {
      const payload = new TextEncoder().encode(
        JSON.stringify({ source: `x${message}`, target: `y${message}` }),
      );
      await this.around.bus.append(this.edges, payload, {});
    }
  }

  /** As somebody who asks for a snapshot; gives the request's id. */
  async askSnapshot(name: string | undefined): Promise<string> {
    const request = `r${this.requests++}`;
    this.trace.note('operator', `asks for snapshot ${request}`, { name });
    await this.records.create('request', request, name === undefined ? {} : { name });
    return request;
  }

  start(seat: Seat): void {
    const { clockSkew, leaseMs, pollMs } = this.options;
    const { random } = this;
    const process = new Process(seat.name, this.around, 1 + random.between(-clockSkew, clockSkew));
    seat.instance = new Instance(process, {
      incarnation: `${seat.name}#${this.incarnations++}`,
      leaseMs,
      pollMs,
      log: this.trace.logOf(seat.name),
      disks: seat.disks,
      newDisk: (task) => this.newDisk(task, seat.name),
      advanced: (view) => {
        for (const checker of this.checkers) checker.advanced?.(view, seat.name);
      },
    });
    this.trace.note(seat.name, 'starts');
    seat.instance.start();
  }

  /** The process is gone at once. */
  kill(seat: Seat): void {
    this.trace.note(seat.name, 'is killed');
    seat.instance?.process.kill();
    seat.instance = undefined;
  }

  /** The machine loses its power, and with it writes that were not synced. */
  cutPower(seat: Seat): void {
    this.kill(seat);
    const survives = this.random();
    this.trace.note(seat.name, `loses power: of unsynced writes ${(100 * survives).toFixed()} % survive`);
    for (const disk of seat.disks.values()) disk.powerCut(() => this.random() < survives);
  }

  get up(): Seat[] {
    return this.seats.filter(({ instance }) => instance?.isUp);
  }

  breach(what: string): void {
    this.trace.note('CHECKER', what);
    this.breaches.push(`at ${this.clock.now().toFixed(1)} ms: ${what}`);
  }

  /** A fault has changed a log. */
  tampered(stream: string): void {
    for (const checker of this.checkers) checker.tampered?.(stream);
  }

  /** Asks a view, as a client does. */
  ask(seat: Seat): void {
    const view = seat.instance?.view;
    if (view === undefined) return;
    for (const checker of this.checkers) checker.asked?.(view, seat.name);
  }

  async rest(): Promise<void> {
    for (const checker of this.checkers) await checker.rested?.();
  }

  private newDisk(task: string, by: string): MemoryDisk {
    const disk = new MemoryDisk();
    const { random, diskRates } = this;
    disk.beforeWrite = ({ puts }) => {
      for (const checker of this.checkers) checker.commits?.(task, puts, by);
    };
    disk.onWrite = () => {
      const { writeFails, logSwitches } = diskRates;
      if (logSwitches > 0 && random.chance(logSwitches)) disk.switchLog();
      if (writeFails === 0 || !random.chance(writeFails)) return 'none';
      return random.chance(0.5) ? 'lost' : 'kept';
    };
    return disk;
  }

  private watchedBus(): Bus {
    const { bus } = this;
    const by = (): string => this.network.actor?.name ?? 'admin';
    return {
      describe: (stream) => bus.describe(stream),
      message: (stream, sequence) => bus.message(stream, sequence),
      append: async (log, payload, options) => {
        const actor = by();
        const before = bus.lastPayload(log.stream);
        const appended = await bus.append(log, payload, options);
        if (appended.kind === 'stored' && !appended.duplicate) {
          const message = (await bus.message(log.stream, appended.sequence))!;
          this.trace.note(actor, `appends ${log.stream}@${appended.sequence}`);
          if (log.stream === this.edges.stream && !this.areEdgesLost) this.oracle.take(message);
          for (const checker of this.checkers) checker.stored?.(log.stream, message, actor, before);
        }
        return appended;
      },
      read: (stream, from) => bus.read(stream, from),
      create: (stream, options) => bus.create(stream, options),
      remove: async (stream) => {
        this.trace.note(by(), `removes ${stream}`);
        for (const checker of this.checkers) checker.removed?.(stream);
        await bus.remove(stream);
      },
      purge: async (stream, sequence) => {
        this.trace.note(by(), `purges ${stream} below ${sequence}`);
        for (const checker of this.checkers) checker.purged?.(stream, sequence);
        await bus.purge(stream, sequence);
      },
    };
  }

  private watchedKv(): Kv {
    const { kv } = this;
    const by = (): string => this.network.actor?.name ?? 'admin';
    const told = (who: string, bucket: string, key: string, value: string | undefined): void => {
      if (bucket === SNAPSHOTS_BUCKET || bucket === GRAPHS_BUCKET) {
        const what = value === undefined ? 'removes' : 'records';
        this.trace.note(who, `${what} ${key.slice(-40)} ${value?.slice(0, 200) ?? ''}`);
      }
      for (const checker of this.checkers) checker.recorded?.(bucket, key, value);
    };
    return {
      get: (bucket, key) => kv.get(bucket, key),
      list: (bucket, prefix) => kv.list(bucket, prefix),
      revision: (bucket) => kv.revision(bucket),
      put: async (bucket, key, value) => {
        told(by(), bucket, key, value);
        return await kv.put(bucket, key, value);
      },
      create: async (bucket, key, value) => {
        const actor = by();
        const revision = await kv.create(bucket, key, value);
        if (revision !== undefined) told(actor, bucket, key, value);
        return revision;
      },
      update: async (bucket, key, value, before) => {
        const actor = by();
        const revision = await kv.update(bucket, key, value, before);
        if (revision !== undefined) told(actor, bucket, key, value);
        return revision;
      },
      remove: async (bucket, key) => {
        told(by(), bucket, key, undefined);
        await kv.remove(bucket, key);
      },
      erase: async (bucket, key) => {
        told(by(), bucket, key, undefined);
        await kv.erase(bucket, key);
      },
      isRemoved: (bucket, key) => kv.isRemoved(bucket, key),
    };
  }
}
