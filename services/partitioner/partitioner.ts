/**
 * The partitioner's core: decodes EDGES messages, rejects what is no edge, and gives every edge its partition.
 *
 * Its outputs are the P channels of PARTS and, last, the log of rejects. Everything it does is a function of
 * the EDGES messages in order, so a replay writes the same bytes.
 */
import { type ByteReader, ByteWriter } from '../../libs/dataflow/bytes.ts';
import { type ChannelEnd, ChannelWriter, channelStart, emptyContext } from '../../libs/dataflow/channel.ts';
import { PARTITIONER_VERSION } from '../../libs/dataflow/core-versions.ts';
import { EdgeColumns } from '../../libs/dataflow/edge-columns.ts';
import { LogError } from '../../libs/dataflow/errors.ts';
import {
  type Counters,
  frameTest,
  type Mark,
  NO_COUNTERS,
  readFrameHeader,
} from '../../libs/dataflow/frame.ts';
import type { Layout } from '../../libs/dataflow/generation.ts';
import { decodePayload } from '../../libs/dataflow/payload.ts';
import { behindMessage, type MessageIdentity } from '../../libs/dataflow/position.ts';
import { Producers } from '../../libs/dataflow/producers.ts';
import { rejectRemovals } from '../../libs/dataflow/removals.ts';
import { NONE } from '../../libs/graph/columns.ts';
import { hashId, viewOf } from '../../libs/graph/id-hash.ts';
import {
  DEFAULT_PARTITIONER,
  type PartitionerConfig,
  partitionerText,
} from '../../libs/partitioning/partitioner-config.ts';
import { UNOWNED } from '../../libs/partitioning/placements.ts';
import type { Figures } from '../../libs/partitioning/quality.ts';
import type { LogMessage } from '../../libs/stage/ports.ts';
import type { Cut, OutputEnd, ReadMark, StageCore } from '../../libs/stage/stage-core.ts';
import { EdgePlacer } from './edge-placer.ts';
import { isReject, RejectLog } from './reject-log.ts';

const NEW = { kind: 'new' } as const;
const ROWS_PER_PIECE = 8 * 1024;
/** About what a changed vertex takes in an increment. */
const CHANGE_BYTES = 7;

export interface PartitionerOptions extends Layout {
  readonly graphId: string;
  /** What chooses the partitions; the hash if absent. */
  readonly partitioner?: PartitionerConfig;
}

/** What a partitioner remembers of a vertex. */
export interface Placement {
  readonly degree: number;
  readonly owner?: number;
  readonly partitions: readonly number[];
}

export class Partitioner implements StageCore {
  readonly identity: string;
  readonly generation: number;
  private readonly isFrame: (payload: Uint8Array) => boolean;
  private readonly partitions: number;
  private readonly start: ChannelEnd;
  private readonly context = emptyContext();
  private readonly channels: ChannelWriter[];
  private readonly rejects = new RejectLog();
  private readonly producers = new Producers();
  private readonly columns = new EdgeColumns();
  readonly algorithm: PartitionerConfig;
  private readonly placer: EdgePlacer;

  private counters: Counters = NO_COUNTERS;
  /** Arrival of the newest message, running maximum, ms. */
  private time = 0;
  private edgesCreated = 0n;
  private last: ReadMark = { sequence: 0, time: 0n };
  /** Whether something was applied since the last cut. */
  dirty = false;

  constructor(options: PartitionerOptions) {
    const { graphId, generation, partitions, after, partitioner = DEFAULT_PARTITIONER } = options;
    this.partitions = partitions;
    this.algorithm = partitioner;
    this.placer = new EdgePlacer(partitioner, partitions);
    this.generation = generation;
    this.start = channelStart(after);
    this.isFrame = frameTest(graphId);
    this.identity =
      `partitioner ${PARTITIONER_VERSION} of ${graphId} generation ${generation} ` +
      `(${partitions} partitions by ${partitionerText(partitioner)})`;
    this.channels = Array.from(
      { length: partitions },
      (_, partition) =>
        new ChannelWriter(
          { graphId, generation, coreVersion: PARTITIONER_VERSION, stage: 'parts', partition, partitions },
          this.context,
        ),
    );
  }

  get edgesRead(): MessageIdentity | undefined {
    return this.context.edges;
  }

