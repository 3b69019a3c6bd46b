import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ByteReader, ByteWriter } from '../../../libs/dataflow/bytes.ts';
import { NONE } from '../../../libs/graph/columns.ts';
import { finish } from '../../../libs/graph/id-hash.ts';
import type { EdgePartitioner } from '../../../libs/partitioning/edge-partitioner.ts';
import { gridRows } from '../../../libs/partitioning/grid.ts';
import { Loads } from '../../../libs/partitioning/loads.ts';
import { newPartitioner } from '../../../libs/partitioning/new-partitioner.ts';
import { OwnerPartitioner } from '../../../libs/partitioning/owners.ts';
import { ALGORITHMS, type PartitionerConfig } from '../../../libs/partitioning/partitioner-config.ts';
import { figuresSince, qualityOf } from '../../../libs/partitioning/quality.ts';
import { seeded } from '../../support/seeded.ts';
import { Reference } from './reference.ts';
import { config, type Edge, Rows, Stream } from './streams.ts';

const permille = (min: number, max: number): fc.Arbitrary<number> =>
  fc.integer({ min: min * 1000, max: max * 1000 }).map((value) => value / 1000);
const capped = {
  slack: fc.oneof(fc.constantFrom(1, 1.1, 1.25), permille(1, 3)),
  capMin: fc.constantFrom(1, 2, 5),
};
const announcedVertices = fc.integer({ min: 1, max: 20 });
const someConfig: fc.Arbitrary<PartitionerConfig> = fc.oneof(
  fc.constantFrom('hash', 'grid', 'dbh', 'greedy').map((algorithm) => config({ algorithm })),
  fc
    .record({
      ...capped,
      lambda: fc.oneof(fc.constantFrom(0, 1, 1.1, 3), permille(0, 5)),
      epsilon: fc.oneof(fc.constant(1), permille(1, 3)),
    })
    .map((given) => config({ algorithm: 'hdrf', ...given })),
  fc
    .record({ ...capped, vertices: fc.option(announcedVertices, { nil: undefined }) })
    .map((given) => config({ algorithm: 'ldg', ...given })),
  fc
    .record({ ...capped, penalty: fc.constantFrom('derivative', 'marginal') })
    .map((given) => config({ algorithm: 'fennel', ...given })),
  fc
    .record({ ...capped, vertices: announcedVertices, edges: fc.integer({ min: 1, max: 60 }) })
    .map((given) => config({ algorithm: 'fennel', ...given })),
);
/** Grids all; sets of parts of one, two, three and 32 words. */
const someParts = fc.constantFrom(1, 4, 6, 8, 9, 30, 32, 33, 64, 66, 1024);
const somePart = { config: someConfig, parts: someParts };

function edgesAmong(vertices: number): fc.Arbitrary<Edge[]> {
  const vertex = fc.integer({ min: 0, max: vertices - 1 });
  return fc.array(
    fc.tuple(vertex, vertex).map(([a, b]) => (a < b ? [a, b] : [b, a]) as Edge),
    { maxLength: 60 },
  );
}
const someEdges = fc.oneof(edgesAmong(5), edgesAmong(30));

function hashOf(vertex: number): number {
  return finish(vertex + 1);
}

function streamOf(value: PartitionerConfig, parts: number): Stream<EdgePartitioner> {
  return new Stream(newPartitioner(value, parts), hashOf);
}

const all = Object.keys(ALGORITHMS);

