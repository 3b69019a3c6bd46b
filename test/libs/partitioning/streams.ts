/** Small graphs worked by hand, and how a stream of edges between numbered vertices is placed. */
import type { EdgePartitioner } from '../../../libs/partitioning/edge-partitioner.ts';
import { newPartitioner } from '../../../libs/partitioning/new-partitioner.ts';
import {
  type PartitionerConfig,
  readPartitionerConfig,
} from '../../../libs/partitioning/partitioner-config.ts';

/** Two vertices, the smaller number first. */
export type Edge = readonly [number, number];

/** Two cliques of four, 1-4 and 5-8, and a bridge between 4 and 5: the neighbours of each vertex. */
export const GRAPH_A: ReadonlyMap<number, readonly number[]> = new Map([
  [1, [2, 3, 4]],
  [2, [1, 3, 4]],
  [3, [1, 2, 4]],
  [4, [1, 2, 3, 5]],
  [5, [4, 6, 7, 8]],
  [6, [5, 7, 8]],
  [7, [5, 6, 8]],
  [8, [5, 6, 7]],
]);

/** The sample of VGP, the program of HDRF's authors. */
export const GRAPH_B: readonly Edge[] = [
  [1, 2],
  [1, 3],
  [1, 5],
  [2, 4],
  [2, 5],
  [2, 6],
  [3, 4],
  [4, 6],
];

/** Rows of vertices, in order of first appearance. */
export class Rows {
  private readonly rows = new Map<number, number>();

  of(vertex: number): number {
    const row = this.rows.get(vertex) ?? this.rows.size;
    this.rows.set(vertex, row);
    return row;
  }
}

/** Places edges between numbered vertices; the hash of a vertex is its number, if not given. */
export class Stream<P extends EdgePartitioner> {
  readonly partitioner: P;
  readonly rows = new Rows();
  private readonly hashOf: (vertex: number) => number;

  constructor(partitioner: P, hashOf: (vertex: number) => number = (vertex) => vertex) {
    this.partitioner = partitioner;
    this.hashOf = hashOf;
  }

  place([u, v]: Edge): number {
    const { rows, hashOf } = this;
    const edgeHash = (Math.imul(hashOf(u), 31) + hashOf(v)) | 0;
    const smaller = rows.of(u);
    return this.partitioner.place(smaller, rows.of(v), hashOf(u), hashOf(v), edgeHash);
  }

  placeAll(edges: readonly Edge[]): number[] {
    return edges.map((edge) => this.place(edge));
  }

  /** The parts that a vertex is in. */
  partsOf(vertex: number): number[] {
    return this.partitioner.placements.partsOf(this.rows.of(vertex));
  }

  owner(vertex: number): number {
    return this.partitioner.placements.owner(this.rows.of(vertex));
  }
}

/** A config that must be valid. */
export function config(value: unknown): PartitionerConfig {
  const reading = readPartitionerConfig(value);
  if (reading.kind === 'invalid') throw new Error(reading.problem);
  return reading.config;
}

export function stream(value: unknown, parts: number): Stream<EdgePartitioner> {
  return new Stream(newPartitioner(config(value), parts));
}
