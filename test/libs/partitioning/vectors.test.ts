/**
 * Streams worked by hand, step by step, with the scores as fractions. Two parts unless said otherwise; ties go to the
 * smaller load, then to the lower index.
 */
import { describe, expect, it } from 'vitest';
import {
  type Capacity,
  fixedCapacity,
  growingCapacity,
  growingWholeCapacity,
} from '../../../libs/partitioning/capacity.ts';
import { Dbh } from '../../../libs/partitioning/dbh.ts';
import { EdgeHash } from '../../../libs/partitioning/edge-hash.ts';
import type { Offer } from '../../../libs/partitioning/edge-partitioner.ts';
import { type FennelPenalty, FennelRule } from '../../../libs/partitioning/fennel.ts';
import { Grid } from '../../../libs/partitioning/grid.ts';
import { FNV_OFFSET, fnv1a } from '../../../libs/partitioning/hash.ts';
import { Hdrf } from '../../../libs/partitioning/hdrf.ts';
import { LdgRule } from '../../../libs/partitioning/ldg.ts';
import { OwnerPartitioner, type OwnerRule } from '../../../libs/partitioning/owners.ts';
import { UNOWNED } from '../../../libs/partitioning/placements.ts';
import { qualityOf } from '../../../libs/partitioning/quality.ts';
import { type Edge, GRAPH_A, GRAPH_B, Stream, stream } from './streams.ts';

const FULL = Symbol('no room');
/** What part 0 and part 1 score (a part that is full has the mark as well), and where the edge or vertex goes. */
type Step = readonly [score0: number, score1: number, part: number, full?: typeof FULL];

const UNCAPPED = growingWholeCapacity({ parts: 2, slack: 1, capMin: 1000 });

function expectScores(offers: readonly Offer[], [score0, score1]: Step): void {
  expect(offers[0]!.score).toBeCloseTo(score0, 12);
  expect(offers[1]!.score).toBeCloseTo(score1, 12);
}

