/**
 * Growing columns of integers, in chunks: growing copies nothing, so no entry costs a pause, and at any
 * length less than one chunk is spare.
 */

export const CHUNK_BITS = 15;
const CHUNK_ENTRIES = 1 << CHUNK_BITS;
export const CHUNK_MASK = CHUNK_ENTRIES - 1;

/** "No row", "no link": the one value that no index can have. */
export const NONE = 0xffffffff;

/** Entries are 0 .. 2^32 - 1; indexes likewise. */
export class Uint32Column {
  length = 0;
  /** Entry i is `chunks[i >>> CHUNK_BITS][i & CHUNK_MASK]`: for the hottest loops, which read it without a call. */
  readonly chunks: Uint32Array[] = [];

  get(index: number): number {
    return this.chunks[index >>> CHUNK_BITS]![index & CHUNK_MASK]!;
  }

  set(index: number, value: number): void {
    this.chunks[index >>> CHUNK_BITS]![index & CHUNK_MASK] = value;
  }

  push(value: number): void {
    const index = this.length;
    if ((index & CHUNK_MASK) === 0) this.chunks.push(new Uint32Array(CHUNK_ENTRIES));
    this.chunks[index >>> CHUNK_BITS]![index & CHUNK_MASK] = value;
    this.length = index + 1;
  }

  get byteLength(): number {
    return this.chunks.length * CHUNK_ENTRIES * 4;
  }
}

/**
 * Whole numbers 0 .. 2^53 - 1 that never fall, in four bytes each: the low words, and the few indexes at
 * which the high word changes.
 */
export class AscendingColumn {
  private readonly low = new Uint32Column();
  private readonly highFrom: number[] = [];
  private readonly high: number[] = [];

  get length(): number {
    return this.low.length;
  }

  push(value: number): void {
    const high = Math.floor(value / 2 ** 32);
    if (this.high.length === 0 || this.high[this.high.length - 1] !== high) {
      this.highFrom.push(this.low.length);
      this.high.push(high);
    }
    this.low.push(value >>> 0);
  }

  get(index: number): number {
    let run = this.high.length - 1;
    while (run > 0 && this.highFrom[run]! > index) run -= 1;
    return this.high[run]! * 2 ** 32 + this.low.get(index);
  }

  /** How many entries are ≤ `value`: the index behind the last of them. */
  countThrough(value: number): number {
    let from = 0;
    let to = this.length;
    while (from < to) {
      const middle = Math.floor((from + to) / 2);
      if (this.get(middle) <= value) from = middle + 1;
      else to = middle;
    }
    return from;
  }

  get byteLength(): number {
    return this.low.byteLength;
  }
}

/**
 * Float64 entries of which most are absent (NaN): a chunk takes memory only once one of its entries is set.
 */
export class SparseFloat64Column {
  private readonly chunks: (Float64Array | undefined)[] = [];

  get(index: number): number {
    return this.chunks[index >>> CHUNK_BITS]?.[index & CHUNK_MASK] ?? Number.NaN;
  }

  set(index: number, value: number): void {
    if (Number.isNaN(value)) return;
    let chunk = this.chunks[index >>> CHUNK_BITS];
    if (chunk === undefined) {
      chunk = new Float64Array(CHUNK_ENTRIES).fill(Number.NaN);
      this.chunks[index >>> CHUNK_BITS] = chunk;
    }
    chunk[index & CHUNK_MASK] = value;
  }

  get byteLength(): number {
    let bytes = 0;
    for (const chunk of this.chunks) bytes += chunk?.byteLength ?? 0;
    return bytes;
  }
}
