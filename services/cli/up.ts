/**
 * A whole Watershed on this machine: nats-server, and one instance per core, each a process of its own.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, mkdirSync, openSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createGraph } from '../../libs/bus/graphs.ts';
import { connectNats, defaultReplicas, NatsBus } from '../../libs/bus/nats-bus.ts';
import { NatsKv } from '../../libs/bus/nats-kv.ts';
import { Registry } from '../../libs/bus/registry.ts';
import { CliError, EXIT } from './exit.ts';
import { ensureNatsServer, isTaken, type NatsServer, startNatsServer } from './nats-server.ts';
import type { Role } from './roles.ts';

const READY_MS = 60_000;
const STOP_MS = 15_000;
/** An instance that dies is started again, after this long. */
const RESTART_MS = 1_000;

export interface UpOptions {
  readonly dataFolder: string;
  readonly natsPort: number;
  /** A server that is there already; undefined: start one. */
  readonly natsUrl: string | undefined;
  readonly http: { readonly host: string; readonly port: number };
  /** Created if need be; undefined: none. */
  readonly graph: { readonly name: string; readonly partitions: number } | undefined;
  readonly say: (line: string) => void;
}

export interface UpPlan {
  readonly name: string;
  readonly roles: readonly Role[];
}

/** Which instances to run on so many cores: the gateway apart, so that answers do not wait for work. */
function planInstances(cores: number): UpPlan[] {
  if (cores <= 1) return [{ name: 'all', roles: ['partitioner', 'worker', 'gateway'] }];
  const gateway: UpPlan = { name: 'gateway', roles: ['gateway'] };
  if (cores === 2) return [{ name: 'pipeline', roles: ['partitioner', 'worker'] }, gateway];
  const workers = Array.from(
    { length: cores - 2 },
    (_, index): UpPlan => ({ name: `worker-${index}`, roles: ['worker'] }),
  );
  return [{ name: 'partitioner', roles: ['partitioner'] }, ...workers, gateway];
}

export class Up {
  readonly url: string;
  readonly natsUrl: string;
  private server: NatsServer | undefined;
  private readonly children = new Map<string, ChildProcess>();
  private readonly options: UpOptions;
  private stopping = false;

  private constructor(options: UpOptions, server: NatsServer | undefined) {
    this.options = options;
    this.server = server;
    this.natsUrl = server?.url ?? options.natsUrl!;
    this.url = `http://${options.http.host}:${options.http.port}`;
  }

  /** Starts all and waits until the gateway answers; when `signal` says so, stops what it has started and throws. */
  static async start(options: UpOptions, signal: AbortSignal): Promise<Up> {
    const { dataFolder } = options;
    const { host, port } = options.http;
    if (await isTaken(host, port)) {
      throw new CliError(EXIT.failed, `${host}:${port} is taken: choose another address with --http`);
    }
    mkdirSync(join(dataFolder, 'logs'), { recursive: true });
    const server = options.natsUrl === undefined ? await startServer(options, options.natsPort) : undefined;
    const up = new Up(options, server);
    up.keepServer();
    try {
      signal.throwIfAborted();
      if (options.graph !== undefined) await up.createGraph(options.graph);
      signal.throwIfAborted();
      for (const plan of planInstances(availableParallelism())) up.spawn(plan);
      await up.waitUntilReady(signal);
      return up;
    } catch (error) {
      await up.stop();
      throw error;
    }
  }

  /** Process ids by instance name, nats-server's included. */
  get processes(): Record<string, number> {
    const ids: Record<string, number> = {};
    if (this.server?.process.pid !== undefined) ids['nats-server'] = this.server.process.pid;
    for (const [name, child] of this.children) if (child.pid !== undefined) ids[name] = child.pid;
    return ids;
  }

  /** Instances first, then nats-server. */
  async stop(): Promise<void> {
    this.stopping = true;
    await Promise.all([...this.children.values()].map(stopChild));
    await this.server?.stop();
  }

