/**
 * Which parts each row is in: a bit per row and part, ⌈parts / 8⌉ bytes a row, and how many rows each part has.
 *
 * Rows only enter parts. A chunk takes memory once one of its rows is in a part.
 */
import { CHUNK_BITS, CHUNK_MASK, NONE } from './columns.ts';

const CHUNK_ROWS = CHUNK_MASK + 1;

/** What is needed of a writer and a reader of bytes. */
interface SetWriter {
  u8(value: number): void;
  varint(value: number): void;
}
interface SetReader {
  u8(): number;
  varint(): number;
}

export class PartSets {
  readonly parts: number;
  /** Rows in each part. */
  readonly counts: Float64Array;
  /** Rows in any part. */
  distinct = 0;
  private readonly stride: number;
  private readonly chunks: (Uint8Array | undefined)[] = [];
  /** Rows below were recorded; those of them that entered a part since, some more than once. */
  private recorded: number;
  private changed = new Uint32Array(64);
  private changedCount = 0;

  constructor(parts: number, recordedRows: number) {
    this.parts = parts;
    this.counts = new Float64Array(parts);
    this.stride = (parts + 7) >>> 3;
    this.recorded = recordedRows;
  }

  add(row: number, part: number): void {
    const chunk = this.chunks[row >>> CHUNK_BITS] ?? this.addChunk(row >>> CHUNK_BITS);
    const at = (row & CHUNK_MASK) * this.stride;
    const set = chunk[at + (part >>> 3)]!;
    const bit = 1 << (part & 7);
    if ((set & bit) !== 0) return;
    if (set === 0 && this.isEmpty(chunk, at)) this.distinct += 1;
    chunk[at + (part >>> 3)] = set | bit;
    this.counts[part]! += 1;
    if (row < this.recorded) this.noteChange(row);
  }

  has(row: number, part: number): boolean {
    const chunk = this.chunks[row >>> CHUNK_BITS];
    if (chunk === undefined) return false;
    return (chunk[(row & CHUNK_MASK) * this.stride + (part >>> 3)]! & (1 << (part & 7))) !== 0;
  }

  /** In ascending order. */
  partsOf(row: number): number[] {
    return Array.from({ length: this.parts }, (_, part) => part).filter((part) => this.has(row, part));
  }

  /** The first row of [from, to) that is in the part, or NONE. */
  next(part: number, from: number, to: number): number {
    for (let row = from; row < to; row++) if (this.has(row, part)) return row;
    return NONE;
  }

  get byteLength(): number {
    let bytes = this.changed.byteLength;
    for (const chunk of this.chunks) bytes += chunk?.byteLength ?? 0;
    return bytes;
  }

  /** About what `writeChanges` will write, with rows from the last one recorded through `rows`. */
  pendingBytes(rows: number): number {
    return (rows - this.recorded) * this.stride + this.changedCount * (this.stride + 2);
  }

  /** Writes rows [from, to): a piece of a whole copy. */
  writeRows(writer: SetWriter, from: number, to: number): void {
    writer.varint(from);
    writer.varint(to - from);
    for (let row = from; row < to; row++) this.writeRow(writer, row);
    writer.varint(0);
  }

  /** Writes what changed since `markRecorded`, with all rows from then on. */
  writeChanges(writer: SetWriter, to: number): void {
    const { recorded } = this;
    writer.varint(recorded);
    writer.varint(to - recorded);
    for (let row = recorded; row < to; row++) this.writeRow(writer, row);
    const rows = this.changed.subarray(0, this.changedCount).sort();
    const distinct = rows.filter((row, at) => at === 0 || row !== rows[at - 1]);
    writer.varint(distinct.length);
    let previous = 0;
    for (const row of distinct) {
      writer.varint(row - previous);
      this.writeRow(writer, row);
      previous = row;
    }
  }

  markRecorded(rows: number): void {
    this.recorded = rows;
    this.changedCount = 0;
  }

  /** Takes back what writeRows or writeChanges wrote. */
  read(reader: SetReader): void {
    const from = reader.varint();
    const count = reader.varint();
    for (let row = from; row < from + count; row++) this.readRow(reader, row);
    let row = 0;
    for (let left = reader.varint(); left > 0; left--) {
      row += reader.varint();
      this.readRow(reader, row);
    }
  }

  private writeRow(writer: SetWriter, row: number): void {
    const chunk = this.chunks[row >>> CHUNK_BITS];
    const at = (row & CHUNK_MASK) * this.stride;
    for (let byte = 0; byte < this.stride; byte++) writer.u8(chunk?.[at + byte] ?? 0);
  }

  private readRow(reader: SetReader, row: number): void {
    for (let byte = 0; byte < this.stride; byte++) {
      let set = reader.u8();
      while (set !== 0) {
        const bit = 31 - Math.clz32(set);
        set ^= 1 << bit;
        this.add(row, byte * 8 + bit);
      }
    }
  }

  private isEmpty(chunk: Uint8Array, at: number): boolean {
    for (let byte = 0; byte < this.stride; byte++) if (chunk[at + byte] !== 0) return false;
    return true;
  }

  private addChunk(index: number): Uint8Array {
    const chunk = new Uint8Array(CHUNK_ROWS * this.stride);
    this.chunks[index] = chunk;
    return chunk;
  }

  private noteChange(row: number): void {
    if (this.changedCount === this.changed.length) {
      const wide = new Uint32Array(this.changed.length * 2);
      wide.set(this.changed);
      this.changed = wide;
    }
    this.changed[this.changedCount] = row;
    this.changedCount += 1;
  }
}
