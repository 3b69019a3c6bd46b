/**
 * `watershed demo`: two graphs stream in, exact answers come out, and everything is stopped again.
 *
 * The first graph is one that every clone has: the dependencies in its own package-lock.json. The second is
 * generated: a million edges between accounts and devices, few of them busy and most of them rare.
 */
import { randomBytes } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ComponentsPage } from '../../libs/api/component.ts';
import type { GraphStatus } from '../../libs/api/graph.ts';
import type { Connection } from '../../libs/api/vertex.ts';
import { connectNats, NatsBus } from '../../libs/bus/nats-bus.ts';
import { edgesLog } from '../../libs/dataflow/names.ts';
import { CliError, EXIT } from './exit.ts';
import { freePort } from './free-port.ts';
import { HttpClient } from './http-client.ts';
import { processClock } from './instance.ts';
import { EdgeBatches } from './load/edge-batches.ts';
import { EdgeSender } from './load/send.ts';
import { printLine, printTable, say, showId, showNumber } from './output.ts';
import { Progress } from './progress.ts';
import { describeConnection } from './queries.ts';
import { Up } from './up.ts';

const DEPENDENCIES = 'dependencies';
const SKEWED = 'accounts';
const SKEWED_EDGES = 1_000_000;
const VISIBLE_SECONDS = 60;

export interface DemoOptions {
  /** Leave all running until Ctrl-C. */
  readonly keep: boolean;
  readonly partitions: number;
}

export async function demo(options: DemoOptions, signal: AbortSignal): Promise<void> {
  const dataFolder = mkdtempSync(join(tmpdir(), 'watershed-demo-'));
  const interrupted = new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
  let up: Up | undefined;
  try {
    const http = { host: '127.0.0.1', port: await freePort() };
    say(`starting nats-server and the instances, data in ${dataFolder}`);
    up = await Up.start({ dataFolder, natsPort: 0, natsUrl: undefined, http, graph: undefined, say }, signal);
    const showing = showAll(up, options.partitions);
    await Promise.race([showing, interrupted]);
    signal.throwIfAborted();
    if (options.keep) {
      printLine(
        `NATS is at ${up.natsUrl}: nats --server ${up.natsUrl} pub --jetstream ${edgesLog(SKEWED).subject} '{"source":"ann","target":"bob"}'`,
      );
      say('running until Ctrl-C');
      await interrupted;
    } else printLine('(with "npm run demo -- --keep" it stays there)');
  } finally {
    say('stopping');
    await up?.stop();
    rmSync(dataFolder, { recursive: true, force: true });
  }
}

async function showAll(up: Up, partitions: number): Promise<void> {
  const client = new HttpClient(up.url);
  await streamIn(up, client, DEPENDENCIES, partitions, packageLockEdges(), 20);
  await streamIn(up, client, SKEWED, partitions, skewedEdges(SKEWED_EDGES), SKEWED_EDGES);
  await show(client, DEPENDENCIES);
  await show(client, SKEWED);
  await showConnection(client);
  printLine();
  printLine(`The gateway answers at ${up.url}; try:`);
  printLine(`  curl '${up.url}/v1/graphs/${DEPENDENCIES}/connected?source=level&target=prom-client'`);
}

