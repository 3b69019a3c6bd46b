/**
 * The nats-server of this machine: finds one that is good enough, gets one if there is none, runs it.
 *
 * The program is looked for in NATS_SERVER_BIN, on PATH and in the user's cache folder, in that order; one
 * that is too old is refused by name of what it lacks and the search goes on. What is fetched lands in the
 * cache folder by a rename, so that a reader sees a whole program or none, however many fetch at once.
 */

import { type ChildProcess, execFile, spawn } from 'node:child_process';
import {
  access,
  chmod,
  constants,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  writeFile,
} from 'node:fs/promises';
import { createServer } from 'node:net';
import { homedir } from 'node:os';
import { delimiter, isAbsolute, join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { buildWithGo, type DownloadOptions, downloadFromDebian, reasonOf } from './nats-server-download.ts';

const NATS_SERVER_VERSION_MIN = '2.10.27';

export type NatsServerErrorCode =
  | 'nats-server-unusable'
  | 'nats-server-missing'
  | 'nats-port-taken'
  | 'nats-store-in-use'
  | 'nats-start-failed';

/** An operating error around the program nats-server; the message says what to do. */
export class NatsServerError extends Error {
  readonly code: NatsServerErrorCode;

  constructor(code: NatsServerErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'NatsServerError';
    this.code = code;
  }
}

export type NatsServerSearch =
  | { readonly kind: 'found'; readonly path: string; readonly version: string }
  /** `refused`: every program that was found and why it will not do. */
  | { readonly kind: 'missing'; readonly refused: readonly string[] };

/** Where the project keeps programs that it fetched for this user. */
export function userCacheFolder(
  env: NodeJS.ProcessEnv,
  platform: NodeJS.Platform = process.platform,
): string {
  const home = env['HOME'] || homedir();
  if (platform === 'win32') {
    return join(env['LOCALAPPDATA'] || join(home, 'AppData', 'Local'), 'watershed');
  }
  const xdg = env['XDG_CACHE_HOME'];
  if (xdg && isAbsolute(xdg)) return join(xdg, 'watershed');
  return platform === 'darwin'
    ? join(home, 'Library', 'Caches', 'watershed')
    : join(home, '.cache', 'watershed');
}

/** NATS_SERVER_BIN, then PATH, then the cache folder. NATS_SERVER_BIN is a decision: if it will not do, that throws. */
export async function findNatsServer(env: NodeJS.ProcessEnv, cacheFolder: string): Promise<NatsServerSearch> {
  const chosen = env['NATS_SERVER_BIN'];
  if (chosen) {
    const path = resolve(chosen);
    const probe = await probeProgram(path);
    if (probe.kind === 'usable') return { kind: 'found', path, version: probe.version };
    throw new NatsServerError(
      'nats-server-unusable',
      `NATS_SERVER_BIN is ${path}, which will not do: ${probe.reason}. ` +
        `Set it to a nats-server ${NATS_SERVER_VERSION_MIN} or later, or unset it.`,
    );
  }

  const refused: string[] = [];
  for (const folder of [...pathFolders(env), join(cacheFolder, 'bin')]) {
    const path = join(folder, PROGRAM);
    if (!(await isExecutable(path))) continue;
    const probe = await probeProgram(path);
    if (probe.kind === 'usable') return { kind: 'found', path, version: probe.version };
    refused.push(`${path}: ${probe.reason}`);
  }
  return { kind: 'missing', refused };
}

export interface EnsureOptions {
  /** Gets a line when something takes long enough that a person would wonder. */
  readonly log: (line: string) => void;
  readonly env?: NodeJS.ProcessEnv;
}

/** The path of a nats-server that will do, fetched if need be. */
export async function ensureNatsServer({ log, env = process.env }: EnsureOptions): Promise<string> {
  const cacheFolder = userCacheFolder(env);
  const search = await findNatsServer(env, cacheFolder);
  if (search.kind === 'found') return search.path;
  for (const refusal of search.refused) log(`passing over ${refusal}`);

  const tried: string[] = [...search.refused];
  try {
    await mkdir(join(cacheFolder, 'bin'), { recursive: true });
  } catch (error) {
    tried.push(`the cache folder (XDG_CACHE_HOME chooses another): ${reasonOf(error)}`);
    throw new NatsServerError('nats-server-missing', missingText(tried), { cause: error });
  }
  const ways = [
    { name: "Debian's package", fetch: downloadFromDebian },
    { name: 'Go', fetch: buildWithGo },
  ];
  for (const { name, fetch } of ways) {
    try {
      return await fetchInto(cacheFolder, fetch, { log, env });
    } catch (error) {
      tried.push(`${name}: ${reasonOf(error)}`);
    }
  }
  throw new NatsServerError('nats-server-missing', missingText(tried));
}

export interface NatsServerOptions {
  /** The program, from `ensureNatsServer`. */
  readonly bin: string;
  /** Holds the streams and the configuration; made if need be. A server started on it again goes on with it. */
  readonly storeDir: string;
  /** 0 takes a free one. */
  readonly port: number;
  readonly host?: string;
  /** Every message is on disk before it is acknowledged: slower, and safe against a power cut. */
  readonly syncAlways: boolean;
  /** Rotated by the server at 10 MB. Without it the log is dropped, but for what an error quotes. */
  readonly logFile?: string;
}

export interface NatsServer {
  readonly url: string;
  readonly host: string;
  readonly port: number;
  readonly process: ChildProcess;
  /** Fulfils when the process is gone, however it went. */
  readonly exited: Promise<void>;
  /** Asks the server to end, and kills it if it has not after five seconds. */
  stop(): Promise<void>;
  /** Ends the server as `kill -9` does. */
  kill(): Promise<void>;
}

/** Restoring large streams comes before the port opens. */
const READY_TIMEOUT_MS = 120_000;
const STOP_TIMEOUT_MS = 5_000;
const POLL_MS = 15;

/** Starts a nats-server with JetStream and returns when it takes connections. When this process exits, it is killed. */
export async function startNatsServer(options: NatsServerOptions): Promise<NatsServer> {
  const { bin, port, syncAlways } = options;
  const host = options.host ?? '127.0.0.1';
  const storeDir = resolve(options.storeDir);
  const logFile = options.logFile === undefined ? undefined : resolve(options.logFile);
  await mkdir(storeDir, { recursive: true });
  // The server itself opens the store before its port, and locks nothing: a second one would write into the
  // files of the first, even if it only lives until it finds the port taken. So both are asked beforehand.
  await claimStore(storeDir);
  if (port !== 0 && (await isTaken(host, port))) throw portTaken(host, port);
  const configFile = join(storeDir, 'nats-server.conf');
  await writeFile(configFile, configText({ host, port, storeDir, syncAlways, logFile }));
  const logStart = logFile === undefined ? 0 : await sizeOf(logFile);

  // In a group of its own: Ctrl-C is for this process, which stops its server last.
  const child = spawn(bin, ['-c', configFile], { stdio: ['ignore', 'ignore', 'pipe'], detached: true });
  let stderr = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr = (stderr + text).slice(-8_192);
  });
  const exited = new Promise<void>((done) => {
    // 'close' and not 'exit', so that stderr is whole; a program that cannot be started has only an 'error'.
    child.once('close', () => done());
    child.once('error', (error) => {
      stderr += error.message;
      done();
    });
  });
  const killWithParent = () => child.kill('SIGKILL');
  process.once('exit', killWithParent);
  let gone = false;
  void exited.then(() => {
    gone = true;
    process.off('exit', killWithParent);
  });

  const kill = async () => {
    if (!gone) child.kill('SIGKILL');
    await exited;
  };
  const stop = async () => {
    if (!gone) child.kill('SIGTERM');
    const timer = setTimeout(() => child.kill('SIGKILL'), STOP_TIMEOUT_MS);
    await exited;
    clearTimeout(timer);
  };

  const deadline = performance.now() + READY_TIMEOUT_MS;
  while (!gone && performance.now() < deadline) {
    const listening = await listeningPort(storeDir, child.pid);
    if (listening !== undefined) {
      return {
        url: `nats://${urlHost(host)}:${listening}`,
        host,
        port: listening,
        process: child,
        exited,
        stop,
        kill,
      };
    }
    await new Promise((wake) => setTimeout(wake, POLL_MS));
  }

  const inTime = gone;
  await kill();
  const logText = logFile === undefined ? '' : await textFrom(logFile, logStart);
  throw startError({ bin, host, port, inTime, output: `${logText}\n${stderr}` });
}

