/** A nats-server of one's own for a test, or a cluster: free ports, store folders that go with them, faults on request. */

import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { jetstreamManager } from '@nats-io/jetstream';
import { connectNats, NatsBus } from '../../../libs/bus/nats-bus.ts';
import { freePort } from '../../../services/cli/free-port.ts';
import { ensureNatsServer, type NatsServer, startNatsServer } from '../../../services/cli/nats-server.ts';

export interface TestNatsServer {
  readonly url: string;
  readonly port: number;
  readonly storeDir: string;
  /** Ends the server, if it still runs, and starts it again on the same port and store. */
  restart(): Promise<void>;
  /** The server is gone as by `kill -9`; `restart` brings it back. */
  kill9(): Promise<void>;
  /** The server ends in order; `restart` brings it back. */
  halt(): Promise<void>;
  /** Ends the server and removes its store. */
  stop(): Promise<void>;
}

export interface TestNatsServerOptions {
  /** Off unless a test is about disks: a killed server loses nothing that it wrote, and fsync is slow. */
  readonly syncAlways?: boolean;
}

let program: Promise<string> | undefined;

export async function testNatsServer({
  syncAlways = false,
}: TestNatsServerOptions = {}): Promise<TestNatsServer> {
  program ??= ensureNatsServer({ log: (line) => console.error(line) });
  const bin = await program;
  const storeDir = await mkdtemp(join(tmpdir(), 'watershed-test-nats-'));
  let server: NatsServer;
  try {
    server = await startNatsServer({ bin, storeDir, port: 0, syncAlways });
  } catch (error) {
    await rm(storeDir, { recursive: true, force: true });
    throw error;
  }
  const { url, port } = server;
  return {
    url,
    port,
    storeDir,
    async restart() {
      await server.stop();
      server = await startNatsServer({ bin, storeDir, port, syncAlways });
    },
    async kill9() {
      await server.kill();
    },
    async halt() {
      await server.stop();
    },
    async stop() {
      await server.stop();
      await rm(storeDir, { recursive: true, force: true });
    },
  };
}

export interface TestNatsCluster {
  /** Of all servers, with commas. */
  readonly urls: string;
  readonly servers: readonly { readonly url: string }[];
  /** The server that leads the stream, once it has a leader. */
  leaderOf(stream: string): Promise<number>;
  /** The server is gone as by `kill -9`; `restart` brings it back. */
  kill(server: number): Promise<void>;
  /** Starts a killed server again on its ports and store; it may not have caught up yet. */
  restart(server: number): Promise<void>;
  /** Stops the process without ending it: its connections stay, and nothing answers. */
  pause(server: number): void;
  resume(server: number): void;
  /** Ends all servers and removes their stores. */
  stop(): Promise<void>;
}

const CLUSTER_READY_MS = 45_000;
const POLL_MS = 100;

/** Servers that replicate JetStream among them, each with its own store and fsync always; ready for streams of all. */
export async function testNatsCluster({ servers: count }: { servers: number }): Promise<TestNatsCluster> {
  program ??= ensureNatsServer({ log: (line) => console.error(line) });
  const bin = await program;
  const folder = await mkdtemp(join(tmpdir(), 'watershed-test-cluster-'));
  const ports = await freePorts(count * 2);
  const routes = ports.slice(count).map((port) => `nats://127.0.0.1:${port}`);
  const servers = await Promise.all(
    Array.from({ length: count }, async (_, n) => {
      const configFile = join(folder, `n${n}.conf`);
      const lines = [
        `server_name: n${n}`,
        `listen: "127.0.0.1:${ports[n]}"`,
        'jetstream {',
        `  store_dir: ${JSON.stringify(join(folder, `n${n}`))}`,
        '  sync_interval: always',
        '}',
        'cluster {',
        '  name: test',
        `  listen: "127.0.0.1:${ports[count + n]}"`,
        `  routes: ${JSON.stringify(routes)}`,
        '}',
      ];
      await writeFile(configFile, `${lines.join('\n')}\n`);
      return new ClusterServer(bin, configFile, `nats://127.0.0.1:${ports[n]}`);
    }),
  );
  const urls = servers.map(({ url }) => url).join(',');
  const stop = async (): Promise<void> => {
    await Promise.all(servers.map((server) => server.kill()));
    await rm(folder, { recursive: true, force: true });
  };

  for (const server of servers) server.start();
  try {
    await replicate(urls, count);
  } catch (error) {
    await stop();
    throw error;
  }
  return {
    urls,
    servers,
    stop,
    leaderOf: (stream) => leaderOf(urls, stream),
    kill: (server) => servers[server]!.kill(),
    async restart(server) {
      servers[server]!.start();
      await (await connectNats({ url: servers[server]!.url, name: 'restart', wait: true })).close();
    },
    pause: (server) => servers[server]!.signal('SIGSTOP'),
    resume: (server) => servers[server]!.signal('SIGCONT'),
  };
}

class ClusterServer {
  readonly url: string;
  private readonly bin: string;
  private readonly configFile: string;
  private child: ChildProcess | undefined;
  private gone: Promise<void> = Promise.resolve();

  constructor(bin: string, configFile: string, url: string) {
    this.bin = bin;
    this.configFile = configFile;
    this.url = url;
  }

  start(): void {
    const child = spawn(this.bin, ['-c', this.configFile], { stdio: 'ignore' });
    this.child = child;
    const killWithParent = (): void => {
      child.kill('SIGKILL');
    };
    process.once('exit', killWithParent);
    this.gone = new Promise((resolve) => {
      child.once('exit', () => {
        process.off('exit', killWithParent);
        resolve();
      });
    });
  }

  /** Ends a paused process too. */
  async kill(): Promise<void> {
    this.signal('SIGKILL');
    await this.gone;
  }

  signal(signal: NodeJS.Signals): void {
    this.child?.kill(signal);
  }
}

/** Makes a stream of all servers, as soon as they can. */
async function replicate(urls: string, replicas: number): Promise<void> {
  const deadline = performance.now() + CLUSTER_READY_MS;
  const connection = await connectNats({
    url: urls,
    name: 'harness',
    wait: true,
    signal: AbortSignal.timeout(CLUSTER_READY_MS),
  });
  try {
    const bus = new NatsBus(connection);
    const stream = 'HARNESS';
    for (;;) {
      try {
        await bus.create(stream, { subjects: ['harness'], discard: 'old', denyDelete: false, replicas });
        await bus.remove(stream);
        return;
      } catch (error) {
        if (performance.now() > deadline) throw error;
        await new Promise((resolve) => setTimeout(resolve, POLL_MS));
      }
    }
  } finally {
    await connection.close();
  }
}

async function leaderOf(urls: string, stream: string): Promise<number> {
  const deadline = performance.now() + CLUSTER_READY_MS;
  for (;;) {
    const connection = await connectNats({ url: urls, name: 'harness', wait: true });
    try {
      const manager = await jetstreamManager(connection, { timeout: 1_000, checkAPI: false });
      const { cluster } = await manager.streams.info(stream);
      const leader = /^n(\d+)$/.exec(cluster?.leader ?? '')?.[1];
      if (leader !== undefined) return Number(leader);
    } catch (error) {
      if (performance.now() > deadline) throw error;
    } finally {
      await connection.close();
    }
    if (performance.now() > deadline) throw new Error(`the stream ${stream} has no leader`);
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}

async function freePorts(count: number): Promise<number[]> {
  const ports = new Set<number>();
  while (ports.size < count) ports.add(await freePort());
  return [...ports];
}
