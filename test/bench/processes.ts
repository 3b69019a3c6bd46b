/** What the end-to-end benches run: nats-server, the product's instances, and the bare copy, each a process. */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { NatsConnection } from 'nats';
import { createGraph } from '../../libs/bus/graphs.ts';
import { connectNats, NatsBus } from '../../libs/bus/nats-bus.ts';
import { NatsKv } from '../../libs/bus/nats-kv.ts';
import { Registry } from '../../libs/bus/registry.ts';
import { edgesLog, type LogName } from '../../libs/dataflow/names.ts';
import { ensureNatsServer, type NatsServer, startNatsServer } from '../../services/cli/nats-server.ts';

export const ARROW = 'application/vnd.apache.arrow.stream';
const PROGRAM = fileURLToPath(new URL('../../services/cli/main.js', import.meta.url));
const COPY = fileURLToPath(new URL('./bare-copy.js', import.meta.url));
/** Appends in flight: the same for the pipeline and for its rival. */
const WINDOW = 64;

export class Bench {
  readonly bus: NatsBus;
  readonly url: string;
  private readonly server: NatsServer;
  private readonly connection: NatsConnection;
  private readonly folder: string;
  private readonly children: ChildProcess[] = [];
  private readonly byName = new Map<string, ChildProcess>();

  private constructor(server: NatsServer, connection: NatsConnection, folder: string, port: number) {
    this.server = server;
    this.connection = connection;
    this.folder = folder;
    this.bus = new NatsBus(connection);
    this.url = `http://127.0.0.1:${port}`;
  }

  static async start(syncAlways: boolean): Promise<Bench> {
    const folder = mkdtempSync(join(tmpdir(), 'watershed-bench-'));
    const bin = await ensureNatsServer({ log: (line) => console.error(line) });
    const server = await startNatsServer({ bin, storeDir: join(folder, 'nats'), port: 0, syncAlways });
    const connection = await connectNats({ url: server.url, name: 'bench', wait: true });
    return new Bench(server, connection, folder, 20_000 + Math.floor(Math.random() * 20_000));
  }

  /** `interval`: seconds between snapshots, 0: only when asked for. */
  async createGraph(graph: string, partitions: number, interval = 0): Promise<void> {
    await createGraph(this.bus, new Registry(new NatsKv(this.connection, 1)), graph, {
      partitions,
      snapshots: { interval },
    });
  }

  /** Partitioner, one process per worker, gateway; ready when this returns. */
  async pipeline(graph: string, partitions: number, interval = 0): Promise<void> {
    await this.createGraph(graph, partitions, interval);
    this.startPipeline(partitions);
    await ready(this.url);
    await new Gateway(this.url).shared(partitions);
  }

  startPipeline(partitions: number): void {
    this.serve('partitioner', 'partitioner');
    for (let worker = 0; worker < partitions; worker++) this.serve(`worker-${worker}`, 'worker');
    this.serve('gateway', 'gateway', '--http', this.url.slice('http://'.length));
  }

  /** Another gateway, once it listens. */
  async gateway(name: string): Promise<Gateway> {
    const port = 20_000 + Math.floor(Math.random() * 20_000);
    this.serve(name, 'gateway', '--http', `127.0.0.1:${port}`);
    const gateway = new Gateway(`http://127.0.0.1:${port}`);
    await ready(gateway.url);
    return gateway;
  }

  async kill(name: string): Promise<void> {
    const child = this.byName.get(name)!;
    const ended = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGKILL');
    await ended;
  }

  /** Stream A → copy → stream B → sink, bare; gives what resolves when the sink has had `count` messages. */
  async copy(count: number): Promise<{ log: LogName; done: Promise<void> }> {
    const logs = ['A', 'B'].map((name) => ({ stream: name, subject: `bare.${name}` }));
    for (const { stream, subject } of logs) {
      await this.bus.create(stream, { subjects: [subject], discard: 'new', denyDelete: false });
    }
    this.children.push(
      spawn(process.execPath, [COPY, this.server.url, 'copy', String(count)], { stdio: 'inherit' }),
    );
    const sink = spawn(process.execPath, [COPY, this.server.url, 'sink', String(count)], {
      stdio: 'inherit',
    });
    this.children.push(sink);
    const done = new Promise<void>((resolve) => sink.once('exit', () => resolve()));
    // Both are reading before the first message is sent.
    await new Promise((resolve) => setTimeout(resolve, 1_500));
    return { log: logs[0]!, done };
  }

