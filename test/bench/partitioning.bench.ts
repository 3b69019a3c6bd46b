/**
 * What it costs to choose the part of an edge, from the bytes of its two ids: hash against a loop that only hashes,
 * every algorithm against hash, and whether the cost stays as the graph grows. The cores alone: no payload is decoded
 * and no frame written, which the stage does besides at several times the cost of hash.
 *
 * Processor time, so that what else runs on the machine counts less.
 */
import { EdgeColumns } from '../../libs/dataflow/edge-columns.ts';
import { NO_MARK } from '../../libs/dataflow/frame.ts';
import { decodePayload } from '../../libs/dataflow/payload.ts';
import { NONE } from '../../libs/graph/columns.ts';
import { hashId, viewOf } from '../../libs/graph/id-hash.ts';
import { VertexTable } from '../../libs/graph/vertex-table.ts';
import type { EdgePartitioner } from '../../libs/partitioning/edge-partitioner.ts';
import { FNV_OFFSET, fnv1a } from '../../libs/partitioning/hash.ts';
import { newPartitioner } from '../../libs/partitioning/new-partitioner.ts';
import {
  ALGORITHMS,
  type PartitionerConfig,
  readPartitionerConfig,
} from '../../libs/partitioning/partitioner-config.ts';
import { qualityOf } from '../../libs/partitioning/quality.ts';
import { Partitioner } from '../../services/partitioner/partitioner.ts';
import { arrowPayloads } from './pipeline.bench.ts';
import { growingEdges, ID_BYTES, idsOf, median, million, skewedEdges } from './skewed-edges.ts';

const ARROW = 'application/vnd.apache.arrow.stream';
const EDGES = 3_000_000;
const VERTICES = 1_060_000;
const PARTS = 32;
const ROUNDS = 3;
/** Ids looked up together, as in the worker. */
const IDS_AT_ONCE = 256;

const FLAT_EDGES = 8_000_000;
const FLAT_STEP = 250_000;

export function benchPartitioning(): string[] {
  const ids = idsOf(skewedEdges(EDGES, VERTICES, 1.5));
  const alone: number[] = [];
  const hash: number[] = [];
  const spent = new Map<string, number[]>();
  const said = new Map<string, string>();
  for (let round = 0; round < ROUNDS; round++) {
    alone.push(nsPerEdge(ids, () => hashOnly(ids)));
    const placer = new Placer(configOf('hash'));
    hash.push(nsPerEdge(ids, () => placer.placeByEdgeHash(ids)));
    for (const algorithm of Object.keys(ALGORITHMS)) {
      const placer = new Placer(configOf(algorithm));
      const ns = nsPerEdge(ids, () => placer.place(ids));
      spent.set(algorithm, [...(spent.get(algorithm) ?? []), ns]);
      said.set(algorithm, placer.said());
    }
  }
  const base = median(spent.get('hash')!);
  return [
    `parts chosen from the bytes of two ids, ${million(EDGES)} edges, about 1M vertices, k = ${PARTS}, median of ${ROUNDS}:`,
    `  hashing alone  ${ns(median(alone))}`,
    `  hash           ${ns(median(hash))}: ratio ${(median(alone) / median(hash)).toFixed(2)}   (asked: 0.5)`,
    '  the same with the hashes of the ids, which a frame needs whatever the algorithm:',
    ...[...spent].map(([algorithm, times]) => {
      const ratio = (median(times) / base).toFixed(1);
      const asked = algorithm === 'hdrf' ? ' (asked: 8, of the whole stage)' : '';
      return `  ${algorithm.padEnd(13)}  ${ns(median(times))}, ${ratio} x hash${asked}${said.get(algorithm)}`;
    }),
    ...flat(),
  ];
}

/**
 * The whole stage: EDGES payloads in, frames of PARTS out, cut after every few messages as an epoch would. Its rival
 * decodes the same payloads and hashes the ids of every edge, and writes nothing.
 */
