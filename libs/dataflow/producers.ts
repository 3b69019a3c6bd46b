/**
 * Which numbered messages of which producers were counted, so that a retry counts once however late it comes.
 *
 * A producer numbers its messages 1, 2, 3 and so on, and sends a retry under the number of the first try. What
 * is kept of a producer is of fixed size:
 *
 *            through                highest − WINDOW      filled               highest
 *   1 ··········|··························|·················|··· · ·· ····· ·····|
 *     all taken       not known any more       all taken          one bit each
 *
 * `through` is exact: every number up to it was taken. It follows `filled` until a number that never came drops
 * out of the window; from then on it stays, for that number may not be counted any more. In order, all three
 * are one and there are no bits.
 *
 * A producer is forgotten by distance in the log, never by time: once EXPIRY_MESSAGES lie behind its last
 * message, or PRODUCERS_MAX others had one since. Both are cuts through one order, that of last use. So who is
 * known is a function of the messages alone; an increment is the newest end of that order, and whoever reads it
 * cuts the same.
 *
 * The limit of this: a producer that was forgotten and comes back under the same id with a number <= WINDOW
 * looks like a new one, and what it repeats counts again. Hence it must take a new id. With a higher number it
 * is rejected and told so.
 */
import type { ByteReader, ByteWriter } from './bytes.ts';
import { quotedExcerpt } from './value-excerpt.ts';

/** As many numbers up to a producer's highest are known one by one. */
const WINDOW = 1024;
const BITMAP_BYTES = WINDOW / 8;

interface ProducerLimits {
  /** A producer whose last message is more than that many log sequences back is forgotten. */
  readonly expiryMessages: number;
  /** Of more producers than that, the least recently used is forgotten. */
  readonly producersMax: number;
}

const LIMITS: ProducerLimits = { expiryMessages: 1_000_000, producersMax: 100_000 };

const ID = /^[ -~]{1,128}$/;
const NUMBER = /^[1-9][0-9]{0,15}$/;

/** Five numbers of up to 8 bytes, the id's length and the bitmap. */
const WRITTEN_BYTES_MAX = 5 * 8 + 2 + BITMAP_BYTES;
/** Rough: the object, its numbers and its place in the map; a bitmap's own object. */
const PRODUCER_BYTES = 200;
const BITMAP_OBJECT_BYTES = 100;

/** What a publisher said of a message, as it stands in the headers. */
interface ProducerHeaders {
  readonly id: string;
  readonly sequence: string | undefined;
}

/** What to do with a message: count it; nothing, for it was counted before; or reject it whole. */
export type Taken =
  | { readonly kind: 'new' }
  | { readonly kind: 'duplicate' }
  | { readonly kind: 'rejected'; readonly reason: string };

const NEW: Taken = { kind: 'new' };
const DUPLICATE: Taken = { kind: 'duplicate' };

interface Producer {
  readonly id: string;
  /** Log sequence of its last message. */
  last: number;
  through: number;
  filled: number;
  highest: number;
  /**
   * A ring of WINDOW bits, number n at n % WINDOW: those of (filled, highest] that were taken; all others are 0.
   * Undefined where that range is empty.
   */
  bits: Uint8Array | undefined;
  /** Neighbours in the order of last use. */
  older: Producer | undefined;
  newer: Producer | undefined;
}

export class Producers {
  private readonly limits: ProducerLimits;
  private readonly byId = new Map<string, Producer>();
  // The order is a list of its own: a Map that is moved about in has to step over its deleted entries.
  private oldest: Producer | undefined;
  private newest: Producer | undefined;
  /** Log sequence of the last message taken. */
  private sequence = 0;
  /** What was last used after this is not in an increment yet. */
  private recorded = 0;
  /** Bytes of the producers in the next increment, at most. */
  pendingBytes = 0;
  /** Rough, in memory. */
  byteLength = 0;

  /** Other limits than the product's are for tests. */
  constructor(limits = LIMITS) {
    this.limits = limits;
  }

  get count(): number {
    return this.byId.size;
  }

