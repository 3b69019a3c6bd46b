/**
 * The view: the global components, built in each gateway from the forests of all partitions.
 *
 * The P channels are merged in position order, and nothing is applied beyond S, the last whole message below
 * the lowest watermark. So after every slice of work the view is the graph of an exact prefix 1..S of the
 * edge stream: the same for any number of partitions.
 */
import { type ByteReader, ByteWriter } from '../../libs/dataflow/bytes.ts';
import { type ChannelEnd, ChannelReader, channelStart } from '../../libs/dataflow/channel.ts';
import { RunningHash } from '../../libs/dataflow/checksum.ts';
import { VIEW_VERSION, WORKER_VERSION } from '../../libs/dataflow/core-versions.ts';
import {
  compareMarks,
  FrameColumns,
  type FrameHeader,
  frameTest,
  type Mark,
  readFrameHeader,
} from '../../libs/dataflow/frame.ts';
import type { Layout } from '../../libs/dataflow/generation.ts';
import { MessageLog } from '../../libs/dataflow/message-log.ts';
import { comparePositions, type MessageIdentity, wholeMessagesBelow } from '../../libs/dataflow/position.ts';
import { NONE } from '../../libs/graph/columns.ts';
import { ComponentForest } from '../../libs/graph/component-forest.ts';
import { hashId } from '../../libs/graph/id-hash.ts';
import { PartSets } from '../../libs/graph/part-sets.ts';
import type { LogMessage } from '../../libs/stage/ports.ts';
import type { Cut, OutputEnd, ReadMark, StageCore } from '../../libs/stage/stage-core.ts';

/** Edges applied before the loop is asked whether other work waits; then the message at hand is finished. */
const SLICE_EDGES = 1024;
/** Frames that a channel may be ahead of the lowest one. */
const FRAMES_AHEAD_MAX = 8;
const COPY_PIECE_BYTES = 256 * 1024;
/** About what a row and a link take in a block, ids of usual length. */
const ROW_BYTES = 24;
const LINK_BYTES = 12;

export interface ViewOptions {
  readonly graphId: string;
  /** The generation that the graph's state began with: a view goes on from one generation to the next, not beyond it. */
  readonly origin: number;
}

/** A mark that the channels carry, and the message through which the view is at it. */
interface ComingMark {
  readonly mark: Mark;
  readonly sequence: number;
}

/** Told what becomes visible; for waiting readers and for measuring. */
export interface ViewObserver {
  /** An EDGES message that arrived then (ms since 1970) is now in the answers. */
  visible(time: number): void;
  /** All edges through `sequence` are now in the answers. */
  advanced(sequence: number): void;
}

interface Channel {
  readonly partition: number;
  readonly reader: ChannelReader;
  readonly columns: FrameColumns;
  /** Rows of the frame's ids, or NONE. */
  rows: Uint32Array;
  readonly queue: LogMessage[];
  /** The frame in `columns`, of which edges from `at` on are not applied. */
  current: { readonly message: LogMessage; readonly header: FrameHeader } | undefined;
  at: number;
  /** Through the last frame queued. */
  watermark: { sequence: number; index: number };
  /** The last frame applied whole, and the channel's end behind it. */
  last: ReadMark;
  end: ChannelEnd;
}

export class View implements StageCore {
  readonly identity: string;
  private readonly isFrame: (payload: Uint8Array) => boolean;
  readonly forest = new ComponentForest();
  readonly messages = new MessageLog();
  /** S: all edges of messages 1..S are in the forest, and none after. */
  sequence = 0;

  /** The layout whose channels are read; undefined until it has begun. */
  generation: Layout | undefined;
  /** The partitions of that layout in which each vertex has an edge. */
  parts = new PartSets(1, 0);
  /** Whether the generation's channels are read to their end. */
  ended = false;
  dueMark: Mark | undefined;

  private readonly graphId: string;
  private readonly observer: ViewObserver;
  private channels: Channel[] = [];
  /** Marks that were read and not reached yet, lowest first. */
  private comingMarks: ComingMark[] = [];
  /** The newest barrier that the state has had. */
  private barrier = 0;
  private readonly rowsHash = new RunningHash();
  private readonly linksHash = new RunningHash();
  /** Messages of channel 0 beyond S. */
  private readonly comingMessages: { sequence: number; time: number; edges: number; rejected: number }[] = [];
  private edgesIdentity: MessageIdentity | undefined;
  private recorded = { rows: 0, links: 0, messages: 0, sequence: 0 };

