/**
 * Ids (bytes) ↔ rows (0, 1, 2 … in order of first appearance).
 *
 * An id is looked up about twice per edge and nearly every step of it is a cache miss, so the table spends
 * two: one in a slot (hash and reference side by side), one in the arena entry that the reference names (row,
 * length and bytes side by side).
 *
 * Slots are kept by extendible hashing (Fagin, Nievergelt, Pippenger, Strong: Extendible Hashing, ACM TODS
 * 4(3), 1979): the high bits of the hash choose a segment through a directory, the low bits a slot in it, with
 * linear probing. A full segment splits alone. So the table grows without a pause, and never holds an old
 * and a new copy of itself. A JavaScript Map ends at 2^24 entries; this table at 2^32 rows or 16 GiB of ids.
 *
 * The arena is a list of chunks of entries, each on a word boundary:
 *   row: 4 bytes · length: 2 bytes · id: `length` bytes · padding
 */
import { NONE, Uint32Column } from './columns.ts';
import { hashId } from './id-hash.ts';

const SEGMENT_BITS = 12;
const SEGMENT_SLOTS = 1 << SEGMENT_BITS;
/**
 * Segments split up to this many bits (over 2^31 ids). Where ids collide in that many bits, which chance does
 * not bring but a publisher could, the segment grows instead and the directory stays small.
 */
const DEPTH_MAX = 20;

const ARENA_CHUNK_BITS = 20;
const ARENA_CHUNK_BYTES = 1 << ARENA_CHUNK_BITS;
const ENTRY_HEADER_BYTES = 6;
/** References count words, so that 32 bits reach 16 GiB. */
const REFERENCE_SHIFT = ARENA_CHUNK_BITS - 2;
const REFERENCE_MASK = (1 << REFERENCE_SHIFT) - 1;

export class VertexTable {
  /** Row → arena reference. Its length is the number of rows. */
  private readonly references = new Uint32Column();

  /** Segment → its slots: (hash, reference) pairs; reference 0 is an empty slot. */
  private readonly segments: Int32Array[] = [new Int32Array(SEGMENT_SLOTS * 2)];
  private readonly segmentUsed: number[] = [0];
  /** Segment → how many high bits of the hash all its entries share. */
  private readonly segmentDepth: number[] = [0];
  /** The high `depth` bits of a hash → segment. */
  private directory = new Uint32Array(1);
  private depth = 0;

  private readonly arenaBytes: Uint8Array[] = [];
  private readonly arenaWords: Uint32Array[] = [];
  /** Where the next entry goes in the last chunk. The first word of all is spare: reference 0 means "none". */
  private arenaEnd = ARENA_CHUNK_BYTES;

  get count(): number {
    return this.references.length;
  }

  /** Bytes of all arrays of the table. */
  get byteLength(): number {
    return (
      this.references.byteLength +
      this.segments.reduce((bytes, slots) => bytes + slots.byteLength, 0) +
      this.directory.byteLength +
      this.arenaBytes.length * ARENA_CHUNK_BYTES
    );
  }

  /** The row of an id, or NONE. `hash` is hashId of the same bytes. */
  find(bytes: Uint8Array, start: number, end: number, hash: number): number {
    const slots = this.segments[this.directory[this.directoryIndex(hash)]!]!;
    const mask = (slots.length >>> 1) - 1;
    for (let slot = hash & mask; ; slot = (slot + 1) & mask) {
      const reference = slots[slot * 2 + 1]!;
      if (reference === 0) return NONE;
      if (slots[slot * 2] !== hash) continue;
      const row = this.rowIfEqual(reference >>> 0, bytes, start, end);
      if (row !== NONE) return row;
    }
  }

