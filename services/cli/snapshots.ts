/**
 * The commands around snapshots. Those that ask a gateway, like all other questions; and those that read and write chunks
 * themselves, past any gateway: verify, export, import, restore.
 */
import { mkdir, open, readdir, readFile, rename } from 'node:fs/promises';
import { join } from 'node:path';
import type { Snapshot, SnapshotList } from '../../libs/api/snapshot.ts';
import { createLogs, newIdentity } from '../../libs/bus/graphs.ts';
import type { Registry } from '../../libs/bus/registry.ts';
import type { GraphConfig, GraphWish } from '../../libs/dataflow/graph-config.ts';
import { edgesLog } from '../../libs/dataflow/names.ts';
import { partsProblem } from '../../libs/partitioning/partitioner-config.ts';
import {
  type Archive,
  ArchiveError,
  archiveText,
  cloneConfig,
  copyChunks,
  damagesOf,
  findSnapshot,
  readArchive,
  recordBase,
} from '../../libs/snapshot/archive.ts';
import { type Manifest, SnapshotRecords } from '../../libs/snapshot/records.ts';
import type { Bus, Chunks, Kv } from '../../libs/stage/ports.ts';
import { FileChunks } from '../../libs/store/file-chunks.ts';
import { CliError, EXIT } from './exit.ts';
import type { HttpClient } from './http-client.ts';
import { printJson, printLine, printTable, showBytes, showNumber } from './output.ts';

const MANIFEST_FILE = 'manifest.json';

export async function create(
  client: HttpClient,
  graph: string,
  name: string | undefined,
  timeout: number | undefined,
  json: boolean,
): Promise<void> {
  const body = name === undefined ? {} : { name };
  print(await client.post<Snapshot>(`/v1/graphs/${graph}/snapshots`, body, { timeout }), json);
}

export async function list(client: HttpClient, graph: string, json: boolean): Promise<void> {
  const answer = await client.get<SnapshotList>(`/v1/graphs/${graph}/snapshots`);
  if (json) {
    printJson(answer);
    return;
  }
  printTable(
    ['snapshot', 'name', 'message', 'of', 'generation', 'size', 'new', 'verified'],
    answer.snapshots.map((snapshot) => [
      String(snapshot.snapshot),
      snapshot.name ?? '',
      snapshot.sequence,
      snapshot.time ?? '',
      snapshot.generation,
      showBytes(snapshot.bytes),
      showBytes(snapshot.newBytes),
      snapshot.verified ? 'yes' : 'not yet',
    ]),
  );
}

export async function show(client: HttpClient, graph: string, which: string, json: boolean): Promise<void> {
  print(await client.get<Snapshot>(`/v1/graphs/${graph}/snapshots/${which}`), json);
}

export async function giveUp(client: HttpClient, graph: string, which: string, json: boolean): Promise<void> {
  await client.delete(`/v1/graphs/${graph}/snapshots/${which}`);
  if (json) printJson({ givenUp: which });
  else printLine(`snapshot ${which} goes when it is not among the newest any more`);
}

/** A snapshot's number, by its number or name. */
export async function numberOf(client: HttpClient, graph: string, which: string): Promise<number> {
  return (await client.get<Snapshot>(`/v1/graphs/${graph}/snapshots/${which}`)).snapshot;
}

function print(snapshot: Snapshot, json: boolean): void {
  if (json) {
    printJson(snapshot);
    return;
  }
  const { name, sequence, time, generation, partitions, bytes, newBytes, digest, verified } = snapshot;
  printLine(`snapshot ${snapshot.snapshot}${name === undefined ? '' : ` "${name}"`}`);
  printLine(`  as of message ${sequence}${time === null ? '' : `, ${time}`}`);
  printLine(`  generation ${generation}, ${partitions} ${partitions === 1 ? 'partition' : 'partitions'}`);
  printLine(`  ${showBytes(bytes)}, of which ${showBytes(newBytes)} were new`);
  printLine(`  digest ${digest}`);
  printLine(`  ${verified ? 'all of it was read back' : 'not read back yet'}`);
}

