/**
 * Every snapshot that was read back restores, from its chunks alone, to exactly its S: the partitioner's counters and
 * what it knows of producers, the components of all workers together, the view.
 */
import { ByteReader } from '../../../../libs/dataflow/bytes.ts';
import type { Generation } from '../../../../libs/dataflow/generation.ts';
import { SNAPSHOTS_BUCKET } from '../../../../libs/dataflow/names.ts';
import { behindMessage, comparePositions } from '../../../../libs/dataflow/position.ts';
import { Producers } from '../../../../libs/dataflow/producers.ts';
import type { DisjointSets } from '../../../../libs/graph/disjoint-sets.ts';
import type { VertexTable } from '../../../../libs/graph/vertex-table.ts';
import { partBlocks } from '../../../../libs/snapshot/part-chunks.ts';
import {
  type Manifest,
  PARTITIONER_PART,
  tasksOf,
  VIEW_PART,
  workerPart,
} from '../../../../libs/snapshot/records.ts';
import { type BlockPosition, DamagedBlocks, readBlocks } from '../../../../libs/stage/block-chain.ts';
import type { Chunks } from '../../../../libs/stage/ports.ts';
import type { StageCore } from '../../../../libs/stage/stage-core.ts';
import { View } from '../../../../services/gateway/view.ts';
import { Partitioner } from '../../../../services/partitioner/partitioner.ts';
import { Worker } from '../../../../services/worker/worker.ts';
import type { Oracle } from '../oracle.ts';
import type { Breach, Checker } from './checker.ts';
import { textOf, viewFault } from './prefix.ts';
import type { Records } from './records.ts';

export interface SnapshotsOptions {
  readonly graphId: string;
  readonly chunks: Chunks;
  readonly oracle: Oracle;
  readonly records: Records;
  /** Whether faults take or damage chunks. */
  readonly losesChunks: () => boolean;
}

export class SnapshotsChecker implements Checker {
  /** How many were restored. */
  restored = 0;
  private readonly options: SnapshotsOptions;
  private readonly breach: Breach;

  constructor(options: SnapshotsOptions, breach: Breach) {
    this.options = options;
    this.breach = breach;
  }

  recorded(bucket: string, key: string, value: string | undefined): void {
    const [, kind, at] = key.split('.');
    if (bucket !== SNAPSHOTS_BUCKET || kind !== 'verified' || value === undefined) return;
    const manifest = this.options.records.manifests.get(Number(at));
    if (manifest !== undefined) void this.check(manifest);
  }

  private async check(manifest: Manifest): Promise<void> {
    const about = `snapshot ${manifest.barrier} at ${manifest.sequence}`;
    try {
      for (const fault of await this.faults(manifest)) this.breach(`${about}: ${fault}`);
      this.restored += 1;
    } catch (error) {
      if (error instanceof DamagedBlocks && this.options.losesChunks()) return;
      this.breach(`${about} cannot be restored: ${String(error)}`);
    }
  }

  private async faults(manifest: Manifest): Promise<string[]> {
    const { records } = this.options;
    const generation = records.generation(manifest.generation)!;
    const faults: string[] = [];
    const tasks = manifest.parts.map(({ task }) => task).sort();
    if (String(tasks) !== String(tasksOf(generation.partitions).sort()))
      faults.push(`its parts are ${tasks}`);
    else {
      faults.push(...(await this.partitionerFaults(manifest, generation)));
      faults.push(...(await this.workerFaults(manifest, generation)));
      faults.push(...(await this.viewFaults(manifest)));
    }
    return faults;
  }

