/** Parameters of requests. */
import { type Static, Type } from 'typebox';
import { ID_BYTES_MAX } from '../dataflow/edge-columns.ts';
import { GRAPH_NAME } from '../dataflow/names.ts';
import { CLOSED } from './schema.ts';

export const TIMEOUT_SECONDS_DEFAULT = 5;
export const TIMEOUT_SECONDS_MAX = 60;
export const PAGE_ITEMS_DEFAULT = 100;
const PAGE_ITEMS_MAX = 1000;

const sequence = (description: string) =>
  Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER, description });

/** A vertex id in a path or query. */
export const idParameter = (description: string) =>
  Type.String({ minLength: 1, maxLength: ID_BYTES_MAX, description });

/** Which prefix of the stream a read is answered for. */
export const readParameters = {
  asOf: Type.Optional(
    sequence('Answer for exactly messages 1 to this one; by default for all that the gateway holds.'),
  ),
  atLeast: Type.Optional(
    sequence('Wait until the gateway holds this message: with the sequence of an append, a read sees it.'),
  ),
  timeout: Type.Optional(
    Type.Number({
      minimum: 0,
      maximum: TIMEOUT_SECONDS_MAX,
      default: TIMEOUT_SECONDS_DEFAULT,
      description: 'How many seconds to wait for `atLeast` or `asOf` at most.',
    }),
  ),
};

export const pageParameters = {
  limit: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: PAGE_ITEMS_MAX,
      default: PAGE_ITEMS_DEFAULT,
      description: 'How many items a page has at most.',
    }),
  ),
  cursor: Type.Optional(
    Type.String({ minLength: 1, maxLength: 256, description: '`nextCursor` of the page before.' }),
  ),
};

/** The query form of a path: for ids that a path cannot carry (`.` and `..`), and for who prefers it. */
export const idQueryNote = 'The id, percent-encoded (a blank as %20 or +, a plus as %2B).';

export const ReadQuery = Type.Object({ ...readParameters }, CLOSED);
export type ReadQuery = Static<typeof ReadQuery>;

export const GraphParams = Type.Object(
  {
    graph: Type.String({
      pattern: GRAPH_NAME.source,
      description: "The graph's name: lower-case letters, digits and hyphens, at most 63.",
    }),
  },
  CLOSED,
);
