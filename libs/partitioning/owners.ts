/**
 * Partitioners that give each vertex an owner part: LDG and FENNEL, which differ in the score alone.
 *
 * They were published for streams in which a vertex arrives with all its neighbours: `arrive`. On a stream of
 * edges (`place`) a vertex gets its owner with its first edge, when at most one neighbour is known, and the cut is
 * much larger; measured, not hoped (../../test/libs/partitioning/published.test.ts). Owners never change.
 *
 * An edge goes to the owner of its endpoint of the lower degree so far (at equal ones: of the smaller id), as in DBH.
 *
 * Looked at are the parts that have neighbours of the vertex, and the smallest part: among those without neighbours
 * no score is higher than the smallest part's.
 */
import type { Capacity } from './capacity.ts';
import type { EdgePartitioner, Offer } from './edge-partitioner.ts';
import { goesBefore } from './loads.ts';
import { Placements, UNOWNED } from './placements.ts';

export interface OwnerRule {
  /**
   * A decision is due: with it there are `vertices` that have owners and `edges` between them, and a part may hold
   * `capacity`, in units of which there are `unit` to a vertex.
   */
  begin(vertices: number, edges: number, capacity: number, unit: number): void;
  /** How a part with so many of the vertex's neighbours and so many vertices compares; does not rise with `size`. */
  weigh(neighbours: number, size: number): number;
  /** The score of the paper. */
  scoreOf(weight: number): number;
}

export class OwnerPartitioner implements EdgePartitioner {
  readonly placements: Placements;
  readonly needsRows = true;
  private readonly rule: OwnerRule;
  private readonly capacity: Capacity;
  /** Neighbours per part of the vertex at hand, and the parts that have any. */
  private readonly neighbours: Uint32Array;
  private readonly found: Uint32Array;
  private foundCount = 0;

  constructor(parts: number, rule: OwnerRule, capacity: Capacity) {
    this.placements = new Placements(parts, true);
    this.rule = rule;
    this.capacity = capacity;
    this.neighbours = new Uint32Array(parts);
    this.found = new Uint32Array(parts);
  }

  place(smaller: number, larger: number): number {
    const { placements } = this;
    placements.meet(smaller, larger);
    placements.ownedEdges += 1;
    if (placements.ownerU === UNOWNED) this.settleBeside(smaller, placements.ownerV);
    if (placements.ownerV === UNOWNED) this.settleBeside(larger, placements.ownerU);
    if (placements.ownerU !== placements.ownerV) placements.cutEdges += 1;
    return this.assign();
  }

  /**
   * A vertex with its neighbours, rows `neighbours[from .. to)`: its owner. One that has an owner keeps it. Edges count,
   * here, once both ends have owners: so each once if both vertices list it.
   */
  arrive(vertex: number, neighbours: Uint32Array, from: number, to: number): number {
    const { placements } = this;
    const owner = placements.owner(vertex);
    if (owner !== UNOWNED) return owner;
    const edges = this.collect(vertex, neighbours, from, to);
    placements.ownedEdges += edges;
    const part = this.choose();
    placements.cutEdges += edges - this.neighbours[part]!;
    placements.own(vertex, part);
    this.forget();
    return part;
  }

  /** The part of an edge that the message of an arrived vertex lists: a neighbour that has no owner is given none. */
  placeListed(smaller: number, larger: number): number {
    const { placements } = this;
    if (placements.owner(smaller) === UNOWNED && placements.owner(larger) === UNOWNED) {
      throw new RangeError(`neither row ${smaller} nor row ${larger} has arrived`);
    }
    placements.meet(smaller, larger);
    return this.assign();
  }

  /** What each part offers to a vertex, were it the next to arrive. */
  offers(vertex: number, neighbours: Uint32Array): Offer[] {
    const { placements, rule } = this;
    const owned = placements.owned!;
    const edges = this.collect(vertex, neighbours, 0, neighbours.length);
    const { unit } = this.capacity;
    const capacity = this.capacity.at(owned.total + 1);
    rule.begin(owned.total + 1, placements.ownedEdges + edges, capacity, unit);
    const offers = Array.from(owned.counts, (size, part) => ({
      score: rule.scoreOf(rule.weigh(this.neighbours[part]!, size)),
      load: size,
      hasRoom: (size + 1) * unit <= capacity,
    }));
    this.forget();
    return offers;
  }

  /** The edge at hand goes where its endpoint of the lower degree is; one of the two has an owner. */
  private assign(): number {
    const { placements } = this;
    const { ownerU, ownerV } = placements;
    const isToU = ownerV === UNOWNED || (ownerU !== UNOWNED && placements.degreeU <= placements.degreeV);
    const part = isToU ? ownerU : ownerV;
    placements.assign(part);
    return part;
  }

  /** Gives an owner to a vertex of which one neighbour is known, owned by that part or by none. */
  private settleBeside(vertex: number, part: number): void {
    this.count(part);
    this.placements.own(vertex, this.choose());
    this.forget();
  }

  private choose(): number {
    const { placements, rule, neighbours, found, foundCount } = this;
    const owned = placements.owned!;
    const { counts, least } = owned;
    const { unit } = this.capacity;
    const capacity = this.capacity.at(owned.total + 1);
    let best = least;
    let bestSize = counts[least]!;
    if ((bestSize + 1) * unit > capacity) {
      placements.forced += 1;
      return least;
    }
    rule.begin(owned.total + 1, placements.ownedEdges, capacity, unit);
    let bestWeight = rule.weigh(neighbours[least]!, bestSize);
    let fullWeight = Number.NEGATIVE_INFINITY;
    for (let i = 0; i < foundCount; i++) {
      const part = found[i]!;
      const size = counts[part]!;
      const weight = rule.weigh(neighbours[part]!, size);
      if ((size + 1) * unit > capacity) {
        if (weight > fullWeight) fullWeight = weight;
      } else if (goesBefore(weight, size, part, bestWeight, bestSize, best)) {
        best = part;
        bestSize = size;
        bestWeight = weight;
      }
    }
    if (fullWeight > bestWeight) placements.capHits += 1;
    return best;
  }

  /** Counts the neighbours that have owners, by part; how many there are. */
  private collect(vertex: number, neighbours: Uint32Array, from: number, to: number): number {
    let edges = 0;
    for (let i = from; i < to; i++) {
      const owner = neighbours[i] === vertex ? UNOWNED : this.placements.owner(neighbours[i]!);
      if (owner !== UNOWNED) edges += 1;
      this.count(owner);
    }
    return edges;
  }

  private count(owner: number): void {
    if (owner === UNOWNED) return;
    if (this.neighbours[owner] === 0) {
      this.found[this.foundCount] = owner;
      this.foundCount += 1;
    }
    this.neighbours[owner]! += 1;
  }

  private forget(): void {
    for (let i = 0; i < this.foundCount; i++) this.neighbours[this.found[i]!] = 0;
    this.foundCount = 0;
  }
}
