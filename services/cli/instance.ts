/**
 * One running process of Watershed: it runs the tasks of its roles for every graph there is, says how they
 * are, and stops them in order.
 *
 * Until a cluster places tasks by leases, they are placed by flag: which roles, and for workers which
 * partitions. Starting one task twice is no danger: the later one fences the earlier one off.
 */
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Logger } from 'pino';
import { connectNats, NatsBus } from '../../libs/bus/nats-bus.ts';
import { type GraphConfig, Registry } from '../../libs/bus/registry.ts';
import type { InstanceReport, TaskReport } from '../../libs/bus/report.ts';
import type { Clock } from '../../libs/stage/ports.ts';
import type { StageCore } from '../../libs/stage/stage-core.ts';
import type { StageHost, StageTask } from '../../libs/stage/stage-task.ts';
import { LevelStore, StoreError } from '../../libs/store/level-store.ts';
import { GraphHost } from '../gateway/graph-host.ts';
import { partitionerTask } from '../partitioner/task.ts';
import { workerTask } from '../worker/task.ts';
import { CliError, EXIT } from './exit.ts';
import { lackOf } from './nats-server.ts';
import type { Role } from './roles.ts';

const GRAPHS_POLL_MS = 500;
const REPORT_MS = 2_000;
/** How often an instance says that it still waits for nats-server. */
const WAITING_MS = 5_000;
/** An instance that is just stopping gives its folder free within this; a running one does not. */
const FOLDER_WAIT_MS = 5_000;

export const processClock: Clock = {
  now: () => performance.now(),
  sleep: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
  yield: () => new Promise((resolve) => setImmediate(resolve)),
};

export interface InstanceOptions {
  readonly name: string;
  readonly roles: readonly Role[];
  /** The worker's partitions; undefined: all. */
  readonly partitions: readonly number[] | undefined;
  readonly natsUrl: string;
  readonly dataFolder: string;
  readonly version: string;
  readonly logger: Logger;
  /** Told of each EDGES message of a graph (arrival, ms since 1970) when it shows in this gateway's answers. */
  readonly visible: (graph: string, time: number) => void;
}

type Connection = Awaited<ReturnType<typeof connectNats>>;

interface RunningGraph {
  readonly config: GraphConfig;
  readonly folder: string;
  readonly tasks: readonly StageTask<StageCore>[];
  readonly host: GraphHost | undefined;
}

export class Instance {
  readonly options: InstanceOptions;
  readonly connection: Connection;
  readonly bus: NatsBus;
  readonly registry: Registry;
  /** Whether the connection to NATS stands, and since when it is so. */
  nats = { connected: true, since: new Date() };
  /** Whether the list of graphs was read and each one begun. */
  graphsKnown = false;
  private readonly folderLock: LevelStore;
  private readonly running = new Map<string, RunningGraph>();
  readonly started = new Date();
  private stopping = false;
  private loops: Promise<unknown> = Promise.resolve();

  private constructor(options: InstanceOptions, connection: Connection, folderLock: LevelStore) {
    this.options = options;
    this.connection = connection;
    this.folderLock = folderLock;
    this.bus = new NatsBus(connection);
    this.registry = new Registry(connection);
  }

  /**
   * Takes the data folder, connects to NATS (waiting for it, until `signal` ends that) and starts the tasks of all
   * graphs.
   */
  static async start(options: InstanceOptions, signal: AbortSignal): Promise<Instance> {
    const { logger } = options;
    const folderLock = await takeFolder(join(options.dataFolder, options.name, 'instance'));
    let instance: Instance | undefined;
    try {
      let saidAt = Number.NEGATIVE_INFINITY;
      const connection = await connectNats({
        url: options.natsUrl,
        name: `watershed ${options.name}`,
        wait: true,
        signal,
        onWaiting: (reason) => {
          if (performance.now() - saidAt < WAITING_MS) return;
          saidAt = performance.now();
          logger.warn({ url: options.natsUrl, reason }, 'waiting for nats-server');
        },
        onStatus: (status) => instance?.natsStatus(status.type),
      });
      const version = connection.info?.version ?? '';
      const lack = lackOf(version);
      if (lack !== undefined) {
        await connection.close();
        throw new CliError(
          EXIT.failed,
          `the nats-server at ${options.natsUrl} is version ${version}, which ${lack}`,
        );
      }
      instance = new Instance(options, connection, folderLock);
      instance.loops = Promise.all([instance.followGraphs(), instance.keepReporting()]);
      return instance;
    } catch (error) {
      await folderLock.close();
      throw error;
    }
  }

  /** The graphs that this gateway holds, by name. */
  get hosts(): readonly GraphHost[] {
    return [...this.running.values()].flatMap(({ host }) => (host === undefined ? [] : [host]));
  }

  host(graph: string): GraphHost | undefined {
    return this.running.get(graph)?.host;
  }

  async stop(): Promise<void> {
    this.stopping = true;
    await this.loops;
    await Promise.all([...this.running.values()].map((graph) => this.stopGraph(graph)));
    this.running.clear();
    // Others see the instance as gone; without NATS they see it grow old.
    if (this.nats.connected) await this.registry.withdraw(this.options.name).catch(() => {});
    await this.connection.close();
    await this.folderLock.close();
  }

