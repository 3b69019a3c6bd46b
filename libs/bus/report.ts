import type { PartitionerConfig } from '../partitioning/partitioner-config.ts';
import type { Figures } from '../partitioning/quality.ts';

/** What an instance says of itself in its record, besides that it lives. */
export interface InstanceReport {
  readonly version: string;
  readonly pid: number;
  /** ISO 8601. */
  readonly started: string;
  readonly reported: string;
  /** What runs here: tasks that are its own, and the views of a gateway. */
  readonly tasks: readonly TaskReport[];
}

export interface TaskReport {
  readonly graph: string;
  /** For people: "worker 2 of social". */
  readonly task: string;
  readonly state: 'starting' | 'running' | 'stopped';
  /** The last EDGES message that the task's state holds whole. */
  readonly position: number;
  readonly problem?: { readonly code: string; readonly message: string };
  /** Of a partitioner. */
  readonly placing?: PlacingReport;
}

/** How a partitioner has spread the edges of its generation. */
export interface PlacingReport {
  readonly generation: number;
  readonly partitioner: PartitionerConfig;
  /** Whether the figures are of vertices too, or of edges only. */
  readonly knowsVertices: boolean;
  /** The last EDGES message that counts in the figures. */
  readonly position: number;
  readonly figures: Figures;
  /** As they were so many seconds ago, about a minute or since the task began; absent where that is now. */
  readonly before?: { readonly seconds: number; readonly figures: Figures };
}

/** What the partitioner answers of a vertex; without `degree` it has not met it. */
export interface PlacementReport {
  readonly generation: number;
  /** The last EDGES message that counts in it. */
  readonly position: number;
  readonly knowsVertices: boolean;
  readonly degree?: number;
  readonly owner?: number;
  readonly partitions?: readonly number[];
}
