/**
 * Frames: the messages of PARTS and FOREST.
 *
 * A frame covers a range [from, through) of positions on its channel and holds the edges of that channel in
 * it, in position order, as columns. Ids are inline, so a frame can be read without any other; per edge the
 * *canonical* ids stand there (smaller bytes first) with a bit for the publisher's orientation.
 *
 *   u8 'W' · u8 version · u8 stage · u8 mark kind · 16 bytes graph id
 *   varint generation · core version · term · partition · partitions
 *   varint from.sequence · from.index · through.sequence · through.index · mark number
 *   varint sequence of the last EDGES message covered whole · u64 its time · u64 creation of EDGES
 *   varint running count · u32 u32 running hash, both of all edges of the channel through `through`
 *   varint messages · edges · rejected · bytes: the partitioner's counters after the last whole message
 *   varint m, then m × (varint sequence − previous · time ms − previous · edges · rejected): on channel 0 only
 *   varint n; if n > 0:
 *     varint runs, then runs × (varint sequence − previous · edges of the message here)
 *     n × varint ((index − previous index in the message − 1) · 4 + op · 2 + swapped)
 *     n × (varint length of the smaller id · varint length of the larger)
 *     u8 has times; if so n × varint (0: none, else 1 + zigzag(time ms − previous time))
 *     the ids, smaller then larger, edge by edge
 *
 * `test/fixtures/frames` holds one frame per version, read for ever.
 */
import { type ByteReader, ByteWriter, ByteReader as Reader } from './bytes.ts';
import type { Lanes } from './checksum.ts';
import { LogError } from './errors.ts';
import type { MessageIdentity, Position } from './position.ts';

const FRAME_VERSION = 1;
/** Versions that may come; a byte from here on is text. */
const FRAME_VERSIONS = 32;
const MAGIC = 0x57;
/** In every version the graph id stands here. */
const GRAPH_ID_AT = 4;

export type Stage = 'parts' | 'forest';
const STAGES: readonly Stage[] = ['parts', 'forest'];

/** Which channel of which graph a frame belongs to, and what computed it. */
export interface ChannelIdentity {
  /** 32 hexadecimal digits. */
  readonly graphId: string;
  readonly generation: number;
  readonly coreVersion: number;
  readonly stage: Stage;
  readonly partition: number;
  readonly partitions: number;
}

/** Sums over all EDGES messages through a whole one; `bytes` are of payloads. */
export interface Counters {
  readonly messages: number;
  readonly edges: number;
  readonly rejected: number;
  readonly bytes: number;
}

export const NO_COUNTERS: Counters = { messages: 0, edges: 0, rejected: 0, bytes: 0 };

/** A mark in the stream: a snapshot's barrier or the end of a generation, with its number. */
export interface Mark {
  readonly kind: 'none' | 'barrier' | 'end-of-generation';
  readonly number: number;
}

const MARKS: readonly Mark['kind'][] = ['none', 'barrier', 'end-of-generation'];
export const NO_MARK: Mark = { kind: 'none', number: 0 };

/** The order of two marks behind one message: barriers as they are numbered, then the end of the generation. */
export function compareMarks(a: Mark, b: Mark): number {
  return MARKS.indexOf(a.kind) - MARKS.indexOf(b.kind) || a.number - b.number;
}

export interface FrameHeader extends ChannelIdentity {
  /** The writer's term: a higher one fences off all lower ones. */
  readonly term: number;
  readonly from: Position;
  readonly through: Position;
  readonly mark: Mark;
  /** The last EDGES message that is covered whole; undefined before the first. */
  readonly edges: MessageIdentity | undefined;
  readonly count: number;
  readonly hash: Lanes;
  readonly counters: Counters;
}

export function writeHeader(writer: ByteWriter, header: FrameHeader): void {
  writer.u8(MAGIC);
  writer.u8(FRAME_VERSION);
  writer.u8(STAGES.indexOf(header.stage));
  writer.u8(MARKS.indexOf(header.mark.kind));
  writeGraphId(writer, header.graphId);
  writer.varint(header.generation);
  writer.varint(header.coreVersion);
  writer.varint(header.term);
  writer.varint(header.partition);
  writer.varint(header.partitions);
  writer.varint(header.from.sequence);
  writer.varint(header.from.index);
  writer.varint(header.through.sequence);
  writer.varint(header.through.index);
  writer.varint(header.mark.number);
  writer.varint(header.edges?.sequence ?? 0);
  writer.u64(header.edges?.time ?? 0n);
  writer.u64(header.edges?.created ?? 0n);
  writer.varint(header.count);
  writer.u32(header.hash.a);
  writer.u32(header.hash.b);
  writer.varint(header.counters.messages);
  writer.varint(header.counters.edges);
  writer.varint(header.counters.rejected);
  writer.varint(header.counters.bytes);
}

