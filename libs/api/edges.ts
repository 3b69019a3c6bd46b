/** Appending edges. */
import { type Static, Type } from 'typebox';
import { REASONS_MAX } from '../dataflow/edge-columns.ts';
import { EdgeIndex, Sequence } from './fields.ts';
import { CLOSED, Named, StringEnum } from './schema.ts';

const EndpointId = Type.Unsafe<string | number>({
  type: ['string', 'integer'],
  description: 'A string, or an integer written without fraction or exponent, taken as its digits.',
});

/** What a publisher writes; decoded by libs/dataflow/payload.ts, not validated by this schema. */
export const Edge = Type.Object(
  {
    source: EndpointId,
    target: EndpointId,
    time: Type.Optional(
      Type.Unsafe<string | number>({
        type: ['string', 'integer'],
        description:
          'ISO 8601 (without offset: UTC) or ms since 1970; by default the arrival of the message.',
      }),
    ),
    weight: Type.Optional(Type.Number()),
    id: Type.Optional(Type.String()),
    op: Type.Optional(StringEnum(['add', 'remove'], { description: 'By default `add`.' })),
  },
  {
    $id: 'Edge',
    description: 'An undirected edge. Other keys are ignored.',
    examples: [{ source: 'ann', target: 'bob' }],
  },
);

export const EdgesBody = Type.Union([Named(Edge), Type.Array(Named(Edge))], {
  $id: 'EdgesBody',
  description: 'One edge, or an array of edges.',
  examples: [
    [
      { source: 'ann', target: 'bob' },
      { source: 'bob', target: 'eve', time: '2026-05-04T09:30:00Z' },
    ],
  ],
});

export const Rejection = Type.Object(
  { index: Named(EdgeIndex), reason: Type.String() },
  {
    $id: 'Rejection',
    ...CLOSED,
    description: 'An edge of the request that does not count, and why.',
    examples: [{ index: 3, reason: 'target is empty: an id has 1 to 1024 bytes' }],
  },
);
export type Rejection = Static<typeof Rejection>;

export const SequenceRange = Type.Object(
  { first: Named(Sequence), last: Named(Sequence) },
  { $id: 'SequenceRange', ...CLOSED, examples: [{ first: 18, last: 18 }] },
);

export const Appended = Type.Object(
  {
    sequence: Named(SequenceRange),
    accepted: Type.Integer({ minimum: 1, description: 'Edges that count.' }),
    rejected: Type.Integer({ minimum: 0 }),
    rejections: Type.Array(Named(Rejection), { maxItems: REASONS_MAX }),
  },
  {
    $id: 'Appended',
    ...CLOSED,
    description:
      'The edges are stored. Answers hold them from sequence `sequence.last` on: ask with `atLeast=<that>`.',
    examples: [{ sequence: { first: 18, last: 18 }, accepted: 2, rejected: 0, rejections: [] }],
  },
);
export type Appended = Static<typeof Appended>;
