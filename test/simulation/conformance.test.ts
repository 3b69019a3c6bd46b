/**
 * Cases 1 to 7 of the conformance list (connected components of streaming systems), each for every number of
 * partitions, shuffled, reversed, with every edge delivered three times. Names of components follow from the order
 * of arrival, so across orders the member sets are compared.
 */
import { describe, expect, it } from 'vitest';
import { NONE } from '../../libs/graph/columns.ts';
import type { View } from '../../services/gateway/view.ts';
import { CorePipeline } from '../support/core-pipeline.ts';
import { seeded } from '../support/seeded.ts';

type Edge = readonly [number, number];

const PARTITIONS = [1, 2, 3, 4, 8];
const SHUFFLES = 10;

const range = (from: number, to: number): number[] =>
  Array.from({ length: to - from + 1 }, (_, n) => from + n);
const step = (from: number, to: number, by: number): number[] =>
  range(0, Math.floor((to - from) / by)).map((n) => from + n * by);

const CASES: readonly {
  readonly name: string;
  readonly edges: readonly Edge[];
  readonly components: readonly (readonly number[])[];
}[] = [
  {
    name: '1: three components, and vertex 4 that never appears',
    edges: [
      [1, 2],
      [1, 3],
      [2, 3],
      [1, 5],
      [6, 7],
      [8, 9],
    ],
    components: [
      [1, 2, 3, 5],
      [6, 7],
      [8, 9],
    ],
  },
  {
    name: '2: evens and odds',
    edges: range(0, 7).map((i) => [i, i + 2]),
    components: [step(0, 8, 2), step(1, 9, 2)],
  },
  {
    name: '2: two structures merged',
    edges: [...range(0, 7).map((i): Edge => [i, i + 2]), ...range(0, 7).map((i): Edge => [i, i + 100])],
    components: [
      [...step(0, 8, 2), ...step(100, 106, 2)],
      [...step(1, 9, 2), ...step(101, 107, 2)],
    ],
  },
  {
    name: '3: k to k + 2, k = 1 to 100',
    edges: range(1, 100).map((k) => [k, k + 2]),
    components: [step(1, 101, 2), step(2, 102, 2)],
  },
  {
    name: '4: k to k + 1 and k + 2, k = 1 to 10',
    edges: range(1, 10).flatMap((k): Edge[] => [
      [k, k + 1],
      [k, k + 2],
    ]),
    components: [range(1, 12)],
  },
  {
    name: '5: the case that made another system loop for ever',
    edges: [
      [1, 3],
      [1, 4],
      [1, 5],
      [5, 6],
    ],
    components: [[1, 3, 4, 5, 6]],
  },
  {
    name: '6: a hundred components stay a hundred',
    edges: range(0, 99).flatMap((c): Edge[] => [
      [c * 10, c * 10 + 1],
      [c * 10 + 1, c * 10 + 2],
    ]),
    components: range(0, 99).map((c) => [c * 10, c * 10 + 1, c * 10 + 2]),
  },
  {
    name: '7: a chain in bad order',
    edges: [
      [3, 4],
      [4, 5],
      [5, 2],
      [2, 1],
    ],
    components: [[1, 2, 3, 4, 5]],
  },
];

function run(edges: readonly Edge[], partitions: number, edgesPerMessage: number): View {
  const pipeline = new CorePipeline(partitions);
  for (let from = 0; from < edges.length; from += edgesPerMessage) {
    const message = edges.slice(from, from + edgesPerMessage).map(([source, target]) => ({ source, target }));
    pipeline.publish(JSON.stringify(message));
  }
  return pipeline.settle();
}

function componentsOf({ forest }: View): number[][] {
  const components = new Map<number, number[]>();
  for (let row = 0; row < forest.rows; row++) {
    const root = forest.root(row, NONE);
    components.set(root, [
      ...(components.get(root) ?? []),
      Number(new TextDecoder().decode(forest.vertices.idOf(row))),
    ]);
  }
  return sorted([...components.values()]);
}

function sorted(components: readonly (readonly number[])[]): number[][] {
  return components.map((component) => component.toSorted((a, b) => a - b)).sort((a, b) => a[0]! - b[0]!);
}

describe('conformance', () => {
  for (const { name, edges, components } of CASES) {
    it(`${name}`, () => {
      const random = seeded(7);
      const orders = [
        edges,
        edges.toReversed(),
        edges.map(([a, b]): Edge => [b, a]),
        [...edges, ...edges, ...edges],
      ];
      for (let n = 0; n < SHUFFLES; n++) {
        const keyed = [...edges, ...edges, ...edges].map((edge) => ({ edge, key: random() }));
        orders.push(keyed.sort((a, b) => a.key - b.key).map(({ edge }) => edge));
      }
      for (const partitions of PARTITIONS) {
        for (const order of orders) {
          for (const edgesPerMessage of [1, 7]) {
            const view = run(order, partitions, edgesPerMessage);
            expect(componentsOf(view)).toEqual(sorted(components));
            expect(view.messages.totals.edges).toBe(order.length);
          }
        }
      }
    });
  }

  it('the id of a component is its first vertex to arrive, whatever the number of partitions', () => {
    for (const partitions of PARTITIONS) {
      const { forest } = run(
        [
          [3, 4],
          [4, 5],
          [5, 2],
          [2, 1],
        ],
        partitions,
        2,
      );
      const oldest = forest.oldest(forest.root(0, NONE), NONE);
      expect(new TextDecoder().decode(forest.vertices.idOf(oldest))).toBe('3');
    }
  });
});