describe('every partitioner', () => {
  it('decides as its paper says, to the last tie', () => {
    fc.assert(
      fc.property(fc.record({ ...somePart, edges: someEdges }), ({ config, parts, edges }) => {
        const reference = new Reference(config, parts, hashOf);
        const placed = streamOf(config, parts);
        for (const edge of edges) expect(placed.place(edge)).toBe(reference.place(edge));
        const { placements } = placed.partitioner;
        expect([...placements.loads.counts]).toEqual(reference.loads());
        expect(placements.forced).toBe(reference.forced);
        for (const [vertex, owner] of reference.owners) expect(placed.owner(vertex)).toBe(owner);
      }),
      { numRuns: 400 },
    );
  });

  it('keeps what it promised: parts that exist, loads that add up, sets that only grow', () => {
    fc.assert(
      fc.property(fc.record({ ...somePart, edges: someEdges }), ({ config, parts, edges }) => {
        const placed = streamOf(config, parts);
        const { placements } = placed.partitioner;
        const sets = new Map<number, readonly number[]>();
        for (const [at, [u, v]] of edges.entries()) {
          const part = placed.place([u, v]);
          expect(part).toBeGreaterThanOrEqual(0);
          expect(part).toBeLessThan(parts);
          expect(placements.loads.total).toBe(at + 1);
          for (const vertex of [u, v]) {
            const set = placed.partsOf(vertex);
            expect(set).toContain(part);
            expect(set).toEqual(expect.arrayContaining([...(sets.get(vertex) ?? [])]));
            sets.set(vertex, set);
          }
        }
        for (const [vertex, set] of sets) {
          const degree = edges.flat().filter((end) => end === vertex).length;
          expect(placements.degree(placed.rows.of(vertex))).toBe(degree);
          expect(set.length).toBeLessThanOrEqual(Math.min(parts, degree));
          const rows = gridRows(parts);
          if (config.algorithm === 'grid') expect(set.length).toBeLessThan(rows + parts / rows);
        }
        expect([...placements.loads.counts].reduce((sum, count) => sum + count)).toBe(edges.length);
      }),
    );
  });

  it('passes no cap, but for forced placements, which are counted', () => {
    fc.assert(
      fc.property(fc.record({ ...somePart, edges: someEdges }), ({ config, parts, edges }) => {
        fc.pre('slack' in config);
        const { slack, capMin } = config as { slack: number; capMin: number };
        const announced = 'vertices' in config ? config.vertices : undefined;
        const placed = streamOf(config, parts);
        const { placements } = placed.partitioner;
        const { owned, loads } = placements;
        for (const edge of edges) {
          const before = [...(owned ?? loads).counts];
          const forced = placements.forced;
          placed.place(edge);
          const { counts, total } = owned ?? loads;
          const share = (Math.round(slack * 1000) * (announced ?? total)) / (1000 * parts);
          const cap = announced === undefined ? Math.max(capMin, owned ? share : Math.ceil(share)) : share;
          const over = [...counts].filter((count, part) => count > before[part]! && count > cap);
          expect(over.length).toBeLessThanOrEqual(placements.forced - forced);
        }
        // Rounded up, the cap leaves room somewhere at all times.
        if (config.algorithm === 'hdrf') expect(placements.forced).toBe(0);
      }),
    );
  });

  it('goes on after a crash as if there had been none, wherever increments were cut', () => {
    fc.assert(
      fc.property(
        fc.record({
          ...somePart,
          edges: someEdges,
          steps: fc.array(fc.constantFrom('cut', 'crash', 'compact', 'twice'), { maxLength: 60 }),
          places: fc.infiniteStream(fc.integer({ min: 0, max: 6 })),
        }),
        ({ config, parts, edges, steps, places }) => {
          const whole = newPartitioner(config, parts);
          const rows = new Rows();
          for (const vertex of edges.flat()) rows.of(vertex);
          const place = (partitioner: EdgePartitioner, [u, v]: Edge): number =>
            partitioner.place(rows.of(u), rows.of(v), hashOf(u), hashOf(v), hashOf(u) ^ v);
          const expected = edges.map((edge) => place(whole, edge));

          let running = newPartitioner(config, parts);
          let blocks: Uint8Array[] = [];
          let recorded = 0;
          let at = 0;
          const actual: number[] = [];
          for (const step of steps) {
            for (let left = places.next().value ?? 0; left > 0 && at < edges.length; left--, at++) {
              actual[at] = place(running, edges[at]!);
            }
            const { placements } = running;
            if (step === 'crash' || step === 'twice') {
              running = newPartitioner(config, parts);
              for (const block of blocks) {
                running.placements.read(new ByteReader(block));
                if (step === 'twice') running.placements.read(new ByteReader(block));
              }
              running.placements.markRecorded();
              at = recorded;
            } else if (step === 'compact' && placements.changes === 0) {
              const middle = places.next().value ?? 0;
              blocks = pieces(running, Math.min(middle, placements.rows));
            } else if (step === 'cut') {
              blocks.push(written((writer) => placements.writeChanges(writer)));
              placements.markRecorded();
              recorded = at;
            }
          }
          for (; at < edges.length; at++) actual[at] = place(running, edges[at]!);
          expect(actual).toEqual(expected);
          expect(running.placements.figures()).toEqual(whole.placements.figures());
          expect(pieces(running, 0)).toEqual(pieces(whole, 0));
        },
      ),
      { numRuns: 300 },
    );
  });

  it('has figures that are those of the assignment', () => {
    fc.assert(
      fc.property(
        fc.record({ ...somePart, edges: someEdges, half: fc.nat(60) }),
        ({ config, parts, edges, half }) => {
          const placed = streamOf(config, parts);
          const reference = new Reference(config, parts, hashOf);
          for (const edge of edges.slice(0, half)) placed.place(edge);
          const before = placed.partitioner.placements.figures();
          for (const edge of edges.slice(half)) placed.place(edge);
          for (const edge of edges) reference.place(edge);
          const figures = placed.partitioner.placements.figures();
          const vertices = [...new Set(edges.flat())];
          const replicas = vertices.reduce((sum, vertex) => sum + reference.partsOf(vertex).length, 0);
          const cut = edges.filter(([u, v]) => reference.owners.get(u) !== reference.owners.get(v));
          const hasOwners = reference.owners.size > 0;
          const quality = qualityOf(figures);
          expect(quality.edges).toBe(edges.length);
          expect(quality.vertices).toBe(vertices.length);
          const ratio = (a: number, b: number): number | undefined => (b === 0 ? undefined : a / b);
          expect(quality.replicationFactor).toBe(ratio(replicas, vertices.length));
          const most = Math.max(...reference.loads()) * parts;
          expect(quality.edgeBalance).toBe(ratio(most, edges.length));
          if (hasOwners) {
            expect(figures.owned).toEqual(reference.sizes());
            expect(quality.cutFraction).toBe(ratio(cut.length, edges.length));
            expect(quality.ownerBalance).toBe((Math.max(...reference.sizes()) * parts) / vertices.length);
          } else expect(quality.cutFraction).toBeUndefined();
          expect(qualityOf(figuresSince(figures, before)).edges).toBe(edges.slice(half).length);
        },
      ),
      { numRuns: 50 },
    );
  });

  it.each(['hash', 'grid'])('%s decides the same without a vertex table', (algorithm) => {
    fc.assert(
      fc.property(someEdges, (edges) => {
        const without = newPartitioner(config({ algorithm }), 12);
        expect(without.needsRows).toBe(false);
        const placed = streamOf(config({ algorithm }), 12);
        for (const [u, v] of edges) {
          const edgeHash = (Math.imul(hashOf(u), 31) + hashOf(v)) | 0;
          expect(without.place(NONE, NONE, hashOf(u), hashOf(v), edgeHash)).toBe(placed.place([u, v]));
        }
        const figures = without.placements.figures();
        expect(figures.edges).toEqual(placed.partitioner.placements.figures().edges);
        expect(qualityOf(figures).replicationFactor).toBeUndefined();
      }),
    );
  });

  it.each(all)('%s remembers no more than 48 bytes of a vertex, for 64 parts', (algorithm) => {
    const partitioner = newPartitioner(config({ algorithm }), 64);
    const random = seeded(1);
    const vertices = 1 << 18;
    for (let row = 1; row < vertices; row++) {
      const other = Math.floor(random() * row);
      partitioner.place(other, row, hashOf(other), hashOf(row), hashOf(row));
    }
    // Nothing was cut, so all of them are in the list of changes as well.
    expect(partitioner.placements.byteLength / vertices).toBeLessThan(25);
  });
});

