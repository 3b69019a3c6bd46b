/** How edges are spread over partitions: what chooses, how well, and what is in each. */
import { type Static, Type } from 'typebox';
import { PARTITIONS_MAX } from '../dataflow/names.ts';
import {
  ALGORITHMS,
  DEFAULT_PARTITIONER,
  type Parameter,
  type PartitionerConfig,
} from '../partitioning/partitioner-config.ts';
import { AS_OF_EXAMPLE, AsOf, Fault, Sequence, Time, VertexId } from './fields.ts';
import { CLOSED, Named } from './schema.ts';

const ALGORITHM_NAMES = Object.keys(ALGORITHMS);

function parameterSchema(name: string, parameter: Parameter): object {
  const owners = Object.entries(ALGORITHMS).filter(([, { parameters }]) => Object.hasOwn(parameters, name));
  const whose = owners.map(([algorithm]) => algorithm).join(', ');
  const description = `${whose}: ${parameter.what}${parameter.default === undefined ? '' : `; by default ${parameter.default}`}.`;
  if (parameter.kind === 'choice') return { type: 'string', enum: [...parameter.choices], description };
  const { min, max, decimals } = parameter;
  return { type: decimals === 0 ? 'integer' : 'number', minimum: min, maximum: max, description };
}

/** Every parameter of every algorithm: which of them go together is checked by the reader of configs. */
export const Partitioner = Type.Unsafe<PartitionerConfig>({
  $id: 'Partitioner',
  type: 'object',
  properties: {
    algorithm: {
      type: 'string',
      enum: ALGORITHM_NAMES,
      description: `What chooses the partition of each edge as it arrives; by default ${DEFAULT_PARTITIONER.algorithm}.`,
    },
    ...Object.fromEntries(
      Object.values(ALGORITHMS)
        .flatMap(({ parameters }) => Object.entries(parameters))
        .map(([name, parameter]) => [name, parameterSchema(name, parameter)]),
    ),
  },
  required: ['algorithm'],
  ...CLOSED,
  description:
    'A streaming partitioner and its parameters; absent ones have their defaults. Another one than the graph has begins a ' +
    'new generation, while edges stream in.',
  examples: [{ algorithm: 'hdrf', lambda: 1.1, epsilon: 1, slack: 1.1, capMin: 2 }],
});

export const PartitionIndex = Type.Integer({ minimum: 0, maximum: PARTITIONS_MAX - 1 });

const Count = (description?: string) =>
  Type.Integer({ minimum: 0, ...(description === undefined ? {} : { description }) });
const Ratio = (description: string) => Type.Optional(Type.Number({ minimum: 0, description }));

export const PartitionFigures = Type.Object(
  {
    partition: PartitionIndex,
    edges: Type.Optional(Count('Edges that were placed in it, each as often as it was published.')),
    vertices: Type.Optional(Count('Vertices with an edge in it.')),
    owned: Type.Optional(Count('Vertices that it owns; of algorithms that give owners.')),
  },
  {
    $id: 'PartitionFigures',
    ...CLOSED,
    description: 'What a partition holds, or gained.',
    examples: [{ partition: 0, edges: 25012, vertices: 9120 }],
  },
);
export type PartitionFigures = Static<typeof PartitionFigures>;

export const Quality = Type.Object(
  {
    edges: Type.Optional(Count('Of all partitions.')),
    vertices: Type.Optional(Count('Vertices with an edge, each once.')),
    replicationFactor: Ratio('In how many partitions a vertex is, on average.'),
    edgeBalance: Ratio('The most edges of a partition by their mean; 1 is even.'),
    vertexBalance: Ratio('The most vertices of a partition by their mean.'),
    ownerBalance: Ratio('The most vertices that a partition owns by their mean.'),
    cutFraction: Ratio('Edges between vertices of two owners, by edges between vertices that have one.'),
    forced: Type.Optional(Count('Decisions for the least loaded partition because none had room.')),
    capHits: Type.Optional(Count('Decisions in which the best partition was full.')),
  },
  {
    $id: 'Quality',
    ...CLOSED,
    description:
      'How well edges are spread. A figure is absent where the algorithm does not keep it or there is nothing yet to divide by.',
    examples: [
      {
        edges: 100000,
        vertices: 20100,
        replicationFactor: 1.82,
        edgeBalance: 1.01,
        vertexBalance: 1.05,
        forced: 0,
        capHits: 311,
      },
    ],
  },
);
export type Quality = Static<typeof Quality>;

