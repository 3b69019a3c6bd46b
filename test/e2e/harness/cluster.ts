/**
 * A Watershed of real processes for a test: nats-server with a folder of its own, instances of the built
 * program, free ports. Everything is gone after `stop`.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, existsSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { GraphStatus } from '../../../libs/api/graph.ts';
import type { Problem } from '../../../libs/api/problem.ts';
import { freePort } from '../../../services/cli/free-port.ts';
import { type TestNatsServer, testNatsServer } from '../../integration/harness/nats.ts';

/** From here, which is in the sources or compiled itself. */
const DIST = import.meta.url.endsWith('.ts') ? '../../../dist' : '../../..';
export const PROGRAM = fileURLToPath(new URL(`${DIST}/services/cli/main.js`, import.meta.url));
const READY_MS = 30_000;

export interface Ran {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Who can be asked over HTTP. */
export interface Gateway {
  readonly url: string;
  get<Answer>(path: string): Promise<Answer>;
}

interface RunningProcess {
  readonly args: readonly string[];
  readonly env: NodeJS.ProcessEnv;
  child: ChildProcess;
}

export class Cluster implements Gateway {
  readonly nats: TestNatsServer;
  readonly folder: string;
  readonly url: string;
  readonly port: number;
  private readonly processes = new Map<string, RunningProcess>();

  private constructor(nats: TestNatsServer, folder: string, port: number) {
    this.nats = nats;
    this.folder = folder;
    this.port = port;
    this.url = `http://127.0.0.1:${port}`;
  }

  /** nats-server alone; instances are started by name. */
  static async create(options: { syncAlways?: boolean } = {}): Promise<Cluster> {
    if (!existsSync(PROGRAM)) throw new Error(`${PROGRAM} is not there: run "npm run build" first`);
    const nats = await testNatsServer(options);
    return new Cluster(nats, mkdtempSync(join(tmpdir(), 'watershed-e2e-')), await freePort());
  }

  /** One instance with all roles, ready. */
  static async single(options: { syncAlways?: boolean } = {}): Promise<Cluster> {
    const cluster = await Cluster.create(options);
    cluster.start('all', ['--roles', 'partitioner,worker,gateway']);
    await cluster.ready();
    return cluster;
  }

  start(name: string, args: readonly string[], env: NodeJS.ProcessEnv = {}): void {
    const all = ['serve', '--name', name, '--nats', this.nats.url, '--data', this.folder, ...args];
    if (args.some((arg) => arg.includes('gateway'))) all.push('--http', `127.0.0.1:${this.port}`);
    const log = openSync(this.logOf(name), 'a');
    const child = spawn(process.execPath, [PROGRAM, ...all], {
      env: { ...process.env, ...env },
      stdio: ['ignore', log, log],
    });
    closeSync(log);
    this.processes.set(name, { args, env, child });
  }

  logOf(name: string): string {
    return join(this.folder, `${name}.log`);
  }

  readLog(name: string): string {
    return readFileSync(this.logOf(name), 'utf8');
  }

  pid(name: string): number {
    return this.processes.get(name)!.child.pid!;
  }

  hasEnded(name: string): boolean {
    const { child } = this.processes.get(name)!;
    return child.exitCode !== null || child.signalCode !== null;
  }

  async kill9(name: string): Promise<void> {
    await ended(this.processes.get(name)!.child, 'SIGKILL');
  }

  async restart(name: string): Promise<void> {
    const { args, env } = this.processes.get(name)!;
    this.start(name, args, env);
  }

  async stopInstance(name: string): Promise<number | null> {
    return await ended(this.processes.get(name)!.child, 'SIGTERM');
  }

  async ready(ms = READY_MS): Promise<void> {
    await until(
      async () => {
        const response = await fetch(`${this.url}/readyz`);
        if (!response.ok) throw new Error(await response.text());
        return true;
      },
      `the gateway at ${this.url} to be ready`,
      ms,
    );
  }

  /** Waits until /readyz says 503 with this in its detail; gives the detail. */
  async unready(why: RegExp, ms = READY_MS): Promise<string> {
    let detail = '';
    await until(
      async () => {
        const response = await fetch(`${this.url}/readyz`);
        const text = await response.text();
        if (response.status !== 503 || !why.test(text)) throw new Error(`${response.status} ${text}`);
        detail = (JSON.parse(text) as Problem).detail;
        return true;
      },
      `the gateway at ${this.url} not to be ready for ${why}`,
      ms,
    );
    return detail;
  }

  async get<Answer>(path: string): Promise<Answer> {
    return await get<Answer>(this.url, path);
  }

  /** The status of a graph once the answers hold all through `sequence`. */
  async graph(name: string, sequence: number): Promise<GraphStatus> {
    return await this.get<GraphStatus>(`/v1/graphs/${name}?atLeast=${sequence}&timeout=30`);
  }

  /** What commands need to find this cluster. */
  get env(): NodeJS.ProcessEnv {
    return { ...process.env, WATERSHED_NATS: this.nats.url, WATERSHED_URL: this.url };
  }

  /** Runs a command of the built program against this cluster. */
  async watershed(args: readonly string[], input?: string | Uint8Array): Promise<Ran> {
    return await run([PROGRAM, ...args], this.env, input);
  }

  async stop(): Promise<void> {
    await Promise.all([...this.processes.values()].map(({ child }) => ended(child, 'SIGTERM')));
    await this.nats.stop();
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** A paused process keeps its connections and says nothing. */
const ANSWER_MS = 90_000;

export async function get<Answer>(url: string, path: string, ms = ANSWER_MS): Promise<Answer> {
  const response = await fetch(`${url}${path}`, { signal: AbortSignal.timeout(ms) });
  const text = await response.text();
  if (!response.ok) throw new Error(`GET ${path}: ${response.status} ${text}`);
  return JSON.parse(text) as Answer;
}

export async function run(
  args: readonly string[],
  env: NodeJS.ProcessEnv,
  input?: string | Uint8Array,
): Promise<Ran> {
  const child = spawn(process.execPath, args, { env, stdio: ['pipe', 'pipe', 'pipe'] });
  let stdout = '';
  let stderr = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
  });
  child.stdin.on('error', () => {});
  child.stdin.end(input);
  const status = await new Promise<number | null>((resolve) => child.once('close', resolve));
  return { status, stdout, stderr };
}

/** Waits for a condition; a condition that throws does not hold yet. */
export async function until(
  holds: () => Promise<boolean> | boolean,
  what: string,
  ms = READY_MS,
): Promise<void> {
  const end = performance.now() + ms;
  let last: unknown;
  while (performance.now() < end) {
    try {
      if (await holds()) return;
    } catch (error) {
      last = error;
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error(`waited ${ms} ms in vain for ${what}${last === undefined ? '' : ` (${String(last)})`}`);
}

export async function ended(child: ChildProcess, signal: NodeJS.Signals): Promise<number | null> {
  if (child.exitCode !== null || child.signalCode !== null) return child.exitCode;
  const exit = new Promise<number | null>((resolve) => child.once('exit', resolve));
  child.kill(signal);
  return await exit;
}
