import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  CHANNEL_START,
  type ChannelEnd,
  ChannelReader,
  ChannelWriter,
  emptyContext,
} from '../../../libs/dataflow/channel.ts';
import { LogError } from '../../../libs/dataflow/errors.ts';
import {
  type ChannelIdentity,
  FrameColumns,
  readFrame,
  readFrameHeader,
} from '../../../libs/dataflow/frame.ts';
import { hashId, viewOf } from '../../../libs/graph/id-hash.ts';

const identity: ChannelIdentity = {
  graphId: '00000000000000ff8000000000000001',
  generation: 3,
  coreVersion: 2,
  stage: 'parts',
  partition: 1,
  partitions: 4,
};

interface Edge {
  readonly sequence: number;
  readonly index: number;
  readonly swapped: number;
  readonly op: number;
  readonly time: number;
  readonly smaller: Uint8Array;
  readonly larger: Uint8Array;
}

const id = fc.uint8Array({ minLength: 1, maxLength: 20 });

/** Edges at rising positions, some with a time. */
const edges = fc
  .array(
    fc.record({
      step: fc.constantFrom(0, 0, 1, 3, 2 ** 33),
      skip: fc.constantFrom(0, 0, 1, 200),
      swapped: fc.nat(1),
      op: fc.nat(1),
      time: fc.constantFrom(Number.NaN, 0, -1, 1_700_000_000_000, -62_135_596_800_000),
      smaller: id,
      larger: id,
    }),
    { maxLength: 30 },
  )
  .map((steps) => {
    let sequence = 1;
    let index = -1;
    return steps.map(({ step, skip, ...rest }): Edge => {
      if (step > 0) index = -1;
      sequence += step;
      index += 1 + skip;
      return { sequence, index, ...rest };
    });
  });

function append(writer: ChannelWriter, { sequence, index, swapped, op, time, smaller, larger }: Edge): void {
  const hashes = [smaller, larger].map((bytes) => hashId(viewOf(bytes), 0, bytes.length));
  writer.append(
    sequence,
    index,
    swapped,
    op,
    time,
    smaller,
    0,
    smaller.length,
    hashes[0]!,
    larger,
    0,
    larger.length,
    hashes[1]!,
  );
}

function newWriter(): ChannelWriter {
  const writer = new ChannelWriter(identity, emptyContext());
  writer.resume(CHANNEL_START, CHANNEL_START);
  return writer;
}

function edgesOf(columns: FrameColumns, from: number): Edge[] {
  return Array.from({ length: columns.count - from }, (_, k) => {
    const i = from + k;
    const bytesOf = (at: number): Uint8Array =>
      new Uint8Array(columns.bytes.slice(columns.idStart[at], columns.idEnd[at]));
    return {
      sequence: columns.sequence[i]!,
      index: columns.index[i]!,
      swapped: columns.swapped[i]!,
      op: columns.op[i]!,
      time: columns.time[i]!,
      smaller: bytesOf(i * 2),
      larger: bytesOf(i * 2 + 1),
    };
  });
}

