/**
 * A worker's core: the edges of one partition in, those that matter out.
 *
 * An edge matters if it joins two components of the partition or makes a vertex known to it (a self-loop of a
 * new vertex). Every edge that joins two components of the whole graph at its turn also does so in its
 * partition, which has fewer edges (Kruskal's algorithm with arrival position as the weight), so the forests of
 * all partitions, replayed in position order, make exactly the merges of the whole stream.
 */
import { type ByteReader, ByteWriter } from '../../libs/dataflow/bytes.ts';
import {
  type ChannelEnd,
  ChannelReader,
  ChannelWriter,
  channelStart,
  emptyContext,
} from '../../libs/dataflow/channel.ts';
import { PARTITIONER_VERSION, WORKER_VERSION } from '../../libs/dataflow/core-versions.ts';
import { LogError } from '../../libs/dataflow/errors.ts';
import {
  type ChannelIdentity,
  FrameColumns,
  type FrameHeader,
  frameTest,
  type Mark,
  readFrameHeader,
} from '../../libs/dataflow/frame.ts';
import type { Layout } from '../../libs/dataflow/generation.ts';
import { comparePositions, type MessageIdentity } from '../../libs/dataflow/position.ts';
import { Uint32Column } from '../../libs/graph/columns.ts';
import { DisjointSets } from '../../libs/graph/disjoint-sets.ts';
import { hashId } from '../../libs/graph/id-hash.ts';
import { VertexTable } from '../../libs/graph/vertex-table.ts';
import type { LogMessage } from '../../libs/stage/ports.ts';
import type { Cut, OutputEnd, ReadMark, StageCore } from '../../libs/stage/stage-core.ts';

/** Ids looked up together: enough for their cache misses to overlap, few enough to stay in the first cache. */
const IDS_AT_ONCE = 256;
const COPY_PIECE_BYTES = 256 * 1024;

export interface WorkerOptions extends Layout {
  readonly graphId: string;
  readonly partition: number;
}

export class Worker implements StageCore {
  readonly identity: string;
  private readonly isFrame: (payload: Uint8Array) => boolean;
  private readonly partition: number;
  private readonly graphId: string;
  private readonly start: ChannelEnd;
  private readonly context = emptyContext();
  private readonly reader: ChannelReader;
  private readonly writer: ChannelWriter;
  private readonly columns = new FrameColumns();
  private rows = new Uint32Array(0);

  private readonly vertices = new VertexTable();
  private readonly sets = new DisjointSets();
  /** The rows of every joining edge, in order: what `sets` can be made of again, as of any earlier time. */
  private readonly forest = new Uint32Column();

  private last: ReadMark = { sequence: 0, time: 0n };
  /** Whether something was applied since the last cut. */
  dirty = false;
  private recordedVertices = 0;
  private recordedForest = 0;
  private newBytes = 0;
  dueMark: Mark | undefined;
  /** The newest barrier that the state has had. */
  private barrier = 0;

  constructor(options: WorkerOptions) {
    const { graphId, generation, partition, partitions, after } = options;
    this.start = channelStart(after);
    this.partition = partition;
    this.graphId = graphId;
    this.isFrame = frameTest(graphId);
    this.identity = `worker ${WORKER_VERSION} of ${graphId} generation ${generation} partition ${partition} of ${partitions}`;
    const identity: Omit<ChannelIdentity, 'stage' | 'coreVersion'> = {
      graphId,
      generation,
      partition,
      partitions,
    };
    this.reader = new ChannelReader(
      { ...identity, stage: 'parts', coreVersion: PARTITIONER_VERSION },
      this.start,
    );
    this.writer = new ChannelWriter(
      { ...identity, stage: 'forest', coreVersion: WORKER_VERSION },
      this.context,
    );
  }

  /** Vertices known to the partition. */
  get vertexCount(): number {
    return this.vertices.count;
  }

  /** Bytes of the state's arrays. */
  get byteLength(): number {
    return this.vertices.byteLength + this.sets.byteLength + this.forest.byteLength;
  }

