import type { Generation } from '../../libs/dataflow/generation.ts';
import { edgesLog, forestLog, partsLog } from '../../libs/dataflow/names.ts';
import type { GraphSource } from '../../libs/snapshot/graph-source.ts';
import { workerPart } from '../../libs/snapshot/records.ts';
import { type SnapshotHost, TaskSnapshots } from '../../libs/snapshot/task-snapshots.ts';
import { type StageHost, StageTask } from '../../libs/stage/stage-task.ts';
import { Worker } from './worker.ts';

const EPOCH_MS = 20;
const SLICE_MS = 10;

/** The worker task of one partition of a generation: its PARTS → its FOREST, until the generation ends. */
export function workerTask(
  graph: GraphSource,
  generation: Generation,
  partition: number,
  snapshots: SnapshotHost,
  host: StageHost,
): StageTask<Worker> {
  const { name, id, replicas } = graph.config;
  const { generation: number } = generation;
  const forest = forestLog(name, number, partition);
  return new StageTask(
    {
      name: `worker ${partition} of ${name}, generation ${number}`,
      edgesStream: edgesLog(name).stream,
      closeWhenIdle: true,
      epochMs: EPOCH_MS,
      sliceMs: SLICE_MS,
    },
    () => ({
      folder: `worker-${number}-${partition}`,
      createCore: () => new Worker({ graphId: id, partition, ...generation }),
      inputs: () => [partsLog(name, number, partition)],
      outputs: [
        {
          log: forest,
          options: { subjects: [forest.subject], discard: 'new', denyDelete: false, replicas },
        },
      ],
      snapshots: new TaskSnapshots(
        {
          graphId: id,
          task: workerPart(partition),
          accepts: (manifest) => manifest.generation === number,
          stores: () => true,
        },
        snapshots,
      ),
      endsAt: () => graph.config.generations.find((later) => later.generation === number + 1)?.after,
      // It has ended; what it wrote is watched over until the generation is given up.
      next: () => false,
    }),
    host,
  );
}