describe('a channel', () => {
  it('carries every edge as it was, however it is cut into frames', () => {
    fc.assert(
      fc.property(edges, fc.array(fc.boolean(), { maxLength: 30 }), (all, cuts) => {
        const writer = newWriter();
        const frames: Uint8Array[] = [];
        for (const [at, edge] of all.entries()) {
          if (cuts[at] === true) frames.push(...writer.cut({ sequence: edge.sequence, index: edge.index }));
          append(writer, edge);
        }
        const end = { sequence: (all.at(-1)?.sequence ?? 1) + 1, index: 0 };
        frames.push(...writer.cut(end));
        const reader = new ChannelReader(identity);
        const columns = new FrameColumns();
        const read = frames.flatMap((frame) => edgesOf(columns, reader.read(frame, columns).first));
        expect(read).toEqual(all);
        expect(reader.end).toEqual(writer.end);
        expect(reader.end.through).toEqual(end);
      }),
    );
  });

  it('writes after a restart only what the log does not have, whatever it has', () => {
    fc.assert(
      fc.property(edges, fc.nat(), (all, pick) => {
        const first = newWriter();
        const at = all.length === 0 ? 0 : pick % (all.length + 1);
        for (const edge of all.slice(0, at)) append(first, edge);
        const last = all[at - 1];
        const middle =
          last === undefined ? { sequence: 1, index: 0 } : { sequence: last.sequence, index: last.index + 1 };
        const frames = first.cut(middle);
        const logEnd: ChannelEnd = first.end;
        const second = new ChannelWriter(identity, emptyContext());
        second.resume(CHANNEL_START, logEnd);
        for (const edge of all) append(second, edge);
        frames.push(...second.cut({ sequence: (all.at(-1)?.sequence ?? 1) + 1, index: 0 }));
        const reader = new ChannelReader(identity);
        const columns = new FrameColumns();
        expect(frames.flatMap((frame) => edgesOf(columns, reader.read(frame, columns).first))).toEqual(all);
      }),
    );
  });

  it('refuses to go on behind a log that a replay does not reproduce', () => {
    const edge: Edge = {
      sequence: 1,
      index: 0,
      swapped: 0,
      op: 0,
      time: Number.NaN,
      smaller: Uint8Array.of(1),
      larger: Uint8Array.of(2),
    };
    const first = newWriter();
    append(first, edge);
    first.cut({ sequence: 2, index: 0 });
    for (const other of [
      { ...edge, larger: Uint8Array.of(3) },
      { ...edge, swapped: 1 },
      { ...edge, time: 0 },
    ]) {
      const second = new ChannelWriter(identity, emptyContext());
      second.resume(CHANNEL_START, first.end);
      append(second, other);
      expect(() => second.cut({ sequence: 3, index: 0 })).toThrow(LogError);
    }
  });

  it('refuses a gap, other edges, and frames of another graph, generation or partition', () => {
    const writer = newWriter();
    const edge: Edge = {
      sequence: 1,
      index: 0,
      swapped: 0,
      op: 0,
      time: 5,
      smaller: Uint8Array.of(1),
      larger: Uint8Array.of(2),
    };
    append(writer, edge);
    const [one] = writer.cut({ sequence: 2, index: 0 });
    append(writer, { ...edge, sequence: 2 });
    const [two] = writer.cut({ sequence: 3, index: 0 });
    const columns = new FrameColumns();
    expect(() => new ChannelReader(identity).read(two!, columns)).toThrow(/begins at 2\.0/);
    for (const change of [
      { graphId: '0'.repeat(32) },
      { generation: 4 },
      { partition: 2 },
      { stage: 'forest' as const },
    ]) {
      expect(() => new ChannelReader({ ...identity, ...change }).read(one!, columns)).toThrow(LogError);
    }
    const flipped = one!.slice();
    flipped[flipped.length - 1]! ^= 1;
    expect(() => new ChannelReader(identity).read(flipped, columns)).toThrow(/differ/);
  });

  it('never reads out of bounds in a damaged frame: it is unreadable, or its hash differs', () => {
    const writer = newWriter();
    for (let n = 0; n < 20; n++) {
      append(writer, {
        sequence: n + 1,
        index: n,
        swapped: n & 1,
        op: 0,
        time: n % 3 === 0 ? n : Number.NaN,
        smaller: Uint8Array.of(n),
        larger: Uint8Array.of(n, n),
      });
    }
    const [frame] = writer.cut({ sequence: 22, index: 0 });
    const columns = new FrameColumns();
    const good = edgesOf(columns, new ChannelReader(identity).read(frame!, columns).first);
    for (let at = 0; at < frame!.length * 8; at++) {
      const damaged = frame!.slice();
      damaged[at >> 3]! ^= 1 << (at & 7);
      try {
        const reader = new ChannelReader(identity);
        const { first } = reader.read(damaged, columns);
        expect(edgesOf(columns, first)).toEqual(good);
      } catch (error) {
        expect(error).toBeInstanceOf(LogError);
      }
    }
    for (let length = 0; length < frame!.length; length++) {
      expect(() => readFrame(frame!.subarray(0, length), columns)).toThrow(LogError);
    }
  });
});

describe('the frame format', () => {
  it('of version 1 is read for ever', () => {
    const path = new URL('../../fixtures/frames/version-1.bin', import.meta.url);
    const context = emptyContext();
    context.edges = {
      sequence: 2 ** 33,
      time: 1_700_000_000_123_456_789n,
      created: 1_600_000_000_000_000_001n,
    };
    context.counters = { messages: 4, edges: 5, rejected: 1, bytes: 999 };
    const writer = new ChannelWriter({ ...identity, partition: 0 }, context);
    writer.term = 7;
    writer.resume(CHANNEL_START, CHANNEL_START);
    const text = (value: string): Uint8Array => new TextEncoder().encode(value);
    append(writer, {
      sequence: 3,
      index: 2,
      swapped: 1,
      op: 0,
      time: Number.NaN,
      smaller: text('é'),
      larger: text('ê'),
    });
    append(writer, {
      sequence: 3,
      index: 9,
      swapped: 0,
      op: 1,
      time: -5,
      smaller: text('a'),
      larger: text('a'),
    });
    append(writer, {
      sequence: 2 ** 33,
      index: 0,
      swapped: 0,
      op: 0,
      time: 1_700_000_000_000,
      smaller: text('10'),
      larger: text('9'),
    });
    writer.appendMessage({ sequence: 3, time: 1_700_000_000_000, edges: 2, rejected: 1 });
    writer.appendMessage({ sequence: 2 ** 33, time: 1_700_000_000_001, edges: 3, rejected: 0 });
    const [frame] = writer.cut({ sequence: 2 ** 33 + 1, index: 0 });
    const stored = new Uint8Array(readFileSync(path));
    expect(Buffer.from(frame!).toString('hex'), 'what is written now').toBe(
      Buffer.from(stored).toString('hex'),
    );
    const columns = new FrameColumns();
    const header = readFrame(stored, columns);
    expect(header).toEqual({
      ...identity,
      partition: 0,
      term: 7,
      from: { sequence: 1, index: 0 },
      through: { sequence: 2 ** 33 + 1, index: 0 },
      mark: { kind: 'none', number: 0 },
      edges: context.edges,
      count: 3,
      hash: header.hash,
      counters: context.counters,
    });
    expect(readFrameHeader(stored)).toEqual(header);
    expect([...columns.messageSequence.slice(0, 2)]).toEqual([3, 2 ** 33]);
    expect(edgesOf(columns, 0).map(({ sequence, index, op, time }) => [sequence, index, op, time])).toEqual([
      [3, 2, 0, Number.NaN],
      [3, 9, 1, -5],
      [2 ** 33, 0, 0, 1_700_000_000_000],
    ]);
  });

  it('of another version is refused by name', () => {
    const [frame] = newWriterCut();
    frame![1] = 2;
    expect(() => readFrameHeader(frame!)).toThrow('version 2');
  });
});

function newWriterCut(): Uint8Array[] {
  return newWriter().cut({ sequence: 2, index: 0 });
}
