/**
 * Figures that others published, or that another program measured: email-Enron made simple and undirected (this
 * copy has 36,691 vertices and 183,830 edges, one less of each than the original), and planted communities.
 */
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { hashId, viewOf } from '../../../libs/graph/id-hash.ts';
import { FNV_OFFSET, fnv1a } from '../../../libs/partitioning/hash.ts';
import { newPartitioner } from '../../../libs/partitioning/new-partitioner.ts';
import { OwnerPartitioner } from '../../../libs/partitioning/owners.ts';
import { type Quality, qualityOf } from '../../../libs/partitioning/quality.ts';
import { DATA_FOLDER, hasDataFiles } from '../../support/data-files.ts';
import { seeded } from '../../support/seeded.ts';
import { config, type Edge } from './streams.ts';

describe.skipIf(!hasDataFiles)('snap_Email-Enron.txt of ../shared/data', () => {
  const enron = hasDataFiles ? readGraph('snap_Email-Enron.txt') : new Graph([]);
  const random = shuffled(enron.inOrder, 1);
  const announced = { vertices: 36_691, edges: 183_830 };

  it('is the graph that the figures are of', () => {
    expect({ vertices: enron.ids.length, edges: enron.edges.length }).toEqual(announced);
  });

  it.each([
    // HDRF and greedy: the README of NE (Zhang et al.: Graph Edge Partitioning via Neighborhood Heuristic, KDD 2017).
    ['hdrf', 2.1, 0.1],
    ['greedy', 2.3, 0.1],
    ['dbh', 3.05, 0.15],
    // What is to be expected: Σ_v k (1 − (1 − 1/k)^deg(v)) / n.
    ['hash', 5.29, 0.1],
  ])('%s, 30 parts, random order: replication factor %d ± %d', (algorithm, expected, tolerance) => {
    const { replicationFactor } = placeEdges(enron, random, { algorithm }, 30);
    expect(Math.abs(replicationFactor! - expected)).toBeLessThanOrEqual(tolerance);
  });

  it('grid, 30 parts, random order: fewer copies than hash, and balanced', () => {
    const { replicationFactor, edgeBalance } = placeEdges(enron, random, { algorithm: 'grid' }, 30);
    expect(replicationFactor).toBeLessThan(3.7);
    expect(edgeBalance).toBeLessThan(1.01);
  });

  it('hdrf, 30 parts, order of ids: balanced by the cap, and not without', () => {
    const hdrf = (parameters: object): Quality =>
      placeEdges(enron, enron.inOrder, { algorithm: 'hdrf', ...parameters }, 30);
    const capped = hdrf({});
    expect(capped.edgeBalance).toBeLessThanOrEqual(1.1);
    expect(capped.replicationFactor).toBeLessThan(2.75);
    expect(capped.capHits).toBeGreaterThan(0);
    expect(capped.forced).toBe(0);
    expect(hdrf({ slack: 1000 }).edgeBalance).toBeGreaterThan(1.4);
    expect(hdrf({ slack: 1000, lambda: 1 }).edgeBalance).toBeGreaterThan(28);
  });

  // Measured for ../shared/notes/partitioning.md by another program.
  it.each([
    ['ldg', 8, 38.9],
    ['fennel', 8, 31.4],
    ['ldg', 32, 54.6],
    ['fennel', 32, 49.0],
  ])(
    '%s, vertices with their neighbours in order of ids, %d parts: cuts %d ± 0.5 percent',
    (algorithm, parts, cut) => {
      const known = algorithm === 'ldg' ? { vertices: announced.vertices } : announced;
      const order = Uint32Array.from(enron.ids.keys());
      const quality = placeVertices(enron, order, { algorithm, ...known }, parts);
      expect(Math.abs(quality.cutFraction! * 100 - cut)).toBeLessThanOrEqual(0.5);
      expect(quality.ownerBalance).toBeLessThanOrEqual(1.1);
      expect(quality.forced).toBe(0);
    },
  );

  it.each(['ldg', 'fennel'])(
    '%s, edges in random order, 8 parts: cuts 69 ± 1 percent, for a first edge tells little',
    (algorithm) => {
      const quality = placeEdges(enron, random, { algorithm }, 8);
      expect(Math.abs(quality.cutFraction! * 100 - 69)).toBeLessThanOrEqual(1);
      expect(quality.ownerBalance).toBeLessThanOrEqual(1.11);
    },
  );
});

