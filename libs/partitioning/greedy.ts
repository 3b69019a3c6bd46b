/**
 * PowerGraph's greedy heuristic (Gonzalez, Low, Gu, Bickson, Guestrin: PowerGraph, OSDI 2012, section 5.1), in
 * the form of its code, in which the fourth case takes the union.
 *
 *   1. A(u) ∩ A(v) ≠ ∅:           the least loaded part of the intersection
 *   2. neither is empty:          the least loaded part of A(u) ∪ A(v)
 *   3. one of them is empty:      the least loaded part of the other
 *   4. both are empty:            the least loaded part of all
 *
 * It has no bound on the load: on a stream in which every edge has a vertex seen before, all edges come to one part.
 */
import type { EdgePartitioner } from './edge-partitioner.ts';
import { Placements } from './placements.ts';

export class Greedy implements EdgePartitioner {
  readonly placements: Placements;
  readonly needsRows = true;

  constructor(parts: number) {
    this.placements = new Placements(parts);
  }

  place(smaller: number, larger: number): number {
    const { placements } = this;
    placements.meet(smaller, larger);
    const part = this.choose();
    placements.assign(part);
    return part;
  }

  private choose(): number {
    const { placements } = this;
    const { loads, setWords } = placements;
    let common = 0;
    for (let word = 0; word < setWords; word++) common |= placements.setU(word) & placements.setV(word);
    let best = -1;
    for (let word = 0; word < setWords; word++) {
      const a = placements.setU(word);
      const b = placements.setV(word);
      let left = common !== 0 ? a & b : a | b;
      while (left !== 0) {
        const bit = 31 - Math.clz32(left);
        left ^= 1 << bit;
        const part = word * 32 + bit;
        best = best === -1 ? part : loads.lighter(best, part);
      }
    }
    return best === -1 ? loads.least : best;
  }
}
