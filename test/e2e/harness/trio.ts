/**
 * A Watershed that can lose any one machine: three nats-servers, three instances of all roles, each with its own
 * gateway and its own data folder.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, existsSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { jetstreamManager } from '@nats-io/jetstream';
import type { Cluster as ClusterAnswer } from '../../../libs/api/cluster.ts';
import type { GraphStatus } from '../../../libs/api/graph.ts';
import { connectNats } from '../../../libs/bus/nats-bus.ts';
import { freePort } from '../../../services/cli/free-port.ts';
import { type TestNatsCluster, testNatsCluster } from '../../integration/harness/nats.ts';
import { ended, type Gateway, get, PROGRAM, until } from './cluster.ts';

/** Machines of one kind. */
export const COUNT = 3;
const READY_MS = 60_000;
/** For polls: a process that is paused or about to die must not hold them up. */
const POLL_ANSWER_MS = 1_000;
const HEALTHY_MS = 120_000;

/** The servers behind a trio, wherever they run. */
export interface Servers {
  readonly urls: string;
  kill(server: number): Promise<void>;
  restart(server: number): Promise<void>;
  stop(): Promise<void>;
}

export class Trio<Nats extends Servers> {
  readonly nats: Nats;
  readonly folder: string;
  readonly machines: readonly Machine[];

  private constructor(nats: Nats, folder: string, machines: readonly Machine[]) {
    this.nats = nats;
    this.folder = folder;
    this.machines = machines;
  }

  static async create(): Promise<Trio<TestNatsCluster>> {
    return await Trio.on(await testNatsCluster({ servers: COUNT }));
  }

  static async on<Nats extends Servers>(nats: Nats): Promise<Trio<Nats>> {
    if (!existsSync(PROGRAM)) throw new Error(`${PROGRAM} is not there: run "npm run build" first`);
    const folder = mkdtempSync(join(tmpdir(), 'watershed-trio-'));
    const machines: Machine[] = [];
    for (let n = 0; n < COUNT; n++) {
      machines.push(new Machine(`i${n}`, folder, nats.urls, await freePort()));
    }
    const trio = new Trio(nats, folder, machines);
    try {
      for (const machine of machines) machine.start();
      for (const machine of machines) await machine.ready();
    } catch (error) {
      for (const machine of machines) console.error(machine.readLog().slice(-2_000));
      await trio.stop();
      throw error;
    }
    return trio;
  }

  get live(): Machine[] {
    return this.machines.filter(({ state }) => state === 'running');
  }

  /** Creates or changes a graph, by whichever gateway does it. */
  async put(graph: string, settings: object): Promise<void> {
    await until(
      async () => {
        for (const { url } of this.live) {
          const response = await fetch(`${url}/v1/graphs/${graph}`, {
            method: 'PUT',
            headers: { 'content-type': 'application/json' },
            body: JSON.stringify(settings),
            signal: AbortSignal.timeout(10_000),
          });
          if (response.ok) return true;
          throw new Error(`PUT ${graph}: ${response.status} ${await response.text()}`);
        }
        return false;
      },
      `the settings of ${graph} to be taken`,
      READY_MS,
    );
  }

  /** Waits until some running gateway answers with all messages through `sequence`. */
  async visible(graph: string, sequence: number, ms: number): Promise<void> {
    const problems = new Map<string, string>();
    await until(
      async () => {
        const seen = await Promise.all(
          this.live.map(async ({ name, url }) => {
            try {
              const { totals, problem } = await get<GraphStatus>(url, `/v1/graphs/${graph}`, POLL_ANSWER_MS);
              problems.set(name, `at ${totals.sequence}, ${problem?.message ?? 'no problem'}`);
              return totals.sequence;
            } catch (error) {
              problems.set(name, String(error));
              return 0;
            }
          }),
        );
        if (Math.max(0, ...seen) >= sequence) return true;
        throw new Error([...problems].map(([name, problem]) => `${name}: ${problem}`).join('; '));
      },
      `message ${sequence} of ${graph} to show at a gateway`,
      ms,
    );
  }