describe('planted communities: 100 of 20 vertices, with 12 neighbours inside and 3 anywhere', () => {
  const parts = 4;
  const community = 20;
  const hashCut = 1 - 1 / parts;

  // Stanton and Kliot, table 2: LDG gains on average 73 to 76 % of what lies between hash and METIS. Communities as large as a
  // part are another matter: two that begin in one part stay there, and the gain is 55 to 62 %.
  it.each([1, 2, 3].flatMap((seed) => [['ldg', seed] as const, ['fennel', seed] as const]))(
    '%s, vertices with their neighbours in random order (seed %d), gains 70 percent or more of what there is to gain over hash',
    (algorithm, seed) => {
      const planted = plantedGraph(100, community, 12, 3, seed);
      const partOf = (vertex: number): number => Math.floor((planted.ids[vertex]! / community / 100) * parts);
      const cut = planted.edges.filter(([u, v]) => partOf(u) !== partOf(v));
      const known = { vertices: planted.ids.length, edges: planted.edges.length };
      const { cutFraction } = placeVertices(
        planted,
        shuffled(Uint32Array.from(planted.ids.keys()), seed),
        { algorithm, ...(algorithm === 'ldg' ? { vertices: known.vertices } : known) },
        parts,
      );
      const plantedCut = cut.length / known.edges;
      expect((hashCut - cutFraction!) / (hashCut - plantedCut)).toBeGreaterThanOrEqual(0.7);
    },
  );
});

/** A simple undirected graph. Rows are in the order of ids; edges hold rows, and are in their order. */
class Graph {
  readonly ids: readonly number[];
  readonly edges: readonly Edge[];
  readonly inOrder: Uint32Array;
  readonly neighbours: readonly number[][];
  readonly hashes: Int32Array;
  readonly edgeHashes: Int32Array;

  constructor(pairs: readonly Edge[]) {
    this.ids = [...new Set(pairs.flat())].sort((a, b) => a - b);
    const rows = new Map(this.ids.map((id, row) => [id, row]));
    const keys = new Set<number>();
    for (const [a, b] of pairs) {
      const [u, v] = [rows.get(a)!, rows.get(b)!];
      if (u !== v) keys.add(Math.min(u, v) * this.ids.length + Math.max(u, v));
    }
    const sorted = Float64Array.from(keys).sort();
    const bytes = this.ids.map((id) => new TextEncoder().encode(String(id)));
    this.hashes = Int32Array.from(bytes, (id) => hashId(viewOf(id), 0, id.length));
    // The vertex whose id is the smaller by bytes comes first.
    this.edges = Array.from(sorted, (key): Edge => {
      const [u, v] = [Math.floor(key / this.ids.length), key % this.ids.length];
      return String(this.ids[u]) < String(this.ids[v]) ? [u, v] : [v, u];
    });
    this.edgeHashes = Int32Array.from(this.edges, (edge) =>
      edge.reduce((hash, row) => fnv1a(hash, bytes[row]!, 0, bytes[row]!.length), FNV_OFFSET),
    );
    this.inOrder = Uint32Array.from(this.edges.keys());
    this.neighbours = this.ids.map(() => []);
    for (const [u, v] of this.edges) {
      this.neighbours[u]!.push(v);
      this.neighbours[v]!.push(u);
    }
  }
}

function placeEdges(graph: Graph, order: Uint32Array, given: object, parts: number): Quality {
  const partitioner = newPartitioner(config(given), parts);
  const { edges, hashes, edgeHashes } = graph;
  for (const edge of order) {
    const [u, v] = edges[edge]!;
    partitioner.place(u, v, hashes[u]!, hashes[v]!, edgeHashes[edge]!);
  }
  return qualityOf(partitioner.placements.figures());
}

function placeVertices(graph: Graph, order: Uint32Array, given: object, parts: number): Quality {
  const partitioner = newPartitioner(config(given), parts);
  if (!(partitioner instanceof OwnerPartitioner)) throw new Error('no owners');
  for (const vertex of order) {
    const neighbours = Uint32Array.from(graph.neighbours[vertex]!);
    partitioner.arrive(vertex, neighbours, 0, neighbours.length);
  }
  expect(partitioner.placements.ownedEdges).toBe(graph.edges.length);
  return qualityOf(partitioner.placements.figures());
}

function readGraph(name: string): Graph {
  const lines = readFileSync(`${DATA_FOLDER}${name}`, 'utf8').split('\n');
  const rows = lines.filter((line) => line !== '' && !line.startsWith('#'));
  return new Graph(rows.map((line) => line.split('\t').map(Number) as [number, number]));
}

function plantedGraph(
  communities: number,
  size: number,
  inside: number,
  outside: number,
  seed: number,
): Graph {
  const random = seeded(seed);
  const vertices = communities * size;
  const pairs: Edge[] = [];
  // Each edge is a neighbour to both its ends.
  for (let i = 0; i < (vertices * inside) / 2; i++) {
    const first = Math.floor(random() * communities) * size;
    pairs.push([first + Math.floor(random() * size), first + Math.floor(random() * size)]);
  }
  for (let i = 0; i < (vertices * outside) / 2; i++) {
    pairs.push([Math.floor(random() * vertices), Math.floor(random() * vertices)]);
  }
  return new Graph(pairs);
}

function shuffled(list: Uint32Array, seed: number): Uint32Array {
  const random = seeded(seed);
  const mixed = list.slice();
  for (let at = mixed.length - 1; at > 0; at--) {
    const other = Math.floor(random() * (at + 1));
    [mixed[at], mixed[other]] = [mixed[other]!, mixed[at]!];
  }
  return mixed;
}
