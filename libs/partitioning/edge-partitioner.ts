/**
 * What every streaming partitioner is: one pass, one decision per edge as it arrives, never taken back.
 *
 * Deterministic: no clock and no randomness, whole numbers and + − × ÷ √ only, which are the same to the last
 * bit on every machine. So the same stream gets the same parts in every process and at every replay. All state is in
 * `placements`; it is what has to be kept to go on after a restart, since only `hash` is a function of the edge alone.
 *
 * Edges are canonical (the smaller id first). Vertices are rows: 0, 1, 2 … in order of first appearance, from a
 * vertex table of the caller. A repeated edge is an edge like any other: it counts in degrees and loads, and may come to
 * another part than before. A self-loop counts twice in its vertex's degree.
 */
import type { Placements } from './placements.ts';

export interface EdgePartitioner {
  readonly placements: Placements;
  /**
   * Whether it decides by what it knows of the two vertices. One that does not takes NONE for rows; given rows all
   * the same, it keeps account of vertices, for the figures.
   */
  readonly needsRows: boolean;

  /**
   * The part of the next edge.
   *
   * `smallerHash` and `largerHash` are hashes of 32 bits of the two ids, `edgeHash` is the one of hash.ts; each is
   * only read by the algorithms that hash.
   */
  place(smaller: number, larger: number, smallerHash: number, largerHash: number, edgeHash: number): number;
}

/** What one part had to offer when a decision was due: for tests, and for people who ask why. */
export interface Offer {
  readonly score: number;
  /** What it holds already; among equal scores the smallest wins, then the lowest index. */
  readonly load: number;
  /** Whether it may take one more. */
  readonly hasRoom: boolean;
}
