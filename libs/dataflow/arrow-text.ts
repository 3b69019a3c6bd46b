/**
 * Text and integer columns of Arrow batches as byte ranges, without making strings.
 *
 * The values of several batches, and of dictionaries, lie in several buffers, while an id column of EdgeColumns
 * has one. `ByteParts` gives each buffer a base in one imagined array. Ranges are written relative to it from
 * the start, so if there is only one buffer in the end, which is the usual message, nothing is ever copied.
 *
 * Offsets and indices come from the publisher: each is checked before the range made of it is written.
 */

import { type Data, DataType, type Vector } from 'apache-arrow';

/** `start` of a value that is null. */
export const NULL_START = 0xffff_ffff;

/** What the publisher's buffers say is impossible; the message is rejected whole. */
class DamagedColumn extends Error {}

/** Buffers, in the order in which they were met, as if they were one array. */
export class ByteParts {
  private readonly parts: Uint8Array[] = [];
  private readonly bases = new Map<Uint8Array, number>();
  private size = 0;

  /** Where the buffer begins in the one array. */
  baseOf(buffer: Uint8Array): number {
    const known = this.bases.get(buffer);
    if (known !== undefined) return known;
    const base = this.size;
    this.parts.push(buffer);
    this.bases.set(buffer, base);
    this.size += buffer.length;
    return base;
  }

  joined(): Uint8Array {
    if (this.parts.length === 1) return this.parts[0]!;
    const all = new Uint8Array(this.size);
    for (const part of this.parts) all.set(part, this.bases.get(part));
    return all;
  }
}

export interface Ranges {
  readonly start: Uint32Array;
  readonly end: Uint32Array;
}

/** Whether values of this type are text. */
export function isText(type: DataType): boolean {
  if (DataType.isDictionary(type)) return isPlainText(type.dictionary);
  return isPlainText(type);
}

/** Reads text columns, batch after batch. */
export class TextReader {
  readonly parts: ByteParts;
  /** A dictionary serves many batches; its ranges are made once. */
  private readonly dictionaries = new Map<Vector, Ranges>();

  constructor(parts: ByteParts) {
    this.parts = parts;
  }

  /** The ranges of the `rows` values of `data`, written from `first` on. */
  read(data: Data, rows: number, into: Ranges, first: number): void {
    if (rows === 0) return;
    if (DataType.isDictionary(data.type)) this.readIndices(data, rows, into, first);
    else if (DataType.isUtf8(data.type)) this.readOffsets(data, data.valueOffsets, 1, rows, into, first);
    else this.readOffsets(data, data.valueOffsets, 2, rows, into, first);
    markNulls(data, rows, into, first);
  }

  /** `words` is 1 for offsets of 32 bits and 2 for 64; the upper word must then be 0. */
  private readOffsets(
    data: Data,
    offsets: unknown,
    words: 1 | 2,
    rows: number,
    into: Ranges,
    first: number,
  ): void {
    const values: Uint8Array = data.values ?? new Uint8Array(0);
    const at = wordsOf(offsets);
    if (at.length < (rows + 1) * words) throw new DamagedColumn('fewer offsets than rows');
    const base = this.parts.baseOf(values);
    let start = at[0]!;
    if (start < 0 || (words === 2 && at[1] !== 0)) throw new DamagedColumn('offset outside of the values');
    for (let row = 0; row < rows; row++) {
      const end = at[(row + 1) * words]!;
      if (end < start || end > values.length || (words === 2 && at[(row + 1) * 2 + 1] !== 0)) {
        throw new DamagedColumn('offset outside of the values');
      }
      into.start[first + row] = base + start;
      into.end[first + row] = base + end;
      start = end;
    }
  }

  private readIndices(data: Data, rows: number, into: Ranges, first: number): void {
    const values = this.dictionary(data.dictionary);
    const count = values.start.length;
    const indices = numbersOf(data, rows);
    const isNull = nullsOf(data, rows);
    for (let row = 0; row < rows; row++) {
      // The index of a null may be anything.
      if (isNull?.(row)) continue;
      const index = Number(indices[row]);
      if (index < 0 || index >= count) throw new DamagedColumn(`index ${index} in a dictionary of ${count}`);
      into.start[first + row] = values.start[index]!;
      into.end[first + row] = values.end[index]!;
    }
  }

