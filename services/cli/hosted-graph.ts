/**
 * A graph in this process: the tasks of it that the cluster has placed here, and the view if this is a gateway.
 */
import type { TaskReport } from '../../libs/bus/report.ts';
import type { TaskRun, TaskSpec } from '../../libs/cluster/member.ts';
import type { Generation } from '../../libs/dataflow/generation.ts';
import { placementSubject } from '../../libs/dataflow/names.ts';
import type { SnapshotHost } from '../../libs/snapshot/task-snapshots.ts';
import type { Questions, Store } from '../../libs/stage/ports.ts';
import type { StageCore } from '../../libs/stage/stage-core.ts';
import type { StageHost, StageTask } from '../../libs/stage/stage-task.ts';
import { GraphHost } from '../gateway/graph-host.ts';
import { Partitioner } from '../partitioner/partitioner.ts';
import { answerPlacement } from '../partitioner/placement-answer.ts';
import { PlacingHistory } from '../partitioner/placing-history.ts';
import { PartitionerTask } from '../partitioner/task.ts';
import { workerTask } from '../worker/task.ts';
import type { LiveGraph } from './live-graph.ts';

/** Where the state of a graph's tasks is, by the name of each task's folder. */
export interface StateFolders {
  open(task: string): Promise<Store>;
  list(): Promise<readonly string[]>;
  remove(task: string): Promise<void>;
  removeAll(): Promise<void>;
}

/** A task that the cluster places, and how it is run here. */
export interface RunnableTask extends TaskSpec {
  readonly run: () => TaskRun;
}

export interface HostedGraphOptions {
  readonly graph: LiveGraph;
  readonly folders: StateFolders;
  readonly isGateway: boolean;
  readonly stage: Omit<StageHost, 'openStore' | 'isCurrent'>;
  readonly snapshots: SnapshotHost;
  readonly questions: Questions;
  readonly visible: (time: number) => void;
}

/** What the stage tasks of a graph have in common. */
type AnyStage = Pick<StageTask<StageCore>, 'options' | 'state' | 'problem' | 'core' | 'fenced'>;

export class HostedGraph {
  readonly graph: LiveGraph;
  readonly folders: StateFolders;
  /** What the graph's state began with when this was made: another one needs other tasks. */
  readonly origin: number;
  readonly host: GraphHost | undefined;
  private readonly options: HostedGraphOptions;
  private readonly stage: StageHost;
  /** What runs here, and the message behind which it begins. */
  private readonly stages = new Map<AnyStage, number>();
  private readonly placing = new PlacingHistory();
  private readonly openFolders = new Set<string>();
  /** Whether this gateway holds the lease of storing the view. */
  private storesView = false;
  /** State of generations before this one is removed. */
  private cleanThrough = 0;

  constructor(options: HostedGraphOptions) {
    const { graph, folders, snapshots } = options;
    this.options = options;
    this.graph = graph;
    this.folders = folders;
    this.origin = graph.config.origin;
    this.stage = {
      ...options.stage,
      openStore: (task) => this.openStore(task),
      isCurrent: () =>
        graph.read().then(
          ({ origin }) => origin === this.origin,
          (error: unknown) => {
            if (error instanceof Error && error.name === 'LogError') return false;
            throw error;
          },
        ),
    };
    if (!options.isGateway) return;
    this.host = new GraphHost({
      graph,
      snapshots,
      storesView: () => this.storesView,
      stage: this.stage,
      visible: options.visible,
    });
    this.stages.set(this.host.task as unknown as AnyStage, 0);
    this.host.task.start();
  }

  /** The tasks that the cluster places, each with how it is run here. */
  get specs(): readonly RunnableTask[] {
    const { name, id, generations, origin } = this.graph.config;
    // Rebuilt: these tasks are over, and those of the new origin another one's to run.
    if (origin !== this.origin) return [];
    const specs = [
      {
        key: `${id}.partitioner.${origin}`,
        role: 'partitioner',
        name: `partitioner of ${name}`,
        run: () => this.runPartitioner(),
      },
      {
        key: `${id}.view.${origin}`,
        role: 'gateway',
        name: `snapshots of the view of ${name}`,
        run: () => this.storeView(),
      },
    ];
    for (const generation of generations) {
      for (let partition = 0; partition < generation.partitions; partition++) {
        specs.push({
          key: `${id}.worker.${generation.generation}.${partition}`,
          role: 'worker',
          name: `worker ${partition} of ${name}, generation ${generation.generation}`,
          run: () => this.runWorker(generation, partition),
        });
      }
    }
    return specs;
  }

