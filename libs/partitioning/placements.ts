/**
 * What a partitioner remembers: of each vertex its degree, its owner and the parts that it is in; of each part
 * what it holds.
 *
 * A vertex is one record of words, so that an edge costs one cache miss for each of its two vertices:
 *   degree · set of parts, ⌈k / 32⌉ words · owner + 1, in algorithms that have owners
 * That is 8 bytes for k ≤ 32, 12 for k ≤ 64, 132 for k = 1,024, and 4 more with owners; besides, a bit that says whether
 * the record has changed since the last cut, and 4 to 8 bytes in the list of those that have. Sums over the records are not
 * stored: they are made again while records are read.
 *
 * An increment is the changed records with their present values, so it can be cut anywhere and read twice.
 */
import { CHUNK_BITS, CHUNK_MASK } from '../graph/columns.ts';
import { Loads } from './loads.ts';
import type { Figures } from './quality.ts';

/** Where a degree stays once it gets there. */
const DEGREE_MAX = 0x7fffffff;
const CHUNK_ROWS = CHUNK_MASK + 1;
const NO_RECORDS = new Int32Array(0);
/** No owner. */
export const UNOWNED = -1;

/** What is needed of a writer and a reader of bytes. */
interface NumberWriter {
  varint(value: number): void;
}
interface NumberReader {
  varint(): number;
}

export class Placements {
  readonly parts: number;
  /** Words of a set of parts. */
  readonly setWords: number;
  /** Edges per part. */
  readonly loads: Loads;
  /** Vertices per owner; undefined in algorithms without. */
  readonly owned: Loads | undefined;

  /** Decisions for the least loaded part because no part had room. */
  forced = 0;
  /** Decisions in which a full part had the best score. */
  capHits = 0;
  /** Edges of which both ends have owners, and those of them whose owners are two. */
  ownedEdges = 0;
  cutEdges = 0;

  /** Vertices with an edge, in each part and in all. */
  private readonly vertices: Float64Array;
  private distinct = 0;

  private readonly stride: number;
  private readonly chunks: Int32Array[] = [];
  private rowCount = 0;

  /** Where the records of the edge at hand are: found once, used throughout. */
  private chunkU: Int32Array = NO_RECORDS;
  private chunkV: Int32Array = NO_RECORDS;
  private atU = 0;
  private atV = 0;

  private changedBits = new Int32Array(CHUNK_ROWS / 32);
  private changed = new Uint32Array(1024);
  private changedCount = 0;

  /** Keeps the reads of `touch` from being optimised away. */
  touched = 0;

  constructor(parts: number, hasOwners = false) {
    this.parts = parts;
    this.setWords = (parts + 31) >>> 5;
    this.stride = 1 + this.setWords + (hasOwners ? 1 : 0);
    this.loads = new Loads(parts);
    this.owned = hasOwners ? new Loads(parts) : undefined;
    this.vertices = new Float64Array(parts);
  }

  /** Rows that were met. */
  get rows(): number {
    return this.rowCount;
  }

  /** Records that changed since the last cut. */
  get changes(): number {
    return this.changedCount;
  }

  /** Bytes of the arrays. */
  get byteLength(): number {
    const records = this.chunks.length * CHUNK_ROWS * this.stride * 4;
    return records + this.changedBits.byteLength + this.changed.byteLength;
  }

  figures(): Figures {
    const { loads, owned, distinct, ownedEdges, cutEdges, forced, capHits } = this;
    return {
      edges: [...loads.counts],
      vertices: [...this.vertices],
      distinctVertices: distinct,
      owned: owned === undefined ? undefined : [...owned.counts],
      ownedEdges,
      cutEdges,
      forced,
      capHits,
    };
  }

  degree(row: number): number {
    return row < this.rowCount ? this.chunk(row)[this.offset(row)]! : 0;
  }

  owner(row: number): number {
    if (this.owned === undefined || row >= this.rowCount) return UNOWNED;
    return this.chunk(row)[this.offset(row) + this.stride - 1]! - 1;
  }

  /** The parts that a vertex is in, in order. */
  partsOf(row: number): number[] {
    return Array.from({ length: this.parts }, (_, part) => part).filter((part) => this.isIn(row, part));
  }

  isIn(row: number, part: number): boolean {
    if (row >= this.rowCount) return false;
    const word = this.chunk(row)[this.offset(row) + 1 + (part >>> 5)]!;
    return ((word >>> (part & 31)) & 1) === 1;
  }

  /** Reads what the next edges will need of these rows, so that their cache misses overlap. */
  touch(rows: Uint32Array, from: number, to: number): void {
    const { chunks, stride } = this;
    let touched = 0;
    for (let i = from; i < to; i++) {
      touched ^= chunks[rows[i]! >>> CHUNK_BITS]?.[(rows[i]! & CHUNK_MASK) * stride] ?? 0;
    }
    this.touched = touched;
  }

  /** An edge has come, and is the one at hand: the degrees of its vertices grow. */
  meet(smaller: number, larger: number): void {
    if (smaller >= this.rowCount || larger >= this.rowCount) this.grow(Math.max(smaller, larger) + 1);
    this.chunkU = this.chunk(smaller);
    this.chunkV = this.chunk(larger);
    this.atU = this.offset(smaller);
    this.atV = this.offset(larger);
    this.addEdge(this.chunkU, this.atU);
    this.addEdge(this.chunkV, this.atV);
    this.noteChange(smaller);
    this.noteChange(larger);
  }

  /** Of the edge at hand u is the smaller vertex, v the larger one. */
  get degreeU(): number {
    return this.chunkU[this.atU]!;
  }

  get degreeV(): number {
    return this.chunkV[this.atV]!;
  }

