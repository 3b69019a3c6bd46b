import { REJECTED_BYTES_MAX } from '../../libs/bus/graphs.ts';
import type { GraphConfig } from '../../libs/bus/registry.ts';
import { edgesLog, partsLog, rejectedLog } from '../../libs/dataflow/names.ts';
import { type StageHost, StageTask } from '../../libs/stage/stage-task.ts';
import { Partitioner } from './partitioner.ts';

const EPOCH_MS = 20;
const SLICE_MS = 10;

/** The one partitioner task of a graph: EDGES → PARTS of all partitions, and REJECTED. */
export function partitionerTask(config: GraphConfig, host: StageHost): StageTask<Partitioner> {
  const { name, id, generation, partitions } = config;
  const parts = Array.from({ length: partitions }, (_, partition) => partsLog(name, generation, partition));
  return new StageTask(
    {
      name: `partitioner of ${name}`,
      inputs: [edgesLog(name)],
      outputs: [
        ...parts.map((log) => ({
          log,
          options: { subjects: [log.subject], discard: 'new' as const, denyDelete: false },
        })),
        {
          log: rejectedLog(name),
          options: {
            subjects: [rejectedLog(name).subject],
            maxBytes: REJECTED_BYTES_MAX,
            discard: 'old' as const,
            denyDelete: false,
          },
        },
      ],
      edgesStream: undefined,
      closeWhenIdle: true,
      epochMs: EPOCH_MS,
      sliceMs: SLICE_MS,
    },
    () => new Partitioner({ graphId: id, generation, partitions }),
    'partitioner',
    host,
  );
}
