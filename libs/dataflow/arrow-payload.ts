/**
 * Edges to an Arrow stream payload, for publishers in bulk.
 *
 * Ids are appended as bytes to growing buffers, which become the buffers of one record batch as they are; no
 * strings are made. The columns time and weight are written only if an edge of the batch has one.
 */

import {
  type Data,
  Field,
  Float64,
  makeData,
  RecordBatch,
  RecordBatchStreamWriter,
  Schema,
  Struct,
  TimestampMillisecond,
  Utf8,
} from 'apache-arrow';

/** More than the metadata of the four columns ever take; a test measures it. */
const METADATA_BYTES_MAX = 1024;

/** An Arrow stream of one batch. The buffers of different columns must not share memory: the writer joins them. */
export function encodeArrowBatch(
  fields: readonly Field[],
  columns: readonly Data[],
  rows: number,
): Uint8Array {
  const schema = new Schema([...fields]);
  const struct = makeData({
    type: new Struct([...fields]),
    length: rows,
    nullCount: 0,
    children: [...columns],
  });
  const writer = new RecordBatchStreamWriter();
  writer.write(new RecordBatch(schema, struct));
  writer.finish();
  return writer.toUint8Array(true);
}

export class ArrowBatchBuilder {
  private readonly source = new TextBuffer();
  private readonly target = new TextBuffer();
  private readonly time = new NumberBuffer();
  private readonly weight = new NumberBuffer();
  private rows = 0;

  /** Edges appended since the last `finish`. */
  get count(): number {
    return this.rows;
  }

  /** What `finish` would return now has at most this many bytes. */
  get bytes(): number {
    const { source, target, time, weight, rows } = this;
    return (
      METADATA_BYTES_MAX + source.bodyBytes + target.bodyBytes + time.bodyBytes(rows) + weight.bodyBytes(rows)
    );
  }

  /** Appends the edge from `source[sourceStart .. sourceEnd)` to `target[targetStart .. targetEnd)`. */
  append(
    source: Uint8Array,
    sourceStart: number,
    sourceEnd: number,
    target: Uint8Array,
    targetStart: number,
    targetEnd: number,
    timeMs?: number,
    weight?: number,
  ): void {
    this.source.append(source, sourceStart, sourceEnd);
    this.target.append(target, targetStart, targetEnd);
    if (timeMs !== undefined) this.time.set(this.rows, timeMs);
    if (weight !== undefined) this.weight.set(this.rows, weight);
    this.rows += 1;
  }

  /** The payload of all edges appended; the builder is empty then. */
  finish(): Uint8Array {
    const { source, target, time, weight, rows } = this;
    const fields: Field[] = [new Field('source', new Utf8(), false), new Field('target', new Utf8(), false)];
    const columns: Data[] = [source.data(), target.data()];
    if (time.isUsed) {
      const type = new TimestampMillisecond();
      fields.push(new Field('time', type, true));
      columns.push(makeData({ type, length: rows, ...time.nulls(rows), data: time.integers(rows) }));
    }
    if (weight.isUsed) {
      const type = new Float64();
      fields.push(new Field('weight', type, true));
      columns.push(makeData({ type, length: rows, ...weight.nulls(rows), data: weight.numbers(rows) }));
    }
    const payload = encodeArrowBatch(fields, columns, rows);
    source.clear();
    target.clear();
    time.clear();
    weight.clear();
    this.rows = 0;
    return payload;
  }
}

/** Text one after the other, and where each one ends. */
export class TextBuffer {
  private values = new Uint8Array(1024);
  private offsets = new Int32Array(64);
  private size = 0;
  private rows = 0;

  get bodyBytes(): number {
    return padded((this.rows + 1) * 4) + padded(this.size);
  }

  append(bytes: Uint8Array, start: number, end: number): void {
    const size = this.size + end - start;
    if (size > this.values.length) {
      const wide = new Uint8Array(Math.max(size, this.values.length * 2));
      wide.set(this.values);
      this.values = wide;
    }
    if (this.rows + 2 > this.offsets.length) {
      const wide = new Int32Array(this.offsets.length * 2);
      wide.set(this.offsets);
      this.offsets = wide;
    }
    // Ids are short: a loop is faster than a view of each.
    const { values } = this;
    let at = this.size;
    for (let p = start; p < end; p++) values[at++] = bytes[p]!;
    this.size = size;
    this.rows += 1;
    this.offsets[this.rows] = size;
  }

  data(nulls: { nullCount: number; nullBitmap?: Uint8Array } = { nullCount: 0 }): Data<Utf8> {
    return makeData({
      type: new Utf8(),
      length: this.rows,
      ...nulls,
      valueOffsets: this.offsets.subarray(0, this.rows + 1),
      data: this.values.subarray(0, this.size),
    });
  }

  clear(): void {
    this.size = 0;
    this.rows = 0;
  }
}

/** Numbers of the rows that have one. */
class NumberBuffer {
  isUsed = false;
  private values = new Float64Array(64);
  private valid = new Uint8Array(8);
  private given = 0;

  bodyBytes(rows: number): number {
    return this.isUsed ? padded(rows * 8) + padded((rows + 7) >> 3) : 0;
  }

  set(row: number, value: number): void {
    if (row >= this.values.length) {
      const capacity = Math.max(row + 1, this.values.length * 2);
      const values = new Float64Array(capacity);
      values.set(this.values);
      this.values = values;
      const valid = new Uint8Array((capacity + 7) >> 3);
      valid.set(this.valid);
      this.valid = valid;
    }
    this.values[row] = value;
    this.valid[row >> 3]! |= 1 << (row & 7);
    this.given += 1;
    this.isUsed = true;
  }

  nulls(rows: number): { nullCount: number; nullBitmap?: Uint8Array } {
    if (this.given === rows) return { nullCount: 0 };
    const nullBitmap = new Uint8Array((rows + 7) >> 3);
    nullBitmap.set(this.valid.subarray(0, Math.min(nullBitmap.length, this.valid.length)));
    return { nullCount: rows - this.given, nullBitmap };
  }

  numbers(rows: number): Float64Array {
    const numbers = new Float64Array(rows);
    numbers.set(this.values.subarray(0, Math.min(rows, this.values.length)));
    return numbers;
  }

  integers(rows: number): BigInt64Array {
    // Two words a value: a BigInt each would be an object per edge.
    const words = new Int32Array(rows * 2);
    for (let row = 0; row < Math.min(rows, this.values.length); row++) {
      const value = this.values[row]!;
      const high = Math.floor(value / 0x1_0000_0000);
      words[row * 2] = value - high * 0x1_0000_0000;
      words[row * 2 + 1] = high;
    }
    return new BigInt64Array(words.buffer);
  }

  clear(): void {
    if (!this.isUsed) return;
    this.values.fill(0);
    this.valid.fill(0);
    this.given = 0;
    this.isUsed = false;
  }
}

function padded(bytes: number): number {
  return (bytes + 7) & ~7;
}