  /** Publishes all, WINDOW in flight; gives the last sequence. */
  async publish(log: LogName, payloads: readonly Uint8Array[], contentType: string): Promise<number> {
    let next = 0;
    let last = 0;
    const lane = async (): Promise<void> => {
      while (next < payloads.length) {
        const appended = await this.bus.append(log, payloads[next++]!, { contentType });
        if (appended.kind !== 'stored') throw new Error(appended.kind);
        last = Math.max(last, appended.sequence);
      }
    };
    await Promise.all(Array.from({ length: WINDOW }, lane));
    return last;
  }

  async visible(graph: string, sequence: number): Promise<void> {
    await new Gateway(this.url).visible(graph, sequence);
  }

  edges(graph: string): LogName {
    return edgesLog(graph);
  }

  async stop(): Promise<void> {
    for (const child of this.children) {
      if (child.exitCode !== null) continue;
      const ended = new Promise((resolve) => child.once('exit', resolve));
      child.kill('SIGTERM');
      await ended;
    }
    await this.connection.close();
    await this.server.stop();
    rmSync(this.folder, { recursive: true, force: true });
  }

  serve(name: string, roles: string, ...more: string[]): void {
    const args = ['serve', '--name', name, '--roles', roles, '--nats', this.server.url];
    args.push('--data', this.folder, '--log-level', 'error', ...more);
    const child = spawn(process.execPath, [PROGRAM, ...args], { stdio: ['ignore', 'inherit', 'inherit'] });
    this.children.push(child);
    this.byName.set(name, child);
  }
}

class Gateway {
  readonly url: string;

  private lastSnapshot = -1;

  constructor(url: string) {
    this.url = url;
  }

  async visible(graph: string, sequence: number): Promise<void> {
    for (;;) {
      const response = await fetch(`${this.url}/v1/graphs/${graph}?atLeast=${sequence}&timeout=60`).catch(
        () => undefined,
      );
      if (response?.ok === true) return;
      // Not listening yet, or not there yet.
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }

  /** Takes a snapshot; gives its size, and how long it took. */
  async snapshot(graph: string): Promise<{ bytes: number; newBytes: number; ms: number }> {
    const began = performance.now();
    const response = await fetch(`${this.url}/v1/graphs/${graph}/snapshots?timeout=60`, { method: 'POST' });
    for (;;) {
      const { snapshots } = (await (await fetch(`${this.url}/v1/graphs/${graph}/snapshots`)).json()) as {
        snapshots: { bytes: number; newBytes: number; verified: boolean; sequence: number }[];
      };
      const newest = snapshots[0];
      if (response.ok || (newest?.verified === true && newest.sequence > this.lastSnapshot)) {
        this.lastSnapshot = newest!.sequence;
        return { ...newest!, ms: performance.now() - began };
      }
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
  }

  /** Waits until each partition's worker has a process of its own: the first to start takes all, and hands over then. */
  async shared(partitions: number): Promise<void> {
    for (;;) {
      const owners = new Set((await this.owners()).filter((owner) => owner.startsWith('worker')));
      if (owners.size === partitions) return;
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
  }

  /** The instances that run a worker or the partitioner. */
  async owners(): Promise<string[]> {
    const { tasks } = (await (await fetch(`${this.url}/v1/cluster`)).json()) as {
      tasks: { role: string; owner: string | null }[];
    };
    return tasks.flatMap(({ role, owner }) => (role === 'gateway' || owner === null ? [] : [owner]));
  }
}

async function ready(url: string): Promise<void> {
  for (;;) {
    const ok = await fetch(`${url}/readyz`).then(
      (response) => response.ok,
      () => false,
    );
    if (ok) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
