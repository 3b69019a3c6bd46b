/**
 * The vertices that a partitioner remembers: the rows of the ids of a message's edges, looked up together, so that their
 * cache misses overlap.
 */
import type { ByteReader, ByteWriter } from '../../libs/dataflow/bytes.ts';
import type { EdgeColumns, IdColumn } from '../../libs/dataflow/edge-columns.ts';
import { hashId } from '../../libs/graph/id-hash.ts';
import { VertexTable } from '../../libs/graph/vertex-table.ts';

/** Ids looked up together: enough for their cache misses to overlap, few enough to stay in the first cache. */
const IDS_AT_ONCE = 256;

/** One end of the edges, by number of the edge among those that count. */
class End {
  start = new Uint32Array(0);
  end = new Uint32Array(0);
  hash = new Int32Array(0);
  row = new Uint32Array(0);

  reserve(edges: number): void {
    if (edges <= this.start.length) return;
    const capacity = Math.max(edges, this.start.length * 2, IDS_AT_ONCE);
    this.start = new Uint32Array(capacity);
    this.end = new Uint32Array(capacity);
    this.hash = new Int32Array(capacity);
    this.row = new Uint32Array(capacity);
  }

  take(at: number, ids: IdColumn, view: DataView, index: number): void {
    const start = ids.start[index]!;
    const end = ids.end[index]!;
    this.start[at] = start;
    this.end[at] = end;
    this.hash[at] = hashId(view, start, end);
  }
}

export class EdgeRows {
  readonly vertices = new VertexTable();
  /** Edges of the message that count, and their indexes in it. */
  count = 0;
  index = new Uint32Array(0);
  readonly source = new End();
  readonly target = new End();
  private recorded = 0;
  private newBytes = 0;

  /** Bytes of ids that no increment has yet. */
  get pendingBytes(): number {
    return this.newBytes;
  }

  /** Looks all ids of a message up; new ones get rows. */
  find(columns: EdgeColumns, sourceView: DataView, targetView: DataView): void {
    const { source, target, vertices } = this;
    const known = vertices.count;
    this.reserve(columns.count);
    let count = 0;
    for (let index = 0; index < columns.count; index++) {
      if (columns.rejected[index] === 1) continue;
      this.index[count] = index;
      source.take(count, columns.source, sourceView, index);
      target.take(count, columns.target, targetView, index);
      count += 1;
    }
    this.count = count;
    for (let from = 0; from < count; from += IDS_AT_ONCE) {
      const to = Math.min(count, from + IDS_AT_ONCE);
      vertices.findOrAddMany(sourceView, source.start, source.end, source.hash, from, to, source.row);
      vertices.findOrAddMany(targetView, target.start, target.end, target.hash, from, to, target.row);
    }
    for (let row = known; row < vertices.count; row++) this.newBytes += 1 + vertices.idOf(row).length;
  }

  /** Writes the ids that came since the last increment. */
  writeIncrement(writer: ByteWriter): void {
    this.write(writer, this.recorded, this.vertices.count);
    this.recorded = this.vertices.count;
    this.newBytes = 0;
  }

  write(writer: ByteWriter, from: number, to: number): void {
    writer.varint(to - from);
    for (let row = from; row < to; row++) this.vertices.write(row, writer);
  }

  read(reader: ByteReader): void {
    for (let left = reader.varint(); left > 0; left--) {
      const length = reader.varint();
      const start = reader.skip(length);
      const end = start + length;
      this.vertices.findOrAdd(reader.view, start, end, hashId(reader.view, start, end));
    }
    this.recorded = this.vertices.count;
  }

  private reserve(edges: number): void {
    if (edges > this.index.length) this.index = new Uint32Array(Math.max(edges, this.index.length * 2));
    this.source.reserve(edges);
    this.target.reserve(edges);
  }
}