  constructor(options: ViewOptions, observer: ViewObserver) {
    const { graphId, origin } = options;
    this.graphId = graphId;
    this.isFrame = frameTest(graphId);
    this.identity = `view ${VIEW_VERSION} of ${graphId} since generation ${origin}`;
    this.observer = observer;
  }

  /** Goes on with the channels of a generation, from its start. */
  begin(generation: Layout): void {
    const { graphId } = this;
    const { partitions, after } = generation;
    const start = channelStart(after);
    this.generation = generation;
    this.ended = false;
    this.comingMarks = [];
    this.parts = new PartSets(partitions, this.recorded.rows);
    this.channels = Array.from({ length: partitions }, (_, partition) => ({
      partition,
      reader: new ChannelReader(
        {
          graphId,
          generation: generation.generation,
          coreVersion: WORKER_VERSION,
          stage: 'forest',
          partition,
          partitions,
        },
        start,
      ),
      columns: new FrameColumns(),
      rows: new Uint32Array(0),
      queue: [],
      current: undefined,
      at: 0,
      watermark: start.through,
      last: { sequence: 0, time: 0n },
      end: start,
    }));
  }

  /** EDGES is another log from here on, with the same sequences. */
  leaveEdges(): void {
    if (this.edgesIdentity !== undefined) this.edgesIdentity = { ...this.edgesIdentity, created: 0n };
  }

  /** Equal in all views of a graph at the same S, whatever the layout: over rows, links and totals. */
  get digest(): string {
    const { edges, rejected } = this.messages.totals;
    const words = [this.rowsHash.lanes, this.linksHash.lanes].flatMap(({ a, b }) => [a, b]);
    return [...words.map((word) => word.toString(16).padStart(8, '0')), edges, rejected].join('-');
  }

  get edgesRead(): MessageIdentity | undefined {
    return this.edgesIdentity;
  }

  /** Through which message each channel is read; S is the least of them. */
  get watermarks(): readonly number[] {
    return this.channels.map((channel) => wholeMessagesBelow(channel.watermark));
  }

  /** Bytes of the state's arrays. */
  get byteLength(): number {
    return this.forest.byteLength + this.parts.byteLength + this.messages.byteLength;
  }

  restore(payload: ByteReader): void {
    const { forest, messages } = this;
    let sequence = 0;
    for (let left = payload.varint(); left > 0; left--) {
      const length = payload.varint();
      const start = payload.skip(length);
      const end = start + length;
      const hash = hashId(payload.view, start, end);
      forest.vertices.findOrAdd(payload.view, start, end, hash);
      sequence += payload.varint();
      this.arrive(hash, sequence, payload.varint());
    }
    sequence = 0;
    for (let left = payload.varint(); left > 0; left--) {
      const source = payload.varint();
      const target = payload.varint();
      sequence += payload.varint();
      const index = payload.varint();
      const time = payload.varint();
      this.join(source, target, sequence, index, time === 0 ? Number.NaN : unzigzag(time - 1));
    }
    messages.read(payload);
    this.sequence = payload.varint();
    // The newest list is the whole one.
    this.comingMessages.length = 0;
    for (let left = payload.varint(); left > 0; left--) {
      const [sequence, time, edges, rejected] = Array.from({ length: 4 }, () => payload.varint());
      this.comingMessages.push({ sequence: sequence!, time: time!, edges: edges!, rejected: rejected! });
    }
    const generation = payload.varint();
    const partitions = payload.varint();
    const after = payload.varint();
    if (generation !== this.generation?.generation) this.begin({ generation, partitions, after });
    this.parts.read(payload);
    this.ended = payload.u8() === 1;
    for (const channel of this.channels) {
      channel.end = {
        through: { sequence: payload.varint(), index: payload.varint() },
        count: payload.varint(),
        hash: { a: payload.u32(), b: payload.u32() },
      };
    }
    const edges = { sequence: payload.varint(), time: payload.u64(), created: payload.u64() };
    this.edgesIdentity = edges.sequence === 0 ? undefined : edges;
    this.markRecorded();
  }