  private async partitionerFaults(manifest: Manifest, generation: Generation): Promise<string[]> {
    const { graphId, oracle } = this.options;
    const { sequence } = manifest;
    const core = new Partitioner({ graphId, ...generation });
    const { inputs } = await this.restore(manifest, PARTITIONER_PART, core);
    const state = new ByteReader(core.carried);
    const [messages, edges, rejected, bytes] = Array.from({ length: 5 }, () => state.varint());
    const totals = oracle.totals(sequence);
    const faults: string[] = [];
    const found = `${inputs[0]?.sequence} ${messages} ${edges} ${rejected} ${bytes}`;
    const wanted = `${sequence} ${sequence} ${totals.edges} ${totals.rejected} ${totals.bytes}`;
    if (found !== wanted) faults.push(`the partitioner's counters are ${found} instead of ${wanted}`);
    const producers = new Producers();
    producers.read(state);
    let next = sequence;
    for (let at = 1; at <= sequence; at++) {
      const { producer } = oracle.message(at)!;
      if (producer === undefined) continue;
      next += 1;
      if (producers.take(next, producer).kind === 'new') {
        faults.push(`the partitioner has forgotten number ${producer.sequence} of ${producer.id}`);
      }
    }
    return faults;
  }

  /** All edges of a generation, as its workers know them, make the components that they make in the log. */
  private async workerFaults(manifest: Manifest, generation: Generation): Promise<string[]> {
    const { graphId, oracle } = this.options;
    const { sequence } = manifest;
    const faults: string[] = [];
    const joined = new Map<string, string>();
    const rootOf = (vertex: string): string => {
      let root = vertex;
      while (joined.get(root) !== root) root = joined.get(root)!;
      return root;
    };
    for (let partition = 0; partition < generation.partitions; partition++) {
      const core = new Worker({ graphId, partition, ...generation });
      const { outputs } = await this.restore(manifest, workerPart(partition), core);
      const { through } = outputs[0]!;
      if (comparePositions(through, behindMessage(sequence)) !== 0)
        faults.push(`worker ${partition} is at ${through.sequence}.${through.index}`);
      const { vertices, sets } = core as unknown as { vertices: VertexTable; sets: DisjointSets };
      const ids = Array.from({ length: vertices.count }, (_, row) => textOf(vertices.idOf(row)));
      for (const id of ids) if (!joined.has(id)) joined.set(id, id);
      for (const [row, id] of ids.entries()) joined.set(rootOf(id), rootOf(ids[sets.root(row)]!));
    }
    const { vertices, oldest } = oracle.components(sequence, generation.after);
    if (joined.size !== vertices.length)
      faults.push(`the workers know ${joined.size} of ${vertices.length} vertices`);
    else {
      const names = new Map<string, string>();
      for (const [at, vertex] of vertices.entries()) {
        if (!joined.has(vertex)) return [...faults, `no worker knows ${vertex}`];
        const root = rootOf(vertex);
        if ((names.get(root) ?? oldest[at]) !== oldest[at])
          return [...faults, `the workers join ${vertex} wrongly`];
        names.set(root, oldest[at]!);
      }
      if (names.size !== new Set(oldest).size) faults.push(`the workers have ${names.size} components`);
    }
    return faults;
  }

  private async viewFaults(manifest: Manifest): Promise<string[]> {
    const { graphId, oracle } = this.options;
    const core = new View({ graphId, origin: 1 }, { visible: () => {}, advanced: () => {} });
    await this.restore(manifest, VIEW_PART, core);
    if (core.sequence !== manifest.sequence) return [`the view is at ${core.sequence}`];
    const wrong = viewFault(core, oracle);
    if (wrong !== undefined) return [`the view: ${wrong}`];
    return core.digest === manifest.digest ? [] : ['the view has another digest than the manifest'];
  }

  private async restore(manifest: Manifest, task: string, core: StageCore): Promise<BlockPosition> {
    const { index } = manifest.parts.find((part) => part.task === task)!;
    const blocks = partBlocks(this.options.chunks, index);
    const position = await readBlocks(blocks, (payload) => core.restore(payload));
    if (position.barrier !== manifest.barrier) throw new Error(`${task} is at barrier ${position.barrier}`);
    return position;
  }
}
