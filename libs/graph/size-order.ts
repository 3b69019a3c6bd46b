/**
 * Components from the largest to the smallest (equal sizes: the older first), kept while they merge.
 *
 * A component is named by its oldest row. Most components are small, so those below SMALL cost no entry of
 * their own: one bit per row says "is the oldest of a component", and counts per chunk of rows and exact size
 * say where the bits of a size are; the size itself is asked of the forest. The others, at most one in SMALL rows,
 * stand in a set per power of two, and a component that grows inside its class changes nothing.
 */
import { NONE } from './columns.ts';

const SMALL = 64;
const CHUNK_BITS = 12;
const CHUNK_ROWS = 1 << CHUNK_BITS;

export interface Ranked {
  readonly oldest: number;
  readonly size: number;
}

export class SizeOrder {
  /** Bits per row, in chunks: set while the row is the oldest of a component below SMALL. */
  private readonly oldestBits: Uint32Array[] = [];
  /** Chunk → size → how many components of that size have their oldest row in the chunk. */
  private readonly chunkCounts: Uint16Array[] = [];
  private readonly smallCounts = new Float64Array(SMALL);
  /** Class (log2 of the size) → oldest rows. */
  private readonly large: Set<number>[] = [];
  private readonly sizeOf: (oldest: number) => number;

  /** `sizeOf` gives the present size of the component whose oldest row is given. */
  constructor(sizeOf: (oldest: number) => number) {
    this.sizeOf = sizeOf;
  }

  get byteLength(): number {
    return this.oldestBits.length * (CHUNK_ROWS / 8 + SMALL * 2) + this.smallCounts.byteLength;
  }

  add(oldest: number, size: number): void {
    if (size >= SMALL) {
      this.largeClass(size).add(oldest);
      return;
    }
    const chunk = oldest >>> CHUNK_BITS;
    while (this.oldestBits.length <= chunk) {
      this.oldestBits.push(new Uint32Array(CHUNK_ROWS / 32));
      this.chunkCounts.push(new Uint16Array(SMALL));
    }
    const at = oldest & (CHUNK_ROWS - 1);
    this.oldestBits[chunk]![at >>> 5]! |= 1 << (at & 31);
    this.chunkCounts[chunk]![size]! += 1;
    this.smallCounts[size]! += 1;
  }

  /** The component of `younger` becomes part of that of `older`. */
  merge(older: number, sizeOlder: number, younger: number, sizeYounger: number): void {
    this.remove(younger, sizeYounger);
    const size = sizeOlder + sizeYounger;
    if (sizeOlder >= SMALL && classOf(sizeOlder) === classOf(size)) return;
    this.remove(older, sizeOlder);
    this.add(older, size);
  }

  /** Up to `limit` components behind `after` (undefined: from the largest), in order. */
  page(after: Ranked | undefined, limit: number): Ranked[] {
    const found: Ranked[] = [];
    const topClass = after === undefined ? this.large.length - 1 : classOf(after.size);
    for (let at = Math.min(topClass, this.large.length - 1); at >= 0 && found.length < limit; at--) {
      const best = new BestRanked(limit - found.length);
      for (const oldest of this.large[at] ?? []) {
        const entry = { oldest, size: this.sizeOf(oldest) };
        if (after === undefined || comesBefore(after, entry)) best.offer(entry);
      }
      found.push(...best.list);
    }
    const topSmall = after === undefined ? SMALL - 1 : Math.min(after.size, SMALL - 1);
    for (let size = topSmall; size >= 1 && found.length < limit; size--) {
      if (this.smallCounts[size] === 0) continue;
      const behind = after !== undefined && after.size === size ? after.oldest + 1 : 0;
      this.pageOfSize(size, behind, limit, found);
    }
    return found;
  }

  private pageOfSize(size: number, fromRow: number, limit: number, found: Ranked[]): void {
    for (let chunk = fromRow >>> CHUNK_BITS; chunk < this.oldestBits.length; chunk++) {
      if (this.chunkCounts[chunk]![size] === 0) continue;
      for (
        let oldest = this.nextBit(chunk, fromRow);
        oldest !== NONE;
        oldest = this.nextBit(chunk, oldest + 1)
      ) {
        if (this.sizeOf(oldest) !== size) continue;
        found.push({ oldest, size });
        if (found.length === limit) return;
      }
    }
  }

  /** The first row ≥ `from` of a chunk whose bit is set, or NONE. */
  private nextBit(chunk: number, from: number): number {
    const bits = this.oldestBits[chunk]!;
    const base = chunk * CHUNK_ROWS;
    let at = Math.max(0, from - base);
    while (at < CHUNK_ROWS) {
      const word = bits[at >>> 5]! >>> (at & 31);
      if (word !== 0) return base + at + (Math.clz32(word & -word) ^ 31);
      at = ((at >>> 5) + 1) << 5;
    }
    return NONE;
  }

  private remove(oldest: number, size: number): void {
    if (size >= SMALL) {
      this.largeClass(size).delete(oldest);
      return;
    }
    const chunk = oldest >>> CHUNK_BITS;
    const at = oldest & (CHUNK_ROWS - 1);
    this.oldestBits[chunk]![at >>> 5]! &= ~(1 << (at & 31));
    this.chunkCounts[chunk]![size]! -= 1;
    this.smallCounts[size]! -= 1;
  }

  private largeClass(size: number): Set<number> {
    const at = classOf(size);
    while (this.large.length <= at) this.large.push(new Set());
    return this.large[at]!;
  }
}

/** The first `limit` of the entries offered, in order, without keeping the others. */
export class BestRanked {
  readonly list: Ranked[] = [];
  private readonly limit: number;

  constructor(limit: number) {
    this.limit = limit;
  }

  offer(entry: Ranked): void {
    const list = this.list;
    if (list.length === this.limit && !comesBefore(entry, list[list.length - 1]!)) return;
    let from = 0;
    let to = list.length;
    while (from < to) {
      const middle = (from + to) >>> 1;
      if (comesBefore(list[middle]!, entry)) from = middle + 1;
      else to = middle;
    }
    list.splice(from, 0, entry);
    if (list.length > this.limit) list.pop();
  }
}

/** Whether `a` stands before `b`: larger, or of equal size and older. */
export function comesBefore(a: Ranked, b: Ranked): boolean {
  return a.size > b.size || (a.size === b.size && a.oldest < b.oldest);
}

function classOf(size: number): number {
  return 31 - Math.clz32(size);
}