/** What the commands use that go past the gateways. */
export interface SnapshotStores {
  readonly bus: Bus;
  readonly kv: Kv;
  readonly registry: Registry;
  readonly chunks: Chunks;
}

/** Reads every chunk back; `all`: of all snapshots. False if something is damaged. */
export async function verify(
  { registry, kv, chunks }: SnapshotStores,
  graph: string,
  which: string,
  json: boolean,
): Promise<boolean> {
  const config = await configOf(registry, graph);
  const { manifests } = await new SnapshotRecords(kv, config.id).read();
  const asked = which === 'all' ? manifests : [found(manifests, graph, which)];
  const whole = new Set<string>();
  const results: { snapshot: number; sequence: number; damages: string[] }[] = [];
  for (const manifest of asked) {
    const { barrier, sequence } = manifest;
    const damages = await damagesOf(chunks, manifest, whole);
    results.push({ snapshot: barrier, sequence, damages });
    if (json) continue;
    if (damages.length === 0) printLine(`snapshot ${barrier}, at message ${sequence}: whole`);
    for (const damage of damages) printLine(`snapshot ${barrier}, at message ${sequence}: ${damage}`);
  }
  if (json) printJson({ graph, chunks: whole.size, snapshots: results });
  else if (asked.length === 0) printLine(`graph ${graph} has no snapshots`);
  else printLine(`${showNumber(whole.size)} chunks were read back as they were stored`);
  return results.every(({ damages }) => damages.length === 0);
}

/** Writes a snapshot into a folder of its own; the record last, without which it is none. */
export async function exportTo(
  { registry, kv, chunks }: SnapshotStores,
  graph: string,
  which: string,
  folder: string,
  json: boolean,
): Promise<void> {
  const config = await configOf(registry, graph);
  const { manifests } = await new SnapshotRecords(kv, config.id).read();
  const manifest = found(manifests, graph, which);
  await mkdir(folder, { recursive: true });
  if ((await readdir(folder)).length > 0)
    throw new CliError(EXIT.failed, `${folder} is not empty: name a folder that is, or none that is there`);
  const copied = await explained(`snapshot ${manifest.barrier} of ${graph}`, () =>
    copyChunks(chunks, new FileChunks(folder), manifest),
  );
  await writeWhole(join(folder, MANIFEST_FILE), archiveText({ graph: config, manifest }));
  const { barrier, sequence } = manifest;
  if (json) printJson({ graph, snapshot: barrier, sequence, folder, ...copied });
  else {
    printLine(
      `snapshot ${barrier} of ${graph}, at message ${sequence}, is in ${folder}: ` +
        `${showNumber(copied.chunks)} chunks, ${showBytes(copied.bytes)}`,
    );
  }
}

export async function readArchiveIn(folder: string): Promise<Archive> {
  const path = join(folder, MANIFEST_FILE);
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    throw new CliError(
      EXIT.failed,
      code === 'ENOENT' ? `${folder} holds no exported snapshot: there is no ${path}` : message,
      { cause: error },
    );
  }
  return await explained(path, async () => readArchive(text));
}

/** A new graph that goes on from an exported snapshot. */
export async function importFrom(
  stores: SnapshotStores,
  folder: string,
  archive: Archive,
  name: string,
  wish: GraphWish,
  json: boolean,
): Promise<void> {
  await assertNew(stores, name);
  await explained(folder, () => copyChunks(new FileChunks(folder), stores.chunks, archive.manifest));
  printClone(await clone(stores, archive, name, wish), archive, json);
}

/** A new graph that goes on from a snapshot of one that is here. */
export async function restore(
  stores: SnapshotStores,
  graph: string,
  which: string,
  name: string,
  wish: GraphWish,
  json: boolean,
): Promise<void> {
  const config = await configOf(stores.registry, graph);
  const { manifests } = await new SnapshotRecords(stores.kv, config.id).read();
  const archive = { graph: config, manifest: found(manifests, graph, which) };
  await assertNew(stores, name);
  printClone(await clone(stores, archive, name, wish), archive, json);
}

