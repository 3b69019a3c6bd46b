/**
 * Grid: constrained candidate sets (Jain, Liao, Willke: GraphBuilder, GRADES 2013; the `grid` of PowerGraph).
 *
 * The k parts stand in r rows and c columns. A vertex hashes to one cell; S(v) is the row and the column of it. An
 * edge (u, v) goes to the least loaded part of S(u) ∩ S(v), which is never empty: where the row of one crosses the
 * column of the other. So A(v) ⊆ S(v):
 *
 *   |A(v)| ≤ r + c − 1
 *
 * r is the largest divisor of k that is no larger than √k. Remembers nothing but the loads.
 */
import { NONE } from '../graph/columns.ts';
import type { EdgePartitioner } from './edge-partitioner.ts';
import { hashPartition } from './hash.ts';
import { Placements } from './placements.ts';

export class Grid implements EdgePartitioner {
  readonly placements: Placements;
  readonly needsRows = false;
  private readonly parts: number;
  private readonly rows: number;
  private readonly columns: number;

  constructor(parts: number) {
    this.parts = parts;
    this.rows = gridRows(parts);
    this.columns = parts / this.rows;
    this.placements = new Placements(parts);
  }

  place(smaller: number, larger: number, smallerHash: number, largerHash: number): number {
    const part = this.choose(hashPartition(smallerHash, this.parts), hashPartition(largerHash, this.parts));
    if (smaller === NONE) this.placements.loads.add(part);
    else this.placements.record(smaller, larger, part);
    return part;
  }

  /** The least loaded part of the crosses around two cells that are in both. */
  private choose(a: number, b: number): number {
    const { columns, rows } = this;
    const { loads } = this.placements;
    const rowA = Math.floor(a / columns);
    const rowB = Math.floor(b / columns);
    const columnA = a % columns;
    const columnB = b % columns;
    let best = loads.lighter(rowA * columns + columnB, rowB * columns + columnA);
    if (rowA === rowB) {
      for (let column = 0; column < columns; column++) best = loads.lighter(best, rowA * columns + column);
    }
    if (columnA === columnB) {
      for (let row = 0; row < rows; row++) best = loads.lighter(best, row * columns + columnA);
    }
    return best;
  }
}

export function gridRows(parts: number): number {
  let rows = Math.floor(Math.sqrt(parts));
  while (parts % rows !== 0) rows -= 1;
  return rows;
}
