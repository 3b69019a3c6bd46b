/**
 * A process of Watershed: it connects to NATS, joins the cluster, runs the tasks of all graphs that fall to it, says how
 * they are, and stops them in order.
 */
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import type { Logger } from 'pino';
import { connectNats, defaultReplicas, NatsBus } from '../../libs/bus/nats-bus.ts';
import { NatsChunks } from '../../libs/bus/nats-chunks.ts';
import { NatsKv } from '../../libs/bus/nats-kv.ts';
import { NatsQuestions } from '../../libs/bus/nats-questions.ts';
import { Registry } from '../../libs/bus/registry.ts';
import type { InstanceReport, TaskReport } from '../../libs/bus/report.ts';
import { type ClusterStatus, Member } from '../../libs/cluster/member.ts';
import type { Chunks, Clock } from '../../libs/stage/ports.ts';
import { FileChunks } from '../../libs/store/file-chunks.ts';
import { LevelStore, StoreError } from '../../libs/store/level-store.ts';
import type { GraphHost } from '../gateway/graph-host.ts';
import { CliError, EXIT } from './exit.ts';
import type { RunnableTask } from './hosted-graph.ts';
import { HostedGraphs } from './hosted-graphs.ts';
import { LevelFolders } from './level-folders.ts';
import { lackOf } from './nats-server.ts';
import type { Role } from './roles.ts';

/** An instance tells of so many tasks; of more it tells only which have a problem. */
const REPORTS_MAX = 1_000;
const PROBLEM_CHARS_MAX = 400;
const GRAPHS_POLL_MS = 500;
/** How often an instance says that it still waits for nats-server. */
const WAITING_MS = 5_000;
/** An instance that is just stopping gives its folder free within this; a running one does not. */
const FOLDER_WAIT_MS = 5_000;

export const processClock: Clock = {
  now: () => performance.now(),
  sleep: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
  after: (ms, then) => {
    const timer = setTimeout(then, ms);
    return () => clearTimeout(timer);
  },
  yield: () => new Promise((resolve) => setImmediate(resolve)),
};

export interface InstanceOptions {
  readonly name: string;
  readonly roles: readonly Role[];
  readonly natsUrl: string;
  readonly dataFolder: string;
  /** Where the chunks of snapshots are kept: a folder that all instances share; undefined: in NATS. */
  readonly snapshotFolder: string | undefined;
  /** Servers that hold a copy of what this process creates in NATS for the cluster. */
  readonly replicas: number | undefined;
  /** An instance that says nothing for so long is taken for dead. */
  readonly leaseMs: number;
  readonly version: string;
  readonly logger: Logger;
  /** Told of each EDGES message of a graph (arrival, ms since 1970) when it shows in this gateway's answers. */
  readonly visible: (graph: string, time: number) => void;
}

type Connection = Awaited<ReturnType<typeof connectNats>>;

export class Instance {
  readonly options: InstanceOptions;
  readonly bus: NatsBus;
  readonly kv: NatsKv;
  readonly questions: NatsQuestions;
  readonly chunks: Chunks;
  readonly registry: Registry;
  /** Whether the connection to NATS stands, and since when it is so. */
  nats = { connected: true, since: new Date() };
  /** Whether the list of graphs was read and each one begun. */
  graphsKnown = false;
  /** Copies of what is made in NATS and says nothing else. */
  readonly replicas: number;
  readonly started = new Date();
  private readonly connections: Connections;
  private readonly folderLock: LevelStore;
  private readonly member: Member<RunnableTask>;
  private readonly graphs: HostedGraphs;
  private readonly stopping = new AbortController();
  private loop: Promise<unknown> = Promise.resolve();

  private constructor(options: InstanceOptions, connections: Connections, folderLock: LevelStore) {
    const { snapshotFolder } = options;
    const replicas = options.replicas ?? defaultReplicas(connections.data);
    this.replicas = replicas;
    this.options = options;
    this.connections = connections;
    this.folderLock = folderLock;
    this.bus = new NatsBus(connections.data);
    this.kv = new NatsKv(connections.control, replicas);
    this.questions = new NatsQuestions(connections.data);
    this.chunks =
      snapshotFolder === undefined
        ? new NatsChunks(connections.data, replicas)
        : new FileChunks(snapshotFolder);
    this.registry = new Registry(this.kv);
    const { logger: log } = options;
    const { kv, chunks, questions } = this;
    this.graphs = new HostedGraphs({
      registry: this.registry,
      folders: ({ name, id }) =>
        new LevelFolders(
          join(options.dataFolder, options.name, `${name}-${id.slice(0, 8)}`),
          log,
          this.stopping.signal,
        ),
      isGateway: options.roles.includes('gateway'),
      stage: { bus: this.bus, clock: processClock, log },
      snapshots: { kv, chunks, clock: processClock, log, instance: options.name },
      questions,
      visible: options.visible,
    });
    this.member = new Member(
      {
        name: options.name,
        incarnation: randomBytes(8).toString('hex'),
        roles: options.roles,
        leaseMs: options.leaseMs,
        kv: this.kv,
        clock: processClock,
        log: options.logger,
        report: () => this.report(),
      },
      () => this.graphs.specs,
      (spec) => spec.run(),
    );
  }

