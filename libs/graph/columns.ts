/**
 * Growing columns of integers, in chunks: growing copies nothing but the first chunk, which begins small and doubles to
 * its full size. So no entry costs a pause, and at any length less than one chunk is spare; of a small graph, next to
 * nothing.
 */

export const CHUNK_BITS = 15;
const CHUNK_ENTRIES = 1 << CHUNK_BITS;
const FIRST_ENTRIES = 256;
export const CHUNK_MASK = CHUNK_ENTRIES - 1;

/** "No row", "no link": the one value that no index can have. */
export const NONE = 0xffffffff;

/** Entries are 0 .. 2^32 - 1; indexes likewise. */
export class Uint32Column {
  length = 0;
  /** Entry i is `chunks[i >>> CHUNK_BITS][i & CHUNK_MASK]`: for the hottest loops, which read it without a call. */
  readonly chunks: Uint32Array[] = [];
  private capacity = 0;

  get(index: number): number {
    return this.chunks[index >>> CHUNK_BITS]![index & CHUNK_MASK]!;
  }

  set(index: number, value: number): void {
    this.chunks[index >>> CHUNK_BITS]![index & CHUNK_MASK] = value;
  }

  push(value: number): void {
    const index = this.length;
    if (index === this.capacity) this.grow();
    this.chunks[index >>> CHUNK_BITS]![index & CHUNK_MASK] = value;
    this.length = index + 1;
  }

  get byteLength(): number {
    return this.capacity * 4;
  }

  private grow(): void {
    const { chunks, capacity } = this;
    if (capacity === 0 || capacity >= CHUNK_ENTRIES) {
      const entries = capacity === 0 ? FIRST_ENTRIES : CHUNK_ENTRIES;
      chunks.push(new Uint32Array(entries));
      this.capacity += entries;
      return;
    }
    const first = new Uint32Array(capacity * 2);
    first.set(chunks[0]!);
    chunks[0] = first;
    this.capacity = first.length;
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