  /** Which machine runs a task now, as the machines report. */
  async ownerOf(task: RegExp): Promise<Machine> {
    let owner: Machine | undefined;
    await until(async () => {
      const { instances } = await this.live[0]!.get<ClusterAnswer>('/v1/cluster');
      const name = instances.find(({ tasks }) =>
        tasks.some((one) => task.test(one.task) && one.state === 'running'),
      )?.name;
      owner = this.machines.find((machine) => machine.name === name);
      return owner !== undefined;
    }, `somebody to run ${task}`);
    return owner!;
  }

  /** Waits until all servers are there and every stream's copies have caught up. */
  async healthy(): Promise<void> {
    await until(
      async () => {
        const connection = await connectNats({ url: this.nats.urls, name: 'harness', wait: true });
        try {
          const manager = await jetstreamManager(connection, { timeout: 3_000, checkAPI: false });
          for await (const { config, cluster } of manager.streams.list()) {
            const replicas = cluster?.replicas ?? [];
            const isWhole =
              cluster?.leader !== undefined &&
              cluster.leader !== '' &&
              replicas.length === config.num_replicas - 1 &&
              replicas.every(({ current, offline }) => current && offline !== true);
            if (!isWhole) throw new Error(`${config.name} is not whole: ${JSON.stringify(cluster)}`);
          }
          return true;
        } finally {
          await connection.close();
        }
      },
      'all streams to have all their copies',
      HEALTHY_MS,
    );
  }

  async stop(): Promise<void> {
    await Promise.all(this.machines.map((machine) => machine.kill()));
    await this.nats.stop();
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** One instance of all roles. */
export class Machine implements Gateway {
  readonly name: string;
  readonly url: string;
  /** All that it keeps. */
  readonly dataFolder: string;
  state: 'running' | 'paused' | 'dead' = 'dead';
  private readonly args: readonly string[];
  private readonly log: string;
  private child: ChildProcess | undefined;

  constructor(name: string, folder: string, natsUrl: string, port: number) {
    this.name = name;
    this.url = `http://127.0.0.1:${port}`;
    this.dataFolder = join(folder, name);
    this.log = join(folder, `${name}.log`);
    this.args = [
      ...[PROGRAM, 'serve', '--roles', 'partitioner,worker,gateway', '--name', name],
      ...['--nats', natsUrl, '--data', this.dataFolder, '--http', `127.0.0.1:${port}`],
      ...['--replicas', String(COUNT)],
    ];
  }

  start(): void {
    const log = openSync(this.log, 'a');
    this.child = spawn(process.execPath, this.args, { stdio: ['ignore', log, log] });
    closeSync(log);
    this.state = 'running';
  }

  /** As by `kill -9`, paused or not. */
  async kill(): Promise<void> {
    this.state = 'dead';
    if (this.child !== undefined) await ended(this.child, 'SIGKILL');
  }

  /** The machine's disk is a new one. */
  loseData(): void {
    rmSync(this.dataFolder, { recursive: true, force: true });
  }

  pause(): void {
    this.child!.kill('SIGSTOP');
    this.state = 'paused';
  }

  resume(): void {
    this.child!.kill('SIGCONT');
    this.state = 'running';
  }

  async get<Answer>(path: string): Promise<Answer> {
    return await get<Answer>(this.url, path);
  }

  async ready(ms = READY_MS): Promise<void> {
    await until(
      async () => {
        const response = await fetch(`${this.url}/readyz`, { signal: AbortSignal.timeout(5_000) });
        if (!response.ok) throw new Error(await response.text());
        return true;
      },
      `${this.name} to be ready`,
      ms,
    );
  }

  readLog(): string {
    return readFileSync(this.log, 'utf8');
  }
}
