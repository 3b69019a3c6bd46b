/**
 * DBH: degree-based hashing (Xie, Yan, Li, Zhang: Distributed Power-law Graph Computing: Theoretical and Empirical
 * Analysis, NIPS 2014).
 *
 *   part(u, v) = h(w) mod k, where w is u if d(u) ≤ d(v), else v
 *
 * The vertex of the lower degree keeps its edges together; the hub, which would be cut anyway, is cut. The paper
 * takes true degrees; in a stream d is the partial degree: the edges of the vertex seen so far, this one counted in.
 */
import type { EdgePartitioner } from './edge-partitioner.ts';
import { hashPartition } from './hash.ts';
import { Placements } from './placements.ts';

export class Dbh implements EdgePartitioner {
  readonly placements: Placements;
  readonly needsRows = true;
  private readonly parts: number;

  constructor(parts: number) {
    this.parts = parts;
    this.placements = new Placements(parts);
  }

  place(smaller: number, larger: number, smallerHash: number, largerHash: number): number {
    const { placements } = this;
    placements.meet(smaller, larger);
    const hash = placements.degreeU <= placements.degreeV ? smallerHash : largerHash;
    const part = hashPartition(hash, this.parts);
    placements.assign(part);
    return part;
  }
}