describe('HDRF', () => {
  const hdrf = (lambda: number, capacity: Capacity): Stream<Hdrf> =>
    new Stream(new Hdrf(2, { lambda, epsilon: 1, capacity }));

  function expectSteps(placed: Stream<Hdrf>, edges: readonly Edge[], steps: readonly Step[]): void {
    const { partitioner, rows } = placed;
    for (const [at, [u, v]] of edges.entries()) {
      const step = steps[at]!;
      const offers = partitioner.offers(rows.of(u), rows.of(v));
      expectScores(offers, step);
      if (step[3] === FULL) expect(offers.map(({ hasRoom }) => hasRoom)).toEqual([false, true]);
      expect(placed.place([u, v])).toBe(step[2]);
    }
  }

  function expectEnd(
    placed: Stream<Hdrf>,
    loads: readonly number[],
    parts: Readonly<Record<number, readonly number[]>>,
    replicas: number,
  ): void {
    for (const [vertex, expected] of Object.entries(parts))
      expect(placed.partsOf(Number(vertex))).toEqual(expected);
    const figures = placed.partitioner.placements.figures();
    expect(figures.edges).toEqual(loads);
    expect(qualityOf(figures).replicationFactor).toBeCloseTo(replicas, 12);
  }

  const both = [0, 1];
  const allIn0 = { 1: [0], 2: [0], 3: [0], 4: [0], 5: [0], 6: [0] };

  it('puts a connected stream into one part for λ = 1', () => {
    const placed = hdrf(1, UNCAPPED);
    expectSteps(placed, GRAPH_B, [
      [0, 0, 0],
      [4 / 3, 1 / 2, 0],
      [5 / 4, 2 / 3, 0],
      [4 / 3, 3 / 4, 0],
      [3, 4 / 5, 0],
      [6 / 5, 5 / 6, 0],
      [3, 6 / 7, 0],
      [3, 7 / 8, 0],
    ]);
    expectEnd(placed, [8, 0], allIn0, 1);
    expect(qualityOf(placed.partitioner.placements.figures()).edgeBalance).toBe(2);
  });

  it('does so for λ = 1.1 as well, without a cap', () => {
    const placed = hdrf(1.1, UNCAPPED);
    expectSteps(placed, GRAPH_B, [
      [0, 0, 0],
      [4 / 3, 11 / 20, 0],
      [5 / 4, 11 / 15, 0],
      [4 / 3, 33 / 40, 0],
      [3, 22 / 25, 0],
      [6 / 5, 11 / 12, 0],
      [3, 33 / 35, 0],
      [3, 77 / 80, 0],
    ]);
    expectEnd(placed, [8, 0], allIn0, 1);
  });

  it('divides it for λ = 3', () => {
    const placed = hdrf(3, UNCAPPED);
    expectSteps(placed, GRAPH_B, [
      [0, 0, 0],
      [4 / 3, 3 / 2, 1],
      [5 / 4, 5 / 4, 0],
      [4 / 3, 3 / 2, 1],
      [3, 7 / 5, 0],
      [6 / 5, 27 / 10, 1],
      [0, 3, 1],
      [3 / 2, 3, 1],
    ]);
    expectEnd(placed, [3, 5], { 1: both, 2: both, 3: [1], 4: [1], 5: [0], 6: [1] }, 4 / 3);
    expect(qualityOf(placed.partitioner.placements.figures()).edgeBalance).toBe(5 / 4);
  });

  it('keeps a cap that is not rounded, max(2, 1.25 m / 2), for λ = 1.1', () => {
    const placed = hdrf(1.1, growingCapacity({ parts: 2, slack: 1.25, capMin: 2 }));
    expectSteps(placed, GRAPH_B, [
      [0, 0, 0],
      [4 / 3, 11 / 20, 0],
      [5 / 4, 11 / 15, 1, FULL],
      [4 / 3, 11 / 20, 1, FULL],
      [7 / 5, 3, 1],
      [6 / 5 + 11 / 20, 6 / 5, 0],
      [3 / 2, 3 / 2, 0],
      [3, 39 / 20, 0],
    ]);
    expectEnd(placed, [5, 3], { 1: both, 2: both, 3: [0], 4: both, 5: [1], 6: [0] }, 3 / 2);
    expect(qualityOf(placed.partitioner.placements.figures()).edgeBalance).toBe(5 / 4);
    expect(placed.partitioner.placements.capHits).toBe(2);
  });

  it.each([1.25, 1.1])('keeps the cap rounded up, max(2, ⌈%d m / 2⌉), for λ = 1.1', (slack) => {
    const placed = hdrf(1.1, growingWholeCapacity({ parts: 2, slack, capMin: 2 }));
    expectSteps(placed, GRAPH_B, [
      [0, 0, 0],
      [4 / 3, 11 / 20, 0],
      [5 / 4, 11 / 15, 1, FULL],
      [4 / 3, 11 / 20, 0],
      [7 / 5, 7 / 3, 1],
      [6 / 5, 7 / 4, 1],
      [3, 0, 0],
      [7 / 5, 43 / 20, 1],
    ]);
    expectEnd(placed, [4, 4], { 1: both, 2: both, 3: [0], 4: both, 5: [1], 6: [1] }, 3 / 2);
    expect(placed.partitioner.placements.capHits).toBe(1);
    expect(placed.partitioner.placements.forced).toBe(0);
  });

  it('takes equal scores for equal where doubles would differ', () => {
    const placed = new Stream(new Hdrf(3, { lambda: 1, epsilon: 1, capacity: UNCAPPED }));
    const star: Edge[] = [2, 3, 4, 5].map((vertex) => [1, vertex]);
    const path: Edge[] = [
      [10, 11],
      [11, 12],
      [10, 13],
    ];
    expect(placed.placeAll([...star, ...path])).toEqual([0, 0, 0, 0, 1, 1, 1]);
    // Part 0: 2 − 2/5. Part 1: 2 − 3/5 + 1/5, which in doubles is less.
    const scores = placed.partitioner.offers(placed.rows.of(2), placed.rows.of(10)).map(({ score }) => score);
    expect(scores[1]).toBeLessThan(scores[0]!);
    expect(scores[1]).toBeCloseTo(scores[0]!, 12);
    expect(placed.place([2, 10])).toBe(1);
  });

  it('is what the config makes by default', () => {
    expect(stream({ algorithm: 'hdrf' }, 2).placeAll(GRAPH_B)).toEqual([0, 0, 1, 0, 1, 1, 0, 1]);
  });

  it('divides a stream in another order for λ = 1', () => {
    const placed = hdrf(1, UNCAPPED);
    const edges: Edge[] = [
      [4, 6],
      [1, 2],
      [3, 4],
      [1, 5],
      [2, 6],
      [1, 3],
      [2, 5],
      [2, 4],
    ];
    expectSteps(placed, edges, [
      [0, 0, 0],
      [0, 1 / 2, 1],
      [4 / 3, 0, 0],
      [0, 11 / 6, 1],
      [3 / 2, 3 / 2, 0],
      [8 / 5, 19 / 10, 1],
      [7 / 5, 3, 1],
      [7 / 2, 10 / 7, 0],
    ]);
    expectEnd(placed, [4, 4], { 1: [1], 2: both, 3: both, 4: [0], 5: [1], 6: [0] }, 8 / 6);
  });

  it('divides the difference of loads by their range, unlike a known wrong program', () => {
    // λ · (max − |p|) grows without bound, where the paper's term stays below λ.
    const unnormalised = [0, 0, 1, 0, 1, 1, 0, 1];
    const placed = hdrf(1.1, UNCAPPED);
    const { rows, partitioner } = placed;
    const wrongParts = new Map<number, Set<number>>();
    const wrongDegree = new Map<number, number>();
    const wrongLoads = [0, 0];
    const wrong = GRAPH_B.map(([u, v]) => {
      for (const x of [u, v]) wrongDegree.set(x, (wrongDegree.get(x) ?? 0) + 1);
      const [du, dv] = [wrongDegree.get(u)!, wrongDegree.get(v)!];
      const scores = [0, 1].map(
        (p) =>
          (wrongParts.get(u)?.has(p) ? 2 - du / (du + dv) : 0) +
          (wrongParts.get(v)?.has(p) ? 2 - dv / (du + dv) : 0) +
          1.1 * (Math.max(...wrongLoads) - wrongLoads[p]!),
      );
      const part = scores[1]! > scores[0]! ? 1 : 0;
      wrongLoads[part]! += 1;
      for (const x of [u, v]) wrongParts.set(x, (wrongParts.get(x) ?? new Set()).add(part));
      return part;
    });
    expect(wrong).toEqual(unnormalised);
    expect(placed.placeAll(GRAPH_B)).not.toEqual(unnormalised);
    expect(partitioner.offers(rows.of(7), rows.of(8))[1]!.score).toBeLessThan(1.1);
  });
});

