/**
 * How good a partitioning is, by the measures of the literature.
 *
 *   replication factor  RF = Σ_v |A(v)| / |{v : A(v) ≠ ∅}|, A(v) the parts that hold an edge of v
 *   balance             the most that a part holds by the mean: max_p |p| · k / m for edges, likewise for the
 *                       vertices in parts, and for the vertices that parts own (ρ)
 *   cut fraction        λ = edges between vertices of two owners / edges between vertices that have one
 */

/** What is counted while edges are placed. */
export interface Figures {
  /** Per part. */
  readonly edges: readonly number[];
  /** Per part, those with an edge in it. */
  readonly vertices: readonly number[];
  /** Vertices with an edge. */
  readonly distinctVertices: number;
  /** Vertices per owner; undefined in algorithms without. */
  readonly owned: readonly number[] | undefined;
  readonly ownedEdges: number;
  readonly cutEdges: number;
  readonly forced: number;
  readonly capHits: number;
}

/** A ratio is undefined where there is nothing yet to divide by. */
export interface Quality {
  readonly edges: number;
  readonly vertices: number;
  readonly replicationFactor: number | undefined;
  readonly edgeBalance: number | undefined;
  readonly vertexBalance: number | undefined;
  readonly ownerBalance: number | undefined;
  readonly cutFraction: number | undefined;
  readonly forced: number;
  readonly capHits: number;
}

export function qualityOf(figures: Figures): Quality {
  const { edges, vertices, distinctVertices, owned, ownedEdges, cutEdges, forced, capHits } = figures;
  return {
    edges: sum(edges),
    vertices: distinctVertices,
    replicationFactor: ratio(sum(vertices), distinctVertices),
    edgeBalance: balance(edges),
    vertexBalance: balance(vertices),
    ownerBalance: owned && balance(owned),
    cutFraction: owned && ratio(cutEdges, ownedEdges),
    forced,
    capHits,
  };
}

/** What was added between two looks: `qualityOf` of it tells about that time alone. */
export function figuresSince(now: Figures, before: Figures): Figures {
  const added = (counts: readonly number[], old: readonly number[]): number[] =>
    counts.map((count, part) => count - old[part]!);
  return {
    edges: added(now.edges, before.edges),
    vertices: added(now.vertices, before.vertices),
    distinctVertices: now.distinctVertices - before.distinctVertices,
    owned: now.owned && before.owned && added(now.owned, before.owned),
    ownedEdges: now.ownedEdges - before.ownedEdges,
    cutEdges: now.cutEdges - before.cutEdges,
    forced: now.forced - before.forced,
    capHits: now.capHits - before.capHits,
  };
}

function balance(counts: readonly number[]): number | undefined {
  return ratio(Math.max(...counts) * counts.length, sum(counts));
}

function sum(counts: readonly number[]): number {
  return counts.reduce((total, count) => total + count, 0);
}

function ratio(numerator: number, denominator: number): number | undefined {
  return denominator === 0 ? undefined : numerator / denominator;
}
