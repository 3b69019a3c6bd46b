/**
 * FENNEL (Tsourakakis, Gkantsidis, Radunovic, Vojnovic: FENNEL: Streaming Graph Partitioning for Massive Scale
 * Graphs, WSDM 2014; MSR-TR-2012-113).
 *
 *   argmax_i |N(v) ∩ S_i| − δc(|S_i|), over parts with |S_i| + 1 ≤ ν · n / k; ties: the smallest part
 *   c(x) = α · x^γ, γ = 3/2, α = m · k^{γ − 1} / n^γ = (m / n) √(k / n)
 *
 * The paper has two forms of the penalty δc, and they decide differently on small graphs:
 *
 *   marginal     δc(x) = c(x + 1) − c(x) = α ((x + 1)^{3/2} − x^{3/2}), by which it defines δc
 *   derivative   δc(x) = α γ x^{γ − 1} = 3/2 · α √x, which it then states, and which others implement
 *
 * n and m are those of the whole graph where they are announced, otherwise the vertices that have owners, this one
 * counted in, and the edges between them.
 *
 * x^{3/2} is x √x, for √ is right to the last bit on every machine and pow is not. The marginal form is divided out,
 * since the difference of two nearly equal numbers would lose its digits:
 *   (x + 1)^{3/2} − x^{3/2} = (3 x² + 3 x + 1) / ((x + 1)^{3/2} + x^{3/2})
 */
import type { OwnerRule } from './owners.ts';

export type FennelPenalty = 'derivative' | 'marginal';

export interface FennelOptions {
  readonly parts: number;
  readonly penalty: FennelPenalty;
  /** n and m of the whole graph, if they are known beforehand. */
  readonly announced: { readonly vertices: number; readonly edges: number } | undefined;
}

export class FennelRule implements OwnerRule {
  private readonly parts: number;
  private readonly isDerivative: boolean;
  private readonly isAnnounced: boolean;
  private alpha = 0;

  constructor({ parts, penalty, announced }: FennelOptions) {
    this.parts = parts;
    this.isDerivative = penalty === 'derivative';
    this.isAnnounced = announced !== undefined;
    if (announced !== undefined) this.alpha = this.alphaOf(announced.vertices, announced.edges);
  }

  begin(vertices: number, edges: number): void {
    if (!this.isAnnounced) this.alpha = this.alphaOf(vertices, edges);
  }

  weigh(neighbours: number, size: number): number {
    return neighbours - this.alpha * (this.isDerivative ? 1.5 * Math.sqrt(size) : marginal(size));
  }

  scoreOf(weight: number): number {
    return weight;
  }

  private alphaOf(n: number, m: number): number {
    return (m / n) * Math.sqrt(this.parts / n);
  }
}

/** (x + 1)^{3/2} − x^{3/2} */
function marginal(x: number): number {
  return (3 * x * x + 3 * x + 1) / ((x + 1) * Math.sqrt(x + 1) + x * Math.sqrt(x));
}