describe('greedy', () => {
  it('puts a connected stream into one part', () => {
    expect(stream({ algorithm: 'greedy' }, 2).placeAll(GRAPH_B)).toEqual([0, 0, 0, 0, 0, 0, 0, 0]);
  });

  it('takes the least loaded part of the intersection, the union, the one set, or all', () => {
    const placed = stream({ algorithm: 'greedy' }, 3);
    const steps: [Edge, number][] = [
      [[1, 2], 0], // all
      [[3, 4], 1], // all
      [[5, 6], 2], // all
      [[1, 7], 0], // one
      [[1, 3], 1], // union {0, 1}, loads 2, 1
      [[1, 4], 1], // intersection {1}
      [[1, 5], 2], // union {0, 1, 2}, loads 2, 3, 1
      [[1, 8], 0], // one, {0, 1, 2}, loads 2, 3, 2
      [[3, 5], 2], // union {1, 2}, loads 3, 2
    ];
    for (const [edge, part] of steps) expect(placed.place(edge)).toBe(part);
  });
});

describe('DBH', () => {
  it('hashes the vertex of the lower degree so far, at equal ones the smaller id', () => {
    const placed = new Stream(new Dbh(2));
    // Hashed are vertices 1, 3, 5, 4, 5, 6, 3, 6.
    expect(placed.placeAll(GRAPH_B)).toEqual([1, 1, 1, 0, 1, 0, 1, 0]);
    const figures = placed.partitioner.placements.figures();
    expect(figures.edges).toEqual([3, 5]);
    expect([1, 2, 3, 4, 5, 6].map((vertex) => placed.partsOf(vertex))).toEqual([
      [1],
      [0, 1],
      [1],
      [0, 1],
      [1],
      [0],
    ]);
    expect(qualityOf(figures).replicationFactor).toBeCloseTo(4 / 3, 12);
  });
});