  async createGraph(graph: { readonly name: string; readonly partitions: number }): Promise<void> {
    const connection = await connectNats({ url: this.natsUrl, name: 'watershed up', wait: false });
    try {
      const { name, partitions } = graph;
      const replicas = defaultReplicas(connection);
      const registry = new Registry(new NatsKv(connection, replicas));
      await createGraph(new NatsBus(connection), registry, name, { partitions, replicas });
    } finally {
      await connection.close();
    }
  }

  /** A nats-server that dies is started again on its port and store; the instances resume by themselves. */
  private keepServer(): void {
    const { server, options } = this;
    if (server === undefined) return;
    void server.exited.then(async () => {
      while (!this.stopping && this.server === server) {
        options.say(`nats-server ended, starting it again; see ${logOf(options.dataFolder, 'nats-server')}`);
        await new Promise((resolve) => setTimeout(resolve, RESTART_MS));
        if (this.stopping) return;
        try {
          this.server = await startServer(options, server.port);
          // Told to stop meanwhile: nobody else knows of this one.
          if (this.stopping) await this.server.stop();
          else this.keepServer();
        } catch (error) {
          options.say(
            `nats-server cannot be started: ${error instanceof Error ? error.message : String(error)}`,
          );
        }
      }
    });
  }

  private spawn(plan: UpPlan): void {
    const { dataFolder, http, say } = this.options;
    const log = openSync(logOf(dataFolder, plan.name), 'a');
    const args = ['serve', '--roles', plan.roles.join(','), '--name', plan.name];
    args.push('--nats', this.natsUrl, '--data', dataFolder);
    if (plan.roles.includes('gateway')) args.push('--http', `${http.host}:${http.port}`);
    // In a group of their own, so that Ctrl-C reaches this process alone and it can stop them in order; the
    // channel tells them when this process is gone.
    const child = spawn(process.execPath, [fileURLToPath(new URL('./main.js', import.meta.url)), ...args], {
      stdio: ['ignore', log, log, 'ipc'],
      detached: true,
    });
    closeSync(log);
    this.children.set(plan.name, child);
    child.once('exit', (code, signal) => {
      if (this.stopping) return;
      say(`instance ${plan.name} ended (${signal ?? `status ${code}`}); see ${logOf(dataFolder, plan.name)}`);
      setTimeout(() => {
        if (!this.stopping) this.spawn(plan);
      }, RESTART_MS);
    });
  }

  private async waitUntilReady(signal: AbortSignal): Promise<void> {
    const until = performance.now() + READY_MS;
    let last = 'no answer';
    while (performance.now() < until) {
      signal.throwIfAborted();
      try {
        const response = await fetch(`${this.url}/readyz`);
        if (response.ok) return;
        last = await response.text();
      } catch (error) {
        last = error instanceof Error ? String(error.cause ?? error) : String(error);
      }
      const dead = [...this.children].find(([, child]) => child.exitCode !== null);
      if (dead !== undefined) {
        throw new CliError(
          EXIT.failed,
          `instance ${dead[0]} ended with status ${dead[1].exitCode}: see ${logOf(this.options.dataFolder, dead[0])}`,
        );
      }
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    throw new CliError(
      EXIT.unavailable,
      `the gateway at ${this.url} is not ready after ${READY_MS / 1000} s: ${last}`,
    );
  }
}

async function startServer({ dataFolder, say }: UpOptions, port: number): Promise<NatsServer> {
  return await startNatsServer({
    bin: await ensureNatsServer({ log: say }),
    storeDir: join(dataFolder, 'nats'),
    port,
    syncAlways: true,
    logFile: logOf(dataFolder, 'nats-server'),
  });
}

function logOf(dataFolder: string, name: string): string {
  return join(dataFolder, 'logs', `${name}.log`);
}

async function stopChild(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  child.kill('SIGTERM');
  const timer = setTimeout(() => child.kill('SIGKILL'), STOP_MS);
  await ended;
  clearTimeout(timer);
}