  bindsState(): boolean {
    return true;
  }

  readEnd(): OutputEnd {
    throw new Error('a view has no output');
  }

  resume(_ends: unknown, _logEnds: unknown, read: readonly ReadMark[] | undefined, barrier: number): void {
    this.barrier = barrier;
    this.dueMark = undefined;
    for (const [at, channel] of this.channels.entries()) {
      channel.reader.resume(channel.end);
      channel.watermark = channel.end.through;
      channel.last = read?.[at] ?? channel.last;
    }
  }

  fence(): undefined {}

  open(): void {}

  accepts(_input: number, { payload }: LogMessage): boolean {
    return this.isFrame(payload);
  }

  isOwn(): boolean {
    throw new Error('a view has no output');
  }

  wants(input: number): boolean {
    return this.channels[input]!.queue.length < FRAMES_AHEAD_MAX;
  }

  apply(input: number, message: LogMessage): void {
    const channel = this.channels[input]!;
    channel.queue.push(message);
    const { through, mark } = readFrameHeader(message.payload);
    if (comparePositions(through, channel.watermark) > 0) channel.watermark = through;
    if (mark.kind !== 'none') this.noticeMark(mark, wholeMessagesBelow(through));
  }

  advance(): boolean {
    const coming = this.comingMarks[0];
    // Not beyond a mark before it was handed on.
    const limit = Math.min(
      coming?.sequence ?? Number.POSITIVE_INFINITY,
      ...this.channels.map((channel) => wholeMessagesBelow(channel.watermark)),
    );
    let applied = 0;
    let atHand = 0;
    for (;;) {
      const channel = this.lowest();
      if (channel === undefined) break;
      const sequence = channel.columns.sequence[channel.at]!;
      if (sequence > limit || (applied >= SLICE_EDGES && sequence !== atHand)) break;
      atHand = sequence;
      this.applyEdge(channel);
      applied += 1;
    }
    const next = this.lowest();
    const nextSequence = next === undefined ? Number.POSITIVE_INFINITY : next.columns.sequence[next.at]!;
    const reached = Math.min(limit, nextSequence - 1);
    if (reached > this.sequence) this.reach(reached);
    if (coming !== undefined && this.sequence >= coming.sequence) this.dueMark = coming.mark;
    return reached < limit;
  }

  get dirty(): boolean {
    return this.sequence > this.recorded.sequence;
  }

  get pendingBytes(): number {
    const { rows, links, messages } = this.recorded;
    return (
      (this.forest.rows - rows) * ROW_BYTES +
      (this.forest.links - links) * LINK_BYTES +
      (this.messages.count - messages) * 4 +
      this.parts.pendingBytes(this.forest.rows)
    );
  }

  cut(mark: Mark): Cut {
    const { rows, links, messages } = this.recorded;
    if (mark.kind !== 'none') this.pass(mark);
    const increment = this.encode(
      rows,
      this.forest.rows,
      links,
      this.forest.links,
      messages,
      this.messages.count,
      (writer) => this.parts.writeChanges(writer, this.forest.rows),
    );
    this.markRecorded();
    return { payloads: [], ends: [], read: this.channels.map((channel) => channel.last), increment };
  }

  *copy(): Iterable<Uint8Array> {
    const { rows, links, messages } = this.recorded;
    for (let row = 0; row < rows; ) {
      let to = row;
      for (let bytes = 0; to < rows && bytes < COPY_PIECE_BYTES; to++)
        bytes += this.forest.vertices.idOf(to).length + 8;
      yield this.encode(row, to, 0, 0, 0, 0);
      row = to;
    }
    const linksAtOnce = Math.floor(COPY_PIECE_BYTES / LINK_BYTES);
    for (let link = 0; link < links; link += linksAtOnce) {
      yield this.encode(0, 0, link, Math.min(links, link + linksAtOnce), 0, 0);
    }
    const messagesAtOnce = COPY_PIECE_BYTES / 4;
    for (let message = 0; message < messages; message += messagesAtOnce) {
      yield this.encode(0, 0, 0, 0, message, Math.min(messages, message + messagesAtOnce));
    }
    yield this.encode(0, 0, 0, 0, 0, 0);
  }

