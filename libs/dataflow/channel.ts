/**
 * A channel: one partition's edges between two stages, as its writer and its reader keep count of it.
 *
 * Both run the same hash over every edge, in order. A writer that replays its input after a restart writes
 * nothing below the end that the log already has, but what it leaves out must reproduce the running count and
 * hash that the log's last frame recorded; a reader compares its own with each frame's. So a log that is not
 * the one this state was made from is noticed at the first frame that differs ("log diverged").
 */
import { hashId } from '../graph/id-hash.ts';
import { ByteWriter } from './bytes.ts';
import { type Lanes, NO_LANES, RunningHash, sameLanes } from './checksum.ts';
import { LogError } from './errors.ts';
import {
  type ChannelIdentity,
  type Counters,
  type FrameColumns,
  type FrameHeader,
  type Mark,
  NO_COUNTERS,
  NO_MARK,
  readFrame,
  writeHeader,
} from './frame.ts';
import type { MessageEntry } from './message-log.ts';
import { behindMessage, comparePositions, type MessageIdentity, type Position } from './position.ts';

/** How far a channel is complete, with the running count and hash of its edges up to there. */
export interface ChannelEnd {
  readonly through: Position;
  readonly count: number;
  readonly hash: Lanes;
}

/** Where a channel begins whose generation holds the messages behind `after`. */
export function channelStart(after: number): ChannelEnd {
  return { through: behindMessage(after), count: 0, hash: NO_LANES };
}

export const CHANNEL_START = channelStart(0);

/** What a frame's header says besides the channel's own count: set after each whole message. */
export interface FrameContext {
  edges: MessageIdentity | undefined;
  counters: Counters;
}

export function emptyContext(): FrameContext {
  return { edges: undefined, counters: NO_COUNTERS };
}

/** A frame is sealed beyond this many bytes of columns; with one more edge it stays below NATS' 1 MiB. */
const FRAME_BYTES_MAX = 512 * 1024;

export class ChannelWriter {
  private readonly identity: ChannelIdentity;
  private readonly context: FrameContext;
  /** Frames carry it; the stage's owner sets it when it has fenced the output. */
  term = 0;

  /** Through the last cut. */
  private through = CHANNEL_START.through;
  private count = 0;
  private readonly hash = new RunningHash();
  /** What the log has already; nothing below it is written again. */
  private logEnd: ChannelEnd = CHANNEL_START;
  private verified = true;

  private sealed: Uint8Array[] = [];
  /** Where the frame being filled begins. */
  private from = CHANNEL_START.through;
  private edges = 0;
  private lastSequence = 0;
  private lastIndex = 0;
  private runs = 0;
  private runEdges = 0;
  private hasTimes = false;
  private lastTime = 0;
  private readonly runColumn = new ByteWriter();
  private readonly placeColumn = new ByteWriter();
  private readonly lengthColumn = new ByteWriter();
  private readonly timeColumn = new ByteWriter();
  private readonly idColumn = new ByteWriter();
  private messages = 0;
  private lastMessageSequence = 0;
  private lastMessageTime = 0;
  private readonly messageColumn = new ByteWriter();

  constructor(identity: ChannelIdentity, context: FrameContext) {
    this.identity = identity;
    this.context = context;
  }

  /** The end of the channel as of the last cut: what the state's block records. */
  get end(): ChannelEnd {
    return { through: this.through, count: this.count, hash: this.hash.lanes };
  }

  /** Bytes waiting for the next cut. */
  get pendingBytes(): number {
    let bytes = this.columnBytes + this.messageColumn.length;
    for (const frame of this.sealed) bytes += frame.length;
    return bytes;
  }

  /** Begins anew from the channel's end as of the state, with the log's end at or behind it. */
  resume(state: ChannelEnd, logEnd: ChannelEnd): void {
    this.through = state.through;
    this.count = state.count;
    this.hash.restore(state.hash);
    this.logEnd = logEnd;
    this.verified = false;
    this.sealed = [];
    this.startFrame(comparePositions(state.through, logEnd.through) < 0 ? logEnd.through : state.through);
    this.messages = 0;
    this.messageColumn.clear();
  }