  get edgesRead(): MessageIdentity | undefined {
    return this.context.edges;
  }

  restore(payload: ByteReader): void {
    for (let left = payload.varint(); left > 0; left--) {
      const length = payload.varint();
      const start = payload.skip(length);
      const end = start + length;
      this.vertices.findOrAdd(payload.view, start, end, hashId(payload.view, start, end));
      this.sets.add();
    }
    for (let left = payload.varint(); left > 0; left--) {
      const row = payload.varint();
      this.join(row, payload.varint());
    }
    this.reader.resume(readEndOf(payload));
    const sequence = payload.varint();
    const time = payload.u64();
    const created = payload.u64();
    this.context.edges = sequence === 0 ? undefined : { sequence, time, created };
    const [messages, edges, rejected, bytes] = Array.from({ length: 4 }, () => payload.varint());
    this.context.counters = { messages: messages!, edges: edges!, rejected: rejected!, bytes: bytes! };
    this.markRecorded();
  }

  bindsState(): boolean {
    return true;
  }

  readEnd(_output: number, last: Uint8Array | undefined): OutputEnd {
    if (last === undefined) return { end: this.start, term: 0 };
    const { through, count, hash, term, graphId } = readFrameHeader(last);
    if (graphId !== this.graphId) {
      throw new LogError(
        'log-diverged',
        `partition ${this.partition} of FOREST was written for graph id ${graphId}, not for ${this.graphId}: remove the stream`,
      );
    }
    return { end: { through, count, hash }, term };
  }

  resume(
    ends: readonly ChannelEnd[] | undefined,
    logEnds: readonly ChannelEnd[],
    read: readonly ReadMark[] | undefined,
    barrier: number,
  ): void {
    this.writer.resume(ends?.[0] ?? this.start, logEnds[0]!);
    this.last = read?.[0] ?? this.last;
    this.barrier = barrier;
    this.dueMark = undefined;
    this.dirty = false;
  }

  fence(_output: number, term: number): Uint8Array {
    this.writer.term = term;
    return this.writer.fence();
  }

  open(): void {}

  accepts(_input: number, { payload }: LogMessage): boolean {
    return this.isFrame(payload);
  }

  isOwn(_output: number, payload: Uint8Array): boolean {
    return this.isFrame(payload);
  }

  wants(): boolean {
    return true;
  }

  apply(_input: number, message: LogMessage): void {
    const { columns } = this;
    const before = this.reader.end.through;
    const { header, first } = this.reader.read(message.payload, columns);
    this.unite(first);
    // A fence frame covers nothing and tells nothing new.
    if (comparePositions(header.through, before) > 0) {
      this.context.edges = header.edges;
      this.context.counters = header.counters;
      for (let i = 0; i < columns.messageCount; i++) {
        if (columns.messageSequence[i]! < before.sequence) continue;
        this.writer.appendMessage({
          sequence: columns.messageSequence[i]!,
          time: columns.messageTime[i]!,
          edges: columns.messageEdges[i]!,
          rejected: columns.messageRejected[i]!,
        });
      }
    }
    this.noticeMark(header);
    this.last = { sequence: message.sequence, time: message.time };
    this.dirty = true;
  }

  advance(): boolean {
    return false;
  }

  get pendingBytes(): number {
    return this.writer.pendingBytes + this.newBytes;
  }

  cut(mark: Mark): Cut {
    const payloads = [this.writer.cut(this.reader.end.through, mark)];
    if (mark.kind === 'barrier') this.barrier = mark.number;
    this.dueMark = undefined;
    const increment = this.encode(
      this.recordedVertices,
      this.vertices.count,
      this.recordedForest,
      this.forest.length,
    );
    this.dirty = false;
    this.markRecorded();
    return { payloads, ends: [this.writer.end], read: [this.last], increment };
  }

