import type { GraphConfig } from '../../libs/bus/registry.ts';
import { edgesLog, forestLog, partsLog } from '../../libs/dataflow/names.ts';
import { type StageHost, StageTask } from '../../libs/stage/stage-task.ts';
import { Worker } from './worker.ts';

const EPOCH_MS = 20;
const SLICE_MS = 10;

/** The worker task of one partition of a graph: its PARTS → its FOREST. */
export function workerTask(config: GraphConfig, partition: number, host: StageHost): StageTask<Worker> {
  const { name, id, generation, partitions } = config;
  const forest = forestLog(name, generation, partition);
  return new StageTask(
    {
      name: `worker ${partition} of ${name}`,
      inputs: [partsLog(name, generation, partition)],
      outputs: [{ log: forest, options: { subjects: [forest.subject], discard: 'new', denyDelete: false } }],
      edgesStream: edgesLog(name).stream,
      closeWhenIdle: true,
      epochMs: EPOCH_MS,
      sliceMs: SLICE_MS,
    },
    () => new Worker({ graphId: id, generation, partition, partitions }),
    `worker-${partition}`,
    host,
  );
}
