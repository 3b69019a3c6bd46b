/** The whole pipeline, real processes and a real nats-server on the machine's cores. */
import { ArrowBatchBuilder } from '../../libs/dataflow/arrow-payload.ts';
import { ARROW, Bench } from './processes.ts';
import { ID_BYTES, median, million, percentile, skewedEdges, writeId } from './skewed-edges.ts';

const PAYLOAD_BYTES = 64 * 1024;
const PARTITIONS = 2;
const GRAPH = 'bench';

interface Payloads {
  readonly payloads: Uint8Array[];
  readonly edges: number;
}

export function arrowPayloads(pairs: Uint32Array): Payloads {
  const builder = new ArrowBatchBuilder();
  const ids = new Uint8Array(2 * ID_BYTES);
  const payloads: Uint8Array[] = [];
  for (let at = 0; at < pairs.length; at += 2) {
    writeId(pairs[at]!, ids, 0);
    writeId(pairs[at + 1]!, ids, ID_BYTES);
    builder.append(ids, 0, ID_BYTES, ids, ID_BYTES, 2 * ID_BYTES);
    if (builder.bytes >= PAYLOAD_BYTES) payloads.push(builder.finish());
  }
  if (builder.count > 0) payloads.push(builder.finish());
  return { payloads, edges: pairs.length / 2 };
}

function jsonPayloads(pairs: Uint32Array): Payloads {
  const ids = new Uint8Array(2 * ID_BYTES);
  const payloads: Uint8Array[] = [];
  let edges: string[] = [];
  const perMessage = Math.floor(PAYLOAD_BYTES / 53);
  for (let at = 0; at < pairs.length; at += 2) {
    writeId(pairs[at]!, ids, 0);
    writeId(pairs[at + 1]!, ids, ID_BYTES);
    const text = Buffer.from(ids).toString('latin1');
    edges.push(`{"source":"${text.slice(0, ID_BYTES)}","target":"${text.slice(ID_BYTES)}"}`);
    if (edges.length < perMessage && at + 2 < pairs.length) continue;
    payloads.push(new TextEncoder().encode(`[${edges.join(',')}]`));
    edges = [];
  }
  return { payloads, edges: pairs.length / 2 };
}

async function pipelineRate(
  { payloads, edges }: Payloads,
  contentType: string,
  syncAlways: boolean,
): Promise<number> {
  const bench = await Bench.start(syncAlways);
  try {
    await bench.pipeline(GRAPH, PARTITIONS);
    const began = performance.now();
    const last = await bench.publish(bench.edges(GRAPH), payloads, contentType);
    await bench.visible(GRAPH, last);
    return (edges / (performance.now() - began)) * 1000;
  } finally {
    await bench.stop();
  }
}

async function copyRate({ payloads, edges }: Payloads, syncAlways: boolean): Promise<number> {
  const bench = await Bench.start(syncAlways);
  try {
    const { log, done } = await bench.copy(payloads.length);
    const began = performance.now();
    await bench.publish(log, payloads, ARROW);
    await done;
    return (edges / (performance.now() - began)) * 1000;
  } finally {
    await bench.stop();
  }
}

/** Edges a second from the first publish until the answers hold the last edge, against the bare copy. */
export async function benchEndToEnd(): Promise<string[]> {
  const pairs = skewedEdges(3_000_000, 1_060_000, 1.5);
  const lines = [
    `end to end, ${million(pairs.length / 2)} edges, P = ${PARTITIONS}, from first publish to last visible, median of 3:`,
  ];
  for (const [name, made, contentType] of [
    ['Arrow', arrowPayloads(pairs), ARROW],
    ['JSON', jsonPayloads(pairs), 'application/json'],
  ] as const) {
    for (const syncAlways of [false, true]) {
      const ours: number[] = [];
      const rival: number[] = [];
      for (let round = 0; round < 3; round++) {
        ours.push(await pipelineRate(made, contentType, syncAlways));
        rival.push(await copyRate(made, syncAlways));
      }
      const [a, b] = [median(ours), median(rival)];
      const asked = name === 'Arrow' ? '   (asked: 0.25)' : '';
      lines.push(
        `  ${name}, ${made.payloads.length} payloads of 64 KB, sync_interval ${syncAlways ? 'always' : 'default'}: ` +
          `${million(a)} edges/s, bare copy ${million(b)}, ratio ${(a / b).toFixed(2)}${asked}`,
      );
    }
  }
  return lines;
}

const LATENCY_SECONDS = 30;
const PER_SECOND = 200;
const PER_MESSAGE = 100;

/**
 * Milliseconds from before the publish to the HTTP answer that holds the message, at 20,000 edges a second.
 * `interval`: seconds between snapshots, 0: none.
 */
export async function latencies(interval: number): Promise<number[]> {
  const pairs = skewedEdges(LATENCY_SECONDS * PER_SECOND * PER_MESSAGE, 400_000, 1.5);
  const bench = await Bench.start(true);
  try {
    await bench.pipeline(GRAPH, PARTITIONS, interval);
    const builder = new ArrowBatchBuilder();
    const ids = new Uint8Array(2 * ID_BYTES);
    const samples: number[] = [];
    const waiting: Promise<void>[] = [];
    const began = performance.now();
    for (let message = 0; message < LATENCY_SECONDS * PER_SECOND; message++) {
      for (let edge = 0; edge < PER_MESSAGE; edge++) {
        const at = (message * PER_MESSAGE + edge) * 2;
        writeId(pairs[at]!, ids, 0);
        writeId(pairs[at + 1]!, ids, ID_BYTES);
        builder.append(ids, 0, ID_BYTES, ids, ID_BYTES, 2 * ID_BYTES);
      }
      const payload = builder.finish();
      const due = began + (message * 1000) / PER_SECOND;
      const pause = due - performance.now();
      if (pause > 0) await new Promise((resolve) => setTimeout(resolve, pause));
      // One in ten is waited for, so that the waiting is not the load.
      const sent = performance.now();
      const appending = bench.bus.append(bench.edges(GRAPH), payload, { contentType: ARROW });
      if (message % 10 !== 0 || message < PER_SECOND) {
        waiting.push(appending.then(() => {}));
        continue;
      }
      waiting.push(
        appending.then(async (appended) => {
          if (appended.kind === 'stored') await bench.visible(GRAPH, appended.sequence);
          samples.push(performance.now() - sent);
        }),
      );
    }
    await Promise.all(waiting);
    return samples;
  } finally {
    await bench.stop();
  }
}

export async function benchLatency(): Promise<string[]> {
  const samples = await latencies(0);
  return [
    `edge to visible at 20,000 edges/s in messages of ${PER_MESSAGE}, sync_interval always, ${samples.length} samples, publish to HTTP answer:`,
    `  p50 ${percentile(samples, 0.5).toFixed(1)} ms (asked: 40)   p99 ${percentile(samples, 0.99).toFixed(1)} ms (asked: 150)   max ${Math.max(...samples).toFixed(0)} ms`,
  ];
}