  restore(payload: ByteReader): void {
    this.restoreCounters(payload);
    this.placer.rows?.read(payload);
    this.placer.chooser.placements.read(payload);
  }

  private restoreCounters(payload: ByteReader): void {
    const [messages, edges, rejected, bytes, time] = Array.from({ length: 5 }, () => payload.varint());
    this.counters = { messages: messages!, edges: edges!, rejected: rejected!, bytes: bytes! };
    this.time = time!;
    this.producers.read(payload);
  }

  /** How its edges and vertices are spread. */
  get figures(): Figures {
    return this.placer.chooser.placements.figures();
  }

  /** Vertices that are remembered. */
  get vertexCount(): number {
    return this.placer.rows?.vertices.count ?? 0;
  }

  /** Whether it keeps account of vertices: whether `placementOf` has anything to tell. */
  get knowsVertices(): boolean {
    return this.placer.rows !== undefined;
  }

  /** What is remembered of a vertex; undefined: nothing. */
  placementOf(id: Uint8Array): Placement | undefined {
    const { rows, chooser } = this.placer;
    const view = viewOf(id);
    const row = rows?.vertices.find(view, 0, id.length, hashId(view, 0, id.length)) ?? NONE;
    if (row === NONE) return undefined;
    const { placements } = chooser;
    const owner = placements.owner(row);
    return {
      degree: placements.degree(row),
      ...(owner === UNOWNED ? {} : { owner }),
      partitions: placements.partsOf(row),
    };
  }

  /** What of a state goes over to another generation, whatever divides that: the rest of the payload is left. */
  carry(payload: ByteReader): void {
    this.restoreCounters(payload);
  }

  bindsState(output: number): boolean {
    return output !== this.partitions;
  }

  readEnd(output: number, last: Uint8Array | undefined): OutputEnd {
    if (output === this.partitions) return { end: RejectLog.readEnd(last), term: 0 };
    if (last === undefined) return { end: this.start, term: 0 };
    const { through, count, hash, term, graphId } = readFrameHeader(last);
    if (!this.identity.includes(graphId)) {
      throw new LogError(
        'log-diverged',
        `partition ${output} of PARTS was written for graph id ${graphId}, not for this graph: remove the stream`,
      );
    }
    return { end: { through, count, hash }, term };
  }

  resume(
    ends: readonly ChannelEnd[] | undefined,
    logEnds: readonly ChannelEnd[],
    read: readonly MessageIdentity[] | undefined,
  ): void {
    for (const [at, channel] of this.channels.entries())
      channel.resume(ends?.[at] ?? this.start, logEnds[at]!);
    this.rejects.resume(ends?.[this.partitions] ?? this.start, logEnds[this.partitions]!);
    const last = read?.[0];
    if (last !== undefined && last.sequence > 0) {
      this.last = last;
      // The state is of this message, whether EDGES is ever opened or not: a generation may end at once.
      this.context.edges = last;
    }
    this.dirty = false;
    this.context.counters = this.counters;
  }

  fence(output: number, term: number): Uint8Array | undefined {
    const channel = this.channels[output];
    if (channel === undefined) return undefined;
    channel.term = term;
    return channel.fence();
  }

  open(_input: number, created: bigint): void {
    this.edgesCreated = created;
    if (this.last.sequence > 0) this.context.edges = { ...this.last, created };
  }

  /** EDGES is there for everybody. */
  accepts(): boolean {
    return true;
  }

  isOwn(output: number, payload: Uint8Array): boolean {
    return output === this.partitions ? isReject(payload) : this.isFrame(payload);
  }

  wants(): boolean {
    return true;
  }

  apply(_input: number, message: LogMessage): void {
    const { sequence, producer } = message;
    const taken = producer === undefined ? NEW : this.producers.take(sequence, producer);
    if (taken.kind === 'new') this.decode(message);
    else if (taken.kind === 'duplicate') this.finishMessage(message, 0, 0);
    else this.rejectWhole(message, taken.reason);
  }

  advance(): boolean {
    return false;
  }

  get pendingBytes(): number {
    let bytes = this.rejects.pendingBytes + this.producers.pendingBytes;
    const { rows, chooser } = this.placer;
    bytes += (rows?.pendingBytes ?? 0) + chooser.placements.changes * CHANGE_BYTES;
    for (const channel of this.channels) bytes += channel.pendingBytes;
    return bytes;
  }

