/**
 * LDG: linear deterministic greedy (Stanton, Kliot: Streaming Graph Partitioning for Large Distributed Graphs,
 * KDD 2012).
 *
 *   ind = argmax_i |P_i ∩ Γ(v)| · (1 − |P_i| / C), over parts with room; ties: the smallest part
 *
 * P_i the vertices of part i, Γ(v) the neighbours of v. The paper fixes C = (1 + ε) n / k beforehand. A stream has no
 * n, so C = max(C_min, ν · n / k) grows with the n vertices that have owners, this one counted in. A vertex without a
 * placed neighbour scores 0 everywhere: the tie-break is then the whole rule.
 *
 * C is the same for all parts, so |P_i ∩ Γ(v)| · (C − |P_i|) is compared, in whole numbers: ties are ties.
 */
import type { OwnerRule } from './owners.ts';

export class LdgRule implements OwnerRule {
  private capacity = 0;
  private unit = 0;

  begin(_vertices: number, _edges: number, capacity: number, unit: number): void {
    this.capacity = capacity;
    this.unit = unit;
  }

  weigh(neighbours: number, size: number): number {
    return neighbours * (this.capacity - size * this.unit);
  }

  scoreOf(weight: number): number {
    return weight / this.capacity;
  }
}
