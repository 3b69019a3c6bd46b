import type { Generation } from '../dataflow/generation.ts';
import { forestLog, partsLog } from '../dataflow/names.ts';
import type { Bus } from './ports.ts';

/** Removes the logs between the stages of generations that are given up. */
export async function removeGenerations(
  bus: Bus,
  graph: string,
  generations: readonly Generation[],
): Promise<void> {
  for (const { generation, partitions } of generations) {
    for (let partition = 0; partition < partitions; partition++) {
      await bus.remove(partsLog(graph, generation, partition).stream);
      await bus.remove(forestLog(graph, generation, partition).stream);
    }
  }
}