  /** The row of an id; an id not seen before gets the next row. */
  findOrAdd(bytes: Uint8Array, start: number, end: number, hash: number): number {
    const segment = this.directory[this.directoryIndex(hash)]!;
    const slots = this.segments[segment]!;
    const mask = (slots.length >>> 1) - 1;
    let slot = hash & mask;
    for (; ; slot = (slot + 1) & mask) {
      const reference = slots[slot * 2 + 1]!;
      if (reference === 0) break;
      if (slots[slot * 2] !== hash) continue;
      const row = this.rowIfEqual(reference >>> 0, bytes, start, end);
      if (row !== NONE) return row;
    }
    const row = this.references.length;
    const reference = this.store(row, bytes, start, end);
    this.references.push(reference);
    slots[slot * 2] = hash;
    slots[slot * 2 + 1] = reference;
    const used = this.segmentUsed[segment]! + 1;
    this.segmentUsed[segment] = used;
    // Three quarters of the slots: beyond, linear probes get long.
    if (used * 8 > slots.length * 3) this.split(segment, hash);
    return row;
  }

  /**
   * Rows of many ids: `rows[i]` for id i = `bytes[start[i] .. end[i])` with `hash[i]`, i in [from, to); NONE
   * for those not found at the first slot tried.
   *
   * Reads all slots in one pass and all arena entries in the next: the processor then waits for many cache
   * misses at once instead of for one after the other.
   */
  findMany(
    bytes: Uint8Array,
    start: Uint32Array,
    end: Uint32Array,
    hash: Int32Array,
    from: number,
    to: number,
    rows: Uint32Array,
  ): void {
    for (let i = from; i < to; i++) {
      const slots = this.segments[this.directory[this.directoryIndex(hash[i]!)]!]!;
      const slot = hash[i]! & ((slots.length >>> 1) - 1);
      rows[i] = slots[slot * 2] === hash[i] ? slots[slot * 2 + 1]! : 0;
    }
    for (let i = from; i < to; i++) {
      const reference = rows[i]!;
      rows[i] = reference === 0 ? NONE : this.rowIfEqual(reference, bytes, start[i]!, end[i]!);
    }
  }

  /** As findMany, but complete: ids not seen before get rows, in index order. */
  findOrAddMany(
    bytes: Uint8Array,
    start: Uint32Array,
    end: Uint32Array,
    hash: Int32Array,
    from: number,
    to: number,
    rows: Uint32Array,
  ): void {
    this.findMany(bytes, start, end, hash, from, to, rows);
    for (let i = from; i < to; i++) {
      if (rows[i] === NONE) rows[i] = this.findOrAdd(bytes, start[i]!, end[i]!, hash[i]!);
    }
  }

  /** The id of a row, as a view into the table: copy it before the next change if it must last. */
  idOf(row: number): Uint8Array {
    const reference = this.references.get(row);
    const chunk = this.arenaBytes[reference >>> REFERENCE_SHIFT]!;
    const at = (reference & REFERENCE_MASK) << 2;
    const length = chunk[at + 4]! | (chunk[at + 5]! << 8);
    return chunk.subarray(at + ENTRY_HEADER_BYTES, at + ENTRY_HEADER_BYTES + length);
  }

  private directoryIndex(hash: number): number {
    return this.depth === 0 ? 0 : hash >>> (32 - this.depth);
  }

  private rowIfEqual(reference: number, bytes: Uint8Array, start: number, end: number): number {
    const chunk = this.arenaBytes[reference >>> REFERENCE_SHIFT]!;
    const at = (reference & REFERENCE_MASK) << 2;
    const length = end - start;
    if ((chunk[at + 4]! | (chunk[at + 5]! << 8)) !== length) return NONE;
    const idAt = at + ENTRY_HEADER_BYTES;
    for (let i = 0; i < length; i++) {
      if (chunk[idAt + i] !== bytes[start + i]) return NONE;
    }
    return this.arenaWords[reference >>> REFERENCE_SHIFT]![reference & REFERENCE_MASK]!;
  }

