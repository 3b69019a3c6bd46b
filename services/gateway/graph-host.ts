/**
 * A graph as a gateway holds it: the task that keeps its view, and readers that wait for a sequence.
 */
import type { GraphConfig } from '../../libs/bus/registry.ts';
import { edgesLog, forestLog } from '../../libs/dataflow/names.ts';
import { type Problem, type StageHost, StageTask } from '../../libs/stage/stage-task.ts';
import { View, type ViewObserver } from './view.ts';

/** What of the view is not yet on disk is read again after a restart: up to this long of the stream. */
const VIEW_EPOCH_MS = 250;
const SLICE_MS = 3;

export interface GraphHostOptions {
  readonly config: GraphConfig;
  readonly stage: StageHost;
  /** Told of every EDGES message (arrival, ms since 1970) that became visible. */
  readonly visible: (time: number) => void;
}

interface Waiter {
  readonly sequence: number;
  readonly resolve: (reached: boolean) => void;
}

export class GraphHost implements ViewObserver {
  readonly config: GraphConfig;
  readonly task: StageTask<View>;
  readonly visible: (time: number) => void;
  private readonly waiters = new Set<Waiter>();

  constructor(options: GraphHostOptions) {
    const { config } = options;
    this.config = config;
    this.visible = options.visible;
    this.task = new StageTask(
      {
        name: `view of ${config.name}`,
        inputs: Array.from({ length: config.partitions }, (_, p) =>
          forestLog(config.name, config.generation, p),
        ),
        outputs: [],
        edgesStream: edgesLog(config.name).stream,
        closeWhenIdle: false,
        epochMs: VIEW_EPOCH_MS,
        sliceMs: SLICE_MS,
        running: () => this.advanced(this.view!.sequence),
      },
      () =>
        new View(
          {
            graphId: config.id,
            generation: config.generation,
            partitions: config.partitions,
          },
          this,
        ),
      'view',
      options.stage,
    );
  }

  /** Undefined while the state is read from disk. */
  get view(): View | undefined {
    return this.task.core;
  }

  get problem(): Problem | undefined {
    return this.task.problem;
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
}