const PROGRAM = process.platform === 'win32' ? 'nats-server.exe' : 'nats-server';

const execute = promisify(execFile);

type Probe =
  | { readonly kind: 'usable'; readonly version: string }
  | { readonly kind: 'refused'; readonly reason: string };

async function probeProgram(path: string): Promise<Probe> {
  let output: string;
  try {
    output = (await execute(path, ['--version'], { timeout: 10_000 })).stdout;
  } catch (error) {
    return { kind: 'refused', reason: `it does not run (${reasonOf(error)})` };
  }
  const version = parseNatsServerVersion(output);
  if (version === undefined) {
    return {
      kind: 'refused',
      reason: `it does not say which version it is (${JSON.stringify(output.slice(0, 80))})`,
    };
  }
  const lack = lackOf(version);
  return lack === undefined
    ? { kind: 'usable', version }
    : { kind: 'refused', reason: `version ${version} ${lack}` };
}

/** `nats-server: v2.10.27` → `2.10.27`. */
export function parseNatsServerVersion(output: string): string | undefined {
  return /^nats-server: v?(\d+\.\d+\.\d+\S*)/m.exec(output)?.[1];
}

/** What a version lacks for Watershed; undefined if it will do. */
export function lackOf(version: string): string | undefined {
  const [major = 0, minor = 0, patch = 0] = version.split(/[.-]/, 3).map(Number);
  if (major !== 2) return major > 2 ? undefined : 'has no JetStream';
  if (minor < 10) {
    return 'has no `sync_interval`, so it cannot be made safe against a power cut, and no stream metadata or `first_seq`';
  }
  if (minor > 10) return undefined;
  if (patch >= 20 && patch <= 22) return 'can delete a whole stream after it was killed';
  if (patch < 27) return `lacks the JetStream fixes up to ${NATS_SERVER_VERSION_MIN}`;
  return undefined;
}