describe('a vertex that arrives with its neighbours', () => {
  it('gets the owner that the paper says, and each edge counts once though both its ends list it', () => {
    const vertexConfig = someConfig.filter(({ algorithm }) => algorithm === 'ldg' || algorithm === 'fennel');
    fc.assert(
      fc.property(
        fc.record({ config: vertexConfig, parts: someParts, edges: someEdges, order: fc.nat() }),
        ({ config, parts, edges, order }) => {
          const simple = [...new Map(edges.filter(([u, v]) => u !== v).map((edge) => [edge.join(), edge]))];
          const neighboursOf = (vertex: number): number[] =>
            simple.flatMap(([, [u, v]]) => (u === vertex ? [v] : v === vertex ? [u] : []));
          const random = seeded(order);
          const vertices = [...new Set(edges.flat())]
            .map((vertex) => ({ vertex, key: random() }))
            .sort((a, b) => a.key - b.key)
            .map(({ vertex }) => vertex);
          const reference = new Reference(config, parts, hashOf);
          const partitioner = newPartitioner(config, parts) as OwnerPartitioner;
          expect(partitioner).toBeInstanceOf(OwnerPartitioner);
          const rows = new Rows();
          for (const vertex of vertices) {
            const list = Uint32Array.from(neighboursOf(vertex), (other) => rows.of(other));
            const owner = partitioner.arrive(rows.of(vertex), list, 0, list.length);
            expect(owner).toBe(reference.arrive(vertex, neighboursOf(vertex)));
            for (const other of list) {
              const row = rows.of(vertex);
              const part = partitioner.placeListed(Math.min(row, other), Math.max(row, other));
              expect([owner, partitioner.placements.owner(other)]).toContain(part);
            }
          }
          const cut = simple.filter(([, [u, v]]) => reference.owners.get(u) !== reference.owners.get(v));
          expect(partitioner.placements.ownedEdges).toBe(simple.length);
          expect(partitioner.placements.cutEdges).toBe(cut.length);
          expect(partitioner.placements.forced).toBe(reference.forced);
        },
      ),
    );
  });
});