  private noticeMark(mark: Mark, sequence: number): void {
    const isOver = mark.kind === 'barrier' ? mark.number <= this.barrier : this.ended;
    if (isOver || sequence < this.sequence) return;
    if (
      this.comingMarks.some((coming) => coming.mark.kind === mark.kind && coming.mark.number === mark.number)
    )
      return;
    this.comingMarks.push({ mark, sequence });
    this.comingMarks.sort((a, b) => a.sequence - b.sequence || compareMarks(a.mark, b.mark));
  }

  private pass(mark: Mark): void {
    if (mark.kind === 'barrier') this.barrier = mark.number;
    else this.ended = true;
    this.comingMarks.shift();
    this.dueMark = undefined;
  }

  private arrive(hash: number, sequence: number, index: number): void {
    this.forest.arrive(sequence, index);
    this.rowsHash.add(hash);
    this.rowsHash.add(sequence ^ Math.imul(index + 1, 0x9e3779b1));
  }

  private join(source: number, target: number, sequence: number, index: number, time: number): void {
    if (!this.forest.join(source, target, sequence, index, time)) return;
    this.linksHash.add(source ^ Math.imul(target + 1, 0x85ebca6b));
    this.linksHash.add(sequence ^ Math.imul(index + 1, 0x9e3779b1));
  }

  /** The channel whose next edge comes first in the stream; undefined: no channel has one at hand. */
  private lowest(): Channel | undefined {
    let lowest: Channel | undefined;
    for (const channel of this.channels) {
      if (!this.load(channel)) continue;
      if (lowest === undefined) lowest = channel;
      else {
        const difference = channel.columns.sequence[channel.at]! - lowest.columns.sequence[lowest.at]!;
        if (difference > 0) continue;
        if (difference < 0 || channel.columns.index[channel.at]! < lowest.columns.index[lowest.at]!)
          lowest = channel;
      }
    }
    return lowest;
  }

  /** Whether the channel has an edge at hand; opens its next frames as those before are used up. */
  private load(channel: Channel): boolean {
    for (;;) {
      if (channel.current !== undefined) {
        if (channel.at < channel.columns.count) return true;
        this.finishFrame(channel, channel.current);
      }
      const message = channel.queue.shift();
      if (message === undefined) return false;
      this.openFrame(channel, message);
    }
  }

  private openFrame(channel: Channel, message: LogMessage): void {
    const { columns, reader } = channel;
    const { header, first } = reader.read(message.payload, columns);
    channel.current = { message, header };
    channel.at = first;
    // After a restart, a frame that was applied in part is read again.
    while (channel.at < columns.count && columns.sequence[channel.at]! <= this.sequence) channel.at += 1;
    if (channel.rows.length < columns.count * 2) channel.rows = new Uint32Array(columns.idStart.length);
    const { view, idStart, idEnd, idHash, count } = columns;
    this.forest.vertices.findMany(view, idStart, idEnd, idHash, channel.at * 2, count * 2, channel.rows);
    this.forest.touch(channel.rows, channel.at * 2, count * 2);
    const known = this.comingMessages.at(-1)?.sequence ?? this.messages.totals.sequence;
    for (let i = 0; i < columns.messageCount; i++) {
      if (columns.messageSequence[i]! <= known) continue;
      this.comingMessages.push({
        sequence: columns.messageSequence[i]!,
        time: columns.messageTime[i]!,
        edges: columns.messageEdges[i]!,
        rejected: columns.messageRejected[i]!,
      });
    }
  }

  private finishFrame(channel: Channel, frame: NonNullable<Channel['current']>): void {
    channel.last = { sequence: frame.message.sequence, time: frame.message.time };
    channel.end = channel.reader.end;
    channel.current = undefined;
    const { edges } = frame.header;
    if (edges !== undefined && edges.sequence > (this.edgesIdentity?.sequence ?? 0))
      this.edgesIdentity = edges;
  }