  /**
   * Takes the data folder, connects to NATS (waiting for it, until `signal` ends that) and starts the tasks of all
   * graphs.
   */
  static async start(options: InstanceOptions, signal: AbortSignal): Promise<Instance> {
    const { logger } = options;
    const folderLock = await takeFolder(join(options.dataFolder, options.name, 'instance'));
    let instance: Instance | undefined;
    const opened: Connection[] = [];
    try {
      let saidAt = Number.NEGATIVE_INFINITY;
      const open = async (name: string): Promise<Connection> => {
        const connection = await connectNats({
          url: options.natsUrl,
          name,
          wait: true,
          signal,
          onWaiting: (reason) => {
            if (performance.now() - saidAt < WAITING_MS) return;
            saidAt = performance.now();
            logger.warn({ url: options.natsUrl, reason }, 'waiting for nats-server');
          },
          onStatus: (status) => instance?.natsStatus(status.type),
        });
        opened.push(connection);
        return connection;
      };
      // Leases have a connection of their own, so that bulk data does not hold them up.
      const data = await open(`watershed ${options.name}`);
      const version = data.info?.version ?? '';
      const lack = lackOf(version);
      if (lack !== undefined) {
        throw new CliError(
          EXIT.failed,
          `the nats-server at ${options.natsUrl} is version ${version}, which ${lack}`,
        );
      }
      const control = await open(`watershed ${options.name} leases`);
      instance = new Instance(options, { data, control }, folderLock);
      instance.member.start();
      instance.loop = instance.followGraphs();
      return instance;
    } catch (error) {
      for (const connection of opened) await connection.close();
      await folderLock.close();
      throw error;
    }
  }

  /** The graphs that this gateway holds, by name. */
  get hosts(): readonly GraphHost[] {
    return this.graphs.hosts;
  }

  host(graph: string): GraphHost | undefined {
    return this.graphs.host(graph);
  }

  /** Who is in the cluster and who runs what, as this process sees it. */
  get cluster(): ClusterStatus {
    return this.member.status();
  }

  /** Hands its tasks over, then stops. */
  async stop(): Promise<void> {
    this.stopping.abort();
    await this.loop;
    await this.member.stop();
    await this.graphs.stop();
    await this.connections.control.close();
    await this.connections.data.close();
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
    while (!this.stopping.signal.aborted) {
      try {
        await this.graphs.follow();
        this.graphsKnown = true;
      } catch (error) {
        if (!this.stopping.signal.aborted)
          this.options.logger.warn({ error: String(error) }, 'the list of graphs cannot be read: retrying');
      }
      await this.pause(GRAPHS_POLL_MS);
    }
  }

  private report(): InstanceReport {
    return {
      version: this.options.version,
      pid: process.pid,
      started: this.started.toISOString(),
      reported: new Date().toISOString(),
      tasks: reported(this.graphs.reports),
    };
  }

  private async pause(ms: number): Promise<void> {
    const until = performance.now() + ms;
    while (!this.stopping.signal.aborted && performance.now() < until) await processClock.sleep(50);
  }
}

/** What fits into a record that must be written every second: a report that is too large would pass for a death. */
function reported(tasks: readonly TaskReport[]): readonly TaskReport[] {
  const withProblems = tasks.filter(({ problem }) => problem !== undefined);
  const shown = tasks.length <= REPORTS_MAX ? tasks : withProblems.slice(0, REPORTS_MAX);
  return shown.map(({ problem, ...task }) =>
    problem === undefined
      ? task
      : { ...task, problem: { ...problem, message: problem.message.slice(0, PROBLEM_CHARS_MAX) } },
  );
}

interface Connections {
  readonly data: Connection;
  /** Of leases and records. */
  readonly control: Connection;
}

async function takeFolder(folder: string): Promise<LevelStore> {
  const until = performance.now() + FOLDER_WAIT_MS;
  for (;;) {
    try {
      return await LevelStore.open(folder);
    } catch (error) {
      if (!(error instanceof StoreError) || performance.now() > until) throw error;
      // It is there for its lock; nothing is kept in it.
      if (error.code === 'store-damaged') LevelStore.discard(folder);
      else if (error.code !== 'store-locked') throw error;
      await processClock.sleep(200);
    }
  }
}
