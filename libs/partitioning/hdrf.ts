/**
 * HDRF: high-degree replicated first (Petroni, Querzoni, Daudjee, Kamali, Iacoboni: HDRF: Stream-Based Partitioning
 * for Power-Law Graphs, CIKM 2015).
 *
 *   C(u, v, p)  = C_REP(u, v, p) + λ · C_BAL(p)
 *   C_REP       = g(u, p) + g(v, p)
 *   g(u, p)     = 1 + (1 − θ(u)) if p ∈ A(u), else 0
 *   θ(u)        = δ(u) / (δ(u) + δ(v)) = 1 − θ(v), δ the partial degree, this edge counted in
 *   C_BAL(p)    = (maxsize − |p|) / (ε + maxsize − minsize), sizes before this edge
 *
 * The edge goes to the part of the highest C.
 *
 * The paper bounds no load. λ · C_BAL stays below λ however large the gap, and an edge whose two ends are in the
 * loaded part has a C of 3 there; so for λ ≤ 1 an ordered stream comes to one part, and for λ = 1.1 nearly so. Hence a
 * hard cap that grows with the stream: a part takes an edge while
 *
 *   |p| + 1 ≤ max(C_min, ⌈ν · m / k⌉), m the edges so far, this one counted in
 *
 * Scores are compared as whole numbers, so that ties are ties: C · (δ(u) + δ(v)) · (ε + maxsize − minsize), and that
 * times 10, 100 or 1,000 so that λ and ε are whole; exact as long as it is below 2^53.
 *
 * Only the parts of A(u) ∪ A(v) and the least loaded part are looked at: all others have C = λ · C_BAL, which is highest in
 * the least loaded one.
 */
import type { Capacity } from './capacity.ts';
import type { EdgePartitioner, Offer } from './edge-partitioner.ts';
import { goesBefore } from './loads.ts';
import { Placements } from './placements.ts';

export interface HdrfOptions {
  readonly lambda: number;
  readonly epsilon: number;
  readonly capacity: Capacity;
}

export class Hdrf implements EdgePartitioner {
  readonly placements: Placements;
  readonly needsRows = true;
  private readonly options: HdrfOptions;
  /** λ · scale and ε · scale are whole. */
  private readonly scale: number;
  private readonly lambda: number;
  private readonly epsilon: number;

  constructor(parts: number, options: HdrfOptions) {
    this.placements = new Placements(parts);
    this.options = options;
    this.scale =
      [1, 10, 100].find((ten) => isWhole(options.lambda * ten) && isWhole(options.epsilon * ten)) ?? 1000;
    this.lambda = Math.round(options.lambda * this.scale);
    this.epsilon = Math.round(options.epsilon * this.scale);
  }

  place(smaller: number, larger: number): number {
    const { placements } = this;
    placements.meet(smaller, larger);
    const part = this.choose();
    placements.assign(part);
    return part;
  }

  /** What each part offers for an edge, were it the next; the scores are those of the paper. */
  offers(smaller: number, larger: number): Offer[] {
    const { placements } = this;
    const { lambda, epsilon, capacity } = this.options;
    const { loads, parts } = placements;
    const more = smaller === larger ? 2 : 1;
    const degreeU = placements.degree(smaller) + more;
    const degreeV = placements.degree(larger) + more;
    const thetaU = degreeU / (degreeU + degreeV);
    const thetaV = 1 - thetaU;
    return Array.from({ length: parts }, (_, part) => {
      const load = loads.counts[part]!;
      const gainU = placements.isIn(smaller, part) ? 1 + (1 - thetaU) : 0;
      const gainV = placements.isIn(larger, part) ? 1 + (1 - thetaV) : 0;
      const balance = (loads.max - load) / (epsilon + loads.max - loads.min);
      const hasRoom = (load + 1) * capacity.unit <= capacity.at(loads.total + 1);
      return { score: gainU + gainV + lambda * balance, load, hasRoom };
    });
  }

  private choose(): number {
    const { placements, scale } = this;
    const { loads, setWords } = placements;
    const { counts, least, max, min } = loads;
    const { unit } = this.options.capacity;
    const cap = this.options.capacity.at(loads.total + 1);
    if ((min + 1) * unit > cap) {
      placements.forced += 1;
      return least;
    }
    const { degreeU, degreeV } = placements;
    const degrees = degreeU + degreeV;
    const span = this.epsilon + scale * (max - min);
    const gainU = (degrees + degreeV) * span;
    const gainV = (degrees + degreeU) * span;
    const balance = this.lambda * degrees;
    // The least loaded part as if no vertex were in it; if one is, it comes again below, with more.
    let best = least;
    let bestLoad = min;
    let bestScore = balance * (max - min);
    let fullScore = Number.NEGATIVE_INFINITY;
    for (let word = 0; word < setWords; word++) {
      const inU = placements.setU(word);
      const inV = placements.setV(word);
      let left = inU | inV;
      while (left !== 0) {
        const bit = 31 - Math.clz32(left);
        left ^= 1 << bit;
        const part = word * 32 + bit;
        const load = counts[part]!;
        const score =
          (((inU >>> bit) & 1) === 1 ? gainU : 0) +
          (((inV >>> bit) & 1) === 1 ? gainV : 0) +
          balance * (max - load);
        if ((load + 1) * unit > cap) {
          if (score > fullScore) fullScore = score;
        } else if (goesBefore(score, load, part, bestScore, bestLoad, best)) {
          best = part;
          bestLoad = load;
          bestScore = score;
        }
      }
    }
    if (fullScore > bestScore) placements.capHits += 1;
    return best;
  }
}

function isWhole(value: number): boolean {
  return Math.abs(value - Math.round(value)) < 1e-6;
}