  private natsStatus(type: string): void {
    const { logger } = this.options;
    if (type === 'disconnect') {
      if (this.nats.connected) this.nats = { connected: false, since: new Date() };
      logger.warn({}, 'nats-server is gone: reconnecting');
    } else if (type === 'reconnect') {
      this.nats = { connected: true, since: new Date() };
      logger.info({}, 'nats-server is back');
    } else if (type === 'error' || type === 'staleConnection' || type === 'slowConsumer') {
      logger.warn({ type }, 'the NATS client reports trouble');
    }
  }

  private async followGraphs(): Promise<void> {
    while (!this.stopping) {
      try {
        await this.adopt(await this.registry.graphs());
        this.graphsKnown = true;
      } catch (error) {
        if (!this.stopping)
          this.options.logger.warn({ error: String(error) }, 'the list of graphs cannot be read: retrying');
      }
      await this.pause(GRAPHS_POLL_MS);
    }
  }

  /** Starts what is new, stops what is gone or was created anew, and removes its state. */
  private async adopt(records: readonly { readonly config: GraphConfig }[]): Promise<void> {
    const configs = new Map(records.map(({ config }) => [config.name, config]));
    for (const [name, graph] of [...this.running]) {
      if (configs.get(name)?.id === graph.config.id) continue;
      // A record lost with its server is no order to delete what was counted.
      if (!configs.has(name) && !(await this.registry.isRemoved(name))) continue;
      this.running.delete(name);
      await this.stopGraph(graph);
      await rm(graph.folder, { recursive: true, force: true });
      this.options.logger.info({ graph: name }, 'the graph was removed');
    }
    for (const [name, config] of configs) if (!this.running.has(name)) this.startGraph(config);
  }

  private startGraph(config: GraphConfig): void {
    const { options } = this;
    const folder = join(options.dataFolder, options.name, `${config.name}-${config.id.slice(0, 8)}`);
    const stage: StageHost = {
      bus: this.bus,
      openStore: (task) => LevelStore.open(join(folder, task)),
      clock: processClock,
      log: options.logger,
      isCurrent: async () => (await this.registry.graph(config.name))?.config.id === config.id,
    };
    const tasks: StageTask<StageCore>[] = [];
    if (options.roles.includes('partitioner'))
      tasks.push(partitionerTask(config, stage) as StageTask<StageCore>);
    if (options.roles.includes('worker')) {
      for (let partition = 0; partition < config.partitions; partition++) {
        if (options.partitions !== undefined && !options.partitions.includes(partition)) continue;
        tasks.push(workerTask(config, partition, stage) as StageTask<StageCore>);
      }
    }
    let host: GraphHost | undefined;
    if (options.roles.includes('gateway')) {
      host = new GraphHost({ config, stage, visible: (time) => options.visible(config.name, time) });
      tasks.push(host.task as StageTask<StageCore>);
    }
    for (const task of tasks) task.start();
    this.running.set(config.name, { config, folder, tasks, host });
    options.logger.info(
      { graph: config.name, tasks: tasks.map((task) => task.options.name) },
      'graph started',
    );
  }

  private async stopGraph(graph: RunningGraph): Promise<void> {
    for (const task of graph.tasks) if (task !== graph.host?.task) await task.stop();
    await graph.host?.stop();
  }

  private async keepReporting(): Promise<void> {
    while (!this.stopping) {
      if (this.nats.connected) {
        // A report that cannot be written is late, not lost: the next one says the same.
        await this.registry.announce(this.options.name, this.report()).catch(() => {});
      }
      await this.pause(REPORT_MS);
    }
  }

  private report(): InstanceReport {
    const { roles, version } = this.options;
    return {
      roles: [...roles],
      version,
      pid: process.pid,
      started: this.started.toISOString(),
      reported: new Date().toISOString(),
      tasks: [...this.running.values()].flatMap(({ config, tasks }) =>
        tasks.map((task): TaskReport => ({ graph: config.name, ...taskReport(task) })),
      ),
    };
  }

  private async pause(ms: number): Promise<void> {
    const until = performance.now() + ms;
    while (!this.stopping && performance.now() < until) await processClock.sleep(50);
  }
}

function taskReport(task: StageTask<StageCore>): Omit<TaskReport, 'graph'> {
  const { problem } = task;
  return {
    task: task.options.name,
    state: task.state,
    position: task.core?.edgesRead?.sequence ?? 0,
    ...(problem === undefined ? {} : { problem: { code: problem.code, message: problem.message } }),
  };
}

async function takeFolder(folder: string): Promise<LevelStore> {
  const until = performance.now() + FOLDER_WAIT_MS;
  for (;;) {
    try {
      return await LevelStore.open(folder);
    } catch (error) {
      const isLocked = error instanceof StoreError && error.code === 'store-locked';
      if (!isLocked || performance.now() > until) throw error;
      await processClock.sleep(200);
    }
  }
}
