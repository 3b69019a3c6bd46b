/** Vertex table and union-find from raw id bytes, against `Map<string, number>` and the same union-find. */
import { DisjointSets } from '../../libs/graph/disjoint-sets.ts';
import { hashId, viewOf } from '../../libs/graph/id-hash.ts';
import { VertexTable } from '../../libs/graph/vertex-table.ts';
import { ID_BYTES, idsOf, median, million, skewedEdges } from './skewed-edges.ts';

const EDGES = 3_000_000;
const VERTICES = 1_060_000;
const ROUNDS = 3;
const IDS_AT_ONCE = 256;

export function benchVertexTable(): string[] {
  const pairs = skewedEdges(EDGES, VERTICES, 1.5);
  const bytes = idsOf(pairs);
  const ours: number[] = [];
  const rival: number[] = [];
  let distinct = 0;
  let components = 0;
  for (let round = 0; round < ROUNDS; round++) {
    let began = performance.now();
    ({ distinct, components } = withTable(bytes));
    ours.push((EDGES / (performance.now() - began)) * 1000);
    began = performance.now();
    const check = withMap(bytes);
    rival.push((EDGES / (performance.now() - began)) * 1000);
    if (check.distinct !== distinct || check.components !== components) throw new Error('the two disagree');
  }
  const [a, b] = [median(ours), median(rival)];
  return [
    `vertex table + union-find, ${million(EDGES)} edges, ${million(distinct)} vertices, ${components} components, median of ${ROUNDS}:`,
    `  raw bytes             ${million(a)} edges/s`,
    `  Map<string, number>   ${million(b)} edges/s`,
    `  ratio                 ${(a / b).toFixed(2)}   (asked: 4)`,
  ];
}

function withTable(raw: Uint8Array): { distinct: number; components: number } {
  const bytes = viewOf(raw);
  const table = new VertexTable();
  const sets = new DisjointSets();
  const start = new Uint32Array(IDS_AT_ONCE);
  const end = new Uint32Array(IDS_AT_ONCE);
  const hash = new Int32Array(IDS_AT_ONCE);
  const rows = new Uint32Array(IDS_AT_ONCE);
  const ids = raw.length / ID_BYTES;
  let joins = 0;
  for (let from = 0; from < ids; from += IDS_AT_ONCE) {
    const count = Math.min(IDS_AT_ONCE, ids - from);
    for (let i = 0; i < count; i++) {
      start[i] = (from + i) * ID_BYTES;
      end[i] = start[i]! + ID_BYTES;
      hash[i] = hashId(bytes, start[i]!, end[i]!);
    }
    table.findOrAddMany(bytes, start, end, hash, 0, count, rows);
    while (sets.count < table.count) sets.add();
    sets.touch(rows, 0, count);
    for (let i = 0; i < count; i += 2) if (sets.union(rows[i]!, rows[i + 1]!)) joins += 1;
  }
  return { distinct: table.count, components: table.count - joins };
}

function withMap(bytes: Uint8Array): { distinct: number; components: number } {
  const map = new Map<string, number>();
  const sets = new DisjointSets();
  const buffer = Buffer.from(bytes.buffer);
  const rowOf = (at: number): number => {
    const id = buffer.toString('latin1', at, at + ID_BYTES);
    let row = map.get(id);
    if (row === undefined) {
      row = map.size;
      map.set(id, row);
      sets.add();
    }
    return row;
  };
  let joins = 0;
  for (let at = 0; at < bytes.length; at += 2 * ID_BYTES) {
    if (sets.union(rowOf(at), rowOf(at + ID_BYTES))) joins += 1;
  }
  return { distinct: map.size, components: map.size - joins };
}