const figures = {
  partitions: Type.Array(Named(PartitionFigures)),
  quality: Named(Quality),
};

export const RecentFigures = Type.Object(
  { seconds: Type.Number({ minimum: 0 }), ...figures },
  {
    $id: 'RecentFigures',
    ...CLOSED,
    description:
      'What was added in the last so many seconds: about a minute, less if the task began later. `vertices` are vertices ' +
      'that were new in the partition, and new at all.',
    examples: [{ seconds: 61.2, partitions: [{ partition: 0, edges: 512 }], quality: { edges: 512 } }],
  },
);
export type RecentFigures = Static<typeof RecentFigures>;

export const Partitions = Type.Object(
  {
    generation: Type.Integer({ minimum: 1 }),
    partitioner: Named(Partitioner),
    ...figures,
    lastMinute: Type.Optional(Named(RecentFigures)),
    position: Type.Optional(Named(Sequence)),
    reported: Type.Optional(Named(Time)),
    asOf: Named(AsOf),
    problem: Type.Optional(Named(Fault)),
  },
  {
    $id: 'Partitions',
    ...CLOSED,
    description:
      'How the edges of a generation are spread, since it began. Edges are counted by the partitioner, which `reported` ' +
      'that it is at message `position`. Vertices too, unless it needs to know nothing of them (`hash`, `grid`): then ' +
      "they are counted by this gateway, exactly as of `asOf`. `problem`: why the partitioner's figures are not there.",
    examples: [
      {
        generation: 1,
        partitioner: { algorithm: 'hash' },
        partitions: [{ partition: 0, edges: 4, vertices: 5 }],
        quality: { edges: 4, vertices: 5, replicationFactor: 1, edgeBalance: 1, vertexBalance: 1 },
        position: 17,
        reported: '2026-05-04T09:30:01.000Z',
        asOf: AS_OF_EXAMPLE,
      },
    ],
  },
);
export type Partitions = Static<typeof Partitions>;

export const PartitionVertices = Type.Object(
  {
    partition: PartitionIndex,
    generation: Type.Integer({ minimum: 1 }),
    vertices: Type.Array(Named(VertexId)),
    asOf: Named(AsOf),
    nextCursor: Type.Optional(Type.String({ description: 'Asks for the next page; absent on the last.' })),
  },
  {
    $id: 'PartitionVertices',
    ...CLOSED,
    description:
      'Vertices with an edge in a partition, by arrival in the graph. Each page is as of its own time: an older vertex ' +
      'that enters the partition between two pages is on neither.',
    examples: [{ partition: 0, generation: 1, vertices: ['ann', 'bob'], asOf: AS_OF_EXAMPLE }],
  },
);
export type PartitionVertices = Static<typeof PartitionVertices>;

export const Placement = Type.Object(
  {
    degree: Type.Optional(Count('Ends of edges at it since the generation began, a self-loop counts twice.')),
    owner: Type.Optional(PartitionIndex),
    partitions: Type.Optional(Type.Array(PartitionIndex)),
    generation: Type.Optional(Type.Integer({ minimum: 1 })),
    position: Type.Optional(Named(Sequence)),
    problem: Type.Optional(Named(Fault)),
  },
  {
    $id: 'Placement',
    ...CLOSED,
    description:
      'What the partitioner remembers of a vertex, at its own message `position`, which is ahead of the answers. `problem`: ' +
      'why it is not known.',
    examples: [{ degree: 12, partitions: [0, 3], generation: 1, position: 18 }],
  },
);
export type Placement = Static<typeof Placement>;
