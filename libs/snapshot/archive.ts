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
import { type GraphConfig, type GraphWish, newGraphConfig } from '../dataflow/graph-config.ts';
import type { Chunks, Kv } from '../stage/ports.ts';
import { chunkNames } from './part-chunks.ts';
import { type Manifest, SnapshotRecords } from './records.ts';

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
  return { graph, manifest };
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