/**
 * The chunks must be in the store. Their names are recorded first, so that nobody removes them, and then all are read
 * back.
 */
async function clone(
  { bus, kv, registry, chunks }: SnapshotStores,
  archive: Archive,
  name: string,
  wish: GraphWish,
): Promise<GraphConfig> {
  const { manifest } = archive;
  const baseId = newIdentity(name).id;
  const config = cloneConfig(newIdentity(name), archive, wish, baseId);
  const problem = partsProblem(config.partitioner, config.partitions);
  if (problem !== undefined) throw new CliError(EXIT.usage, `--partitions: ${problem}`);
  const forget = async (): Promise<void> => await new SnapshotRecords(kv, baseId).removeAll();
  try {
    await recordBase(kv, baseId, manifest);
    const [damage] = await damagesOf(chunks, manifest, new Set());
    if (damage !== undefined)
      throw new CliError(EXIT.failed, `snapshot ${manifest.barrier} cannot be read back: ${damage}`);
    await makeLogs(bus, config, manifest.sequence);
  } catch (error) {
    await forget();
    throw error;
  }
  if (await registry.createGraph(config)) return config;
  await forget();
  throw graphExists(name);
}

async function makeLogs(bus: Bus, config: GraphConfig, sequence: number): Promise<void> {
  const { name, replicas } = config;
  const { stream } = edgesLog(name);
  try {
    await createLogs(bus, config, sequence);
  } catch (error) {
    throw new CliError(
      EXIT.failed,
      `the streams of ${name} cannot be made with ${replicas} ${replicas === 1 ? 'replica' : 'replicas'} ` +
        `(${error instanceof Error ? error.message : String(error)}): see --replicas`,
      { cause: error },
    );
  }
  const edges = await bus.describe(stream);
  if (edges?.first !== sequence + 1)
    throw new CliError(EXIT.failed, `${stream} was made by somebody else meanwhile: remove it first`);
}

function printClone(config: GraphConfig, { graph, manifest }: Archive, json: boolean): void {
  const { name, id, partitions } = config;
  const { barrier, sequence } = manifest;
  if (json)
    printJson({ graph: name, id, partitions, from: { graph: graph.name, snapshot: barrier, sequence } });
  else {
    printLine(
      `graph ${name} begins with snapshot ${barrier} of ${graph.name}: ${partitions} partitions, its first message is ` +
        `number ${sequence + 1}`,
    );
  }
}

async function assertNew({ registry, bus }: SnapshotStores, name: string): Promise<void> {
  if ((await registry.graph(name)) !== undefined) throw graphExists(name);
  const { stream } = edgesLog(name);
  if ((await bus.describe(stream)) === undefined) return;
  throw new CliError(
    EXIT.failed,
    `there is a stream ${stream} already, which does not go on from the snapshot: choose another name`,
  );
}

function graphExists(name: string): CliError {
  return new CliError(EXIT.failed, `there is a graph ${name} already: choose another name`);
}

async function configOf(registry: Registry, graph: string): Promise<GraphConfig> {
  const record = await registry.graph(graph);
  if (record === undefined) throw new CliError(EXIT.notFound, `there is no graph ${graph}`);
  return record.config;
}

function found(manifests: readonly Manifest[], graph: string, which: string): Manifest {
  const manifest = findSnapshot(manifests, which);
  if (manifest === undefined) throw new CliError(EXIT.notFound, `graph ${graph} has no snapshot ${which}`);
  return manifest;
}

/** What is wrong with `what` becomes one line for the person. */
async function explained<T>(what: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof ArchiveError)) throw error;
    throw new CliError(EXIT.failed, `${what}: ${error.message}`, { cause: error });
  }
}

/** It is there whole and on disk, or not at all. */
async function writeWhole(path: string, text: string): Promise<void> {
  const temporary = `${path}.tmp`;
  const file = await open(temporary, 'wx');
  try {
    await file.writeFile(text);
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(temporary, path);
}
