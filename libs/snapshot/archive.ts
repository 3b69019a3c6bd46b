/**
 * Snapshots beyond the graph that they are of: read back chunk by chunk, carried in an archive to wherever, and given
 * to another graph to begin with.
 *
 * An archive is a folder: its record, `manifest.json`, written last, and the chunks as a file store has them.
 *
 * A graph that begins with the snapshot of another one has the snapshot's records under an id that is that snapshot's
 * alone. So what becomes of the other graph is no concern of it, nobody drops them as old ones, and whoever collects
 * chunks finds them named.
 */
import { checksum, NO_LANES } from '../dataflow/checksum.ts';
import { type GraphConfig, type GraphWish, newGraphConfig, REPLICAS } from '../dataflow/graph-config.ts';
import { PARTITIONS_MAX } from '../dataflow/names.ts';
import type { Chunks, Kv } from '../stage/ports.ts';
import { chunkNames } from './part-chunks.ts';
import { type Manifest, SnapshotRecords, tasksOf } from './records.ts';

const FORMAT = 1;

export interface Archive {
  /** The graph as it was configured. */
  readonly graph: GraphConfig;
  readonly manifest: Manifest;
}

/** What is there cannot be used, and why. */
export class ArchiveError extends Error {
  override readonly name = 'ArchiveError';
}

/** Of a snapshot that is given by its number or its name; undefined: there is none. */
export function findSnapshot(manifests: readonly Manifest[], which: string): Manifest | undefined {
  const isNumber = /^\d+$/.test(which);
  return manifests.find(({ barrier, name }) => (isNumber ? String(barrier) === which : name === which));
}

export function archiveText({ graph, manifest }: Archive): string {
  return `${JSON.stringify({ format: FORMAT, checksum: checksumOf({ graph, manifest }), graph, manifest }, null, 2)}\n`;
}

export function readArchive(text: string): Archive {
  let record: { format?: unknown; checksum?: unknown; graph?: GraphConfig; manifest?: Manifest } | null;
  try {
    record = JSON.parse(text) as typeof record;
  } catch (error) {
    throw new ArchiveError('it is damaged: it is no JSON', { cause: error });
  }
  const { format, checksum: expected, graph, manifest } = record ?? {};
  if (typeof format === 'number' && format > FORMAT) {
    throw new ArchiveError(
      `it is of format ${format}, and this version of Watershed reads formats through ${FORMAT}: use a newer one`,
    );
  }
  if (format !== FORMAT || graph === undefined || manifest === undefined) {
    throw new ArchiveError('it is not the record of an exported snapshot');
  }
  if (checksumOf({ graph, manifest }) !== expected)
    throw new ArchiveError('it is damaged: its checksum is another');
  const wrong = wrongIn(graph, manifest);
  if (wrong !== undefined) throw new ArchiveError(`it says what cannot be: ${wrong}`);
  return { graph, manifest };
}

/** Where an archive comes from is not known, and its checksum is no signature: what it says becomes keys and settings. */
function wrongIn(graph: GraphConfig, manifest: Manifest): string | undefined {
  const isCount = (value: unknown, from: number, to = Number.MAX_SAFE_INTEGER): boolean =>
    Number.isSafeInteger(value) && (value as number) >= from && (value as number) <= to;
  const { interval, keep } = graph.snapshots ?? {};
  if (!isCount(graph.partitions, 1, PARTITIONS_MAX)) return `${String(graph.partitions)} partitions`;
  if (!REPLICAS.includes(graph.replicas)) return `${String(graph.replicas)} replicas`;
  if (!isCount(interval, 0) || !isCount(keep, 2)) return 'settings of snapshots that are none';
  if (typeof graph.purgeEdges !== 'boolean') return 'purgeEdges is neither true nor false';
  const { barrier, sequence, generation, partitions, parts } = manifest;
  if (!isCount(barrier, 1) || !isCount(sequence, 0) || !isCount(generation, 1))
    return 'numbers of a snapshot that are none';
  if (!isCount(partitions, 1, PARTITIONS_MAX) || !Array.isArray(parts)) return 'parts that are none';
  const tasks = tasksOf(partitions);
  if (parts.length !== tasks.length || !tasks.every((task) => parts.some((part) => part.task === task)))
    return 'it has not the parts of a snapshot';
  return parts.every(({ index }) => /^[0-9a-f]{64}$/.test(index))
    ? undefined
    : 'an index that is no name of a chunk';
}