  /**
   * The next edge of the channel: its canonical ids (smaller first) with their hashes. Positions rise.
   */
  append(
    sequence: number,
    index: number,
    swapped: number,
    op: number,
    time: number,
    smaller: Uint8Array,
    smallerStart: number,
    smallerEnd: number,
    smallerHash: number,
    larger: Uint8Array,
    largerStart: number,
    largerEnd: number,
    largerHash: number,
  ): void {
    const end = this.logEnd.through;
    const isNew = sequence > end.sequence || (sequence === end.sequence && index >= end.index);
    if (isNew && !this.verified) this.verify();
    this.count += 1;
    addEdge(this.hash, sequence, index, swapped, op, time, smallerHash, largerHash);
    if (!isNew) return;
    if (sequence !== this.lastSequence || this.edges === 0) {
      this.closeRun();
      this.runColumn.varint(sequence - this.lastSequence);
      this.runs += 1;
      this.lastSequence = sequence;
      this.lastIndex = -1;
    }
    this.placeColumn.varint((index - this.lastIndex - 1) * 4 + op * 2 + swapped);
    this.lastIndex = index;
    this.runEdges += 1;
    this.edges += 1;
    this.lengthColumn.varint(smallerEnd - smallerStart);
    this.lengthColumn.varint(largerEnd - largerStart);
    if (Number.isNaN(time)) this.timeColumn.varint(0);
    else {
      this.hasTimes = true;
      const step = time - this.lastTime;
      this.timeColumn.varint(1 + (step < 0 ? -step * 2 - 1 : step * 2));
      this.lastTime = time;
    }
    this.idColumn.bytes(smaller, smallerStart, smallerEnd);
    this.idColumn.bytes(larger, largerStart, largerEnd);
    if (this.columnBytes > FRAME_BYTES_MAX) this.seal({ sequence, index: index + 1 });
  }

  /** On channel 0: an EDGES message is done. */
  appendMessage(entry: MessageEntry): void {
    const end = this.logEnd.through;
    if (entry.sequence < end.sequence) return;
    this.messageColumn.varint(entry.sequence - this.lastMessageSequence);
    this.messageColumn.varint(entry.time - this.lastMessageTime);
    this.messageColumn.varint(entry.edges);
    this.messageColumn.varint(entry.rejected);
    this.lastMessageSequence = entry.sequence;
    this.lastMessageTime = entry.time;
    this.messages += 1;
  }

  /** Everything below `through` is appended: seals the frame if messages without edges here have filled it. */
  sealIfFull(through: Position): void {
    if (this.columnBytes + this.messageColumn.length > FRAME_BYTES_MAX) this.seal(through);
  }

  /**
   * The channel is complete through `watermark`: the frames to append, the last of them with the mark. None only where
   * the log has all of it already.
   */
  cut(watermark: Position, mark: Mark = NO_MARK): Uint8Array[] {
    this.through = watermark;
    const toLogEnd = comparePositions(watermark, this.logEnd.through);
    if (toLogEnd < 0) return [];
    if (!this.verified) this.verify();
    // A mark where the last frame ended already needs a frame of its own.
    if (comparePositions(watermark, this.from) > 0 || mark !== NO_MARK) this.seal(watermark, mark);
    const frames = this.sealed;
    this.sealed = [];
    return frames;
  }

  /** The empty frame by which a new owner fences off all lower terms. */
  fence(): Uint8Array {
    const { through, count, hash } = this.logEnd;
    return this.frame(through, through, count, hash, NO_MARK);
  }

  private verify(): void {
    const { count, hash, through } = this.logEnd;
    if (this.count !== count || !sameLanes(this.hash.lanes, hash)) {
      const channel = `${this.identity.stage} channel ${this.identity.partition}`;
      throw new LogError(
        'log-diverged',
        `${channel}: replaying the input gives ${this.count} edges below ${through.sequence}.${through.index}, ` +
          `the log has ${count} there${this.count === count ? ', but other ones' : ''}; it was not made from this ` +
          'input by this version. Remove the graph and load it again',
      );
    }
    this.verified = true;
  }

  private get columnBytes(): number {
    return (
      this.runColumn.length +
      this.placeColumn.length +
      this.lengthColumn.length +
      this.timeColumn.length +
      this.idColumn.length
    );
  }

  private closeRun(): void {
    if (this.runEdges > 0) this.runColumn.varint(this.runEdges);
    this.runEdges = 0;
  }

  private seal(through: Position, mark: Mark = NO_MARK): void {
    this.sealed.push(this.frame(this.from, through, this.count, this.hash.lanes, mark));
    this.startFrame(through);
  }

  private startFrame(from: Position): void {
    this.from = from;
    this.edges = 0;
    this.lastSequence = 0;
    this.runs = 0;
    this.runEdges = 0;
    this.hasTimes = false;
    this.lastTime = 0;
    this.runColumn.clear();
    this.placeColumn.clear();
    this.lengthColumn.clear();
    this.timeColumn.clear();
    this.idColumn.clear();
  }

