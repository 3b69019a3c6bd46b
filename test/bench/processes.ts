/** What the end-to-end benches run: nats-server, the product's instances, and the bare copy, each a process. */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { NatsConnection } from 'nats';
import { createGraph } from '../../libs/bus/graphs.ts';
import { connectNats, NatsBus } from '../../libs/bus/nats-bus.ts';
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

  async createGraph(graph: string, partitions: number): Promise<void> {
    await createGraph(this.bus, new Registry(this.connection), graph, partitions);
  }

  /** Partitioner, one process per worker, gateway; ready when this returns. */
  async pipeline(graph: string, partitions: number): Promise<void> {
    await this.createGraph(graph, partitions);
    this.startPipeline(partitions);
    await this.ready();
  }

  startPipeline(partitions: number): void {
    this.serve('partitioner');
    for (let partition = 0; partition < partitions; partition++)
      this.serve('worker', '--partitions', String(partition));
    this.serve('gateway', '--http', this.url.slice('http://'.length));
  }

  private async ready(): Promise<void> {
    for (;;) {
      const ok = await fetch(`${this.url}/readyz`).then(
        (response) => response.ok,
        () => false,
      );
      if (ok) break;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
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
    for (;;) {
      const response = await fetch(`${this.url}/v1/graphs/${graph}?atLeast=${sequence}&timeout=60`).catch(
        () => undefined,
      );
      if (response?.ok === true) return;
      // Not listening yet, or not there yet.
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
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

  private serve(role: string, ...more: string[]): void {
    const args = [
      'serve',
      '--roles',
      role,
      '--nats',
      this.server.url,
      '--data',
      this.folder,
      '--log-level',
      'error',
    ];
    this.children.push(
      spawn(process.execPath, [PROGRAM, ...args, ...more], { stdio: ['ignore', 'inherit', 'inherit'] }),
    );
  }
}