interface ChunkRead {
  /** What of the snapshot it is of. */
  readonly task: string;
  readonly name: string;
  readonly bytes: Uint8Array | 'missing' | 'damaged';
}

/** What of a snapshot cannot be read back as it was stored. Chunks in `whole` are not read; what is read whole joins them. */
export async function damagesOf(chunks: Chunks, manifest: Manifest, whole: Set<string>): Promise<string[]> {
  const damages: string[] = [];
  for await (const read of readBack(chunks, manifest, whole)) {
    if (typeof read.bytes === 'string') damages.push(damageOf(read));
  }
  return damages;
}

/** Copies all chunks of a snapshot, each checked; gives their number and bytes. */
export async function copyChunks(
  from: Chunks,
  to: Chunks,
  manifest: Manifest,
): Promise<{ readonly chunks: number; readonly bytes: number }> {
  let chunks = 0;
  let bytes = 0;
  for await (const read of readBack(from, manifest, new Set())) {
    if (typeof read.bytes === 'string') throw new ArchiveError(damageOf(read));
    await to.put(read.bytes);
    chunks += 1;
    bytes += read.bytes.length;
  }
  return { chunks, bytes };
}

/** A new graph that begins with a snapshot, whose records are to be under `baseId`. */
export function cloneConfig(
  identity: Pick<GraphConfig, 'name' | 'id' | 'created'>,
  { graph, manifest }: Archive,
  wish: GraphWish,
  baseId: string,
): GraphConfig {
  const { replicas, snapshots, purgeEdges } = graph;
  const config = newGraphConfig(
    identity,
    {
      partitions: wish.partitions ?? graph.partitions,
      partitioner: wish.partitioner ?? graph.partitioner,
      replicas: wish.replicas ?? replicas,
      snapshots,
      purgeEdges,
    },
    manifest.sequence,
  );
  return { ...config, base: { graphId: baseId, barrier: manifest.barrier } };
}

/** Records a snapshot under `baseId`, the manifest last. */
export async function recordBase(kv: Kv, baseId: string, manifest: Manifest): Promise<void> {
  const records = new SnapshotRecords(kv, baseId);
  for (const part of manifest.parts) await records.put('part', `${manifest.barrier}.${part.task}`, part);
  await records.put('manifest', String(manifest.barrier), manifest);
}

async function* readBack(
  chunks: Chunks,
  { parts }: Manifest,
  whole: Set<string>,
): AsyncGenerator<ChunkRead, void, undefined> {
  for (const { task, index } of parts) {
    const list = await chunks.get(index);
    if (!whole.has(index)) yield { task, name: index, bytes: list };
    if (typeof list === 'string') continue;
    whole.add(index);
    for (const name of await chunkNames(chunks, index)) {
      if (whole.has(name)) continue;
      const bytes = await chunks.get(name);
      if (typeof bytes !== 'string') whole.add(name);
      yield { task, name, bytes };
    }
  }
}

function damageOf({ task, name, bytes }: ChunkRead): string {
  return `part ${task}: chunk ${name} is ${String(bytes)}`;
}

/** 16 hexadecimal digits. */
function checksumOf({ graph, manifest }: Archive): string {
  const { a, b } = checksum(NO_LANES, new TextEncoder().encode(JSON.stringify({ graph, manifest })));
  return [a, b].map((lane) => lane.toString(16).padStart(8, '0')).join('');
}
