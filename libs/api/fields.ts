/** Fields that many answers share. */
import { type Static, Type } from 'typebox';
import { ID_BYTES_MAX } from '../dataflow/edge-columns.ts';
import { CLOSED, Named } from './schema.ts';

/** A vertex id. Characters are counted here; that its UTF-8 is no longer than this is checked besides. */
export const VertexId = Type.String({
  $id: 'VertexId',
  minLength: 1,
  maxLength: ID_BYTES_MAX,
  description: `A vertex id, byte for byte as it was published: 1 to ${ID_BYTES_MAX} bytes of UTF-8, never trimmed or normalised.`,
  examples: ['ann'],
});

export const Sequence = Type.Integer({
  $id: 'Sequence',
  minimum: 0,
  maximum: Number.MAX_SAFE_INTEGER,
  description: "Position of a message in the graph's EDGES stream, from 1; 0 stands for before the first.",
  examples: [17],
});

export const EdgeIndex = Type.Integer({
  $id: 'EdgeIndex',
  minimum: 0,
  description: 'Place of an edge in its message, from 0; rejected edges are counted too.',
  examples: [0],
});

export const Time = Type.String({
  $id: 'Time',
  format: 'date-time',
  description: 'ISO 8601, UTC, to the millisecond.',
  examples: ['2026-05-04T09:30:00.000Z'],
});

/** Examples that other schemas use in theirs. */
export const AS_OF_EXAMPLE = { sequence: 17, time: '2026-05-04T09:30:00.000Z' };
export const COMPONENT_EXAMPLE = { id: 'ann', size: 3 };

export const AsOf = Type.Object(
  {
    sequence: Named(Sequence),
    time: Type.Unsafe<string | null>({
      type: ['string', 'null'],
      format: 'date-time',
      description: 'When that message arrived; null at sequence 0.',
    }),
  },
  {
    $id: 'AsOf',
    ...CLOSED,
    description:
      'The prefix of the edge stream that the answer is for: all edges of messages 1 to `sequence`, none after.',
    examples: [AS_OF_EXAMPLE],
  },
);
export type AsOf = Static<typeof AsOf>;

export const Component = Type.Object(
  {
    id: Named(VertexId),
    size: Type.Integer({ minimum: 1, description: 'How many vertices it has.' }),
  },
  {
    $id: 'Component',
    ...CLOSED,
    description: 'A connected component. Its id is the id of its oldest vertex, the first one to arrive.',
    examples: [COMPONENT_EXAMPLE],
  },
);
export type Component = Static<typeof Component>;

export const Arrival = Type.Object(
  { sequence: Named(Sequence), index: Named(EdgeIndex), time: Named(Time) },
  {
    $id: 'Arrival',
    ...CLOSED,
    description: 'A place in the edge stream, and when its message arrived.',
    examples: [{ sequence: 17, index: 0, time: '2026-05-04T09:30:00.000Z' }],
  },
);
export type Arrival = Static<typeof Arrival>;

export const Fault = Type.Object(
  { code: Type.String(), message: Type.String() },
  {
    $id: 'Fault',
    ...CLOSED,
    description: 'What is wrong with a task now, and what to do about it.',
    examples: [
      {
        code: 'log-missing',
        message: 'there is no stream GRAPH_social_FOREST_1_0 (yet): its writer is not running',
      },
    ],
  },
);
export type Fault = Static<typeof Fault>;
