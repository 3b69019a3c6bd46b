import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { NONE } from '../../../libs/graph/columns.ts';
import { ComponentForest } from '../../../libs/graph/component-forest.ts';
import { hashId, viewOf } from '../../../libs/graph/id-hash.ts';
import { BestRanked, comesBefore } from '../../../libs/graph/size-order.ts';

type Edge = readonly [number, number];

/** Edge n is message n + 1. */
function build(edges: readonly Edge[]): ComponentForest {
  const forest = new ComponentForest();
  for (const [n, [a, b]] of edges.entries()) apply(forest, a, b, n + 1);
  return forest;
}

function apply(forest: ComponentForest, a: number, b: number, sequence: number): void {
  const rows = [a, b].map((vertex) => {
    const id = viewOf(new TextEncoder().encode(String(vertex)));
    const row = forest.vertices.findOrAdd(id, 0, id.byteLength, hashId(id, 0, id.byteLength));
    if (row === forest.rows) forest.arrive(sequence, 0);
    return row;
  });
  if (rows[0] !== rows[1]) forest.join(rows[0]!, rows[1]!, sequence, 0, Number.NaN);
}

/** Sets of vertices, recomputed from scratch by label propagation over the prefix. */
function oracle(edges: readonly Edge[]): { order: number[]; label: Map<number, number> } {
  const order: number[] = [];
  for (const edge of edges) for (const vertex of edge) if (!order.includes(vertex)) order.push(vertex);
  const label = new Map(order.map((vertex, row) => [vertex, row]));
  for (let changed = true; changed; ) {
    changed = false;
    for (const [a, b] of edges) {
      const least = Math.min(label.get(a)!, label.get(b)!);
      if (label.get(a) !== least || label.get(b) !== least) changed = true;
      label.set(a, least);
      label.set(b, least);
    }
  }
  return { order, label };
}

const someEdges = fc.array(fc.tuple(fc.integer({ min: 0, max: 14 }), fc.integer({ min: 0, max: 14 })), {
  maxLength: 40,
});