  private store(row: number, bytes: Uint8Array, start: number, end: number): number {
    const length = end - start;
    const size = (ENTRY_HEADER_BYTES + length + 3) & ~3;
    if (this.arenaEnd + size > ARENA_CHUNK_BYTES) {
      if (this.arenaBytes.length === 1 << (32 - REFERENCE_SHIFT)) {
        throw new RangeError(`the vertex table holds ${row} ids in 16 GiB, which is its limit`);
      }
      const chunk = new Uint8Array(ARENA_CHUNK_BYTES);
      this.arenaEnd = this.arenaBytes.length === 0 ? 4 : 0;
      this.arenaBytes.push(chunk);
      this.arenaWords.push(new Uint32Array(chunk.buffer));
    }
    const chunkIndex = this.arenaBytes.length - 1;
    const chunk = this.arenaBytes[chunkIndex]!;
    const at = this.arenaEnd;
    this.arenaWords[chunkIndex]![at >>> 2] = row;
    chunk[at + 4] = length & 0xff;
    chunk[at + 5] = length >>> 8;
    const idAt = at + ENTRY_HEADER_BYTES;
    for (let i = 0; i < length; i++) chunk[idAt + i] = bytes[start + i]!;
    this.arenaEnd = at + size;
    return ((chunkIndex << REFERENCE_SHIFT) | (at >>> 2)) >>> 0;
  }

  /** Divides a segment by the next high bit of its hashes; `hash` is of an entry in it. */
  private split(segment: number, hash: number): void {
    const depth = this.segmentDepth[segment]!;
    const old = this.segments[segment]!;
    if (depth === DEPTH_MAX) {
      const wide = new Int32Array(old.length * 2);
      for (let at = 0; at < old.length; at += 2) {
        if (old[at + 1] !== 0) place(wide, old[at]!, old[at + 1]!);
      }
      this.segments[segment] = wide;
      return;
    }
    if (depth === this.depth) this.doubleDirectory();
    const upper = this.segments.length;
    const lowerSlots = new Int32Array(old.length);
    const upperSlots = new Int32Array(old.length);
    let upperUsed = 0;
    for (let at = 0; at < old.length; at += 2) {
      const reference = old[at + 1]!;
      if (reference === 0) continue;
      const entryHash = old[at]!;
      const isUpper = ((entryHash >>> (31 - depth)) & 1) === 1;
      if (isUpper) upperUsed += 1;
      place(isUpper ? upperSlots : lowerSlots, entryHash, reference);
    }
    this.segments[segment] = lowerSlots;
    this.segments.push(upperSlots);
    const used = this.segmentUsed[segment]!;
    this.segmentUsed[segment] = used - upperUsed;
    this.segmentUsed.push(upperUsed);
    this.segmentDepth[segment] = depth + 1;
    this.segmentDepth.push(depth + 1);
    // The directory entries of the segment are those that share its first `depth` bits: one run, whose
    // upper half now leads to the new segment.
    const run = 1 << (this.depth - depth);
    const first = depth === 0 ? 0 : (hash >>> (32 - depth)) << (this.depth - depth);
    for (let i = first + run / 2; i < first + run; i++) this.directory[i] = upper;
  }

  private doubleDirectory(): void {
    const wide = new Uint32Array(this.directory.length * 2);
    for (let i = 0; i < wide.length; i++) wide[i] = this.directory[i >>> 1]!;
    this.directory = wide;
    this.depth += 1;
  }
}

function place(slots: Int32Array, hash: number, reference: number): void {
  const mask = (slots.length >>> 1) - 1;
  let slot = hash & mask;
  while (slots[slot * 2 + 1] !== 0) slot = (slot + 1) & mask;
  slots[slot * 2] = hash;
  slots[slot * 2 + 1] = reference;
}

/** The row of an id given as text, or NONE; for queries, not for hot loops. */
export function findText(table: VertexTable, id: string): number {
  const bytes = new TextEncoder().encode(id);
  return table.find(bytes, 0, bytes.length, hashId(bytes, 0, bytes.length));
}
