/** The part of an edge by hash alone (hash.ts says which): needs to know nothing, so any client can compute it. */
import { NONE } from '../graph/columns.ts';
import type { EdgePartitioner } from './edge-partitioner.ts';
import { hashPartition } from './hash.ts';
import { Placements } from './placements.ts';

export class EdgeHash implements EdgePartitioner {
  readonly placements: Placements;
  readonly needsRows = false;
  private readonly parts: number;

  constructor(parts: number) {
    this.parts = parts;
    this.placements = new Placements(parts);
  }

  place(
    smaller: number,
    larger: number,
    _smallerHash: number,
    _largerHash: number,
    edgeHash: number,
  ): number {
    const part = hashPartition(edgeHash, this.parts);
    if (smaller === NONE) this.placements.loads.add(part);
    else this.placements.record(smaller, larger, part);
    return part;
  }
}
