import { REJECTED_BYTES_MAX } from '../../libs/bus/graphs.ts';
import { ByteReader } from '../../libs/dataflow/bytes.ts';
import { LogError } from '../../libs/dataflow/errors.ts';
import type { Generation } from '../../libs/dataflow/generation.ts';
import { type GraphConfig, newestGeneration } from '../../libs/dataflow/graph-config.ts';
import { edgesLog, partsLog, rejectedLog } from '../../libs/dataflow/names.ts';
import { GraphMarks } from '../../libs/snapshot/graph-marks.ts';
import type { GraphSource } from '../../libs/snapshot/graph-source.ts';
import { SnapshotKeeper } from '../../libs/snapshot/keeper.ts';
import { PARTITIONER_PART, SnapshotRecords } from '../../libs/snapshot/records.ts';
import { readBase, type SnapshotHost, TaskSnapshots } from '../../libs/snapshot/task-snapshots.ts';
import { BlockChain, type BlockPosition } from '../../libs/stage/block-chain.ts';
import { LOG_START } from '../../libs/stage/position-check.ts';
import type { StagePlan } from '../../libs/stage/stage-plan.ts';
import { type StageHost, StageTask } from '../../libs/stage/stage-task.ts';
import { Partitioner } from './partitioner.ts';

const EPOCH_MS = 20;
const SLICE_MS = 10;

/**
 * The one partitioner task of a graph: EDGES → PARTS of all partitions, and REJECTED. It goes from one generation to
 * the next, and keeps the graph's snapshots while it runs.
 */
export class PartitionerTask {
  readonly stage: StageTask<Partitioner>;
  private readonly graph: GraphSource;
  private readonly host: StageHost;
  private readonly snapshots: SnapshotHost;
  private readonly records: SnapshotRecords;
  private readonly keeper: SnapshotKeeper;
  /** Generations whose state on disk is damaged, and that no snapshot has. */
  private readonly lost = new Set<number>();

  constructor(graph: GraphSource, snapshots: SnapshotHost, host: StageHost) {
    const { name, id } = graph.config;
    this.graph = graph;
    this.host = host;
    this.snapshots = snapshots;
    this.records = new SnapshotRecords(snapshots.kv, id);
    this.keeper = new SnapshotKeeper(graph, { ...snapshots, bus: host.bus });
    this.stage = new StageTask(
      {
        name: `partitioner of ${name}`,
        edgesStream: undefined,
        closeWhenIdle: true,
        epochMs: EPOCH_MS,
        sliceMs: SLICE_MS,
      },
      (ended) => this.plan(ended),
      host,
    );
  }

  start(): void {
    this.stage.start();
    this.keeper.start();
  }

  async stop(): Promise<void> {
    await Promise.all([this.stage.stop(), this.keeper.stop()]);
  }

  private async plan(ended: Partitioner | undefined): Promise<StagePlan<Partitioner>> {
    const config = await this.graph.read();
    const generation =
      ended === undefined ? await this.generationWithState(config) : successor(config, ended.generation);
    const { name, id } = config;
    const createCore = (): Partitioner => new Partitioner({ graphId: id, ...generation });
    const marks = new GraphMarks(generation, this.graph, this.records);
    this.keeper.mark(marks);
    const parts = Array.from({ length: generation.partitions }, (_, p) =>
      partsLog(name, generation.generation, p),
    );
    return {
      folder: folderOf(generation),
      createCore,
      inputs: () => [edgesLog(name)],
      outputs: [
        ...parts.map((log) => ({
          log,
          options: {
            subjects: [log.subject],
            discard: 'new' as const,
            denyDelete: false,
            replicas: config.replicas,
          },
        })),
        {
          log: rejectedLog(name),
          options: {
            subjects: [rejectedLog(name).subject],
            maxBytes: REJECTED_BYTES_MAX,
            discard: 'old' as const,
            denyDelete: false,
            replicas: config.replicas,
          },
        },
      ],
      snapshots: this.taskSnapshots(generation),
      seed: this.seedOf(config, generation, ended),
      prepare: (_core, position) => {
        if (position !== undefined || generation.after === 0) return position;
        // What led to it may still be there.
        this.lost.add(generation.generation);
        throw new LogError(
          'state-missing',
          `the partitioner of ${name} has neither state nor a snapshot of generation ${generation.generation}, which ` +
            `begins behind message ${generation.after}: rebuild the graph (watershed graph rebuild ${name})`,
        );
      },
      marks,
    };
  }

  /** The newest generation that there is state of; a younger one is reached through its end. */
  private async generationWithState({ generations }: GraphConfig): Promise<Generation> {
    for (const generation of generations.slice(1).toReversed()) {
      if (this.lost.has(generation.generation)) continue;
      const store = await this.host.openStore(folderOf(generation));
      const isThere = await BlockChain.isIn(store).finally(() => store.close());
      if (isThere || (await this.taskSnapshots(generation).parts()).length > 0) return generation;
    }
    return generations[0]!;
  }

  private taskSnapshots({ generation }: Generation): TaskSnapshots {
    return new TaskSnapshots(
      {
        graphId: this.graph.config.id,
        task: PARTITIONER_PART,
        accepts: (manifest) => manifest.generation === generation,
        stores: () => true,
      },
      this.snapshots,
    );
  }

  /** What a generation begins with: what the one before it ended with, or the snapshot that the graph began with. */
  private seedOf(
    { id, origin, base }: GraphConfig,
    generation: Generation,
    ended: Partitioner | undefined,
  ): StagePlan<Partitioner>['seed'] {
    if (ended !== undefined) {
      const state = ended.carried;
      const read = ended.edgesRead ?? LOG_START;
      return async (core) => {
        core.carry(new ByteReader(state));
        return { inputs: [read], outputs: core.starts, barrier: 0 };
      };
    }
    if (base === undefined || generation.generation !== origin) return undefined;
    return async (core): Promise<BlockPosition> => {
      const { inputs } = await readBase(this.snapshots, base, PARTITIONER_PART, (payload) =>
        core.carry(payload),
      );
      // A clone's EDGES is a log of its own that goes on behind the snapshot.
      const created = base.graphId === id ? inputs[0]!.created : 0n;
      return { inputs: [{ ...inputs[0]!, created }], outputs: core.starts, barrier: 0 };
    };
  }
}

function folderOf({ generation }: Generation): string {
  return `partitioner-${generation}`;
}

function successor(config: GraphConfig, generation: number): Generation {
  const next = config.generations.find((later) => later.generation === generation + 1);
  if (next !== undefined) return next;
  throw new Error(
    `generation ${generation} of ${config.name} has ended, and the record of the graph has no later one than ` +
      `${newestGeneration(config).generation}`,
  );
}