  get reports(): TaskReport[] {
    return [...this.stages].map(([stage, after]) => {
      const { problem, core } = stage;
      const now = this.stage.clock.now();
      return {
        graph: this.graph.config.name,
        task: stage.options.name,
        state: stage.state,
        position: core === undefined ? 0 : Math.max(after, positionOf(stage)),
        ...(problem === undefined ? {} : { problem: { code: problem.code, message: problem.message } }),
        ...(core instanceof Partitioner ? { placing: this.placing.report(core, now) } : {}),
      };
    });
  }

  /** Stops the view; the cluster stops the tasks. */
  async stop(): Promise<void> {
    await this.host?.stop();
  }

  /** Whether nothing of it runs here any more. */
  get isIdle(): boolean {
    return this.openFolders.size === 0;
  }

  /** Removes the state of generations that are given up, as far as nothing of them runs here any more. */
  async removeOldState(): Promise<void> {
    const oldest = this.graph.config.generations[0]!.generation;
    if (oldest === this.cleanThrough) return;
    let isClean = true;
    for (const folder of await this.folders.list()) {
      const generation = /^(?:partitioner|worker)-(\d+)/.exec(folder)?.[1];
      if (generation === undefined || Number(generation) >= oldest) continue;
      if (this.openFolders.has(folder)) isClean = false;
      else await this.folders.remove(folder);
    }
    if (isClean) this.cleanThrough = oldest;
  }

  private async openStore(task: string): Promise<Store> {
    const store = await this.folders.open(task);
    this.openFolders.add(task);
    return {
      get: (key) => store.get(key),
      entries: (from, to) => store.entries(from, to),
      write: (puts, deletes, sync) => store.write(puts, deletes, sync),
      close: async () => {
        await store.close();
        this.openFolders.delete(task);
      },
    };
  }

  private runPartitioner(): TaskRun {
    const task = new PartitionerTask(this.graph, this.options.snapshots, this.stage);
    const { stage } = task;
    const silence = this.options.questions.answer(placementSubject(this.graph.config.id), (question) =>
      answerPlacement(stage.core, question),
    );
    const stop = async (): Promise<void> => {
      silence();
      await task.stop();
    };
    return this.running(stage as unknown as AnyStage, { start: () => task.start(), stop }, 0);
  }

  private runWorker(generation: Generation, partition: number): TaskRun {
    const isThere = (known: Generation): boolean => known.generation === generation.generation;
    const stage = {
      ...this.stage,
      // Not to make the logs of a generation again that was given up.
      isCurrent: async () => (await this.stage.isCurrent()) && this.graph.config.generations.some(isThere),
    };
    const task = workerTask(this.graph, generation, partition, this.options.snapshots, stage);
    return this.running(task as unknown as AnyStage, task, generation.after);
  }

  /** `after`: the message behind which the task begins. */
  private running(stage: AnyStage, task: { start(): void; stop(): Promise<void> }, after: number): TaskRun {
    this.stages.set(stage, after);
    task.start();
    return {
      stop: async () => {
        await task.stop();
        this.stages.delete(stage);
      },
      get position() {
        return Math.max(after, positionOf(stage));
      },
      get failed() {
        return stage.fenced;
      },
    };
  }

  private storeView(): TaskRun {
    this.storesView = true;
    const { host } = this;
    return {
      stop: async () => {
        this.storesView = false;
      },
      get position() {
        return host?.view?.sequence ?? 0;
      },
      failed: false,
    };
  }
}

function positionOf({ core }: AnyStage): number {
  return core?.edgesRead?.sequence ?? 0;
}
