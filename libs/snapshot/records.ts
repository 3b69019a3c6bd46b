/**
 * The records of snapshots in KV, by the graph's id: what is decided (barriers, requests), what is there (parts,
 * manifests), and what must stay (holds). A snapshot is its manifest: without one it does not exist.
 *
 *   <graph id>.request.<id>              somebody asked for a snapshot
 *   <graph id>.barrier.<n>               where barrier n stands, recorded before anything is marked
 *   <graph id>.part.<n>.<task>           a task's state at barrier n is stored
 *   <graph id>.manifest.<n>              all parts are
 *   <graph id>.verified.<n>              and were read back
 *   <graph id>.digest.<n>.<instance>     what a gateway's view was at barrier n
 *   <graph id>.hold.<instance>.<task>    a restore is under way from snapshot n
 */

import { SNAPSHOTS_BUCKET } from '../dataflow/names.ts';
import type { Kv, KvEntry } from '../stage/ports.ts';

export interface RequestRecord {
  readonly name?: string;
}

export interface BarrierRecord {
  readonly barrier: number;
  /** The EDGES message behind which it stands. */
  readonly sequence: number;
  readonly generation: number;
  readonly partitions: number;
  /** Of the partitioner that recorded it. */
  readonly turn: number;
  readonly name?: string;
  /** The request that it answers. */
  readonly request?: string;
}

export interface PartRecord {
  readonly task: string;
  readonly barrier: number;
  readonly sequence: number;
  readonly generation: number;
  /** The chunk that lists the part's chunks. */
  readonly index: string;
  readonly chunks: number;
  readonly bytes: number;
  /** Of these, what no earlier part of the task had stored. */
  readonly newBytes: number;
  readonly digest?: string;
  /** The last message read of each input; times in nanoseconds since 1970. */
  readonly inputs: readonly { readonly sequence: number; readonly time: string; readonly created: string }[];
}

export interface Manifest {
  readonly barrier: number;
  readonly sequence: number;
  readonly generation: number;
  readonly partitions: number;
  readonly name?: string;
  readonly request?: string;
  /** Arrival of EDGES message `sequence`, nanoseconds since 1970; "0" where there is none. */
  readonly time: string;
  /** Equal for all views of the graph at `sequence`. */
  readonly digest: string;
  readonly bytes: number;
  readonly newBytes: number;
  readonly parts: readonly PartRecord[];
}

export interface VerifiedRecord {
  readonly chunks: number;
}

export interface HoldRecord {
  readonly barrier: number;
  readonly beat: number;
}

/** The tasks whose parts make a snapshot whole. */
export function tasksOf(partitions: number): string[] {
  const workers = Array.from({ length: partitions }, (_, partition) => workerPart(partition));
  return [PARTITIONER_PART, ...workers, VIEW_PART];
}

export const PARTITIONER_PART = 'partitioner';
export const VIEW_PART = 'view';

export function workerPart(partition: number): string {
  return `worker-${partition}`;
}

type Kind = 'request' | 'barrier' | 'part' | 'manifest' | 'verified' | 'digest' | 'hold';

/** A record with its key's parts. */
export interface Found<Value> {
  readonly key: string;
  /** What of the key follows the kind. */
  readonly at: readonly string[];
  readonly revision: number;
  readonly value: Value;
}

/** All records of a graph, as of one reading. */
export interface SnapshotState {
  readonly requests: readonly Found<RequestRecord>[];
  readonly barriers: readonly BarrierRecord[];
  readonly parts: readonly Found<PartRecord>[];
  /** Newest first. */
  readonly manifests: readonly Manifest[];
  readonly verified: ReadonlySet<number>;
  readonly digests: readonly Found<string>[];
  readonly holds: readonly Found<HoldRecord>[];
}

/** The records of one graph. */
export class SnapshotRecords {
  readonly graphId: string;
  private readonly kv: Kv;
  private known: { readonly revision: number; readonly state: SnapshotState } | undefined;

  constructor(kv: Kv, graphId: string) {
    this.kv = kv;
    this.graphId = graphId;
  }

  async read(): Promise<SnapshotState> {
    const revision = await this.kv.revision(SNAPSHOTS_BUCKET);
    if (this.known?.revision !== revision) {
      const entries = await this.kv.list(SNAPSHOTS_BUCKET, `${this.graphId}.`);
      this.known = { revision, state: stateOf(entries) };
    }
    return this.known!.state;
  }

  /** False: there is one already. */
  async create(kind: Kind, at: string, value: object | string): Promise<boolean> {
    return (await this.kv.create(SNAPSHOTS_BUCKET, this.key(kind, at), JSON.stringify(value))) !== undefined;
  }

  async put(kind: Kind, at: string, value: object | string): Promise<void> {
    await this.kv.put(SNAPSHOTS_BUCKET, this.key(kind, at), JSON.stringify(value));
  }

  async get<Value>(kind: Kind, at: string): Promise<Value | undefined> {
    const entry = await this.kv.get(SNAPSHOTS_BUCKET, this.key(kind, at));
    return entry === undefined ? undefined : (JSON.parse(entry.value) as Value);
  }

  async remove(kind: Kind, at: string): Promise<void> {
    await this.kv.erase(SNAPSHOTS_BUCKET, this.key(kind, at));
  }

  /** All of the graph: it was removed. */
  async removeAll(): Promise<void> {
    for (const { key } of await this.kv.list(SNAPSHOTS_BUCKET, `${this.graphId}.`))
      await this.kv.erase(SNAPSHOTS_BUCKET, key);
  }

  private key(kind: Kind, at: string): string {
    return `${this.graphId}.${kind}.${at}`;
  }
}

/** The parts of all graphs: what their chunks are named by. */
export async function allParts(kv: Kv): Promise<PartRecord[]> {
  const entries = await kv.list(SNAPSHOTS_BUCKET, '');
  return entries
    .filter(({ key }) => key.split('.')[1] === 'part')
    .map(({ value }) => JSON.parse(value) as PartRecord);
}

function stateOf(entries: readonly KvEntry[]): SnapshotState {
  const byKind = new Map<string, Found<unknown>[]>();
  for (const { key, value, revision } of entries) {
    const [, kind, ...at] = key.split('.');
    const ofKind = byKind.get(kind!) ?? [];
    byKind.set(kind!, ofKind);
    ofKind.push({ key, at, revision, value: JSON.parse(value) });
  }
  const found = <Value>(kind: Kind): Found<Value>[] => (byKind.get(kind) ?? []) as Found<Value>[];
  return {
    requests: found<RequestRecord>('request'),
    barriers: found<BarrierRecord>('barrier')
      .map(({ value }) => value)
      .sort((a, b) => a.barrier - b.barrier),
    parts: found<PartRecord>('part'),
    manifests: found<Manifest>('manifest')
      .map(({ value }) => value)
      .sort((a, b) => b.barrier - a.barrier),
    verified: new Set(found<VerifiedRecord>('verified').map(({ at }) => Number(at[0]))),
    digests: found<string>('digest'),
    holds: found<HoldRecord>('hold'),
  };
}