function writeGraphId(writer: ByteWriter, graphId: string): void {
  writer.u64(BigInt(`0x${graphId.slice(0, 16)}`));
  writer.u64(BigInt(`0x${graphId.slice(16)}`));
}

function readHeader(reader: ByteReader): FrameHeader {
  if (reader.u8() !== MAGIC) throw new LogError('frame-unreadable', 'not a frame: its first byte is not "W"');
  const version = reader.u8();
  if (version !== FRAME_VERSION) {
    throw new LogError(
      'frame-unreadable',
      `a frame of version ${version}; this program reads version ${FRAME_VERSION}: start the newer program`,
    );
  }
  const stage = STAGES[reader.u8()];
  const markKind = MARKS[reader.u8()];
  if (stage === undefined || markKind === undefined) throw new RangeError('unknown stage or mark');
  const graphId = [reader.u64(), reader.u64()].map((half) => half.toString(16).padStart(16, '0')).join('');
  const [generation, coreVersion, term, partition, partitions] = varints(reader, 5);
  const [fromSequence, fromIndex, throughSequence, throughIndex, markNumber] = varints(reader, 5);
  const edgesSequence = reader.varint();
  const edgesTime = reader.u64();
  const edgesCreated = reader.u64();
  const count = reader.varint();
  const hash = { a: reader.u32(), b: reader.u32() };
  const [messages, edges, rejected, bytes] = varints(reader, 4);
  return {
    graphId,
    generation: generation!,
    coreVersion: coreVersion!,
    stage,
    partition: partition!,
    partitions: partitions!,
    term: term!,
    from: { sequence: fromSequence!, index: fromIndex! },
    through: { sequence: throughSequence!, index: throughIndex! },
    mark: { kind: markKind, number: markNumber! },
    edges:
      edgesSequence === 0 ? undefined : { sequence: edgesSequence, time: edgesTime, created: edgesCreated },
    count,
    hash,
    counters: { messages: messages!, edges: edges!, rejected: rejected!, bytes: bytes! },
  };
}

function varints(reader: ByteReader, count: number): number[] {
  return Array.from({ length: count }, () => reader.varint());
}

/**
 * A decoded frame. The arrays are reused from frame to frame; `bytes` is the frame itself, in which the ids
 * lie: id 2i is the smaller, id 2i + 1 the larger of edge i.
 */
export class FrameColumns {
  count = 0;
  bytes: Uint8Array = new Uint8Array(0);
  /** The same bytes, to read words of ids. */
  view: DataView = new DataView(new ArrayBuffer(0));
  sequence = new Float64Array(0);
  index = new Uint32Array(0);
  /** 1 where the publisher's source is the larger id. */
  swapped = new Uint8Array(0);
  op = new Uint8Array(0);
  /** ms since 1970, NaN: the edge has none. */
  time = new Float64Array(0);
  idStart = new Uint32Array(0);
  idEnd = new Uint32Array(0);
  /** hashId of the ids; filled by the channel's reader. */
  idHash = new Int32Array(0);

  messageCount = 0;
  messageSequence = new Float64Array(0);
  messageTime = new Float64Array(0);
  messageEdges = new Float64Array(0);
  messageRejected = new Float64Array(0);

  reserve(edges: number, messages: number): void {
    if (edges > this.sequence.length) {
      const capacity = Math.max(edges, this.sequence.length * 2, 256);
      this.sequence = new Float64Array(capacity);
      this.index = new Uint32Array(capacity);
      this.swapped = new Uint8Array(capacity);
      this.op = new Uint8Array(capacity);
      this.time = new Float64Array(capacity);
      this.idStart = new Uint32Array(capacity * 2);
      this.idEnd = new Uint32Array(capacity * 2);
      this.idHash = new Int32Array(capacity * 2);
    }
    if (messages > this.messageSequence.length) {
      const capacity = Math.max(messages, this.messageSequence.length * 2, 64);
      this.messageSequence = new Float64Array(capacity);
      this.messageTime = new Float64Array(capacity);
      this.messageEdges = new Float64Array(capacity);
      this.messageRejected = new Float64Array(capacity);
    }
  }
}

/**
 * Tells whether a payload can be a frame of the graph at all, of whatever version: anybody can publish on the subject of
 * a channel. What looks like a frame and is damaged is still an error, and a frame that is missing shows as a gap.
 */
