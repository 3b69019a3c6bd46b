/**
 * A graph as a gateway holds it: the task that keeps its view, and readers that wait for a sequence.
 */
import { LogError } from '../../libs/dataflow/errors.ts';
import type { GraphConfig } from '../../libs/dataflow/graph-config.ts';
import { edgesLog, forestLog } from '../../libs/dataflow/names.ts';
import type { GraphSource } from '../../libs/snapshot/graph-source.ts';
import { VIEW_PART } from '../../libs/snapshot/records.ts';
import { readBase, type SnapshotHost, TaskSnapshots } from '../../libs/snapshot/task-snapshots.ts';
import type { BlockPosition } from '../../libs/stage/block-chain.ts';
import type { Problem } from '../../libs/stage/input.ts';
import type { StagePlan } from '../../libs/stage/stage-plan.ts';
import { type StageHost, StageTask } from '../../libs/stage/stage-task.ts';
import { View, type ViewObserver } from './view.ts';

/** What of the view is not yet on disk is read again after a restart: up to this long of the stream. */
const VIEW_EPOCH_MS = 250;
const SLICE_MS = 3;

export interface GraphHostOptions {
  readonly graph: GraphSource;
  readonly snapshots: SnapshotHost;
  /** Whether this gateway is the one that stores the view at each barrier. */
  readonly storesView: () => boolean;
  readonly stage: StageHost;
  /** Told of every EDGES message (arrival, ms since 1970) that became visible. */
  readonly visible: (time: number) => void;
}

interface Waiter {
  readonly sequence: number;
  readonly resolve: (reached: boolean) => void;
}

export class GraphHost implements ViewObserver {
  readonly task: StageTask<View>;
  readonly visible: (time: number) => void;
  private readonly options: GraphHostOptions;
  private readonly waiters = new Set<Waiter>();
  private divergence: string | undefined;

  constructor(options: GraphHostOptions) {
    this.options = options;
    this.visible = options.visible;
    const { name } = options.graph.config;
    this.task = new StageTask(
      {
        name: `view of ${name}`,
        edgesStream: edgesLog(name).stream,
        closeWhenIdle: false,
        epochMs: VIEW_EPOCH_MS,
        sliceMs: SLICE_MS,
        running: () => this.advanced(this.view!.sequence),
      },
      () => this.plan(),
      options.stage,
    );
  }

  get config(): GraphConfig {
    return this.options.graph.config;
  }

  /** Undefined while the state is read from disk. */
  get view(): View | undefined {
    return this.task.core;
  }

  get problem(): Problem | undefined {
    const { divergence } = this;
    return (
      this.task.problem ??
      (divergence === undefined ? undefined : { code: 'log-diverged', message: divergence })
    );
  }

  /** Resolves when the view holds all edges through `sequence`: true; or after `timeoutMs`: false. */
  async waitFor(sequence: number, timeoutMs: number): Promise<boolean> {
    if ((this.view?.sequence ?? -1) >= sequence) return true;
    return await new Promise<boolean>((resolve) => {
      const waiter: Waiter = {
        sequence,
        resolve: (reached) => {
          clearTimeout(timer);
          this.waiters.delete(waiter);
          resolve(reached);
        },
      };
      const timer = setTimeout(() => waiter.resolve(false), timeoutMs);
      this.waiters.add(waiter);
    });
  }

  advanced(sequence: number): void {
    for (const waiter of [...this.waiters]) if (waiter.sequence <= sequence) waiter.resolve(true);
  }

  async stop(): Promise<void> {
    await this.task.stop();
    for (const waiter of [...this.waiters]) waiter.resolve(false);
  }

  private async plan(): Promise<StagePlan<View>> {
    const { graph, snapshots, storesView, stage } = this.options;
    const { id, name, origin, base } = await graph.read();
    return {
      folder: 'view',
      createCore: () => new View({ graphId: id, origin }, this),
      inputs: (view) => {
        const { generation, partitions } = view.generation ?? graph.config.generations[0]!;
        return Array.from({ length: partitions }, (_, p) => forestLog(name, generation, p));
      },
      outputs: [],
      snapshots: new TaskSnapshots(
        {
          graphId: id,
          task: VIEW_PART,
          accepts: (manifest) => manifest.generation >= origin,
          stores: storesView,
          diverged: (message) => {
            this.divergence = message;
            if (message !== undefined) stage.log.error({ graph: name }, message);
          },
        },
        snapshots,
      ),
      seed:
        base === undefined
          ? undefined
          : async (view) => {
              await readBase(snapshots, base, VIEW_PART, (payload) => view.restore(payload));
              // A clone's EDGES is a log of its own that goes on behind the snapshot.
              if (base.graphId !== id) view.leaveEdges();
              view.begin(graph.config.generations[0]!);
              return { inputs: [], outputs: [], barrier: 0 };
            },
      prepare: (view, position) => this.prepare(view, position),
      endsAt: (view) =>
        graph.config.generations.find(({ generation }) => generation > view.generation!.generation)?.after,
      isGivenUp: (view) => view.generation!.generation < graph.config.generations[0]!.generation,
      next: (view) => {
        const after = view.generation!.generation;
        const next = graph.config.generations.find(({ generation }) => generation > after);
        if (next === undefined) return false;
        this.beginBehind(view, next.after);
        view.begin(next);
        return true;
      },
    };
  }

  private prepare(view: View, position: BlockPosition | undefined): BlockPosition | undefined {
    const { generations } = this.config;
    const oldest = generations[0]!;
    const current = view.generation;
    if (current === undefined) {
      if (oldest.after > 0) throw this.stateMissing();
      view.begin(oldest);
      return position;
    }
    const isOver = view.ended || current.generation < oldest.generation;
    if (!isOver) return position;
    const next = generations.find(({ generation }) => generation > current.generation);
    if (next === undefined) throw new Error(`the generation after ${current.generation} is not known yet`);
    this.beginBehind(view, next.after);
    view.begin(next);
    return position === undefined ? undefined : { ...position, inputs: [] };
  }

  /** A generation goes on from exactly one message; a view that is elsewhere needs a snapshot. */
  private beginBehind(view: View, after: number): void {
    if (view.sequence === after) return;
    throw new LogError(
      'log-gap',
      `the view of ${this.config.name} is at message ${view.sequence}, and the logs through ${after} are gone`,
    );
  }

  private stateMissing(): LogError {
    const { name, generations } = this.config;
    const { generation, after } = generations[0]!;
    return new LogError(
      'state-missing',
      `the view of ${name} has neither state nor a snapshot, and generation ${generation} begins behind message ` +
        `${after}: rebuild the graph (watershed graph rebuild ${name})`,
    );
  }
}
