/**
 * The partitioners again, slow and plain, as the papers state them: all parts are scored, in exact fractions; sets and
 * maps; nothing is kept that can be counted anew. FENNEL's scores are irrational, so they are doubles here as well.
 */
import { gridRows } from '../../../libs/partitioning/grid.ts';
import type {
  FennelConfig,
  HdrfConfig,
  LdgConfig,
  PartitionerConfig,
} from '../../../libs/partitioning/partitioner-config.ts';
import type { Edge } from './streams.ts';

/** Denominator above zero. */
type Fraction = readonly [bigint, bigint];

export class Reference {
  readonly placed: Edge[] = [];
  readonly partOf: number[] = [];
  readonly owners = new Map<number, number>();
  forced = 0;
  /** Edges between vertices that have owners, which FENNEL asks for. */
  private known = 0;
  private readonly config: PartitionerConfig;
  private readonly parts: number;
  private readonly hashOf: (vertex: number) => number;

  constructor(config: PartitionerConfig, parts: number, hashOf: (vertex: number) => number) {
    this.config = config;
    this.parts = parts;
    this.hashOf = hashOf;
  }

  place(edge: Edge): number {
    const [u, v] = edge;
    const { config, parts, hashOf } = this;
    const part = ((): number => {
      switch (config.algorithm) {
        case 'hash':
          return ((Math.imul(hashOf(u), 31) + hashOf(v)) >>> 0) % parts;
        case 'grid':
          return this.lightest(this.cross(u).filter((p) => this.cross(v).includes(p)));
        case 'dbh':
          return (hashOf(this.degree(u, edge) <= this.degree(v, edge) ? u : v) >>> 0) % parts;
        case 'greedy':
          return this.greedy(u, v);
        case 'hdrf':
          return this.hdrf(config, edge);
        case 'ldg':
        case 'fennel':
          this.known += 1;
          for (const [x, other] of [edge, [v, u] as const]) {
            if (!this.owners.has(x)) this.settle(config, x, [other]);
          }
          return this.owners.get(this.degree(u, edge) <= this.degree(v, edge) ? u : v)!;
      }
    })();
    this.placed.push(edge);
    this.partOf.push(part);
    return part;
  }

  arrive(vertex: number, neighbours: readonly number[]): number {
    const known = neighbours.filter((other) => other !== vertex && this.owners.has(other));
    this.known += known.length;
    this.settle(this.config as LdgConfig | FennelConfig, vertex, known);
    return this.owners.get(vertex)!;
  }

  partsOf(vertex: number): number[] {
    const parts = this.partOf.filter((_, at) => this.placed[at]!.includes(vertex));
    return [...new Set(parts)].sort((a, b) => a - b);
  }

  loads(): number[] {
    return this.counts(this.partOf);
  }

  sizes(): number[] {
    return this.counts([...this.owners.values()]);
  }

  private counts(values: readonly number[]): number[] {
    const counts = new Array<number>(this.parts).fill(0);
    for (const value of values) counts[value]! += 1;
    return counts;
  }

  /** With the edge at hand. */
  private degree(vertex: number, edge: Edge): number {
    return [...this.placed, edge].flat().filter((end) => end === vertex).length;
  }

  private cross(vertex: number): number[] {
    const columns = this.parts / gridRows(this.parts);
    const cell = (this.hashOf(vertex) >>> 0) % this.parts;
    return all(this.parts).filter(
      (part) =>
        part % columns === cell % columns || Math.floor(part / columns) === Math.floor(cell / columns),
    );
  }

  private greedy(u: number, v: number): number {
    const [a, b] = [this.partsOf(u), this.partsOf(v)];
    const both = a.filter((part) => b.includes(part));
    if (both.length > 0) return this.lightest(both);
    const either = [...a, ...b];
    return this.lightest(either.length > 0 ? either : all(this.parts));
  }

  private lightest(parts: readonly number[]): number {
    const loads = this.loads();
    return parts.toSorted((a, b) => loads[a]! - loads[b]! || a - b)[0]!;
  }

