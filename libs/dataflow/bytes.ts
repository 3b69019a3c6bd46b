/**
 * Writing and reading of the compact binary forms (frames, blocks). Little-endian; `varint` is LEB128 of a
 * whole number 0 .. 2^53 - 1.
 */
export class ByteWriter {
  private buffer: Uint8Array;
  private view: DataView;
  length = 0;

  constructor(capacity = 256) {
    this.buffer = new Uint8Array(capacity);
    this.view = new DataView(this.buffer.buffer);
  }

  /** Forgets what was written; the memory is kept. */
  clear(): void {
    this.length = 0;
  }

  /** A view of what was written, valid until the next write. */
  written(): Uint8Array {
    return this.buffer.subarray(0, this.length);
  }

  /** A copy of what was written. */
  copy(): Uint8Array {
    return this.buffer.slice(0, this.length);
  }

  u8(value: number): void {
    this.reserve(1);
    this.buffer[this.length++] = value;
  }

  u32(value: number): void {
    this.reserve(4);
    this.view.setUint32(this.length, value, true);
    this.length += 4;
  }

  u64(value: bigint): void {
    this.reserve(8);
    this.view.setBigUint64(this.length, value, true);
    this.length += 8;
  }

  varint(value: number): void {
    if (value < 0x80 && this.length < this.buffer.length) {
      this.buffer[this.length++] = value;
      return;
    }
    this.reserve(8);
    let rest = value;
    while (rest >= 0x80) {
      this.buffer[this.length++] = (rest % 0x80) | 0x80;
      rest = rest < 2 ** 31 ? rest >>> 7 : Math.floor(rest / 0x80);
    }
    this.buffer[this.length++] = rest;
  }

  /** A whole number of either sign, |value| < 2^52. */
  signedVarint(value: number): void {
    this.varint(value < 0 ? -value * 2 - 1 : value * 2);
  }

  bytes(source: Uint8Array, start = 0, end = source.length): void {
    const length = end - start;
    this.reserve(length);
    const buffer = this.buffer;
    let at = this.length;
    // A loop beats `set` and its view object for ids, which are short.
    if (length <= 64) for (let i = start; i < end; i++) buffer[at++] = source[i]!;
    else buffer.set(source.subarray(start, end), at);
    this.length += length;
  }

  /** The first `bytes` bytes of the little-endian words from number `at` on. */
  words(words: Int32Array, at: number, bytes: number): void {
    // Whole words may reach beyond the bytes asked for.
    this.reserve(bytes + 3);
    for (let done = 0; done < bytes; done += 4)
      this.view.setInt32(this.length + done, words[at + (done >> 2)]!, true);
    this.length += bytes;
  }

  private reserve(more: number): void {
    if (this.length + more <= this.buffer.length) return;
    const wide = new Uint8Array(Math.max(this.buffer.length * 2, this.length + more));
    wide.set(this.buffer.subarray(0, this.length));
    this.buffer = wide;
    this.view = new DataView(wide.buffer);
  }
}

/** Reads what ByteWriter wrote; past the end or a number too large, it throws RangeError. */
export class ByteReader {
  readonly bytes: Uint8Array;
  readonly view: DataView;
  offset: number;
  readonly end: number;

  constructor(bytes: Uint8Array, offset = 0, end = bytes.length) {
    this.bytes = bytes;
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.offset = offset;
    this.end = end;
  }

  u8(): number {
    this.need(1);
    return this.bytes[this.offset++]!;
  }

  u32(): number {
    this.need(4);
    const value = this.view.getUint32(this.offset, true);
    this.offset += 4;
    return value;
  }

  u64(): bigint {
    this.need(8);
    const value = this.view.getBigUint64(this.offset, true);
    this.offset += 8;
    return value;
  }

  varint(): number {
    let byte = this.u8();
    if (byte < 0x80) return byte;
    let value = byte & 0x7f;
    let scale = 0x80;
    do {
      byte = this.u8();
      value += (byte & 0x7f) * scale;
      scale *= 0x80;
    } while (byte >= 0x80 && scale <= 2 ** 49);
    if (byte >= 0x80 || value > Number.MAX_SAFE_INTEGER)
      throw new RangeError('a number is longer than 53 bits');
    return value;
  }

  signedVarint(): number {
    const value = this.varint();
    return value % 2 === 1 ? -(value + 1) / 2 : value / 2;
  }

  /** Leaves out the next `length` bytes; gives where they begin. */
  skip(length: number): number {
    this.need(length);
    this.offset += length;
    return this.offset - length;
  }

  /** The next `length` bytes, as a view. */
  take(length: number): Uint8Array {
    this.need(length);
    this.offset += length;
    return this.bytes.subarray(this.offset - length, this.offset);
  }

  private need(more: number): void {
    if (this.offset + more > this.end) {
      throw new RangeError(`cut short: ${more} bytes wanted at ${this.offset} of ${this.end}`);
    }
  }
}