describe('grid', () => {
  it('takes the least loaded crossing of rows and columns', () => {
    const placed = new Stream(new Grid(4));
    // Crossings: 03, 13, 013, 02, 03, 023, 12, 02.
    expect(placed.placeAll(GRAPH_B)).toEqual([0, 1, 3, 2, 0, 2, 1, 0]);
    const figures = placed.partitioner.placements.figures();
    expect(figures.edges).toEqual([3, 2, 2, 1]);
    expect(qualityOf(figures).replicationFactor).toBeCloseTo(13 / 6, 12);
  });
});

describe('hash', () => {
  it("is FNV-1a of the canonical edge's ids, the hash of NATS' partition(n, …)", () => {
    const text = new TextEncoder();
    const hashOf = (id: string): number =>
      fnv1a(FNV_OFFSET, text.encode(id), 0, text.encode(id).length) >>> 0;
    // Published test vectors of FNV-1a, 32 bits.
    expect(hashOf('')).toBe(0x811c9dc5);
    expect(hashOf('a')).toBe(0xe40c292c);
    expect(hashOf('foobar')).toBe(0xbf9cf968);
    const hash = new EdgeHash(12);
    // The edge foo - bar: "bar" is smaller, and what is hashed is "barfoo".
    expect(hash.place(0, 1, 0, 0, hashOf('barfoo') | 0)).toBe(hashOf('barfoo') % 12);
  });
});

