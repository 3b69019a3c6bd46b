import type { PlacementReport } from '../../libs/bus/report.ts';
import type { Partitioner } from './partitioner.ts';

/** Answers what the partitioner remembers of the vertex whose id the question is. */
export function answerPlacement(core: Partitioner | undefined, question: Uint8Array): Uint8Array {
  if (core === undefined) throw new Error('the partitioner is still starting');
  const report: PlacementReport = {
    generation: core.generation,
    position: core.edgesRead?.sequence ?? 0,
    knowsVertices: core.knowsVertices,
    ...core.placementOf(question),
  };
  return new TextEncoder().encode(JSON.stringify(report));
}