describe('the component forest', () => {
  it('has at every earlier sequence the components of exactly that prefix', () => {
    fc.assert(
      fc.property(someEdges, (edges) => {
        const forest = build(edges);
        for (let sequence = 0; sequence <= edges.length; sequence++) {
          const { order, label } = oracle(edges.slice(0, sequence));
          const cut = forest.cutAt(sequence);
          expect(cut.rows).toBe(order.length);
          expect(cut.rows - cut.links).toBe(new Set(label.values()).size);
          for (const [row, vertex] of order.entries()) {
            const root = forest.root(row, cut.links);
            expect(forest.oldest(root, cut.links)).toBe(label.get(vertex));
            expect(forest.size(root, cut.links)).toBe(
              [...label.values()].filter((l) => l === label.get(vertex)).length,
            );
          }
        }
      }),
      { numRuns: 60 },
    );
  });

  it('names the first edge that connected two vertices', () => {
    fc.assert(
      fc.property(someEdges, (edges) => {
        const forest = build(edges);
        const { order } = oracle(edges);
        const together = (a: number, b: number, sequence: number): boolean => {
          const { label } = oracle(edges.slice(0, sequence));
          return label.has(a) && label.get(a) === label.get(b);
        };
        for (let a = 0; a < order.length; a++) {
          for (let b = a + 1; b < order.length; b++) {
            let first: number | undefined;
            for (let s = 1; s <= edges.length && first === undefined; s++)
              if (together(order[a]!, order[b]!, s)) first = s;
            const connection = forest.connection(a, b, NONE);
            if (first === undefined) expect(connection).toEqual({ kind: 'apart' });
            else {
              expect(connection.kind).toBe('joined');
              if (connection.kind === 'joined') expect(forest.link(connection.link).sequence).toBe(first);
            }
          }
        }
      }),
      { numRuns: 40 },
    );
  });

  it('lists each member of a component once, from any earlier cut, whatever merges meanwhile', () => {
    fc.assert(
      fc.property(someEdges, fc.nat(), (edges, pick) => {
        const sequence = edges.length === 0 ? 0 : pick % (edges.length + 1);
        const forest = build(edges);
        const cut = forest.cutAt(sequence);
        const { order, label } = oracle(edges.slice(0, sequence));
        for (const [row, vertex] of order.entries()) {
          const members: number[] = [];
          for (let at = forest.root(row, cut.links); at !== NONE; at = forest.nextMember(at, cut.links))
            members.push(at);
          const expected = order.flatMap((other, r) => (label.get(other) === label.get(vertex) ? [r] : []));
          expect(members.sort((a, b) => a - b)).toEqual(expected);
        }
      }),
      { numRuns: 60 },
    );
  });

  it('pages components from the largest to the smallest, equal sizes by age', () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.integer({ min: 0, max: 400 }), fc.integer({ min: 0, max: 400 })), {
          maxLength: 500,
        }),
        fc.integer({ min: 1, max: 7 }),
        (edges, limit) => {
          const forest = build(edges);
          const all = new Map<number, number>();
          for (let row = 0; row < forest.rows; row++) {
            const root = forest.root(row, NONE);
            all.set(forest.oldest(root, NONE), forest.size(root, NONE));
          }
          const expected = [...all].map(([oldest, size]) => ({ oldest, size }));
          expected.sort((a, b) => (comesBefore(a, b) ? -1 : 1));
          const paged = [];
          for (
            let page = forest.order.page(undefined, limit);
            page.length > 0;
            page = forest.order.page(page.at(-1), limit)
          ) {
            paged.push(...page);
          }
          expect(paged).toEqual(expected);
          const best = new BestRanked(limit);
          for (const entry of expected.toReversed()) best.offer(entry);
          expect(best.list).toEqual(expected.slice(0, limit));
        },
      ),
      { numRuns: 60 },
    );
  });

  it('keeps paths no longer than log2 of the component, for a chain in the worst order', () => {
    const forest = new ComponentForest();
    const length = 50_000;
    for (let i = 0; i < length; i++) apply(forest, i + 1, i, i + 1);
    expect(forest.size(forest.root(0, NONE), NONE)).toBe(length + 1);
    let deepest = 0;
    for (let row = 0; row < forest.rows; row++) {
      let depth = 0;
      for (let at = row; !forest.isRoot(at, NONE); at = forest.link(linkAbove(forest, at)).parent) depth += 1;
      deepest = Math.max(deepest, depth);
    }
    expect(deepest).toBeLessThanOrEqual(Math.floor(Math.log2(length + 1)));
  });

  it('finds the past of a hub with a million links in a few steps', () => {
    const forest = new ComponentForest();
    const links = 200_000;
    for (let i = 1; i <= links; i++) apply(forest, 0, i, i);
    for (const sequence of [1, 2, 3, 777, 100_000, links - 1]) {
      const cut = forest.cutAt(sequence);
      expect(forest.size(forest.root(0, cut.links), cut.links)).toBe(sequence + 1);
    }
    const began = performance.now();
    for (let i = 0; i < 10_000; i++) forest.size(0, 5);
    const deep = performance.now() - began;
    const shallowBegan = performance.now();
    for (let i = 0; i < 10_000; i++) forest.size(0, links);
    const shallow = performance.now() - shallowBegan;
    // A walk over all links would take 100,000 times as long.
    expect(deep).toBeLessThan(Math.max(shallow, 1) * 2_000);
  });
});

function linkAbove(forest: ComponentForest, row: number): number {
  let from = 0;
  let to = forest.links;
  // Links above a row are those numbered from the first cut at which it is no root.
  while (from < to) {
    const middle = (from + to) >>> 1;
    if (forest.isRoot(row, middle + 1)) from = middle + 1;
    else to = middle;
  }
  return from;
}