export function benchPartitioningStage(): string[] {
  const { payloads, edges } = arrowPayloads(skewedEdges(EDGES, VERTICES, 1.5));
  const alone: number[] = [];
  const spent = new Map<string, number[]>();
  for (let round = 0; round < ROUNDS; round++) {
    alone.push(nsOf(edges, () => decodeAndHash(payloads)));
    for (const algorithm of ['hash', 'dbh', 'hdrf']) {
      const ns = nsOf(edges, () => runStage(algorithm, payloads));
      spent.set(algorithm, [...(spent.get(algorithm) ?? []), ns]);
    }
  }
  const base = median(spent.get('hash')!);
  return [
    `the stage, Arrow payloads in, frames out, ${million(edges)} edges, about 1M vertices, k = ${PARTS}, median of ${ROUNDS}:`,
    `  decode and hash  ${ns(median(alone))}`,
    ...[...spent].map(([algorithm, times]) => {
      const ratio =
        algorithm === 'hash'
          ? `ratio ${(median(alone) / base).toFixed(2)} of decode and hash`
          : `${(median(times) / base).toFixed(1)} x hash${algorithm === 'hdrf' ? '   (asked: 8)' : ''}`;
      return `  ${algorithm.padEnd(15)}  ${ns(median(times))}, ${ratio}`;
    }),
  ];
}

function decodeAndHash(payloads: readonly Uint8Array[]): number {
  const columns = new EdgeColumns();
  let sum = 0;
  for (const payload of payloads) {
    decodePayload(payload, ARROW, columns);
    const { source, target } = columns;
    for (let i = 0; i < columns.count; i++) {
      const hash = fnv1a(FNV_OFFSET, source.bytes, source.start[i]!, source.end[i]!);
      sum ^= fnv1a(hash, target.bytes, target.start[i]!, target.end[i]!);
    }
  }
  return sum;
}

function runStage(algorithm: string, payloads: readonly Uint8Array[]): number {
  const layout = { generation: 1, partitions: PARTS, after: 0 };
  const stage = new Partitioner({ graphId: '0'.repeat(32), ...layout, partitioner: configOf(algorithm) });
  stage.resume(undefined, [...stage.starts], undefined);
  stage.open(0, 1n);
  let bytes = 0;
  for (const [at, payload] of payloads.entries()) {
    stage.apply(0, { sequence: at + 1, time: BigInt(at + 1), payload, contentType: ARROW });
    if (at % 8 !== 7 && at < payloads.length - 1) continue;
    for (const frames of stage.cut(NO_MARK).payloads) for (const frame of frames) bytes += frame.length;
  }
  return bytes;
}

/** Look-ups and decisions apart: a table that outgrows the caches costs more misses, whatever is decided. */
function flat(): string[] {
  const pairs = growingEdges(FLAT_EDGES);
  const placer = new Placer(configOf('hdrf'), FLAT_STEP * 2);
  const lookUps: number[] = [];
  const decisions: number[] = [];
  for (let from = 0; from < FLAT_EDGES; from += FLAT_STEP) {
    const ids = idsOf(pairs.subarray(from * 2, (from + FLAT_STEP) * 2));
    lookUps.push(nsPerEdge(ids, () => placer.lookUp(ids, 0, FLAT_STEP * 2)));
    decisions.push(nsPerEdge(ids, () => placer.decide(FLAT_STEP * 2)));
  }
  const steps = 1_000_000 / FLAT_STEP;
  return [
    `hdrf as the graph grows to ${million(FLAT_EDGES)} edges, ${million(placer.vertices)} vertices, k = ${PARTS}:`,
    ...[['looking up', lookUps] as const, ['deciding', decisions] as const].map(([what, spent]) => {
      const [early, late] = [median(spent.slice(steps, 2 * steps)), median(spent.slice(-steps))];
      return `  ${what.padEnd(11)} edges 1M to 2M ${ns(early)}, the last 1M ${ns(late)}: ratio ${(late / early).toFixed(2)}`;
    }),
  ];
}

/** As the stage does it: many ids looked up together, then an edge at a time. */
class Placer {
  private readonly partitioner: EdgePartitioner;
  private readonly table = new VertexTable();
  private readonly start: Uint32Array;
  private readonly end: Uint32Array;
  private readonly hash: Int32Array;
  private readonly rows: Uint32Array;

