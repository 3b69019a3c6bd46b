/** Answers about vertices. */
import { type Static, Type } from 'typebox';
import {
  Arrival,
  AS_OF_EXAMPLE,
  AsOf,
  COMPONENT_EXAMPLE,
  Component,
  EdgeIndex,
  Sequence,
  Time,
  VertexId,
} from './fields.ts';
import { PartitionIndex, Placement } from './partitioner.ts';
import { CLOSED, Named } from './schema.ts';

const LOOKUP_IDS_MAX = 1000;

export const Vertex = Type.Object(
  {
    id: Named(VertexId),
    arrived: Named(Arrival),
    component: Named(Component),
    partitions: Type.Optional(
      Type.Array(PartitionIndex, {
        description:
          'The partitions that hold an edge of it, of the layout that the gateway reads now, since that began. Of the ' +
          'present alone, and another layout has others: absent where `asOf` was asked for.',
      }),
    ),
    placement: Type.Optional(Named(Placement)),
    asOf: Named(AsOf),
  },
  {
    $id: 'Vertex',
    ...CLOSED,
    examples: [
      {
        id: 'bob',
        arrived: { sequence: 3, index: 0, time: '2026-05-04T09:00:00.000Z' },
        component: COMPONENT_EXAMPLE,
        partitions: [0, 3],
        asOf: AS_OF_EXAMPLE,
      },
    ],
  },
);
export type Vertex = Static<typeof Vertex>;

export const LookupRequest = Type.Object(
  { ids: Type.Array(Named(VertexId), { minItems: 1, maxItems: LOOKUP_IDS_MAX }) },
  { $id: 'LookupRequest', ...CLOSED, examples: [{ ids: ['ann', 'nobody'] }] },
);
export type LookupRequest = Static<typeof LookupRequest>;

export const LookupItem = Type.Object(
  { id: Named(VertexId), component: Type.Optional(Named(Component)) },
  {
    $id: 'LookupItem',
    ...CLOSED,
    description: 'An id that was asked for; without `component` if there is no such vertex.',
    examples: [{ id: 'ann', component: COMPONENT_EXAMPLE }],
  },
);

export const LookupAnswer = Type.Object(
  { vertices: Type.Array(Named(LookupItem)), asOf: Named(AsOf) },
  {
    $id: 'LookupAnswer',
    ...CLOSED,
    description: 'In the order of the request.',
    examples: [
      { vertices: [{ id: 'ann', component: COMPONENT_EXAMPLE }, { id: 'nobody' }], asOf: AS_OF_EXAMPLE },
    ],
  },
);
export type LookupAnswer = Static<typeof LookupAnswer>;

export const JoiningEdge = Type.Object(
  {
    source: Named(VertexId),
    target: Named(VertexId),
    time: Named(Time),
    sequence: Named(Sequence),
    index: Named(EdgeIndex),
  },
  {
    $id: 'JoiningEdge',
    ...CLOSED,
    description:
      'The edge that made two vertices connected, as its publisher oriented it; `time` is its own time if it has ' +
      'one, else the arrival of its message.',
    examples: [{ source: 'eve', target: 'ann', time: '2026-05-04T09:10:00.000Z', sequence: 5, index: 2 }],
  },
);
export type JoiningEdge = Static<typeof JoiningEdge>;

export const Connection = Type.Object(
  {
    source: Named(VertexId),
    target: Named(VertexId),
    connected: Type.Boolean(),
    component: Type.Optional(Named(Component)),
    since: Type.Optional(Named(Arrival)),
    through: Type.Optional(Named(JoiningEdge)),
    asOf: Named(AsOf),
  },
  {
    $id: 'Connection',
    ...CLOSED,
    description:
      'Whether two vertices are connected; if so, in which component, since when, and through which edge (none ' +
      'where both are one vertex).',
    examples: [
      {
        source: 'bob',
        target: 'eve',
        connected: true,
        component: COMPONENT_EXAMPLE,
        since: { sequence: 5, index: 2, time: '2026-05-04T09:10:01.000Z' },
        through: {
          source: 'eve',
          target: 'ann',
          time: '2026-05-04T09:10:00.000Z',
          sequence: 5,
          index: 2,
        },
        asOf: AS_OF_EXAMPLE,
      },
      { source: 'bob', target: 'zoe', connected: false, asOf: AS_OF_EXAMPLE },
    ],
  },
);
export type Connection = Static<typeof Connection>;

export const EXPORT_FORMATS = ['ndjson', 'csv'] as const;
export type ExportFormat = (typeof EXPORT_FORMATS)[number];

export const ExportRow = Type.Object(
  { vertex: Named(VertexId), component: Named(VertexId) },
  {
    $id: 'ExportRow',
    ...CLOSED,
    description: 'A line of an export: a vertex and the id of its component.',
    examples: [{ vertex: 'bob', component: 'ann' }],
  },
);
export type ExportRow = Static<typeof ExportRow>;
