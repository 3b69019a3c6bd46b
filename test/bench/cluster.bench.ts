/**
 * What a cluster costs and how fast it comes back, by size of the state: snapshots (bytes, time, what they do to rate
 * and latency), fail-over of the pipeline, restoring a gateway.
 */
import { ArrowBatchBuilder } from '../../libs/dataflow/arrow-payload.ts';
import { arrowPayloads, latencies } from './pipeline.bench.ts';
import { ARROW, Bench } from './processes.ts';
import { ID_BYTES, median, million, percentile, skewedEdges, writeId } from './skewed-edges.ts';

const GRAPH = 'bench';
const PARTITIONS = 2;
const PAYLOAD_BYTES = 64 * 1024;
const SIZES = [1_000_000, 10_000_000];
/** As often as possible, next to the default of a minute. */
const INTERVAL_SECONDS = 2;

/** A tree that grows: each edge brings the next vertex. */
function treePayloads(from: number, to: number): Uint8Array[] {
  const builder = new ArrowBatchBuilder();
  const ids = new Uint8Array(2 * ID_BYTES);
  const payloads: Uint8Array[] = [];
  for (let vertex = from; vertex < to; vertex++) {
    writeId(vertex, ids, 0);
    writeId(Math.floor(vertex / 3), ids, ID_BYTES);
    builder.append(ids, 0, ID_BYTES, ids, ID_BYTES, 2 * ID_BYTES);
    if (builder.bytes >= PAYLOAD_BYTES) payloads.push(builder.finish());
  }
  if (builder.count > 0) payloads.push(builder.finish());
  return payloads;
}

/** Fail-over, restore and snapshots of graphs of one and of ten million vertices. */
export async function benchFailOver(): Promise<string[]> {
  const lines: string[] = [];
  for (const size of SIZES) {
    const bench = await Bench.start(false);
    try {
      await bench.createGraph(GRAPH, PARTITIONS);
      for (const name of ['a', 'b']) bench.serve(name, 'partitioner,worker');
      const gateway = await bench.gateway('gateway');
      const log = bench.edges(GRAPH);
      const publish = (from: number, to: number): Promise<number> =>
        bench.publish(log, treePayloads(from, to), ARROW);
      await gateway.visible(GRAPH, await publish(1, size));
      const full = await gateway.snapshot(GRAPH);
      await gateway.visible(GRAPH, await publish(size, size * 1.01));
      const next = await gateway.snapshot(GRAPH);
      const owner = (await gateway.owners())[0]!;
      const killed = performance.now();
      await bench.kill(owner);
      await gateway.visible(GRAPH, await publish(size * 1.01, size * 1.01 + 10));
      const failOver = performance.now() - killed;
      const began = performance.now();
      const fresh = await bench.gateway('fresh');
      await fresh.visible(GRAPH, 1);
      const restore = performance.now() - began;
      lines.push(
        `${million(size)} vertices, P = ${PARTITIONS}, snapshots in NATS:`,
        `  full snapshot           ${(full.bytes / 2 ** 20).toFixed(0)} MiB in ${(full.ms / 1000).toFixed(1)} s`,
        `  1 % new edges           ${((100 * next.newBytes) / full.bytes).toFixed(1)} % of it (asked: at most 5), in ${(next.ms / 1000).toFixed(1)} s`,
        `  fail-over to an instance without state, kill -9 to the next edge visible   ${(failOver / 1000).toFixed(1)} s (asked: 15; lease 6)`,
        `  new gateway, from its start to answers   ${(restore / 1000).toFixed(1)} s`,
      );
    } finally {
      await bench.stop();
    }
  }
  return lines;
}

/** Rate and latency with a snapshot every two seconds and with none. */
export async function benchSnapshots(): Promise<string[]> {
  const { payloads, edges } = arrowPayloads(skewedEdges(3_000_000, 1_060_000, 1.5));
  const rates: Record<'without' | 'with', number[]> = { without: [], with: [] };
  for (let round = 0; round < 3; round++) {
    for (const [name, interval] of [
      ['without', 0],
      ['with', INTERVAL_SECONDS],
    ] as const) {
      const bench = await Bench.start(false);
      try {
        await bench.pipeline(GRAPH, PARTITIONS, interval);
        const began = performance.now();
        await bench.visible(GRAPH, await bench.publish(bench.edges(GRAPH), payloads, ARROW));
        rates[name].push((edges / (performance.now() - began)) * 1000);
      } finally {
        await bench.stop();
      }
    }
  }
  const [without, withThem] = [median(rates.without), median(rates.with)];
  const lines = [
    `snapshots every ${INTERVAL_SECONDS} s against none, ${million(edges)} edges, median of 3:`,
    `  rate ${million(withThem)} against ${million(without)} edges/s, ratio ${(withThem / without).toFixed(2)}`,
  ];
  for (const [name, interval] of [
    ['none', 0],
    [`every ${INTERVAL_SECONDS} s`, INTERVAL_SECONDS],
  ] as const) {
    const samples = await latencies(interval);
    lines.push(
      `  edge to visible at 20,000 edges/s, snapshots ${name}: p50 ${percentile(samples, 0.5).toFixed(1)} ms, ` +
        `p99 ${percentile(samples, 0.99).toFixed(1)} ms, max ${Math.max(...samples).toFixed(0)} ms`,
    );
  }
  return lines;
}