  private frame(from: Position, through: Position, count: number, hash: Lanes, mark: Mark): Uint8Array {
    const { edges, counters } = this.context;
    const writer = new ByteWriter(256 + this.columnBytes + this.messageColumn.length);
    writeHeader(writer, {
      ...this.identity,
      term: this.term,
      from,
      through,
      mark,
      edges,
      count,
      hash,
      counters,
    });
    writer.varint(this.messages);
    writer.bytes(this.messageColumn.written());
    this.messages = 0;
    this.lastMessageSequence = 0;
    this.lastMessageTime = 0;
    this.messageColumn.clear();
    writer.varint(this.edges);
    if (this.edges > 0) {
      this.closeRun();
      writer.varint(this.runs);
      writer.bytes(this.runColumn.written());
      writer.bytes(this.placeColumn.written());
      writer.bytes(this.lengthColumn.written());
      writer.u8(this.hasTimes ? 1 : 0);
      if (this.hasTimes) writer.bytes(this.timeColumn.written());
      writer.bytes(this.idColumn.written());
    }
    return writer.written();
  }
}

/** What a reader makes of a frame: its header, and that its edges from `first` on are new. */
export interface ReadFrame {
  readonly header: FrameHeader;
  readonly first: number;
}

export class ChannelReader {
  private readonly identity: ChannelIdentity;
  private readonly hash = new RunningHash();
  private count = 0;
  private watermark: Position;

  /** `start`: where the channel begins. */
  constructor(identity: ChannelIdentity, start: ChannelEnd = CHANNEL_START) {
    this.identity = identity;
    this.watermark = start.through;
  }

  get end(): ChannelEnd {
    return { through: this.watermark, count: this.count, hash: this.hash.lanes };
  }

  resume(end: ChannelEnd): void {
    this.watermark = end.through;
    this.count = end.count;
    this.hash.restore(end.hash);
  }

  /** Reads the channel's next frame; drops of it what was read before, refuses a gap or other edges. */
  read(frame: Uint8Array, columns: FrameColumns): ReadFrame {
    const header = readFrame(frame, columns);
    this.checkIdentity(header);
    const { watermark } = this;
    if (comparePositions(header.from, watermark) > 0) {
      throw new LogError(
        'log-gap',
        `${this.name} is read through ${text(watermark)}, but its next frame begins at ${text(header.from)}: ` +
          'what lies between was removed from the log. A newer snapshot helps; where there is none, rebuild the graph ' +
          '(watershed graph rebuild)',
      );
    }
    const { count, sequence, index, view, idStart, idEnd, idHash } = columns;
    let first = 0;
    while (
      first < count &&
      (sequence[first]! < watermark.sequence ||
        (sequence[first] === watermark.sequence && index[first]! < watermark.index))
    ) {
      first += 1;
    }
    for (let id = first * 2; id < count * 2; id++) idHash[id] = hashId(view, idStart[id]!, idEnd[id]!);
    if (comparePositions(header.through, watermark) < 0) return { header, first: count };
    for (let i = first; i < count; i++) {
      addEdge(
        this.hash,
        sequence[i]!,
        index[i]!,
        columns.swapped[i]!,
        columns.op[i]!,
        columns.time[i]!,
        idHash[i * 2]!,
        idHash[i * 2 + 1]!,
      );
    }
    this.count += count - first;
    this.watermark = header.through;
    if (this.count !== header.count || !sameLanes(this.hash.lanes, header.hash)) {
      throw new LogError(
        'log-diverged',
        `${this.name} holds ${header.count} edges below ${text(header.through)}, ${this.count} were read` +
          `${this.count === header.count ? ', and they differ' : ''}: the log is not the one read so far`,
      );
    }
    return { header, first };
  }

  private get name(): string {
    return `${this.identity.stage} channel ${this.identity.partition}`;
  }

  private checkIdentity(header: FrameHeader): void {
    for (const field of [
      'graphId',
      'generation',
      'coreVersion',
      'stage',
      'partition',
      'partitions',
    ] as const) {
      if (header[field] !== this.identity[field]) {
        throw new LogError(
          'log-diverged',
          `${this.name} has a frame of ${field} ${header[field]} where ${this.identity[field]} belongs`,
        );
      }
    }
  }
}

function text(position: Position): string {
  return `${position.sequence}.${position.index}`;
}

function addEdge(
  hash: RunningHash,
  sequence: number,
  index: number,
  swapped: number,
  op: number,
  time: number,
  smallerHash: number,
  largerHash: number,
): void {
  const timeWord = Number.isNaN(time)
    ? 0x5bd1e995
    : (time | 0) ^ Math.imul(Math.floor(time / 2 ** 32), 0x27d4eb2f);
  const place = Math.imul(sequence | 0, 0x165667b1) ^ Math.imul(index * 4 + op * 2 + swapped, 0x27220a95);
  const larger = Math.imul(largerHash, 0x2c1b3c6d);
  hash.add(place ^ timeWord ^ Math.imul(smallerHash, 0x297a2d39) ^ ((larger << 16) | (larger >>> 16)));
}
