/**
 * The partitioner's core: decodes EDGES messages, rejects what is no edge, and gives every edge its partition.
 *
 * Its outputs are the P channels of PARTS and, last, the log of rejects. Everything it does is a function of
 * the EDGES messages in order, so a replay writes the same bytes.
 */
import { type ByteReader, ByteWriter } from '../../libs/dataflow/bytes.ts';
import { CHANNEL_START, type ChannelEnd, ChannelWriter, emptyContext } from '../../libs/dataflow/channel.ts';
import { PARTITIONER_VERSION } from '../../libs/dataflow/core-versions.ts';
import { EdgeColumns, type IdColumn } from '../../libs/dataflow/edge-columns.ts';
import { LogError } from '../../libs/dataflow/errors.ts';
import { type Counters, frameTest, NO_COUNTERS, readFrameHeader } from '../../libs/dataflow/frame.ts';
import { decodePayload } from '../../libs/dataflow/payload.ts';
import { behindMessage, type MessageIdentity } from '../../libs/dataflow/position.ts';
import { rejectRemovals } from '../../libs/dataflow/removals.ts';
import { hashId, viewOf } from '../../libs/graph/id-hash.ts';
import { FNV_OFFSET, fnv1a, hashPartition } from '../../libs/partitioning/hash.ts';
import type { LogMessage } from '../../libs/stage/ports.ts';
import type { Cut, OutputEnd, ReadMark, StageCore } from '../../libs/stage/stage-core.ts';
import { isReject, RejectLog } from './reject-log.ts';

export interface PartitionerOptions {
  readonly graphId: string;
  readonly generation: number;
  readonly partitions: number;
}

export class Partitioner implements StageCore {
  readonly identity: string;
  private readonly isFrame: (payload: Uint8Array) => boolean;
  private readonly partitions: number;
  private readonly context = emptyContext();
  private readonly channels: ChannelWriter[];
  private readonly rejects = new RejectLog();
  private readonly columns = new EdgeColumns();
  /** The columns' id bytes, to read words of ids. */
  private sourceView = viewOf(new Uint8Array(0));
  private targetView = this.sourceView;

  private counters: Counters = NO_COUNTERS;
  /** Arrival of the newest message, running maximum, ms. */
  private time = 0;
  private edgesCreated = 0n;
  private last: ReadMark = { sequence: 0, time: 0n };
  /** Whether something was applied since the last cut. */
  dirty = false;

  constructor(options: PartitionerOptions) {
    const { graphId, generation, partitions } = options;
    this.partitions = partitions;
    this.isFrame = frameTest(graphId);
    this.identity = `partitioner ${PARTITIONER_VERSION} of ${graphId} generation ${generation} (${partitions} partitions)`;
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
    const [messages, edges, rejected, bytes, time] = Array.from({ length: 5 }, () => payload.varint());
    this.counters = { messages: messages!, edges: edges!, rejected: rejected!, bytes: bytes! };
    this.time = time!;
  }

  bindsState(output: number): boolean {
    return output !== this.partitions;
  }

  readEnd(output: number, last: Uint8Array | undefined): OutputEnd {
    if (output === this.partitions) return { end: RejectLog.readEnd(last), term: 0 };
    if (last === undefined) return { end: CHANNEL_START, term: 0 };
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
    read: readonly ReadMark[] | undefined,
  ): void {
    for (const [at, channel] of this.channels.entries())
      channel.resume(ends?.[at] ?? CHANNEL_START, logEnds[at]!);
    this.rejects.resume(ends?.[this.partitions] ?? CHANNEL_START, logEnds[this.partitions]!);
    this.last = read?.[0] ?? this.last;
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
    const { columns } = this;
    const { sequence } = message;
    const undecodable = decodePayload(message.payload, message.contentType, columns);
    if (undecodable !== undefined) this.rejects.add(sequence, 1, [{ index: undefined, reason: undecodable }]);
    else {
      rejectRemovals(columns);
      this.sourceView = viewOf(columns.source.bytes);
      this.targetView = viewOf(columns.target.bytes);
      for (let index = 0; index < columns.count; index++) {
        if (columns.rejected[index] === 0) this.place(sequence, index);
      }
      if (columns.rejectedCount > 0) this.rejects.add(sequence, columns.rejectedCount, columns.reasons);
    }
    const rejected = undecodable !== undefined ? 1 : columns.rejectedCount;
    const edges = undecodable !== undefined ? 0 : columns.count - rejected;
    this.finishMessage(message, edges, rejected);
  }

  advance(): boolean {
    return false;
  }

  get pendingBytes(): number {
    let bytes = this.rejects.pendingBytes;
    for (const channel of this.channels) bytes += channel.pendingBytes;
    return bytes;
  }

  cut(): Cut {
    const watermark = behindMessage(this.last.sequence);
    const payloads: (readonly Uint8Array[])[] = this.channels.map((channel) => channel.cut(watermark));
    payloads.push(this.rejects.cut());
    this.dirty = false;
    const [increment] = this.copy();
    return {
      payloads,
      ends: [...this.channels.map((channel) => channel.end), this.rejects.end],
      read: [this.last],
      increment: increment!,
    };
  }

  /** The counters are all there is, so an increment is a whole copy. */
  copy(): [Uint8Array] {
    const writer = new ByteWriter();
    const { messages, edges, rejected, bytes } = this.counters;
    for (const value of [messages, edges, rejected, bytes, this.time]) writer.varint(value);
    return [writer.copy()];
  }

  private place(sequence: number, index: number): void {
    const { source, target, time } = this.columns;
    const swapped = isLarger(source, target, index) ? 1 : 0;
    const smaller = swapped === 1 ? target : source;
    const larger = swapped === 1 ? source : target;
    const smallerStart = smaller.start[index]!;
    const smallerEnd = smaller.end[index]!;
    const largerStart = larger.start[index]!;
    const largerEnd = larger.end[index]!;
    const hash = fnv1a(
      fnv1a(FNV_OFFSET, smaller.bytes, smallerStart, smallerEnd),
      larger.bytes,
      largerStart,
      largerEnd,
    );
    this.channels[hashPartition(hash, this.partitions)]!.append(
      sequence,
      index,
      swapped,
      0,
      time[index]!,
      smaller.bytes,
      smallerStart,
      smallerEnd,
      hashId(swapped === 1 ? this.targetView : this.sourceView, smallerStart, smallerEnd),
      larger.bytes,
      largerStart,
      largerEnd,
      hashId(swapped === 1 ? this.sourceView : this.targetView, largerStart, largerEnd),
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

/** Whether the source's bytes are larger than the target's; of two ids that begin alike the shorter is smaller. */
function isLarger(source: IdColumn, target: IdColumn, index: number): boolean {
  const a = source.bytes;
  const b = target.bytes;
  let x = source.start[index]!;
  let y = target.start[index]!;
  const xEnd = source.end[index]!;
  const yEnd = target.end[index]!;
  while (x < xEnd && y < yEnd) {
    const difference = a[x++]! - b[y++]!;
    if (difference !== 0) return difference > 0;
  }
  return xEnd - x > yEnd - y;
}