  private applyEdge(channel: Channel): void {
    const { columns, at } = channel;
    const { forest, parts } = this;
    const sequence = columns.sequence[at]!;
    const index = columns.index[at]!;
    const smaller = this.row(channel, at * 2);
    if (smaller === forest.rows) this.arrive(columns.idHash[at * 2]!, sequence, index);
    const larger = this.row(channel, at * 2 + 1);
    if (larger === forest.rows) this.arrive(columns.idHash[at * 2 + 1]!, sequence, index);
    // A worker hands on an edge of each vertex that its partition did not know.
    parts.add(smaller, channel.partition);
    parts.add(larger, channel.partition);
    channel.at += 1;
    if (smaller === larger) return;
    const swapped = columns.swapped[at] === 1;
    this.join(swapped ? larger : smaller, swapped ? smaller : larger, sequence, index, columns.time[at]!);
  }

  private row(channel: Channel, id: number): number {
    const known = channel.rows[id]!;
    if (known !== NONE) return known;
    // New in this frame, or added since the frame was opened.
    const { view, idStart, idEnd, idHash } = channel.columns;
    return this.forest.vertices.findOrAdd(view, idStart[id]!, idEnd[id]!, idHash[id]!);
  }

  /** All edges through message `sequence` are applied. */
  private reach(sequence: number): void {
    this.sequence = sequence;
    let done = 0;
    for (const message of this.comingMessages) {
      if (message.sequence > sequence) break;
      this.messages.push(message);
      this.observer.visible(message.time);
      done += 1;
    }
    this.comingMessages.splice(0, done);
    this.observer.advanced(sequence);
  }

  private markRecorded(): void {
    this.recorded = {
      rows: this.forest.rows,
      links: this.forest.links,
      messages: this.messages.count,
      sequence: this.sequence,
    };
    this.parts.markRecorded(this.forest.rows);
  }

  private encode(
    rowFrom: number,
    rowTo: number,
    linkFrom: number,
    linkTo: number,
    messageFrom: number,
    messageTo: number,
    writeParts = (writer: ByteWriter): void => this.parts.writeRows(writer, rowFrom, rowTo),
  ): Uint8Array {
    const { forest, messages } = this;
    const writer = new ByteWriter(4096);
    writer.varint(rowTo - rowFrom);
    let sequence = 0;
    for (let row = rowFrom; row < rowTo; row++) {
      forest.vertices.write(row, writer);
      writer.varint(forest.arrivalSequence(row) - sequence);
      sequence = forest.arrivalSequence(row);
      writer.varint(forest.arrivalIndex(row));
    }
    writer.varint(linkTo - linkFrom);
    sequence = 0;
    for (let link = linkFrom; link < linkTo; link++) {
      const { source, target, sequence: at, index, time } = forest.link(link);
      writer.varint(source);
      writer.varint(target);
      writer.varint(at - sequence);
      sequence = at;
      writer.varint(index);
      writer.varint(Number.isNaN(time) ? 0 : 1 + zigzag(time));
    }
    messages.write(messageFrom, messageTo, writer);
    writer.varint(this.sequence);
    // Channel 0 may be ahead of S: its frames are then done and are not read again, but their messages are still to come.
    writer.varint(this.comingMessages.length);
    for (const message of this.comingMessages) {
      writer.varint(message.sequence);
      writer.varint(message.time);
      writer.varint(message.edges);
      writer.varint(message.rejected);
    }
    const { generation } = this;
    if (generation === undefined) throw new Error('a view without a generation has no state');
    writer.varint(generation.generation);
    writer.varint(generation.partitions);
    writer.varint(generation.after);
    writeParts(writer);
    writer.u8(this.ended ? 1 : 0);
    for (const { end } of this.channels) {
      writer.varint(end.through.sequence);
      writer.varint(end.through.index);
      writer.varint(end.count);
      writer.u32(end.hash.a);
      writer.u32(end.hash.b);
    }
    writer.varint(this.edgesIdentity?.sequence ?? 0);
    writer.u64(this.edgesIdentity?.time ?? 0n);
    writer.u64(this.edgesIdentity?.created ?? 0n);
    return writer.written();
  }
}

function zigzag(value: number): number {
  return value < 0 ? -value * 2 - 1 : value * 2;
}

function unzigzag(value: number): number {
  return value % 2 === 1 ? -(value + 1) / 2 : value / 2;
}