  private hdrf(config: HdrfConfig, edge: Edge): number {
    const [u, v] = edge;
    const loads = this.loads();
    const [max, min] = [Math.max(...loads), Math.min(...loads)];
    const [du, dv] = [this.degree(u, edge), this.degree(v, edge)];
    const gain = (vertex: number, degree: number, part: number): Fraction =>
      // 1 + (1 − θ)
      this.partsOf(vertex).includes(part) ? fraction(2 * (du + dv) - degree, du + dv) : fraction(0, 1);
    const permille = (value: number): number => Math.round(value * 1000);
    const scores = loads.map((load, part) =>
      [
        gain(u, du, part),
        gain(v, dv, part),
        fraction(permille(config.lambda) * (max - load), permille(config.epsilon) + 1000 * (max - min)),
      ].reduce(plus),
    );
    const m = this.placed.length + 1;
    const needed = fraction(permille(config.slack) * m, 1000 * this.parts);
    const roundedUp = Number((needed[0] + needed[1] - 1n) / needed[1]);
    const cap = Math.max(config.capMin, roundedUp);
    return this.best(
      scores,
      loads,
      loads.map((load) => load + 1 <= cap),
    );
  }

  private settle(config: LdgConfig | FennelConfig, vertex: number, neighbours: readonly number[]): void {
    const sizes = this.sizes();
    const permille = Math.round(config.slack * 1000);
    const grown = fraction(permille * (config.vertices ?? this.owners.size + 1), 1000 * this.parts);
    const least = fraction(config.capMin, 1);
    const capacity = config.vertices === undefined && isMore(least, grown) ? least : grown;
    const of = (part: number): number => neighbours.filter((other) => this.owners.get(other) === part).length;
    const scores = sizes.map((size, part): Fraction => {
      if (config.algorithm === 'ldg') {
        // nb · (1 − size / C)
        const room = plus(capacity, fraction(-size, 1));
        return [BigInt(of(part)) * room[0] * capacity[1], room[1] * capacity[0]];
      }
      const n = config.vertices ?? this.owners.size + 1;
      const m = config.edges ?? this.known;
      const alpha = (m / n) * Math.sqrt(this.parts / n);
      const marginal =
        (3 * size ** 2 + 3 * size + 1) / ((size + 1) * Math.sqrt(size + 1) + size * Math.sqrt(size));
      return exactly(of(part) - alpha * (config.penalty === 'derivative' ? 1.5 * Math.sqrt(size) : marginal));
    });
    const hasRoom = sizes.map((size) => !isMore(fraction(size + 1, 1), capacity));
    this.owners.set(vertex, this.best(scores, sizes, hasRoom));
  }

  /** The highest score among parts with room; ties: the smaller load, then the lower index. No room: the least loaded. */
  private best(scores: readonly Fraction[], loads: readonly number[], hasRoom: readonly boolean[]): number {
    const parts = all(this.parts);
    const candidates = parts.filter((part) => hasRoom[part]);
    if (candidates.length === 0) {
      this.forced += 1;
      return parts.toSorted((a, b) => loads[a]! - loads[b]! || a - b)[0]!;
    }
    return candidates.toSorted((a, b) => {
      const [x, y] = [scores[a]!, scores[b]!];
      if (isMore(x, y)) return -1;
      if (isMore(y, x)) return 1;
      return loads[a]! - loads[b]! || a - b;
    })[0]!;
  }
}

function all(parts: number): number[] {
  return Array.from({ length: parts }, (_, part) => part);
}

function fraction(numerator: number, denominator: number): Fraction {
  return [BigInt(numerator), BigInt(denominator)];
}

/** A double is a fraction of a power of two. */
function exactly(value: number): Fraction {
  let denominator = 1n;
  let numerator = value;
  while (!Number.isInteger(numerator)) {
    numerator *= 2;
    denominator *= 2n;
  }
  return [BigInt(numerator), denominator];
}

function plus(a: Fraction, b: Fraction): Fraction {
  return [a[0] * b[1] + b[0] * a[1], a[1] * b[1]];
}

function isMore(a: Fraction, b: Fraction): boolean {
  return a[0] * b[1] > b[0] * a[1];
}