function pathFolders(env: NodeJS.ProcessEnv): string[] {
  const path = env['PATH'] ?? env['Path'] ?? '';
  return path.split(delimiter).filter((folder) => folder !== '');
}

async function isExecutable(path: string): Promise<boolean> {
  try {
    await access(path, constants.X_OK);
    return (await stat(path)).isFile();
  } catch {
    return false;
  }
}

type FetchWay = (options: DownloadOptions) => Promise<string>;

/** Work folders that a killed fetch left behind are removed when they are this old. */
const ABANDONED_MS = 3_600_000;
const WORK_PREFIX = 'fetch-';

async function fetchInto(
  cacheFolder: string,
  way: FetchWay,
  options: Required<EnsureOptions>,
): Promise<string> {
  await removeAbandoned(cacheFolder);
  const folder = await mkdtemp(join(cacheFolder, WORK_PREFIX));
  try {
    const fetched = await way({ folder, ...options });
    await chmod(fetched, 0o755);
    const probe = await probeProgram(fetched);
    if (probe.kind === 'refused') throw new Error(probe.reason);
    const path = join(cacheFolder, 'bin', PROGRAM);
    await rename(fetched, path);
    options.log(`nats-server ${probe.version} is in ${path}`);
    return path;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function removeAbandoned(cacheFolder: string): Promise<void> {
  for (const name of await readdir(cacheFolder)) {
    if (!name.startsWith(WORK_PREFIX)) continue;
    const folder = join(cacheFolder, name);
    const age = await stat(folder).then(
      ({ mtimeMs }) => Date.now() - mtimeMs,
      () => 0,
    );
    if (age > ABANDONED_MS) await rm(folder, { recursive: true, force: true });
  }
}

function missingText(tried: readonly string[]): string {
  return [
    `There is no nats-server ${NATS_SERVER_VERSION_MIN} or later on this machine, and it could not be fetched.`,
    'Tried:',
    ...tried.map((line) => `  - ${line}`),
    'Get it in one of these ways, then run the command again:',
    '  - macOS: brew install nats-server',
    '  - Windows: winget install NATSAuthors.NATSServer, or scoop install nats-server',
    '  - Docker: docker run -p 4222:4222 nats:2.10 -js, then give Watershed --nats nats://127.0.0.1:4222',
    '  - any other: unpack a release of nats-server and set NATS_SERVER_BIN to the program',
  ].join('\n');
}

interface ConfigValues {
  readonly host: string;
  readonly port: number;
  readonly storeDir: string;
  readonly syncAlways: boolean;
  readonly logFile: string | undefined;
}

function configText({ host, port, storeDir, syncAlways, logFile }: ConfigValues): string {
  const lines = [
    `host: ${JSON.stringify(host)}`,
    `port: ${port === 0 ? -1 : port}`,
    `ports_file_dir: ${JSON.stringify(storeDir)}`,
    'jetstream {',
    `  store_dir: ${JSON.stringify(storeDir)}`,
  ];
  if (syncAlways) lines.push('  sync_interval: always');
  lines.push('}');
  if (logFile !== undefined) {
    lines.push(`log_file: ${JSON.stringify(logFile)}`, 'logfile_size_limit: 10MB', 'logfile_max_num: 3');
  }
  return `${lines.join('\n')}\n`;
}

/** The server writes `<program>_<pid>.ports` once it takes connections, and leaves it behind when it is killed. */
const PORTS_FILE = /_(\d+)\.ports$/;

/** Throws if a server that lives uses the store; removes what dead ones left. */
async function claimStore(storeDir: string): Promise<void> {
  for (const name of await readdir(storeDir)) {
    const pid = Number(PORTS_FILE.exec(name)?.[1]);
    if (!pid) continue;
    // The process id alone may be another program's by now.
    const port = await listeningPort(storeDir, pid);
    if (isAlive(pid) && port !== undefined && (await isTaken('127.0.0.1', port))) {
      throw new NatsServerError(
        'nats-store-in-use',
        `${storeDir} is in use by the nats-server with process id ${pid} on port ${port}: stop it, or choose another folder.`,
      );
    }
    await rm(join(storeDir, name), { force: true });
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

/** Whether somebody listens there already; any other obstacle is left for the server to report. */
export async function isTaken(host: string, port: number): Promise<boolean> {
  const probe = createServer();
  return await new Promise((done) => {
    probe.once('error', (error: NodeJS.ErrnoException) => done(error.code === 'EADDRINUSE'));
    probe.listen(port, host, () => probe.close(() => done(false)));
  });
}

async function listeningPort(folder: string, pid: number | undefined): Promise<number | undefined> {
  const name = (await readdir(folder)).find((entry) => PORTS_FILE.exec(entry)?.[1] === String(pid));
  if (name === undefined) return undefined;
  const text = await readFile(join(folder, name), 'utf8');
  // The file is not written at once: until its end is there, it is not there.
  const port = /"nats":\["nats:\/\/[^"]*:(\d+)"[^}]*\}/.exec(text)?.[1];
  return port === undefined ? undefined : Number(port);
}

function urlHost(host: string): string {
  if (host === '0.0.0.0' || host === '::') return '127.0.0.1';
  return host.includes(':') ? `[${host}]` : host;
}

async function sizeOf(path: string): Promise<number> {
  return await stat(path).then(
    ({ size }) => size,
    () => 0,
  );
}

async function textFrom(path: string, start: number): Promise<string> {
  return await readFile(path).then(
    (bytes) => bytes.subarray(start).toString('utf8'),
    () => '',
  );
}

interface FailedStart {
  readonly bin: string;
  readonly host: string;
  readonly port: number;
  readonly inTime: boolean;
  readonly output: string;
}

function startError({ bin, host, port, inTime, output }: FailedStart): NatsServerError {
  if (/address already in use|only one usage of each socket address/i.test(output)) {
    return portTaken(host, port);
  }
  const lines = output.split('\n').filter((line) => line.trim() !== '');
  const what = inTime ? 'ended at once' : `took no connections within ${READY_TIMEOUT_MS / 1000} s`;
  return new NatsServerError(
    'nats-start-failed',
    [`${bin} ${what}; the last it said:`, ...lines.slice(-5).map((line) => `  ${line}`)].join('\n'),
  );
}

function portTaken(host: string, port: number): NatsServerError {
  return new NatsServerError(
    'nats-port-taken',
    `Port ${port} on ${host} is taken: stop what listens there, or choose another port with --nats-port.`,
  );
}