  /**
   * The message at log `sequence`, which must rise. Its number is spent with 'new', whatever its payload turns
   * out to be. A message with a number, counted or not, keeps a known producer from expiring.
   */
  take(sequence: number, headers: ProducerHeaders): Taken {
    if (sequence <= this.sequence) {
      throw new RangeError(`message ${sequence} comes after message ${this.sequence}`);
    }
    this.sequence = sequence;
    this.expire();
    const { id } = headers;
    const known = this.byId.get(id);
    if (known === undefined && !ID.test(id)) {
      return rejected(`producer ${quoted(id)} is no id: it must be 1 to 128 bytes of printable ASCII`);
    }
    const number = parseNumber(headers.sequence);
    if (number === undefined) return rejected(numberProblem(headers));
    if (known !== undefined) {
      const heldBefore = heldBytes(known);
      this.use(known);
      const taken = takeNumber(known, number);
      this.byteLength += heldBytes(known) - heldBefore;
      return taken;
    }
    if (number > WINDOW) return rejected(this.unknownProblem(id));
    const producer = newProducer(id, sequence);
    const taken = takeNumber(producer, number);
    this.pendingBytes += writtenBytes(producer);
    this.add(producer);
    return taken;
  }

  /** Makes the next increment the whole state. */
  markAllChanged(): void {
    this.recorded = 0;
    this.pendingBytes = 0;
    for (const producer of this.byId.values()) this.pendingBytes += writtenBytes(producer);
  }

  /** Writes what changed since the last increment, for a reader that has all up to there. */
  writeIncrement(writer: ByteWriter): void {
    this.write(writer, this.recorded);
    this.recorded = this.sequence;
    this.pendingBytes = 0;
  }

  /** Writes the whole state; what the next increment holds stays the same. */
  writeAll(writer: ByteWriter): void {
    this.write(writer, 0);
  }

  /** Takes back an increment on what it followed, or a whole state on an empty one. */
  read(reader: ByteReader): void {
    this.sequence = reader.varint();
    let last = 0;
    for (let left = reader.varint(); left > 0; left--) {
      const producer = readProducer(reader, last);
      last = producer.last;
      const before = this.byId.get(producer.id);
      if (before !== undefined) this.forget(before);
      this.add(producer);
    }
    this.expire();
    this.recorded = this.sequence;
    this.pendingBytes = 0;
  }

  /** In order of last use: varint sequence · varint count, then the producers last used after `after`. */
  private write(writer: ByteWriter, after: number): void {
    let count = 0;
    let first: Producer | undefined;
    for (let at = this.newest; at !== undefined && at.last > after; at = at.older) {
      first = at;
      count += 1;
    }
    writer.varint(this.sequence);
    writer.varint(count);
    let last = 0;
    for (let at = first; at !== undefined; at = at.newer) {
      writeProducer(writer, at, last);
      last = at.last;
    }
  }

  private use(producer: Producer): void {
    if (producer.last <= this.recorded) this.pendingBytes += writtenBytes(producer);
    producer.last = this.sequence;
    if (producer === this.newest) return;
    this.unlink(producer);
    this.link(producer);
  }

  private add(producer: Producer): void {
    this.byId.set(producer.id, producer);
    this.byteLength += heldBytes(producer);
    this.link(producer);
    if (this.byId.size > this.limits.producersMax) this.forget(this.oldest!);
  }

  private expire(): void {
    const first = this.sequence - this.limits.expiryMessages;
    while (this.oldest !== undefined && this.oldest.last < first) this.forget(this.oldest);
  }

  private forget(producer: Producer): void {
    this.byId.delete(producer.id);
    this.byteLength -= heldBytes(producer);
    this.unlink(producer);
  }

  private link(producer: Producer): void {
    producer.older = this.newest;
    producer.newer = undefined;
    if (this.newest === undefined) this.oldest = producer;
    else this.newest.newer = producer;
    this.newest = producer;
  }

  private unlink({ older, newer }: Producer): void {
    if (older === undefined) this.oldest = newer;
    else older.newer = newer;
    if (newer === undefined) this.newest = older;
    else newer.older = older;
  }

  private unknownProblem(id: string): string {
    const { expiryMessages, producersMax } = this.limits;
    return (
      `producer ${quoted(id)} is not known here (new, or expired after ${expiryMessages} messages or ` +
      `${producersMax} producers that came after it): begin anew with another id and number 1`
    );
  }
}

function takeNumber(producer: Producer, number: number): Taken {
  const { highest } = producer;
  if (number === highest + 1 && producer.bits === undefined) {
    if (producer.through === highest) producer.through = number;
    producer.filled = number;
    producer.highest = number;
    return NEW;
  }
  if (number <= producer.through) return DUPLICATE;
  if (number <= highest - WINDOW) {
    return rejected(
      `number ${number} of producer ${quoted(producer.id)} lies ${WINDOW} or more below its highest, ${highest}: ` +
        'whether it was counted is not known any more',
    );
  }
  if (number <= producer.filled) return DUPLICATE;
  producer.bits ??= new Uint8Array(BITMAP_BYTES);
  if (number > highest) moveWindow(producer, producer.bits, number);
  else if (hasBit(producer.bits, number)) return DUPLICATE;
  flipBit(producer.bits, number);
  fill(producer, producer.bits);
  return NEW;
}

