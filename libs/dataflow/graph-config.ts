/**
 * A graph as its record says: what people asked for, and the generations in force, which only the graph's
 * partitioner adds to.
 */
import {
  DEFAULT_PARTITIONER,
  type PartitionerConfig,
  partitionerText,
} from '../partitioning/partitioner-config.ts';
import type { Generation } from './generation.ts';

export interface GraphConfig {
  readonly name: string;
  /** 32 hexadecimal digits, new for every creation: a graph created again under one name inherits nothing. */
  readonly id: string;
  /** ISO 8601. */
  readonly created: string;
  /** As asked for; the newest generation has it once the partitioner has begun it. Likewise `partitioner`. */
  readonly partitions: number;
  readonly partitioner: PartitionerConfig;
  /** Servers that hold a copy of each log: 1, 3 or 5. */
  readonly replicas: number;
  readonly snapshots: SnapshotSettings;
  /** Whether EDGES is purged behind the oldest kept snapshot. */
  readonly purgeEdges: boolean;
  /** The layouts whose logs are there, oldest first; at least one. */
  readonly generations: readonly Generation[];
  /** Given up, but their logs may still be there. */
  readonly retired: readonly Generation[];
  /** The generation that the graph's state began with: 1, or that of the last rebuilding. */
  readonly origin: number;
  /**
   * Grows whenever a partitioner takes over. Only the one that wrote it may end a generation: an earlier one, paused and
   * awake again, would end it where the stream is past already.
   */
  readonly turn: number;
  /** The snapshot that the state began with, if it did not begin with nothing. */
  readonly base?: SnapshotName;
}

export interface SnapshotSettings {
  /** Seconds from one to the next; 0: only when asked for. */
  readonly interval: number;
  /** How many are kept, besides the named ones; at least 2. */
  readonly keep: number;
}

export interface SnapshotName {
  readonly graphId: string;
  readonly barrier: number;
}

export const REPLICAS: readonly number[] = [1, 3, 5];
export const SNAPSHOT_SETTINGS_DEFAULT: SnapshotSettings = { interval: 60, keep: 3 };

/** What people may ask for; what is absent is as by default, or stays. */
export interface GraphWish {
  readonly partitions?: number | undefined;
  readonly partitioner?: PartitionerConfig | undefined;
  readonly replicas?: number | undefined;
  readonly snapshots?: Partial<SnapshotSettings> | undefined;
  readonly purgeEdges?: boolean | undefined;
}

export function newGraphConfig(
  { name, id, created }: Pick<GraphConfig, 'name' | 'id' | 'created'>,
  wish: GraphWish & { readonly partitions: number },
  after = 0,
): GraphConfig {
  const { partitions, partitioner = DEFAULT_PARTITIONER } = wish;
  return {
    name,
    id,
    created,
    partitions,
    partitioner,
    replicas: wish.replicas ?? 1,
    snapshots: { ...SNAPSHOT_SETTINGS_DEFAULT, ...wish.snapshots },
    purgeEdges: wish.purgeEdges ?? false,
    generations: [{ generation: 1, partitions, after, partitioner }],
    retired: [],
    origin: 1,
    turn: 0,
  };
}

/** The layout in force. */
export function newestGeneration({ generations }: Pick<GraphConfig, 'generations'>): Generation {
  return generations.at(-1)!;
}

/** Whether the layout in force is not the one that is asked for. */
export function wantsGeneration(config: GraphConfig): boolean {
  const { partitions, partitioner } = newestGeneration(config);
  return (
    partitions !== config.partitions || partitionerText(partitioner) !== partitionerText(config.partitioner)
  );
}

/** A record as it was written, by this version or by one that knew fewer fields. */
export function graphConfig(
  record: Partial<GraphConfig> & Pick<GraphConfig, 'name' | 'id' | 'created' | 'partitions'>,
): GraphConfig {
  return { ...newGraphConfig(record, record), ...record };
}
