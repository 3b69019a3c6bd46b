import type { PartitionerConfig } from '../partitioning/partitioner-config.ts';

/**
 * One layout of a graph: which version of the stream's division is in force for which messages.
 *
 * Generations follow each other at an exact message: the partitions of generation g hold the messages behind `after`
 * through the `after` of generation g + 1.
 */
export interface Layout {
  /** From 1 on. */
  readonly generation: number;
  readonly partitions: number;
  /** The last EDGES message before it; 0: it begins with the first. */
  readonly after: number;
}

/** A layout, and what chooses the partition of an edge in it. */
export interface Generation extends Layout {
  readonly partitioner: PartitionerConfig;
}
