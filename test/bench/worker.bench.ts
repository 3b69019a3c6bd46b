/**
 * The worker's core, PARTS frame in and FOREST frame out, against a straightforward worker: JSON in, a Map of
 * strings, the same union-find, JSON out.
 */
import { CHANNEL_START, ChannelWriter, emptyContext } from '../../libs/dataflow/channel.ts';
import { PARTITIONER_VERSION } from '../../libs/dataflow/core-versions.ts';
import { NO_MARK } from '../../libs/dataflow/frame.ts';
import { DisjointSets } from '../../libs/graph/disjoint-sets.ts';
import { hashId, viewOf } from '../../libs/graph/id-hash.ts';
import type { LogMessage } from '../../libs/stage/ports.ts';
import { Worker } from '../../services/worker/worker.ts';
import { ID_BYTES, idsOf, median, million, skewedEdges } from './skewed-edges.ts';

const EDGES = 2_000_000;
const VERTICES = 800_000;
const EDGES_PER_FRAME = 2_000;
const ROUNDS = 3;
const IDENTITY = { graphId: '0'.repeat(32), generation: 1, partition: 0, partitions: 1, after: 0 };

export function benchWorker(): string[] {
  const ids = idsOf(skewedEdges(EDGES, VERTICES, 1.5));
  const frames = toFrames(ids);
  const texts = toJson(ids);
  const ours: number[] = [];
  const rival: number[] = [];
  let forest = 0;
  for (let round = 0; round < ROUNDS; round++) {
    let began = performance.now();
    forest = runWorker(frames);
    ours.push((EDGES / (performance.now() - began)) * 1000);
    began = performance.now();
    const plain = runPlainWorker(texts);
    rival.push((EDGES / (performance.now() - began)) * 1000);
    if (plain !== forest) throw new Error(`the two disagree: ${forest} and ${plain} forest edges`);
  }
  const [a, b] = [median(ours), median(rival)];
  return [
    `worker core, ${million(EDGES)} edges in frames of ${EDGES_PER_FRAME}, ${million(forest)} forest edges, median of ${ROUNDS}:`,
    `  frame in, frame out   ${million(a)} edges/s`,
    `  JSON and Map          ${million(b)} edges/s`,
    `  ratio                 ${(a / b).toFixed(2)}   (asked: 3)`,
  ];
}

function toFrames(ids: Uint8Array): LogMessage[] {
  const writer = new ChannelWriter(
    { ...IDENTITY, stage: 'parts', coreVersion: PARTITIONER_VERSION },
    emptyContext(),
  );
  writer.resume(CHANNEL_START, CHANNEL_START);
  const view = viewOf(ids);
  const messages: LogMessage[] = [];
  for (let edge = 0; edge < EDGES; edge++) {
    const sequence = 1 + Math.floor(edge / EDGES_PER_FRAME);
    const a = edge * 2 * ID_BYTES;
    const b = a + ID_BYTES;
    writer.append(
      sequence,
      edge % EDGES_PER_FRAME,
      0,
      0,
      Number.NaN,
      ids,
      a,
      b,
      hashId(view, a, b),
      ids,
      b,
      b + ID_BYTES,
      hashId(view, b, b + ID_BYTES),
    );
    if (edge % EDGES_PER_FRAME !== EDGES_PER_FRAME - 1) continue;
    for (const payload of writer.cut({ sequence: sequence + 1, index: 0 })) {
      messages.push({ sequence: messages.length + 1, time: 1n, payload, contentType: undefined });
    }
  }
  return messages;
}

function toJson(ids: Uint8Array): Uint8Array[] {
  const text = Buffer.from(ids.buffer).toString('latin1');
  const id = (at: number): string => text.slice(at * ID_BYTES, (at + 1) * ID_BYTES);
  const payloads: Uint8Array[] = [];
  for (let from = 0; from < EDGES; from += EDGES_PER_FRAME) {
    const edges = Array.from({ length: EDGES_PER_FRAME }, (_, i) => ({
      source: id((from + i) * 2),
      target: id((from + i) * 2 + 1),
    }));
    payloads.push(new TextEncoder().encode(JSON.stringify(edges)));
  }
  return payloads;
}

function runWorker(frames: readonly LogMessage[]): number {
  const worker = new Worker(IDENTITY);
  worker.resume(undefined, [CHANNEL_START], undefined, 0);
  let forest = 0;
  for (const [at, frame] of frames.entries()) {
    worker.apply(0, frame);
    if (at % 8 === 7 || at === frames.length - 1) forest = worker.cut(NO_MARK).ends[0]!.count;
  }
  return forest;
}

function runPlainWorker(payloads: readonly Uint8Array[]): number {
  const rows = new Map<string, number>();
  const sets = new DisjointSets();
  const decoder = new TextDecoder();
  const encoder = new TextEncoder();
  const rowOf = (id: string): number => {
    let row = rows.get(id);
    if (row === undefined) {
      row = rows.size;
      rows.set(id, row);
      sets.add();
    }
    return row;
  };
  let forest = 0;
  for (const payload of payloads) {
    const out = [];
    for (const edge of JSON.parse(decoder.decode(payload)) as { source: string; target: string }[]) {
      const known = rows.size;
      const isNew = !rows.has(edge.source) || !rows.has(edge.target);
      if (sets.union(rowOf(edge.source), rowOf(edge.target)) || (isNew && rows.size > known)) out.push(edge);
    }
    forest += out.length;
    encoder.encode(JSON.stringify(out));
  }
  return forest;
}