describe('HDRF without a cap', () => {
  it('puts every stream in which each edge has a vertex seen before into one part, for λ ≤ 1', () => {
    fc.assert(
      fc.property(
        permille(0, 1),
        someParts,
        fc.array(fc.tuple(fc.nat(), fc.nat()), { minLength: 1, maxLength: 60 }),
        (lambda, parts, choices) => {
          const placed = streamOf(config({ algorithm: 'hdrf', lambda, capMin: 1000 }), parts);
          let vertices = 1;
          for (const [a, b] of choices) {
            const [u, v] = [a % vertices, b % (vertices + 1)];
            vertices = Math.max(vertices, v + 1);
            expect(placed.place([Math.min(u, v), Math.max(u, v)])).toBe(0);
          }
        },
      ),
    );
  });
});

describe('loads', () => {
  it('know the most and the first of the least at all times', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 9 }),
        fc.array(fc.oneof(fc.nat(8), fc.constant('least' as const))),
        (parts, picks) => {
          const loads = new Loads(parts);
          const counts = new Array<number>(parts).fill(0);
          for (const pick of picks) {
            const part = pick === 'least' ? loads.least : pick % parts;
            loads.add(part);
            counts[part]! += 1;
            expect([...loads.counts]).toEqual(counts);
            expect(loads.max).toBe(Math.max(...counts));
            expect(loads.least).toBe(counts.indexOf(Math.min(...counts)));
            const again = new Loads(parts);
            again.restore(counts);
            expect(again).toEqual(loads);
          }
        },
      ),
    );
  });
});

/** A whole copy in two pieces, the first of `middle` rows. */
function pieces({ placements }: EdgePartitioner, middle: number): Uint8Array[] {
  return [
    written((writer) => placements.writeRows(writer, 0, middle)),
    written((writer) => placements.writeRows(writer, middle, placements.rows)),
  ];
}

function written(write: (writer: ByteWriter) => void): Uint8Array {
  const writer = new ByteWriter();
  write(writer);
  return writer.copy();
}