  constructor(config: PartitionerConfig, idsAtOnce = IDS_AT_ONCE) {
    this.partitioner = newPartitioner(config, PARTS);
    this.start = new Uint32Array(idsAtOnce);
    this.end = new Uint32Array(idsAtOnce);
    this.hash = new Int32Array(idsAtOnce);
    this.rows = new Uint32Array(idsAtOnce);
  }

  get vertices(): number {
    return this.table.count;
  }

  said(): string {
    const { placements } = this.partitioner;
    const { replicationFactor, edgeBalance } = qualityOf(placements.figures());
    if (replicationFactor === undefined) return '';
    const bytes = (placements.byteLength / this.vertices).toFixed(1);
    return `; RF ${replicationFactor.toFixed(2)}, balance ${edgeBalance!.toFixed(2)}, ${bytes} bytes per vertex`;
  }

  place(bytes: Uint8Array): void {
    if (!this.partitioner.needsRows) {
      this.placeByHashes(bytes);
      return;
    }
    const ids = bytes.length / ID_BYTES;
    const atOnce = this.rows.length;
    for (let from = 0; from < ids; from += atOnce) {
      const to = Math.min(ids, from + atOnce);
      this.lookUp(bytes, from, to);
      this.decide(to - from);
    }
  }

  /** The hashes and rows of ids [from, to). */
  lookUp(bytes: Uint8Array, from: number, to: number): void {
    const { table, start, end, hash, rows } = this;
    const view = viewOf(bytes);
    for (let first = 0; first < to - from; first += IDS_AT_ONCE) {
      const last = Math.min(to - from, first + IDS_AT_ONCE);
      for (let i = first; i < last; i++) {
        start[i] = (from + i) * ID_BYTES;
        end[i] = start[i]! + ID_BYTES;
        hash[i] = hashId(view, start[i]!, end[i]!);
      }
      table.findOrAddMany(view, start, end, hash, first, last, rows);
    }
  }

  /** Places the edges between the first `count` ids that were looked up. */
  decide(count: number): void {
    const { partitioner, hash, rows } = this;
    for (let first = 0; first < count; first += IDS_AT_ONCE) {
      const last = Math.min(count, first + IDS_AT_ONCE);
      partitioner.placements.touch(rows, first, last);
      for (let i = first; i < last; i += 2)
        partitioner.place(rows[i]!, rows[i + 1]!, hash[i]!, hash[i + 1]!, 0);
    }
  }

  placeByEdgeHash(bytes: Uint8Array): void {
    for (let at = 0; at < bytes.length; at += 2 * ID_BYTES) {
      this.partitioner.place(NONE, NONE, 0, 0, edgeHashAt(bytes, at));
    }
  }

  private placeByHashes(bytes: Uint8Array): void {
    const view = viewOf(bytes);
    for (let at = 0; at < bytes.length; at += 2 * ID_BYTES) {
      const middle = at + ID_BYTES;
      const smallerHash = hashId(view, at, middle);
      const largerHash = hashId(view, middle, middle + ID_BYTES);
      this.partitioner.place(NONE, NONE, smallerHash, largerHash, edgeHashAt(bytes, at));
    }
  }
}

/** The rival: the same hash of the same bytes, and nothing else. */
function hashOnly(bytes: Uint8Array): number {
  let sum = 0;
  for (let at = 0; at < bytes.length; at += 2 * ID_BYTES) sum ^= edgeHashAt(bytes, at);
  return sum;
}

function edgeHashAt(bytes: Uint8Array, at: number): number {
  const middle = at + ID_BYTES;
  return fnv1a(fnv1a(FNV_OFFSET, bytes, at, middle), bytes, middle, middle + ID_BYTES);
}

function configOf(algorithm: string): PartitionerConfig {
  const reading = readPartitionerConfig({ algorithm });
  if (reading.kind === 'invalid') throw new Error(reading.problem);
  return reading.config;
}

function nsPerEdge(ids: Uint8Array, work: () => unknown): number {
  return nsOf(ids.length / ID_BYTES / 2, work);
}

function nsOf(edges: number, work: () => unknown): number {
  const before = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(before);
  return ((user + system) * 1000) / edges;
}

function ns(value: number): string {
  return `${value.toFixed(0).padStart(4)} ns per edge`;
}
