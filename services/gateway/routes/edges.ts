import { Type } from 'typebox';
import { Appended, EdgesBody } from '../../../libs/api/edges.ts';
import { GraphParams } from '../../../libs/api/query.ts';
import { Named } from '../../../libs/api/schema.ts';
import { CONTENT_TYPES } from '../../../libs/dataflow/payload.ts';
import { InFlightBytes } from '../in-flight.ts';
import { RequestProblem, shown } from '../problems.ts';
import type { App, RouteContext } from './context.ts';
import { json, problems } from './responses.ts';

/** Bodies of the greatest size that are held at once. */
const BODIES_AT_ONCE = 4;

const ACCEPTED = Object.keys(CONTENT_TYPES).join(', ');

const AppendHeaders = Type.Object({
  'idempotency-key': Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 128,
      pattern: '^[\\x21-\\x7e]+$',
      description:
        'Names the request: repeated under the same key (within two minutes, the duplicate window of the stream), ' +
        'it stores nothing again and gives the same sequences.',
    }),
  ),
});

/**
 * In a scope of its own, because here bodies stay the bytes they are, whatever their type: fastify's JSON parser
 * would round large numbers and trip over `__proto__`.
 */
export function edgesRoutes(app: App, { deps, ingest }: RouteContext): void {
  const { bodyMaxBytes } = deps.limits;
  const inFlight = new InFlightBytes(BODIES_AT_ONCE * bodyMaxBytes);

  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', { parseAs: 'buffer', bodyLimit: bodyMaxBytes }, (_request, body, done) => {
    done(null, body);
  });

  app.post(
    '/v1/graphs/:graph/edges',
    {
      bodyLimit: bodyMaxBytes,
      schema: {
        operationId: 'appendEdges',
        tags: ['edges'],
        summary: 'Append edges',
        description:
          'Edges that are not valid are rejected alone, the others count. Without a Content-Type, JSON, NDJSON and ' +
          'Arrow are told by their first bytes. The answer comes when the edges are stored.',
        params: GraphParams,
        headers: AppendHeaders,
        body: {
          content: {
            'application/json': { schema: Named(EdgesBody) },
            'application/x-ndjson': { schema: textBody('One edge per line.') },
            'application/jsonl': { schema: textBody('One edge per line.') },
            'text/csv': {
              schema: textBody(
                'A header line, with at least the columns source and target; then an edge per line.',
              ),
            },
            'application/vnd.apache.arrow.stream': {
              schema: { type: 'string', contentMediaType: 'application/vnd.apache.arrow.stream' },
            },
          },
        },
        response: {
          202: json('The edges are stored.', Appended),
          ...problems(
            'bad-request',
            'bad-payload',
            'unknown-graph',
            'payload-too-large',
            'unsupported-media-type',
            'no-valid-edge',
            'ingest-full',
            'internal-error',
            'nats-unavailable',
            'not-ready',
          ),
        },
      },
      // The decoders say what is wrong with a body, edge by edge.
      validatorCompiler: (route) =>
        route.httpPart === 'body' ? () => true : (app.validatorCompiler!(route) as () => boolean),
      onRequest: async (request, reply) => {
        const { headers } = request;
        checkType(headers['content-type'], headers['content-encoding']);
        const length = Number(headers['content-length'] ?? bodyMaxBytes);
        const giveBack = inFlight.take(Math.min(length, bodyMaxBytes));
        if (giveBack === undefined) {
          const detail = 'this gateway has as many bodies at hand as it can hold: wait';
          throw new RequestProblem('ingest-full', detail, { retryAfterSeconds: 1 });
        }
        reply.raw.once('close', giveBack);
      },
    },
    async ({ params, headers, body }, reply): Promise<Appended> => {
      const bytes = body instanceof Uint8Array ? body : new Uint8Array(0);
      const appended = await ingest.append(
        params.graph,
        bytes,
        headers['content-type'],
        headers['idempotency-key'],
      );
      reply.code(202);
      return appended;
    },
  );
}

function textBody(description: string) {
  return { type: 'string', description };
}

function checkType(contentType: string | undefined, encoding: string | undefined): void {
  if (encoding !== undefined && encoding.toLowerCase() !== 'identity') {
    const detail = `the content encoding ${shown(encoding)} is not accepted: send the body as it is`;
    throw new RequestProblem('unsupported-media-type', detail);
  }
  if (contentType === undefined) return;
  const type = contentType.replace(/;.*/s, '').trim().toLowerCase();
  if (Object.hasOwn(CONTENT_TYPES, type)) return;
  throw new RequestProblem(
    'unsupported-media-type',
    `the content type ${shown(type)} is none of ${ACCEPTED}`,
  );
}