  /** Only where there are owners. */
  get ownerU(): number {
    return this.chunkU[this.atU + this.stride - 1]! - 1;
  }

  get ownerV(): number {
    return this.chunkV[this.atV + this.stride - 1]! - 1;
  }

  /** Word `word` of A(u): bit i stands for part 32 · word + i. */
  setU(word: number): number {
    return this.chunkU[this.atU + 1 + word]!;
  }

  setV(word: number): number {
    return this.chunkV[this.atV + 1 + word]!;
  }

  /** The edge at hand goes to a part, and its vertices are in that part from now on. */
  assign(part: number): void {
    this.loads.add(part);
    this.enter(this.chunkU, this.atU, part);
    this.enter(this.chunkV, this.atV, part);
  }

  /** An edge for which nothing that is remembered was asked. */
  record(smaller: number, larger: number, part: number): void {
    this.meet(smaller, larger);
    this.assign(part);
  }

  own(row: number, part: number): void {
    this.reach(row);
    this.chunk(row)[this.offset(row) + this.stride - 1] = part + 1;
    this.owned!.add(part);
    this.noteChange(row);
  }

  /** Writes what changed since the last cut; `markRecorded` is to follow. */
  writeChanges(writer: NumberWriter): void {
    const rows = this.changed.subarray(0, this.changedCount).sort();
    writer.varint(rows.length);
    let previous = 0;
    for (const row of rows) {
      writer.varint(row - previous);
      this.writeRecord(writer, row);
      previous = row;
    }
    this.writeTotals(writer);
  }

  /** Writes rows [from, to): a piece of a whole copy. */
  writeRows(writer: NumberWriter, from: number, to: number): void {
    writer.varint(to - from);
    for (let row = from; row < to; row++) {
      writer.varint(row === from ? from : 1);
      this.writeRecord(writer, row);
    }
    this.writeTotals(writer);
  }

  markRecorded(): void {
    for (let i = 0; i < this.changedCount; i++) this.changedBits[this.changed[i]! >>> 5] = 0;
    this.changedCount = 0;
  }

  /** Takes back what writeChanges or writeRows wrote, in the order of writing. */
  read(reader: NumberReader): void {
    let row = 0;
    for (let left = reader.varint(); left > 0; left--) {
      row += reader.varint();
      this.readRecord(reader, row);
    }
    this.loads.restore(Array.from({ length: this.parts }, () => reader.varint()));
    this.forced = reader.varint();
    this.capHits = reader.varint();
    this.ownedEdges = reader.varint();
    this.cutEdges = reader.varint();
  }

  private writeRecord(writer: NumberWriter, row: number): void {
    const chunk = this.chunk(row);
    const at = this.offset(row);
    for (let word = 0; word < this.stride; word++) writer.varint(chunk[at + word]! >>> 0);
  }

  private writeTotals(writer: NumberWriter): void {
    for (const count of this.loads.counts) writer.varint(count);
    for (const total of [this.forced, this.capHits, this.ownedEdges, this.cutEdges]) writer.varint(total);
  }

  private readRecord(reader: NumberReader, row: number): void {
    this.reach(row);
    const chunk = this.chunk(row);
    const at = this.offset(row);
    const degree = reader.varint();
    if (chunk[at] === 0 && degree > 0) this.distinct += 1;
    chunk[at] = degree;
    for (let word = 0; word < this.setWords; word++) {
      let entered = reader.varint() & ~chunk[at + 1 + word]!;
      chunk[at + 1 + word]! |= entered;
      while (entered !== 0) {
        const bit = 31 - Math.clz32(entered);
        entered ^= 1 << bit;
        this.vertices[word * 32 + bit]! += 1;
      }
    }
    if (this.owned === undefined) return;
    const owner = reader.varint();
    if (chunk[at + this.stride - 1] === 0 && owner > 0) this.owned.add(owner - 1);
    chunk[at + this.stride - 1] = owner;
  }

  private addEdge(chunk: Int32Array, at: number): void {
    const degree = chunk[at]!;
    if (degree === 0) this.distinct += 1;
    if (degree < DEGREE_MAX) chunk[at] = degree + 1;
  }

  private enter(chunk: Int32Array, at: number, part: number): void {
    const word = at + 1 + (part >>> 5);
    const bit = 1 << (part & 31);
    const set = chunk[word]!;
    if ((set & bit) !== 0) return;
    chunk[word] = set | bit;
    this.vertices[part]! += 1;
  }

  private chunk(row: number): Int32Array {
    return this.chunks[row >>> CHUNK_BITS]!;
  }

  private offset(row: number): number {
    return (row & CHUNK_MASK) * this.stride;
  }

  private reach(row: number): void {
    if (row >= this.rowCount) this.grow(row + 1);
  }

  private grow(rows: number): void {
    this.rowCount = rows;
    while (this.chunks.length * CHUNK_ROWS < rows) this.chunks.push(new Int32Array(CHUNK_ROWS * this.stride));
    if (this.changedBits.length * 32 < rows) {
      const wide = new Int32Array(Math.max(this.changedBits.length * 2, (rows + 31) >>> 5));
      wide.set(this.changedBits);
      this.changedBits = wide;
    }
  }

  private noteChange(row: number): void {
    const { changedBits } = this;
    const bit = 1 << (row & 31);
    const bits = changedBits[row >>> 5]!;
    if ((bits & bit) !== 0) return;
    changedBits[row >>> 5] = bits | bit;
    if (this.changedCount === this.changed.length) {
      const wide = new Uint32Array(this.changed.length * 2);
      wide.set(this.changed);
      this.changed = wide;
    }
    this.changed[this.changedCount] = row;
    this.changedCount += 1;
  }
}