describe('vertex owners', () => {
  /** Vertices of graph A arrive in the given order, each with its neighbours. */
  function expectArrivals(
    rule: OwnerRule,
    capacity: Capacity,
    order: readonly number[],
    steps: readonly Step[],
  ): Stream<OwnerPartitioner> {
    const placed = new Stream(new OwnerPartitioner(2, rule, capacity));
    for (const [at, vertex] of order.entries()) {
      const row = placed.rows.of(vertex);
      const neighbours = Uint32Array.from(GRAPH_A.get(vertex)!, (neighbour) => placed.rows.of(neighbour));
      const offers = placed.partitioner.offers(row, neighbours);
      const step = steps[at]!;
      expectScores(offers, step);
      if (step[3] === FULL) expect(offers.map(({ hasRoom }) => hasRoom)).toEqual([false, true]);
      expect(placed.partitioner.arrive(row, neighbours, 0, neighbours.length)).toBe(step[2]);
    }
    return placed;
  }
  const cutOf = (placed: Stream<OwnerPartitioner>): number | undefined =>
    qualityOf(placed.partitioner.placements.figures()).cutFraction;
  const balanceOf = (placed: Stream<OwnerPartitioner>): number | undefined =>
    qualityOf(placed.partitioner.placements.figures()).ownerBalance;
  const inOrder = [1, 2, 3, 4, 5, 6, 7, 8];

  it('LDG with C = 4 finds the two cliques', () => {
    const placed = expectArrivals(new LdgRule(), fixedCapacity(2, 1, 8), inOrder, [
      [0, 0, 0],
      [3 / 4, 0, 0],
      [1, 0, 0],
      [3 / 4, 0, 0],
      [0, 0, 1, FULL],
      [0, 3 / 4, 1, FULL],
      [0, 1, 1, FULL],
      [0, 3 / 4, 1, FULL],
    ]);
    expect(cutOf(placed)).toBe(1 / 13);
    expect(balanceOf(placed)).toBe(1);
  });

  it('LDG with C = 5 is worse for its slack', () => {
    const placed = expectArrivals(new LdgRule(), fixedCapacity(2, 1.25, 8), inOrder, [
      [0, 0, 0],
      [4 / 5, 0, 0],
      [6 / 5, 0, 0],
      [6 / 5, 0, 0],
      [1 / 5, 0, 0],
      [0, 0, 1, FULL],
      [0, 4 / 5, 1, FULL],
      [0, 6 / 5, 1, FULL],
    ]);
    expect(cutOf(placed)).toBe(3 / 13);
    expect(balanceOf(placed)).toBe(5 / 4);
  });

  it('LDG with C = 5 finds them when the cliques arrive in turns', () => {
    const placed = expectArrivals(
      new LdgRule(),
      fixedCapacity(2, 1.25, 8),
      [1, 5, 2, 6, 3, 7, 4, 8],
      [
        [0, 0, 0],
        [0, 0, 1],
        [4 / 5, 0, 0],
        [0, 4 / 5, 1],
        [6 / 5, 0, 0],
        [0, 6 / 5, 1],
        [6 / 5, 2 / 5, 0],
        [0, 6 / 5, 1],
      ],
    );
    expect(cutOf(placed)).toBe(1 / 13);
  });

  const fennel = (penalty: FennelPenalty): FennelRule =>
    new FennelRule({ parts: 2, penalty, announced: { vertices: 8, edges: 13 } });
  const alpha = 13 / 16;
  const d = [0, 1, 2, 3, 4].map((size) => 1.5 * alpha * Math.sqrt(size));
  const m = [0, 1, 2, 3, 4].map((size) => alpha * ((size + 1) ** 1.5 - size ** 1.5));

  it.each([1.25, 1.1])('FENNEL by the derivative, ν = %d, cuts both cliques', (slack) => {
    expect(d.map((penalty) => Number(penalty.toFixed(4)))).toEqual([0, 1.2188, 1.7236, 2.1109, 2.4375]);
    const placed = expectArrivals(fennel('derivative'), fixedCapacity(2, slack, 8), inOrder, [
      [0, 0, 0],
      [1 - d[1]!, 0, 1],
      [1 - d[1]!, 1 - d[1]!, 0],
      [2 - d[2]!, 1 - d[1]!, 0],
      [1 - d[3]!, -d[1]!, 0],
      [1 - d[4]!, -d[1]!, 1],
      [1 - d[4]!, 1 - d[2]!, 1],
      [1 - d[4]!, 2 - d[3]!, 1],
    ]);
    expect(cutOf(placed)).toBe(6 / 13);
    expect(balanceOf(placed)).toBe(1);
  });

  it.each([1.25, 1.1])('FENNEL by the marginal cost, ν = %d, finds them', (slack) => {
    expect(m.map((penalty) => Number(penalty.toFixed(4)))).toEqual([0.8125, 1.4856, 1.9238, 2.2781, 2.584]);
    const placed = expectArrivals(fennel('marginal'), fixedCapacity(2, slack, 8), inOrder, [
      [-m[0]!, -m[0]!, 0],
      [1 - m[1]!, -m[0]!, 0],
      [2 - m[2]!, -m[0]!, 0],
      [3 - m[3]!, -m[0]!, 0],
      [1 - m[4]!, -m[0]!, 1],
      [-m[4]!, 1 - m[1]!, 1],
      [-m[4]!, 2 - m[2]!, 1],
      [-m[4]!, 3 - m[3]!, 1],
    ]);
    expect(cutOf(placed)).toBe(1 / 13);
  });

  it('LDG on a circle, evens before odds, cuts half of it', () => {
    const placed = new Stream(new OwnerPartitioner(2, new LdgRule(), fixedCapacity(2, 1.25, 8)));
    const owners = [0, 2, 4, 6, 1, 3, 5, 7].map((vertex) => {
      const row = placed.rows.of(vertex);
      const neighbours = Uint32Array.from([(vertex + 7) % 8, (vertex + 1) % 8], (x) => placed.rows.of(x));
      return placed.partitioner.arrive(row, neighbours, 0, 2);
    });
    expect(owners).toEqual([0, 1, 0, 1, 0, 1, 0, 1]);
    expect(cutOf(placed)).toBe(4 / 8);
  });

  it('LDG on a stream of edges lets the capacity grow with the vertices', () => {
    const capacity = growingCapacity({ parts: 2, slack: 1.25, capMin: 2 });
    const placed = new Stream(new OwnerPartitioner(2, new LdgRule(), capacity));
    /** Edge, the vertex that it makes known, the neighbour of it, the capacity, and what is offered. */
    const steps: [Edge, number, number, number, Step][] = [
      [[1, 3], 3, 1, 2, [0, 0, 1, FULL]],
      [[1, 5], 5, 1, 5 / 2, [1 / 5, 0, 1, FULL]],
      [[2, 4], 4, 2, 25 / 8, [9 / 25, 0, 0]],
      [[2, 6], 6, 2, 15 / 4, [1 / 5, 0, 1, FULL]],
    ];
    placed.place([1, 2]);
    expect([placed.owner(1), placed.owner(2)]).toEqual([0, 0]);
    for (const [edge, vertex, neighbour, expectedCapacity, step] of steps) {
      const known = placed.partitioner.placements.owned!.total;
      expect(capacity.at(known + 1) / capacity.unit).toBe(expectedCapacity);
      const neighbours = Uint32Array.of(placed.rows.of(neighbour));
      const offers = placed.partitioner.offers(placed.rows.of(vertex), neighbours);
      expectScores(offers, step);
      if (step[3] === FULL) expect(offers.map(({ hasRoom }) => hasRoom)).toEqual([false, true]);
      placed.place(edge);
      expect(placed.owner(vertex)).toBe(step[2]);
    }
    placed.placeAll([
      [2, 5],
      [3, 4],
      [4, 6],
    ]);
    expect([1, 2, 3, 4, 5, 6].map((vertex) => placed.owner(vertex))).toEqual([0, 0, 1, 0, 1, 1]);
    expect(cutOf(placed)).toBe(6 / 8);
    // Twice a part with a neighbour would have won, had it had room.
    expect(placed.partitioner.placements.capHits).toBe(2);
  });

  it('LDG weighs neighbours against room', () => {
    const rule = new LdgRule();
    rule.begin(0, 0, 6, 1);
    const scores = (...parts: Edge[]): number[] =>
      parts.map(([neighbours, size]) => rule.scoreOf(rule.weigh(neighbours, size)));
    expect(scores([1, 5], [3, 3])).toEqual([1 / 6, 3 / 2]);
    expect(scores([1, 4], [2, 4])).toEqual([1 / 3, 2 / 3]);
  });

  it('gives an edge to the owner of its endpoint of the lower degree, at equal ones of the smaller id', () => {
    const placed = new Stream(new OwnerPartitioner(2, new LdgRule(), fixedCapacity(2, 1, 2)));
    // 1 is owned by part 0, which is full then; 2 by part 1.
    expect(placed.place([1, 2])).toBe(0);
    expect(placed.place([1, 2])).toBe(0);
    expect([placed.owner(1), placed.owner(2)]).toEqual([0, 1]);
    // No part has room for 3: the smallest, and the counter says so.
    expect(placed.place([1, 3])).toBe(0);
    expect(placed.partitioner.placements.forced).toBe(1);
    // 1 has degree 4 now, 2 has 3.
    expect(placed.place([1, 2])).toBe(1);
  });

  it('keeps the owner of a vertex that arrives again, and gives none to neighbours', () => {
    const placed = new Stream(new OwnerPartitioner(2, new LdgRule(), fixedCapacity(2, 1, 4)));
    const [a, b, c] = [1, 2, 3].map((vertex) => placed.rows.of(vertex));
    const { partitioner } = placed;
    expect(partitioner.arrive(a!, Uint32Array.of(b!, c!), 0, 2)).toBe(0);
    expect(partitioner.placeListed(a!, b!)).toBe(0);
    expect(placed.owner(2)).toBe(UNOWNED);
    expect(partitioner.arrive(a!, Uint32Array.of(), 0, 0)).toBe(0);
    expect(partitioner.placements.owned!.total).toBe(1);
    expect(() => partitioner.placeListed(b!, c!)).toThrow('neither row 1 nor row 2 has arrived');
  });
});
