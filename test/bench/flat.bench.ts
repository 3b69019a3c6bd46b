/**
 * What an edge costs as the graph grows: the time of all stages' cores, one after the other in one process, over edges
 * 16M to 20M against edges 1M to 4M of a stream whose vertices grow with it. (Between processes the stages do not wait
 * for each other, so the rate at which answers advance also tells who was ahead.)
 */
import { CorePipeline } from '../support/core-pipeline.ts';
import { arrowPayloads } from './pipeline.bench.ts';
import { ARROW } from './processes.ts';
import { growingEdges, million } from './skewed-edges.ts';

const EDGES = 20_000_000;
const PARTITIONS = 2;

export function benchFlat(): string[] {
  const { payloads } = arrowPayloads(growingEdges(EDGES));
  const perMessage = EDGES / payloads.length;
  const pipeline = new CorePipeline(PARTITIONS);
  const spent: number[] = [];
  for (const payload of payloads) {
    pipeline.publish(payload, ARROW);
    const began = performance.now();
    pipeline.settle();
    pipeline.gateway.cut();
    spent.push(performance.now() - began);
    pipeline.forget();
  }
  const rate = (from: number, to: number): number => {
    const [first, last] = [from, to].map((m) => Math.round((m * 1e6) / perMessage));
    const ms = spent.slice(first, last).reduce((sum, one) => sum + one, 0);
    return ((last! - first!) * perMessage * 1000) / ms;
  };
  const [early, late] = [rate(1, 4), rate(16, 20)];
  return [
    `all stages' cores in one thread as the graph grows to ${million(EDGES)} edges, ${million(pipeline.view.forest.rows)} vertices, P = ${PARTITIONS}:`,
    `  edges 1M to 4M    ${million(early)} edges/s`,
    `  edges 16M to 20M  ${million(late)} edges/s`,
    `  ratio             ${(late / early).toFixed(2)}   (asked: 0.7)`,
  ];
}