  /** Marks come from the records, not with the input. */
  get dueMark(): undefined {
    return undefined;
  }

  cut(mark: Mark): Cut {
    const watermark = behindMessage(this.last.sequence);
    const payloads: (readonly Uint8Array[])[] = this.channels.map((channel) => channel.cut(watermark, mark));
    payloads.push(this.rejects.cut());
    this.dirty = false;
    const increment = this.countersWriter();
    this.producers.writeIncrement(increment);
    const { rows, chooser } = this.placer;
    rows?.writeIncrement(increment);
    const { placements } = chooser;
    placements.writeChanges(increment);
    placements.markRecorded();
    return {
      payloads,
      ends: [...this.channels.map((channel) => channel.end), this.rejects.end],
      read: [this.last],
      increment: increment.written(),
    };
  }

  *copy(): Iterable<Uint8Array> {
    const { rows, chooser } = this.placer;
    const { placements } = chooser;
    const count = rows?.vertices.count ?? 0;
    let row = 0;
    do {
      const to = Math.min(count, row + ROWS_PER_PIECE);
      const writer = this.countersWriter();
      if (row === 0) this.producers.writeAll(writer);
      else this.producers.writeIncrement(writer);
      rows?.write(writer, row, to);
      placements.writeRows(writer, Math.min(row, placements.rows), Math.min(to, placements.rows));
      row = to;
      yield writer.written();
    } while (row < count);
  }

  /** What goes over to another generation, for `carry`. */
  get carried(): Uint8Array {
    const writer = this.countersWriter();
    this.producers.writeAll(writer);
    return writer.written();
  }

  /** The outputs' ends where the generation begins. */
  get starts(): readonly ChannelEnd[] {
    return Array.from({ length: this.partitions + 1 }, () => this.start);
  }

  private countersWriter(): ByteWriter {
    const writer = new ByteWriter();
    const { messages, edges, rejected, bytes } = this.counters;
    for (const value of [messages, edges, rejected, bytes, this.time]) writer.varint(value);
    return writer;
  }

  private decode(message: LogMessage): void {
    const { columns } = this;
    const { sequence } = message;
    const undecodable = decodePayload(message.payload, message.contentType, columns);
    if (undecodable !== undefined) {
      this.rejectWhole(message, undecodable);
      return;
    }
    rejectRemovals(columns);
    this.placer.place(columns);
    for (let index = 0; index < columns.count; index++)
      if (columns.rejected[index] !== 1) this.append(sequence, index);
    const { rejectedCount } = columns;
    if (rejectedCount > 0) this.rejects.add(sequence, rejectedCount, columns.reasons);
    this.finishMessage(message, columns.count - rejectedCount, rejectedCount);
  }

  private rejectWhole(message: LogMessage, reason: string): void {
    this.rejects.add(message.sequence, 1, [{ index: undefined, reason }]);
    this.finishMessage(message, 0, 1);
  }

  private append(sequence: number, index: number): void {
    const { part, swapped, smallerHash, largerHash } = this.placer;
    const { source, target, time } = this.columns;
    const isSwapped = swapped[index] === 1;
    const smaller = isSwapped ? target : source;
    const larger = isSwapped ? source : target;
    this.channels[part[index]!]!.append(
      sequence,
      index,
      swapped[index]!,
      0,
      time[index]!,
      smaller.bytes,
      smaller.start[index]!,
      smaller.end[index]!,
      smallerHash[index]!,
      larger.bytes,
      larger.start[index]!,
      larger.end[index]!,
      largerHash[index]!,
    );
  }

  private finishMessage(message: LogMessage, edges: number, rejected: number): void {
    const { sequence, time } = message;
    const { counters } = this;
    this.time = Math.max(this.time, Number(time / 1_000_000n));
    this.counters = {
      messages: counters.messages + 1,
      edges: counters.edges + edges,
      rejected: counters.rejected + rejected,
      bytes: counters.bytes + message.payload.length,
    };
    this.last = { sequence, time };
    this.dirty = true;
    this.context.edges = { sequence, time, created: this.edgesCreated };
    this.context.counters = this.counters;
    this.channels[0]!.appendMessage({ sequence, time: this.time, edges, rejected });
    this.channels[0]!.sealIfFull(behindMessage(sequence));
  }
}
