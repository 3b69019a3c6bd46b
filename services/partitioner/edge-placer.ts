/**
 * The partition of every edge of a message: looks up what the partitioner needs of the ids, and asks it, edge by edge in
 * the order of the message. The stage and the command line place edges by this.
 */
import type { EdgeColumns, IdColumn } from '../../libs/dataflow/edge-columns.ts';
import { NONE } from '../../libs/graph/columns.ts';
import { hashId, viewOf } from '../../libs/graph/id-hash.ts';
import type { EdgePartitioner } from '../../libs/partitioning/edge-partitioner.ts';
import { FNV_OFFSET, fnv1a } from '../../libs/partitioning/hash.ts';
import { newPartitioner } from '../../libs/partitioning/new-partitioner.ts';
import type { PartitionerConfig } from '../../libs/partitioning/partitioner-config.ts';
import { EdgeRows } from './edge-rows.ts';

/** Edges placed together: enough for the cache misses of their vertices to overlap. */
const EDGES_AT_ONCE = 128;

export class EdgePlacer {
  readonly chooser: EdgePartitioner;
  /** The vertices, where the chooser decides by what it knows of them. */
  readonly rows: EdgeRows | undefined;
  /** Of edge `index` of the message, unless it is rejected. */
  part = new Uint16Array(0);
  /** 1 where the source is the larger id. */
  swapped = new Uint8Array(0);
  smallerHash = new Int32Array(0);
  largerHash = new Int32Array(0);
  private readonly isByEdgeHash: boolean;

  constructor(config: PartitionerConfig, parts: number) {
    this.chooser = newPartitioner(config, parts);
    this.isByEdgeHash = config.algorithm === 'hash';
    this.rows = this.chooser.needsRows ? new EdgeRows() : undefined;
  }

  place(columns: EdgeColumns): void {
    if (columns.count > this.part.length) this.grow(Math.max(columns.count, this.part.length * 2));
    const sourceView = viewOf(columns.source.bytes);
    const targetView = viewOf(columns.target.bytes);
    if (this.rows === undefined) {
      this.placeByHash(columns, sourceView, targetView);
    } else {
      this.rows.find(columns, sourceView, targetView);
      this.placeByRows(columns, this.rows);
    }
  }

  /** As `place`, with the rows that were found elsewhere. */
  placeByRows(columns: EdgeColumns, { count, source, target, index }: EdgeRows): void {
    if (columns.count > this.part.length) this.grow(Math.max(columns.count, this.part.length * 2));
    const { placements } = this.chooser;
    for (let from = 0; from < count; from += EDGES_AT_ONCE) {
      const to = Math.min(count, from + EDGES_AT_ONCE);
      placements.touch(source.row, from, to);
      placements.touch(target.row, from, to);
      for (let at = from; at < to; at++) {
        this.placeEdge(
          columns,
          index[at]!,
          source.hash[at]!,
          target.hash[at]!,
          source.row[at]!,
          target.row[at]!,
        );
      }
    }
  }

  private placeByHash(columns: EdgeColumns, sourceView: DataView, targetView: DataView): void {
    const { source, target, rejected, count } = columns;
    for (let index = 0; index < count; index++) {
      if (rejected[index] === 1) continue;
      const sourceHash = hashId(sourceView, source.start[index]!, source.end[index]!);
      const targetHash = hashId(targetView, target.start[index]!, target.end[index]!);
      this.placeEdge(columns, index, sourceHash, targetHash, NONE, NONE);
    }
  }

  private placeEdge(
    { source, target }: EdgeColumns,
    index: number,
    sourceHash: number,
    targetHash: number,
    sourceRow: number,
    targetRow: number,
  ): void {
    const isSwapped = isLarger(source, target, index);
    const smallerHash = isSwapped ? targetHash : sourceHash;
    const largerHash = isSwapped ? sourceHash : targetHash;
    this.swapped[index] = isSwapped ? 1 : 0;
    this.smallerHash[index] = smallerHash;
    this.largerHash[index] = largerHash;
    this.part[index] = this.chooser.place(
      isSwapped ? targetRow : sourceRow,
      isSwapped ? sourceRow : targetRow,
      smallerHash,
      largerHash,
      this.isByEdgeHash ? edgeHash(isSwapped ? target : source, isSwapped ? source : target, index) : 0,
    );
  }

  private grow(edges: number): void {
    this.part = new Uint16Array(edges);
    this.swapped = new Uint8Array(edges);
    this.smallerHash = new Int32Array(edges);
    this.largerHash = new Int32Array(edges);
  }
}

function edgeHash(smaller: IdColumn, larger: IdColumn, index: number): number {
  const hash = fnv1a(FNV_OFFSET, smaller.bytes, smaller.start[index]!, smaller.end[index]!);
  return fnv1a(hash, larger.bytes, larger.start[index]!, larger.end[index]!);
}

/** Whether the source's bytes are larger than the target's; of two ids that begin alike the shorter is smaller. */
function isLarger(source: IdColumn, target: IdColumn, index: number): boolean {
  const a = source.bytes;
  const b = target.bytes;
  let x = source.start[index]!;
  let y = target.start[index]!;
  const xEnd = source.end[index]!;
  const yEnd = target.end[index]!;
  while (x < xEnd && y < yEnd) {
    const difference = a[x++]! - b[y++]!;
    if (difference !== 0) return difference > 0;
  }
  return xEnd - x > yEnd - y;
}