/** Sends all edges and waits until the answers hold them, with a progress bar. */
async function streamIn(
  up: Up,
  client: HttpClient,
  graph: string,
  partitions: number,
  edges: readonly (readonly [string, string])[],
  edgesPerMessage: number,
): Promise<void> {
  await client.put(`/v1/graphs/${graph}`, { partitions });
  const connection = await connectNats({ url: up.natsUrl, name: 'watershed demo', wait: false });
  const progress = new Progress(process.stderr, process.stderr.isTTY, edges.length);
  const sender = new EdgeSender(
    new NatsBus(connection),
    edgesLog(graph),
    randomBytes(8).toString('hex'),
    processClock,
    say,
  );
  const began = performance.now();
  let visible = 0;
  const show = (): void => {
    const { edges: sent, lastSequence = 0 } = sender.sent;
    const rate = Math.round((sent / (performance.now() - began)) * 1000);
    progress.update(
      sent,
      `${graph}: ${showNumber(sent)} edges, ${showNumber(rate)} edges/s, sequence ${lastSequence}, lag ${Math.max(0, lastSequence - visible)}`,
    );
  };
  const poll = setInterval(() => {
    // A late answer only makes the bar late.
    client.get<GraphStatus>(`/v1/graphs/${graph}`).then(
      ({ totals }) => {
        visible = totals.sequence;
        show();
      },
      () => {},
    );
  }, 200);
  try {
    const encoder = new TextEncoder();
    const batches = new EdgeBatches();
    for (const [at, [source, target]] of edges.entries()) {
      const a = encoder.encode(source);
      const b = encoder.encode(target);
      batches.add(a, 0, a.length, b, 0, b.length, undefined, undefined);
      if (at % edgesPerMessage === edgesPerMessage - 1) batches.close();
      for (const payload of batches.take()) {
        await sender.send(payload);
        show();
      }
    }
    batches.close();
    for (const payload of batches.take()) await sender.send(payload);
    const { lastSequence } = await sender.finish();
    visible = lastSequence ?? 0;
    await client.get(`/v1/graphs/${graph}`, { atLeast: lastSequence, timeout: VISIBLE_SECONDS });
    show();
    const seconds = (performance.now() - began) / 1000;
    say(
      `\r${graph}: ${showNumber(edges.length)} edges in the answers after ${seconds.toFixed(1)} s (${showNumber(Math.round(edges.length / seconds))} edges/s)`,
    );
  } finally {
    clearInterval(poll);
    progress.stop();
    await connection.close();
  }
}

interface PackageLock {
  readonly packages: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
}

/** Package – package it depends on, of every kind of dependency in the lock file. */
function packageLockEdges(): [string, string][] {
  const path = new URL('../../../package-lock.json', import.meta.url);
  const { packages } = JSON.parse(readFileSync(path, 'utf8')) as PackageLock;
  const edges: [string, string][] = [];
  // The project itself last: what it brings together was not connected before.
  const [project, ...others] = Object.entries(packages);
  for (const [folder, entry] of [...others, project!]) {
    const name = folder === '' ? 'watershed' : folder.slice(folder.lastIndexOf('node_modules/') + 13);
    for (const kind of ['dependencies', 'devDependencies', 'optionalDependencies', 'peerDependencies']) {
      for (const dependency of Object.keys((entry[kind] as object | undefined) ?? {}))
        edges.push([name, dependency]);
    }
  }
  return edges;
}

/** Accounts and the devices they were seen on; ranks are cubed, so that a few are in most edges. */
function skewedEdges(count: number): [string, string][] {
  const random = mulberry32(20261130);
  const edges: [string, string][] = [];
  for (let n = 0; n < count; n++) {
    const account = Math.floor(random() ** 3 * 600_000);
    const device = Math.floor(random() * 700_000);
    edges.push([`account-${account}`, `device-${device}`]);
  }
  return edges;
}

/** Tommy Ettinger's mulberry32: the same numbers on every machine. */
function mulberry32(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

async function show(client: HttpClient, graph: string): Promise<void> {
  const { totals, asOf } = await client.get<GraphStatus>(`/v1/graphs/${graph}`);
  const page = await client.get<ComponentsPage>(`/v1/graphs/${graph}/components`, { limit: 5 });
  printLine();
  printLine(
    `${graph}: ${showNumber(totals.edges)} edges, ${showNumber(totals.vertices)} vertices in ` +
      `${showNumber(totals.components)} component${totals.components === 1 ? '' : 's'}, as of message ${asOf.sequence}`,
  );
  printTable(
    ['largest components', 'vertices'],
    page.components.map(({ id, size }) => [showId(id), size]),
  );
}

async function showConnection(client: HttpClient): Promise<void> {
  const pair = { source: 'level', target: 'prom-client' };
  const path = `/v1/graphs/${DEPENDENCIES}/connected`;
  const now = await client.get<Connection>(path, pair);
  printLine();
  printLine(`Are ${pair.source} and ${pair.target} connected in ${DEPENDENCIES}?`);
  for (const line of describeConnection(now)) printLine(`  ${line}`);
  const since = now.since?.sequence;
  if (since === undefined || since < 2) return;
  printLine(`And one message earlier, as of ${since - 1}?`);
  try {
    const before = await client.get<Connection>(path, { ...pair, asOf: since - 1 });
    for (const line of describeConnection(before)) printLine(`  ${line}`);
  } catch (error) {
    // One of the two may not have been there yet, which is an answer too.
    if (!(error instanceof CliError) || error.status !== EXIT.notFound) throw error;
    printLine(`  no: ${error.message}`);
  }
}