  *copy(): Iterable<Uint8Array> {
    // Vertices first: a join may name any row.
    let vertex = 0;
    while (vertex < this.recordedVertices) {
      const to = this.verticesIn(vertex, COPY_PIECE_BYTES);
      yield this.encode(vertex, to, 0, 0);
      vertex = to;
    }
    const step = COPY_PIECE_BYTES / 4;
    for (let at = 0; at < this.recordedForest; at += step) {
      yield this.encode(0, 0, at, Math.min(this.recordedForest, at + step));
    }
    yield this.encode(0, 0, 0, 0);
  }

  /** A mark that was had before comes again when its writer was replaced; one that lies behind the state is over. */
  private noticeMark({ mark, through }: FrameHeader): void {
    if (mark.kind === 'none' || comparePositions(through, this.reader.end.through) !== 0) return;
    if (mark.kind === 'barrier' && mark.number <= this.barrier) return;
    this.dueMark = mark;
  }

  /** Looks up the ids of the frame's edges from `first` on, unites, and hands on the edges that matter. */
  private unite(first: number): void {
    const { columns, vertices, sets, writer } = this;
    const { bytes, view, idStart, idEnd, idHash, count } = columns;
    if (this.rows.length < count * 2) this.rows = new Uint32Array(idStart.length);
    const { rows } = this;
    for (let from = first * 2; from < count * 2; from += IDS_AT_ONCE) {
      const to = Math.min(count * 2, from + IDS_AT_ONCE);
      vertices.findOrAddMany(view, idStart, idEnd, idHash, from, to, rows);
      sets.touch(rows, from, to);
      for (let id = from; id < to; id += 2) {
        const smaller = rows[id]!;
        const larger = rows[id + 1]!;
        const isNew = larger >= sets.count || smaller >= sets.count;
        while (sets.count <= smaller || sets.count <= larger) {
          sets.add();
          this.newBytes += 1 + idEnd[id]! - idStart[id]!;
        }
        if (!this.join(smaller, larger) && !isNew) continue;
        const edge = id >> 1;
        writer.append(
          columns.sequence[edge]!,
          columns.index[edge]!,
          columns.swapped[edge]!,
          columns.op[edge]!,
          columns.time[edge]!,
          bytes,
          idStart[id]!,
          idEnd[id]!,
          idHash[id]!,
          bytes,
          idStart[id + 1]!,
          idEnd[id + 1]!,
          idHash[id + 1]!,
        );
      }
    }
  }

  private join(a: number, b: number): boolean {
    if (!this.sets.union(a, b)) return false;
    this.forest.push(a);
    this.forest.push(b);
    return true;
  }

  private markRecorded(): void {
    this.recordedVertices = this.vertices.count;
    this.recordedForest = this.forest.length;
    this.newBytes = 0;
  }

  private verticesIn(from: number, bytesMax: number): number {
    let to = from;
    for (let bytes = 0; to < this.recordedVertices && bytes < bytesMax; to++)
      bytes += this.vertices.idOf(to).length + 1;
    return to;
  }

  private encode(vertexFrom: number, vertexTo: number, forestFrom: number, forestTo: number): Uint8Array {
    const writer = new ByteWriter(4096);
    writer.varint(vertexTo - vertexFrom);
    for (let row = vertexFrom; row < vertexTo; row++) {
      this.vertices.write(row, writer);
    }
    writer.varint((forestTo - forestFrom) / 2);
    for (let at = forestFrom; at < forestTo; at++) writer.varint(this.forest.get(at));
    const { through, count, hash } = this.reader.end;
    writer.varint(through.sequence);
    writer.varint(through.index);
    writer.varint(count);
    writer.u32(hash.a);
    writer.u32(hash.b);
    const { edges, counters } = this.context;
    writer.varint(edges?.sequence ?? 0);
    writer.u64(edges?.time ?? 0n);
    writer.u64(edges?.created ?? 0n);
    for (const value of [counters.messages, counters.edges, counters.rejected, counters.bytes])
      writer.varint(value);
    return writer.written();
  }
}

function readEndOf(payload: ByteReader): ChannelEnd {
  return {
    through: { sequence: payload.varint(), index: payload.varint() },
    count: payload.varint(),
    hash: { a: payload.u32(), b: payload.u32() },
  };
}
