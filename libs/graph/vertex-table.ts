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
 * The arena is a list of chunks of entries in words, so that ids are compared four bytes at a time:
 *   row · length · id, filled up with zeros
 */
import { NONE, Uint32Column } from './columns.ts';
import { hashId, lastWord, viewOf } from './id-hash.ts';

const SEGMENT_BITS = 12;
const SEGMENT_SLOTS = 1 << SEGMENT_BITS;
/**
 * Segments split up to this many bits (over 2^31 ids). Where ids collide in that many bits, which chance does
 * not bring but a publisher could, the segment grows instead and the directory stays small.
 */
const DEPTH_MAX = 20;

/** References count words, so that 32 bits reach 16 GiB: the high bits name a chunk, the low ones a word in it. */
const REFERENCE_SHIFT = 18;
const ARENA_CHUNK_WORDS = 1 << REFERENCE_SHIFT;
/** The first chunk begins with so many, and doubles to its full size. */
const ARENA_FIRST_WORDS = 1 << 10;
const REFERENCE_MASK = ARENA_CHUNK_WORDS - 1;
const ENTRY_HEADER_WORDS = 2;

/** What the table needs of a writer of bytes. */
interface IdWriter {
  varint(value: number): void;
  /** The first `bytes` bytes of the words from number `at` on. */
  words(words: Int32Array, at: number, bytes: number): void;
}

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

  private readonly arena: Int32Array[] = [new Int32Array(ARENA_FIRST_WORDS)];
  /** Keeps the reads of the touching pass from being optimised away. */
  touched = 0;
  /** Where the next entry goes in the last chunk. The first word of all is spare: reference 0 means "none". */
  private arenaEnd = 1;

  get count(): number {
    return this.references.length;
  }

  /** Bytes of all arrays of the table. */
  get byteLength(): number {
    return (
      this.references.byteLength +
      this.segments.reduce((bytes, slots) => bytes + slots.byteLength, 0) +
      this.directory.byteLength +
      this.arena.reduce((bytes, words) => bytes + words.byteLength, 0)
    );
  }

  /** The row of an id, or NONE. `hash` is hashId of the same bytes. */
  find(ids: DataView, start: number, end: number, hash: number): number {
    const slots = this.segments[this.directory[this.directoryIndex(hash)]!]!;
    const mask = (slots.length >>> 1) - 1;
    for (let slot = hash & mask; ; slot = (slot + 1) & mask) {
      const reference = slots[slot * 2 + 1]!;
      if (reference === 0) return NONE;
      if (slots[slot * 2] !== hash) continue;
      const row = this.rowIfEqual(reference >>> 0, ids, start, end);
      if (row !== NONE) return row;
    }
  }

  /** The row of an id; an id not seen before gets the next row. */
  findOrAdd(ids: DataView, start: number, end: number, hash: number): number {
    const segment = this.directory[this.directoryIndex(hash)]!;
    const slots = this.segments[segment]!;
    const mask = (slots.length >>> 1) - 1;
    let slot = hash & mask;
    for (; ; slot = (slot + 1) & mask) {
      const reference = slots[slot * 2 + 1]!;
      if (reference === 0) break;
      if (slots[slot * 2] !== hash) continue;
      const row = this.rowIfEqual(reference >>> 0, ids, start, end);
      if (row !== NONE) return row;
    }
    const row = this.references.length;
    const reference = this.store(row, ids, start, end);
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
   * Rows of many ids: `rows[i]` for id i = bytes [start[i], end[i]) of `ids` with `hash[i]`, i in [from, to); NONE
   * for those that are not there (and, hardly ever, for one that shares its hash with another).
   *
   * Touches all slots before it probes, and all arena entries before it compares: the processor then waits
   * for many cache misses at once, and no branch waits for one.
   */
  findMany(
    ids: DataView,
    start: Uint32Array,
    end: Uint32Array,
    hash: Int32Array,
    from: number,
    to: number,
    rows: Uint32Array,
  ): void {
    const { segments, directory, depth, arena } = this;
    this.touched ^= touchSlots(segments, directory, depth, hash, from, to);
    probe(segments, directory, depth, hash, from, to, rows);
    this.touched ^= touchEntries(arena, from, to, rows);
    compare(arena, ids, start, end, from, to, rows);
  }

  /** As findMany, but complete: ids not seen before get rows, in index order. */
  findOrAddMany(
    ids: DataView,
    start: Uint32Array,
    end: Uint32Array,
    hash: Int32Array,
    from: number,
    to: number,
    rows: Uint32Array,
  ): void {
    this.findMany(ids, start, end, hash, from, to, rows);
    for (let i = from; i < to; i++) {
      if (rows[i] === NONE) rows[i] = this.findOrAdd(ids, start[i]!, end[i]!, hash[i]!);
    }
  }

  /** The id of a row, as a view into the table: copy it if it must outlast the table. */
  idOf(row: number): Uint8Array {
    const reference = this.references.get(row);
    const words = this.arena[reference >>> REFERENCE_SHIFT]!;
    const at = reference & REFERENCE_MASK;
    return new Uint8Array(words.buffer, (at + ENTRY_HEADER_WORDS) * 4, words[at + 1]!);
  }

  /** Writes the id of a row, its length before it. */
  write(row: number, writer: IdWriter): void {
    const reference = this.references.get(row);
    const words = this.arena[reference >>> REFERENCE_SHIFT]!;
    const entry = reference & REFERENCE_MASK;
    const length = words[entry + 1]!;
    writer.varint(length);
    writer.words(words, entry + ENTRY_HEADER_WORDS, length);
  }

  private directoryIndex(hash: number): number {
    return this.depth === 0 ? 0 : hash >>> (32 - this.depth);
  }

  private rowIfEqual(reference: number, ids: DataView, start: number, end: number): number {
    return rowIfEqual(this.arena[reference >>> REFERENCE_SHIFT]!, reference, ids, start, end);
  }

  private store(row: number, ids: DataView, start: number, end: number): number {
    const length = end - start;
    const size = ENTRY_HEADER_WORDS + ((length + 3) >>> 2);
    while (this.arenaEnd + size > this.arena[0]!.length && this.arena[0]!.length < ARENA_CHUNK_WORDS) {
      const first = new Int32Array(this.arena[0]!.length * 2);
      first.set(this.arena[0]!);
      this.arena[0] = first;
    }
    if (this.arenaEnd + size > ARENA_CHUNK_WORDS) {
      if (this.arena.length === 1 << (32 - REFERENCE_SHIFT)) {
        throw new RangeError(`the vertex table holds ${row} ids in 16 GiB, which is its limit`);
      }
      this.arena.push(new Int32Array(ARENA_CHUNK_WORDS));
      this.arenaEnd = 0;
    }
    const chunk = this.arena.length - 1;
    const words = this.arena[chunk]!;
    const entry = this.arenaEnd;
    words[entry] = row;
    words[entry + 1] = length;
    const wholeEnd = end - (length & 3);
    let word = entry + ENTRY_HEADER_WORDS;
    let at = start;
    for (; at < wholeEnd; at += 4) words[word++] = ids.getInt32(at, true);
    if (at < end) words[word] = lastWord(ids, at, end);
    this.arenaEnd = entry + size;
    return ((chunk << REFERENCE_SHIFT) | entry) >>> 0;
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

// The passes of findMany, each a function of its own: together in one they run a third slower.

function touchSlots(
  segments: readonly Int32Array[],
  directory: Uint32Array,
  depth: number,
  hash: Int32Array,
  from: number,
  to: number,
): number {
  // A shift by 32 is none in JavaScript; the directory of one entry takes any index masked to 0.
  const shift = 32 - depth;
  const directoryMask = directory.length - 1;
  let touched = 0;
  for (let i = from; i < to; i++) {
    const idHash = hash[i]!;
    const slots = segments[directory[(idHash >>> shift) & directoryMask]!]!;
    touched ^= slots[(idHash & ((slots.length >>> 1) - 1)) * 2]!;
  }
  return touched;
}

/** `rows[i]` becomes the reference of the first entry with hash i, or 0. */
function probe(
  segments: readonly Int32Array[],
  directory: Uint32Array,
  depth: number,
  hash: Int32Array,
  from: number,
  to: number,
  rows: Uint32Array,
): void {
  const shift = 32 - depth;
  const directoryMask = directory.length - 1;
  for (let i = from; i < to; i++) {
    const idHash = hash[i]!;
    const slots = segments[directory[(idHash >>> shift) & directoryMask]!]!;
    const mask = (slots.length >>> 1) - 1;
    let slot = idHash & mask;
    while (slots[slot * 2] !== idHash && slots[slot * 2 + 1] !== 0) slot = (slot + 1) & mask;
    rows[i] = slots[slot * 2 + 1]!;
  }
}

function touchEntries(arena: readonly Int32Array[], from: number, to: number, rows: Uint32Array): number {
  let touched = 0;
  for (let i = from; i < to; i++) {
    const reference = rows[i]!;
    touched ^= arena[reference >>> REFERENCE_SHIFT]![reference & REFERENCE_MASK]!;
  }
  return touched;
}

/** References in `rows` become rows. */
function compare(
  arena: readonly Int32Array[],
  ids: DataView,
  start: Uint32Array,
  end: Uint32Array,
  from: number,
  to: number,
  rows: Uint32Array,
): void {
  for (let i = from; i < to; i++) {
    const reference = rows[i]!;
    const words = arena[reference >>> REFERENCE_SHIFT]!;
    rows[i] = reference === 0 ? NONE : rowIfEqual(words, reference, ids, start[i]!, end[i]!);
  }
}

function rowIfEqual(words: Int32Array, reference: number, ids: DataView, start: number, end: number): number {
  const entry = reference & REFERENCE_MASK;
  const length = end - start;
  if (words[entry + 1] !== length) return NONE;
  const wholeEnd = end - (length & 3);
  let word = entry + ENTRY_HEADER_WORDS;
  let at = start;
  for (; at < wholeEnd; at += 4) if (words[word++] !== ids.getInt32(at, true)) return NONE;
  if (at < end && words[word] !== lastWord(ids, at, end)) return NONE;
  return words[entry]! >>> 0;
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
  const ids = viewOf(new TextEncoder().encode(id));
  return table.find(ids, 0, ids.byteLength, hashId(ids, 0, ids.byteLength));
}