export function frameTest(graphId: string): (payload: Uint8Array) => boolean {
  const writer = new ByteWriter();
  writeGraphId(writer, graphId);
  const id = writer.copy();
  return (payload) =>
    payload[0] === MAGIC &&
    payload[1] !== undefined &&
    payload[1] < FRAME_VERSIONS &&
    id.every((byte, at) => payload[GRAPH_ID_AT + at] === byte);
}

/** Reads the header alone. */
export function readFrameHeader(frame: Uint8Array): FrameHeader {
  return readable(() => readHeader(new Reader(frame)));
}

/** Reads a whole frame into `columns`; a frame that cannot be read is a LogError. */
export function readFrame(frame: Uint8Array, columns: FrameColumns): FrameHeader {
  return readable(() => {
    const reader = new Reader(frame);
    const header = readHeader(reader);
    readMessages(reader, columns);
    readEdges(reader, columns);
    return header;
  });
}

function readable<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (error instanceof LogError) throw error;
    throw new LogError('frame-unreadable', `a frame is damaged: ${String(error)}`, { cause: error });
  }
}

function readMessages(reader: ByteReader, columns: FrameColumns): void {
  const messages = reader.varint();
  if (messages > reader.end - reader.offset) throw new RangeError(`${messages} messages do not fit`);
  columns.reserve(0, messages);
  columns.messageCount = messages;
  let sequence = 0;
  let time = 0;
  for (let i = 0; i < messages; i++) {
    sequence += reader.varint();
    time += reader.varint();
    columns.messageSequence[i] = sequence;
    columns.messageTime[i] = time;
    columns.messageEdges[i] = reader.varint();
    columns.messageRejected[i] = reader.varint();
  }
}

function readEdges(reader: ByteReader, columns: FrameColumns): void {
  const count = reader.varint();
  if (count > reader.end - reader.offset) throw new RangeError(`${count} edges do not fit`);
  columns.reserve(count, 0);
  columns.count = count;
  columns.bytes = reader.bytes;
  columns.view = reader.view;
  if (count === 0) return;
  const runs = reader.varint();
  let sequence = 0;
  let filled = 0;
  for (let run = 0; run < runs; run++) {
    sequence += reader.varint();
    const until = filled + reader.varint();
    if (until > count) throw new RangeError('the runs hold more edges than the frame');
    columns.sequence.fill(sequence, filled, until);
    filled = until;
  }
  if (filled !== count) throw new RangeError('the runs hold fewer edges than the frame');
  readPlaces(reader, columns);
  const idBytes = readLengths(reader, columns);
  readTimes(reader, columns);
  const base = reader.offset;
  if (base + idBytes !== reader.end) {
    throw new RangeError(`ids take ${idBytes} of ${reader.end - base} bytes`);
  }
  for (let id = 0; id < count * 2; id++) {
    columns.idStart[id]! += base;
    columns.idEnd[id]! += base;
  }
}

// Nearly all numbers of these columns are one byte: read here, without a call.

function readPlaces(reader: ByteReader, columns: FrameColumns): void {
  const { bytes, end } = reader;
  const { count, sequence, index, op, swapped } = columns;
  let last = -1;
  for (let i = 0; i < count; i++) {
    let place = reader.offset < end ? bytes[reader.offset]! : 0x80;
    if (place < 0x80) reader.offset += 1;
    else place = reader.varint();
    if (i > 0 && sequence[i] !== sequence[i - 1]) last = -1;
    last += 1 + Math.floor(place / 4);
    index[i] = last;
    op[i] = (place >> 1) & 1;
    swapped[i] = place & 1;
  }
}

/** Fills idStart and idEnd as if the ids began at 0; gives how many bytes they take. */
function readLengths(reader: ByteReader, columns: FrameColumns): number {
  const { bytes, end } = reader;
  const { count, idStart, idEnd } = columns;
  let at = 0;
  for (let id = 0; id < count * 2; id++) {
    let length = reader.offset < end ? bytes[reader.offset]! : 0x80;
    if (length < 0x80) reader.offset += 1;
    else length = reader.varint();
    idStart[id] = at;
    at += length;
    idEnd[id] = at;
  }
  return at;
}

function readTimes(reader: ByteReader, columns: FrameColumns): void {
  if (reader.u8() === 0) {
    columns.time.fill(Number.NaN, 0, columns.count);
    return;
  }
  let time = 0;
  for (let i = 0; i < columns.count; i++) {
    const step = reader.varint();
    if (step === 0) {
      columns.time[i] = Number.NaN;
      continue;
    }
    const zigzag = step - 1;
    time += zigzag % 2 === 1 ? -(zigzag + 1) / 2 : zigzag / 2;
    columns.time[i] = time;
  }
}
