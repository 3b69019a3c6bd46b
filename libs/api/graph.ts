/** Graphs: their configuration, and how they are. */
import { type Static, Type } from 'typebox';
import { REPLICAS, SNAPSHOT_SETTINGS_DEFAULT } from '../dataflow/graph-config.ts';
import { PARTITIONS_DEFAULT, PARTITIONS_MAX } from '../dataflow/names.ts';
import { AS_OF_EXAMPLE, AsOf, Fault, Sequence, Time } from './fields.ts';
import { Partitioner } from './partitioner.ts';
import { CLOSED, Named } from './schema.ts';

const INTERVAL_SECONDS_MAX = 30 * 24 * 3600;
const KEEP_MAX = 1000;

const GRAPH_EXAMPLE = {
  name: 'social',
  id: '8c1f0e6a5b7d4e2f9a3c6b1d0e8f7a52',
  generation: 1,
  partitions: 4,
  partitioner: { algorithm: 'hash' as const },
  replicas: 1,
  snapshots: { interval: 60, keep: 3 },
  purgeEdges: false,
  created: '2026-05-04T09:00:00.000Z',
};
const TOTALS_EXAMPLE = { vertices: 5, components: 2, edges: 4, rejected: 0, sequence: 17 };

export const Graph = Type.Object(
  {
    name: Type.String(),
    id: Type.String({ description: 'New for every creation.' }),
    generation: Type.Integer({
      minimum: 1,
      description:
        'The layout in force; it grows when the partitions or the partitioner change and when the graph is rebuilt.',
    }),
    partitions: Type.Integer({
      minimum: 1,
      maximum: PARTITIONS_MAX,
      description: 'Shares of the work, as asked for; a new generation has them a moment later.',
    }),
    partitioner: Named(Partitioner),
    replicas: Type.Integer({ description: 'NATS servers that hold a copy of each log.' }),
    snapshots: Type.Object(
      {
        interval: Type.Integer({
          minimum: 0,
          description: 'Seconds from one to the next; 0: only when asked for.',
        }),
        keep: Type.Integer({ minimum: 2, description: 'How many are kept, besides the named ones.' }),
      },
      CLOSED,
    ),
    purgeEdges: Type.Boolean({
      description: 'Whether the edge stream is purged behind the oldest kept snapshot.',
    }),
    created: Named(Time),
  },
  {
    $id: 'Graph',
    ...CLOSED,
    description: 'A graph as it is configured.',
    examples: [GRAPH_EXAMPLE],
  },
);
export type Graph = Static<typeof Graph>;

export const GraphList = Type.Object(
  { graphs: Type.Array(Named(Graph)) },
  {
    $id: 'GraphList',
    ...CLOSED,
    description: 'All graphs, by name.',
    examples: [{ graphs: [GRAPH_EXAMPLE] }],
  },
);
export type GraphList = Static<typeof GraphList>;

export const GraphSettings = Type.Object(
  {
    partitions: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: PARTITIONS_MAX,
        description: `Shares that the work is divided into; by default ${PARTITIONS_DEFAULT}. Another number than the graph has begins a new generation, while edges stream in.`,
      }),
    ),
    partitioner: Type.Optional(Named(Partitioner)),
    replicas: Type.Optional(
      Type.Unsafe<number>({
        type: 'integer',
        enum: [...REPLICAS],
        description:
          'NATS servers that hold a copy of each log; as the gateway was started with if absent. Fixed once the graph is there.',
      }),
    ),
    snapshots: Type.Optional(
      Type.Object(
        {
          interval: Type.Optional(
            Type.Integer({
              minimum: 0,
              maximum: INTERVAL_SECONDS_MAX,
              description: `Seconds from one to the next, by default ${SNAPSHOT_SETTINGS_DEFAULT.interval}; 0: only when asked for.`,
            }),
          ),
          keep: Type.Optional(
            Type.Integer({
              minimum: 2,
              maximum: KEEP_MAX,
              description: `How many are kept, besides the named ones; by default ${SNAPSHOT_SETTINGS_DEFAULT.keep}.`,
            }),
          ),
        },
        CLOSED,
      ),
    ),
    purgeEdges: Type.Optional(
      Type.Boolean({
        description:
          'Whether the edge stream is purged behind the oldest kept snapshot; by default it is not. What is purged can neither be shown nor be counted anew.',
      }),
    ),
  },
  {
    $id: 'GraphSettings',
    ...CLOSED,
    description: 'What a graph is to be; what is absent stays as it is.',
    examples: [
      { partitions: 8 },
      { partitioner: { algorithm: 'hdrf', lambda: 1.2 } },
      { snapshots: { interval: 300 }, purgeEdges: true },
    ],
  },
);
export type GraphSettings = Static<typeof GraphSettings>;

export const Totals = Type.Object(
  {
    vertices: Type.Integer({ minimum: 0 }),
    components: Type.Integer({ minimum: 0 }),
    edges: Type.Integer({ minimum: 0, description: 'Edges that count, each as often as it was published.' }),
    rejected: Type.Integer({ minimum: 0 }),
    sequence: Named(Sequence),
  },
  {
    $id: 'Totals',
    ...CLOSED,
    examples: [TOTALS_EXAMPLE],
  },
);
export type Totals = Static<typeof Totals>;

export const Lag = Type.Object(
  {
    messages: Type.Integer({
      minimum: 0,
      description: "Messages of the stream not yet in this gateway's answers.",
    }),
    last: Named(Sequence),
  },
  {
    $id: 'Lag',
    ...CLOSED,
    description: "The stream's end, seen from here.",
    examples: [{ messages: 0, last: 17 }],
  },
);

export const PartitionStatus = Type.Object(
  {
    partition: Type.Integer({ minimum: 0 }),
    watermark: Named(Sequence),
  },
  {
    $id: 'PartitionStatus',
    ...CLOSED,
    description: 'Through which message the gateway has read a partition. The lowest one bounds the answers.',
    examples: [{ partition: 0, watermark: 17 }],
  },
);

export const GraphStatus = Type.Object(
  {
    config: Named(Graph),
    totals: Named(Totals),
    asOf: Named(AsOf),
    lag: Type.Optional(Named(Lag)),
    generation: Type.Integer({
      minimum: 1,
      description: 'The layout that the answers are at; a moment later it is that of `config`.',
    }),
    partitions: Type.Array(Named(PartitionStatus), { description: 'Of that layout.' }),
    problem: Type.Optional(Named(Fault)),
  },
  {
    $id: 'GraphStatus',
    ...CLOSED,
    description: 'A graph, and how it is. `lag` is absent while NATS cannot be asked.',
    examples: [
      {
        config: GRAPH_EXAMPLE,
        totals: TOTALS_EXAMPLE,
        asOf: AS_OF_EXAMPLE,
        lag: { messages: 0, last: 17 },
        generation: 1,
        partitions: [{ partition: 0, watermark: 17 }],
      },
    ],
  },
);
export type GraphStatus = Static<typeof GraphStatus>;
