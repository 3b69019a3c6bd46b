/** Errors, as RFC 9457 problem details. */
import { type Static, Type } from 'typebox';
import { Rejection } from './edges.ts';
import { Sequence, VertexId } from './fields.ts';
import { CLOSED, Named, StringEnum } from './schema.ts';

export const PROBLEM_CODES = [
  'bad-cursor',
  'bad-payload',
  'bad-request',
  'cannot-rebuild',
  'ingest-full',
  'internal-error',
  'method-not-allowed',
  'name-taken',
  'nats-unavailable',
  'no-valid-edge',
  'not-a-component-id',
  'not-ready',
  'not-yet',
  'payload-too-large',
  'replicas-fixed',
  'unknown-graph',
  'unknown-partition',
  'unknown-route',
  'unknown-snapshot',
  'unknown-vertex',
  'unsupported-media-type',
  'uri-too-long',
] as const;

export const ProblemCode = StringEnum(PROBLEM_CODES, {
  $id: 'ProblemCode',
  description: 'What kind of problem it is; stable, for programs.',
  examples: ['unknown-vertex'],
});
export type ProblemCode = (typeof PROBLEM_CODES)[number];

export const ProblemError = Type.Object(
  {
    pointer: Type.Optional(
      Type.String({
        description: 'The part of the request that is meant, as a JSON pointer: `/query/limit`.',
      }),
    ),
    detail: Type.String(),
  },
  { $id: 'ProblemError', ...CLOSED, examples: [{ pointer: '/query/limit', detail: 'must be <= 1000' }] },
);
export type ProblemError = Static<typeof ProblemError>;

export const Problem = Type.Object(
  {
    type: Type.String({
      format: 'uri',
      description: 'The kind of problem as a URI; says no more than `code`.',
    }),
    title: Type.String({ description: 'The kind of problem in words; the same for all of a kind.' }),
    status: Type.Integer({ minimum: 400, maximum: 599 }),
    detail: Type.String({ description: 'What is wrong with this request, and what to do.' }),
    code: Named(ProblemCode),
    instance: Type.Optional(
      Type.String({ description: "The request's id, as the log of the gateway has it." }),
    ),
    errors: Type.Optional(Type.Array(Named(ProblemError))),
    sequence: Type.Optional(Named(Sequence)),
    componentId: Type.Optional(Named(VertexId)),
    rejected: Type.Optional(Type.Integer({ minimum: 0 })),
    rejections: Type.Optional(Type.Array(Named(Rejection))),
  },
  {
    $id: 'Problem',
    ...CLOSED,
    description:
      'RFC 9457 problem details. `sequence` comes with `not-yet` (how far the answers of a read are), `componentId` with ' +
      '`not-a-component-id` (the right one), `rejected` and `rejections` with `no-valid-edge`.',
    examples: [
      {
        type: 'urn:watershed:problem:unknown-vertex',
        title: 'No such vertex',
        status: 404,
        detail: 'vertex "eve" has not arrived through sequence 17',
        code: 'unknown-vertex',
        instance: 'req-1',
      },
    ],
  },
);
export type Problem = Static<typeof Problem>;