  private dictionary(vector: Vector | undefined): Ranges {
    if (vector === undefined) throw new DamagedColumn('no dictionary');
    const known = this.dictionaries.get(vector);
    if (known !== undefined) return known;
    // A text has at least its offset: so many values there must be before room is made for them.
    for (const chunk of vector.data) {
      if (wordsOf(chunk.valueOffsets).length < chunk.length)
        throw new DamagedColumn('fewer offsets than values');
    }
    const ranges = { start: new Uint32Array(vector.length), end: new Uint32Array(vector.length) };
    let first = 0;
    for (const chunk of vector.data) {
      this.read(chunk, chunk.length, ranges, first);
      first += chunk.length;
    }
    this.dictionaries.set(vector, ranges);
    return ranges;
  }
}

/** Writes the digits of the integers of `data` to a buffer of their own, and their ranges from `first` on. */
export function readDigits(data: Data, rows: number, parts: ByteParts, into: Ranges, first: number): void {
  if (rows === 0) return;
  const values = numbersOf(data, rows);
  // The longest are -9223372036854775808 and 18446744073709551615.
  const bytes = new Uint8Array(rows * 20);
  const base = parts.baseOf(bytes);
  let at = 0;
  for (let row = 0; row < rows; row++) {
    into.start[first + row] = base + at;
    at = writeInteger(bytes, at, values[row]!);
    into.end[first + row] = base + at;
  }
  markNulls(data, rows, into, first);
}

/** The values of a column of fixed width, of which there are at least `rows`. */
export function numbersOf(data: Data, rows: number): ArrayLike<number | bigint> {
  const values: unknown = data.values;
  if (!ArrayBuffer.isView(values) || values instanceof DataView) throw new DamagedColumn('no values');
  const numbers = values as unknown as ArrayLike<number | bigint>;
  if (numbers.length < rows) throw new DamagedColumn('fewer values than rows');
  return numbers;
}

/** A test for null of the rows of `data`; undefined if none is. */
export function nullsOf(data: Data, rows: number): ((row: number) => boolean) | undefined {
  const bitmap: Uint8Array | undefined = data.nullBitmap;
  if (bitmap === undefined || bitmap.length === 0) return undefined;
  // A batch cut out of another one keeps that one's bitmap; its values are cut already.
  const offset = data.offset;
  if (bitmap.length * 8 < offset + rows) throw new DamagedColumn('null bitmap shorter than the rows');
  return (row) => (bitmap[(offset + row) >> 3]! & (1 << ((offset + row) & 7))) === 0;
}

function isPlainText(type: DataType): boolean {
  return DataType.isUtf8(type) || DataType.isLargeUtf8(type);
}

function markNulls(data: Data, rows: number, into: Ranges, first: number): void {
  const isNull = nullsOf(data, rows);
  if (isNull === undefined) return;
  for (let row = 0; row < rows; row++) if (isNull(row)) into.start[first + row] = NULL_START;
}

/** The 32-bit words of an array of offsets; pairs, the lower first, if they have 64 bits. */
function wordsOf(offsets: unknown): Int32Array {
  if (!(offsets instanceof Int32Array) && !(offsets instanceof BigInt64Array))
    throw new DamagedColumn('no offsets');
  return new Int32Array(offsets.buffer, offsets.byteOffset, offsets.byteLength >> 2);
}

function writeInteger(bytes: Uint8Array, at: number, value: number | bigint): number {
  const number = Number(value);
  if (!Number.isSafeInteger(number)) {
    const text = String(value);
    for (let i = 0; i < text.length; i++) bytes[at + i] = text.charCodeAt(i);
    return at + text.length;
  }
  let rest = Math.abs(number);
  let start = at;
  if (number < 0) bytes[start++] = 45;
  let end = start;
  do {
    const quotient = Math.floor(rest / 10);
    bytes[end++] = 48 + (rest - quotient * 10);
    rest = quotient;
  } while (rest > 0);
  bytes.subarray(start, end).reverse();
  return end;
}
