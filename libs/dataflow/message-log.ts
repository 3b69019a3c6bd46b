/**
 * What each EDGES message was: its arrival time (running maximum), how many edges it brought and how many of
 * them were rejected. So totals and `asOf.time` are exact at every sequence.
 *
 * There is one entry per message and a message may hold a single edge, so an entry is a few bytes: runs of
 * RUN entries, each run with its absolute values, its entries as varint differences.
 */
import { ByteReader, ByteWriter } from './bytes.ts';

const RUN = 64;

export interface MessageEntry {
  readonly sequence: number;
  /** ms since 1970; never falls from one message to the next. */
  readonly time: number;
  /** Edges that count. */
  readonly edges: number;
  readonly rejected: number;
}

/** Sums through a message. */
export interface MessageTotals {
  /** The last message at or before the asked sequence; 0 where there is none. */
  readonly sequence: number;
  /** NaN before the first message. */
  readonly time: number;
  readonly edges: number;
  readonly rejected: number;
}

const NOTHING: MessageTotals = { sequence: 0, time: Number.NaN, edges: 0, rejected: 0 };

export class MessageLog {
  private readonly bytes = new ByteWriter(1024);
  /** Per run: sums before its first entry, and where its entries begin. */
  private readonly runStarts: { offset: number; before: MessageTotals }[] = [];
  count = 0;
  private last: MessageTotals = NOTHING;

  get totals(): MessageTotals {
    return this.last;
  }

  get byteLength(): number {
    return this.bytes.length + this.runStarts.length * 48;
  }

  push(entry: MessageEntry): void {
    const last = this.last;
    if (entry.sequence <= last.sequence || entry.time < last.time) {
      throw new RangeError(`message ${entry.sequence} comes after message ${last.sequence}`);
    }
    if (this.count % RUN === 0) this.runStarts.push({ offset: this.bytes.length, before: last });
    writeEntry(this.bytes, entry, last);
    this.count += 1;
    this.last = plus(last, entry);
  }

  /** Sums over all messages through `sequence`. */
  through(sequence: number): MessageTotals {
    if (sequence >= this.last.sequence) return this.last;
    let from = 0;
    let to = this.runStarts.length;
    while (from < to) {
      const middle = (from + to) >>> 1;
      if (this.runStarts[middle]!.before.sequence <= sequence) from = middle + 1;
      else to = middle;
    }
    if (from === 0) return NOTHING;
    const run = this.runStarts[from - 1]!;
    const reader = new ByteReader(this.bytes.written(), run.offset);
    let totals = run.before;
    for (let i = 0; i < RUN; i++) {
      const entry = readEntry(reader, totals);
      if (entry.sequence > sequence) break;
      totals = plus(totals, entry);
    }
    return totals;
  }

  /** Writes entries number `from` to `to` (exclusive); `read` appends them to a log that ends before them. */
  write(from: number, to: number, writer: ByteWriter): void {
    writer.varint(to - from);
    if (from >= to) return;
    const run = this.runStarts[Math.floor(from / RUN)]!;
    const reader = new ByteReader(this.bytes.written(), run.offset);
    let totals = run.before;
    for (let at = from - (from % RUN); at < to; at++) {
      const entry = readEntry(reader, totals);
      if (at >= from) writeEntry(writer, entry, totals);
      totals = plus(totals, entry);
    }
  }

  read(reader: ByteReader): void {
    for (let left = reader.varint(); left > 0; left--) this.push(readEntry(reader, this.last));
  }
}

function writeEntry(writer: ByteWriter, entry: MessageEntry, before: MessageTotals): void {
  writer.varint(entry.sequence - before.sequence - 1);
  writer.varint(entry.time - (before.sequence === 0 ? 0 : before.time));
  writer.varint(entry.edges);
  writer.varint(entry.rejected);
}

function readEntry(reader: ByteReader, before: MessageTotals): MessageEntry {
  return {
    sequence: before.sequence + 1 + reader.varint(),
    time: (before.sequence === 0 ? 0 : before.time) + reader.varint(),
    edges: reader.varint(),
    rejected: reader.varint(),
  };
}

function plus(totals: MessageTotals, entry: MessageEntry): MessageTotals {
  return {
    sequence: entry.sequence,
    time: entry.time,
    edges: totals.edges + entry.edges,
    rejected: totals.rejected + entry.rejected,
  };
}