/** A new highest number; holes that leave the window are given up, and `through` stays before them. */
function moveWindow(producer: Producer, bits: Uint8Array, number: number): void {
  const floor = number - WINDOW;
  if (floor >= producer.highest) bits.fill(0);
  else {
    for (let gone = producer.filled + 1; gone <= floor; gone++) if (hasBit(bits, gone)) flipBit(bits, gone);
  }
  producer.filled = Math.max(producer.filled, floor);
  producer.highest = number;
}

function fill(producer: Producer, bits: Uint8Array): void {
  const exact = producer.through === producer.filled;
  while (producer.filled < producer.highest && hasBit(bits, producer.filled + 1)) {
    producer.filled += 1;
    flipBit(bits, producer.filled);
  }
  if (exact) producer.through = producer.filled;
  if (producer.filled === producer.highest) producer.bits = undefined;
}

function hasBit(bits: Uint8Array, number: number): boolean {
  const at = number % WINDOW;
  return (bits[at >> 3]! & (1 << (at & 7))) !== 0;
}

function flipBit(bits: Uint8Array, number: number): void {
  const at = number % WINDOW;
  bits[at >> 3]! ^= 1 << (at & 7);
}

function newProducer(id: string, last: number): Producer {
  return {
    // A copy: a part of a longer string would keep the whole message's headers in memory.
    id: decoder.decode(encoder.encode(id)),
    last,
    through: 0,
    filled: 0,
    highest: 0,
    bits: undefined,
    older: undefined,
    newer: undefined,
  };
}

/**
 * varint length of the id · the id · varint last − that of the producer before · highest · highest − filled ·
 * filled − through; if highest > filled, the bytes of the ring from that of filled + 1 to that of highest.
 */
function writeProducer(writer: ByteWriter, producer: Producer, lastBefore: number): void {
  const { id, last, through, filled, highest, bits } = producer;
  writer.varint(id.length);
  for (let i = 0; i < id.length; i++) writer.u8(id.charCodeAt(i));
  writer.varint(last - lastBefore);
  writer.varint(highest);
  writer.varint(highest - filled);
  writer.varint(filled - through);
  if (bits === undefined) return;
  const first = ringByte(filled + 1);
  for (let i = 0; i < ringBytes(filled, highest); i++) writer.u8(bits[(first + i) % BITMAP_BYTES]!);
}

function readProducer(reader: ByteReader, lastBefore: number): Producer {
  const id = decoder.decode(reader.take(reader.varint()));
  const producer = newProducer(id, lastBefore + reader.varint());
  producer.highest = reader.varint();
  producer.filled = producer.highest - reader.varint();
  producer.through = producer.filled - reader.varint();
  const { filled, highest } = producer;
  if (filled === highest) return producer;
  const bits = new Uint8Array(BITMAP_BYTES);
  const first = ringByte(filled + 1);
  for (let i = 0; i < ringBytes(filled, highest); i++) bits[(first + i) % BITMAP_BYTES] = reader.u8();
  producer.bits = bits;
  return producer;
}

function ringByte(number: number): number {
  return (number % WINDOW) >> 3;
}

/** Bytes of the ring that hold (filled, highest]; a full window may begin and end in the same one. */
function ringBytes(filled: number, highest: number): number {
  return Math.min(BITMAP_BYTES, Math.floor(highest / 8) - Math.floor((filled + 1) / 8) + 1);
}

function writtenBytes({ id }: Producer): number {
  return WRITTEN_BYTES_MAX + id.length;
}

function heldBytes({ id, bits }: Producer): number {
  return PRODUCER_BYTES + id.length + (bits === undefined ? 0 : BITMAP_OBJECT_BYTES + BITMAP_BYTES);
}

function parseNumber(text: string | undefined): number | undefined {
  if (text === undefined || !NUMBER.test(text)) return undefined;
  const number = Number(text);
  return Number.isSafeInteger(number) ? number : undefined;
}

function numberProblem({ id, sequence }: ProducerHeaders): string {
  const problem = sequence === undefined ? 'came without a number' : `came with number ${quoted(sequence)}`;
  return `a message of producer ${quoted(id)} ${problem}: it must be written 1, 2, 3 and so on to 2^53 - 1`;
}

const encoder = new TextEncoder();
const decoder = new TextDecoder();

function quoted(text: string): string {
  const bytes = encoder.encode(text);
  return quotedExcerpt(bytes, 0, bytes.length);
}

function rejected(reason: string): Taken {
  return { kind: 'rejected', reason };
}
