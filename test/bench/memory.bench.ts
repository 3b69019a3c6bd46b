/**
 * Ten million vertices with ids of twelve bytes in one worker and one view: bytes of the state's arrays per
 * vertex, the slowest slice while they grow, and how fast a restart reads them back.
 */

import { ArrowBatchBuilder } from '../../libs/dataflow/arrow-payload.ts';
import { ByteReader } from '../../libs/dataflow/bytes.ts';
import { View } from '../../services/gateway/view.ts';
import { Worker } from '../../services/worker/worker.ts';
import { CorePipeline } from '../support/core-pipeline.ts';
import { seeded } from '../support/seeded.ts';
import { ID_BYTES, million, writeId } from './skewed-edges.ts';

const VERTICES = 10_000_000;
const EDGES_PER_MESSAGE = 4_000;

export function benchMemory(): string[] {
  const pipeline = new CorePipeline(1);
  const random = seeded(3);
  const builder = new ArrowBatchBuilder();
  const ids = new Uint8Array(2 * ID_BYTES);
  let slowestWorker = 0;
  let slowestView = 0;
  let peak = 0;
  for (let vertex = 1; vertex < VERTICES; ) {
    for (let edge = 0; edge < EDGES_PER_MESSAGE && vertex < VERTICES; edge++, vertex++) {
      writeId(vertex, ids, 0);
      writeId(Math.floor(random() * vertex), ids, ID_BYTES);
      builder.append(ids, 0, ID_BYTES, ids, ID_BYTES, 2 * ID_BYTES);
    }
    pipeline.publish(builder.finish(), 'application/vnd.apache.arrow.stream');
    pipeline.partitioner.read(0, 1);
    pipeline.partitioner.cut();
    slowestWorker = Math.max(
      slowestWorker,
      timed(() => pipeline.workers[0]!.read(0, 100)),
    );
    pipeline.workers[0]!.cut();
    pipeline.gateway.read(0, 100);
    for (let more = true; more; ) {
      slowestView = Math.max(
        slowestView,
        timed(() => (more = pipeline.gateway.advance())),
      );
    }
    pipeline.gateway.cut();
    pipeline.forget();
    peak = Math.max(peak, process.memoryUsage().rss);
  }
  const worker = pipeline.workers[0]!.core;
  const view = pipeline.view;
  if (view.forest.rows !== VERTICES || worker.vertexCount !== VERTICES)
    throw new Error('vertices are missing');
  const lines = [
    `${million(VERTICES)} vertices, ids of ${ID_BYTES} bytes, ${million(view.forest.links)} links, one partition:`,
    `  worker  ${(worker.byteLength / VERTICES).toFixed(1)} bytes per vertex   (asked: at most 64)`,
    `  view    ${(view.byteLength / VERTICES).toFixed(1)} bytes per vertex   (asked: at most 100)`,
    `  slowest slice: worker ${slowestWorker.toFixed(0)} ms (one frame of ${EDGES_PER_MESSAGE} edges), view ${slowestView.toFixed(0)} ms`,
    `  resident with both: ${(process.memoryUsage().rss / 2 ** 30).toFixed(2)} GiB, at most ${(peak / 2 ** 30).toFixed(2)} GiB while growing`,
  ];
  for (const [name, core, fresh] of [
    [
      'worker',
      worker,
      new Worker({ graphId: '0'.repeat(32), generation: 1, partition: 0, partitions: 1, after: 0 }),
    ],
    ['view', view, new View({ graphId: '0'.repeat(32), origin: 1 }, { visible() {}, advanced() {} })],
  ] as const) {
    const pieces = [...core.copy()];
    const ms = timed(() => {
      for (const piece of pieces) fresh.restore(new ByteReader(piece));
    });
    lines.push(
      `  ${name} restored at ${million((VERTICES / ms) * 1000)} vertices/s from its blocks   (asked: 0.5M)`,
    );
  }
  return lines;
}

function timed(work: () => void): number {
  const began = performance.now();
  work();
  return performance.now() - began;
}
