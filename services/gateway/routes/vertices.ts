import { type Static, Type } from 'typebox';
import { GraphParams, idParameter, idQueryNote, ReadQuery, readParameters } from '../../../libs/api/query.ts';
import { CLOSED, Named } from '../../../libs/api/schema.ts';
import { Connection, LookupAnswer, LookupRequest, Vertex } from '../../../libs/api/vertex.ts';
import { placementAnswer } from '../partitions.ts';
import { checkId } from '../vertex-ids.ts';
import type { App, RouteContext } from './context.ts';
import { json, problems, READ_PROBLEMS } from './responses.ts';

/** 1,000 ids of 1,024 bytes, each byte as `\u0000`. */
const LOOKUP_BYTES_MAX = 8 * 1024 * 1024;

const placementParameter = {
  placement: Type.Optional(
    Type.Boolean({
      description:
        'Whether the partitioner is asked what it remembers of the vertex: its degree and its owner.',
    }),
  ),
};
const VertexQuery = Type.Object({ ...placementParameter, ...readParameters }, CLOSED);
type VertexQuery = Static<typeof VertexQuery>;

export function vertexRoutes(app: App, context: RouteContext): void {
  const { reader } = context;
  const vertexProblems = problems(...READ_PROBLEMS, 'unknown-vertex');

  app.get(
    '/v1/graphs/:graph/vertices/:vertex',
    {
      schema: {
        operationId: 'getVertex',
        tags: ['vertices'],
        summary: 'Show a vertex: its component, when it arrived',
        params: Type.Object(
          { ...GraphParams.properties, vertex: idParameter('The id, percent-encoded.') },
          CLOSED,
        ),
        querystring: VertexQuery,
        response: { 200: json('The vertex.', Vertex), ...vertexProblems },
      },
    },
    async ({ params, query }): Promise<Vertex> => {
      checkId(params.vertex, '/params/vertex');
      return await showVertex(context, params.graph, params.vertex, query);
    },
  );

  app.get(
    '/v1/graphs/:graph/vertices',
    {
      schema: {
        operationId: 'findVertex',
        tags: ['vertices'],
        summary: 'Show a vertex whose id is given in the query',
        params: GraphParams,
        querystring: Type.Object({ id: idParameter(idQueryNote), ...VertexQuery.properties }, CLOSED),
        response: { 200: json('The vertex.', Vertex), ...vertexProblems },
      },
    },
    async ({ params, query }): Promise<Vertex> => {
      checkId(query.id, '/query/id');
      return await showVertex(context, params.graph, query.id, query);
    },
  );

  app.post(
    '/v1/graphs/:graph/vertices/lookup',
    {
      bodyLimit: LOOKUP_BYTES_MAX,
      schema: {
        operationId: 'lookupVertices',
        tags: ['vertices'],
        summary: 'Find the components of many vertices',
        params: GraphParams,
        querystring: ReadQuery,
        body: Named(LookupRequest),
        response: {
          200: json('The vertices.', LookupAnswer),
          ...problems(...READ_PROBLEMS, 'payload-too-large', 'unsupported-media-type'),
        },
      },
    },
    async ({ params, query, body }): Promise<LookupAnswer> => {
      for (const [at, id] of body.ids.entries()) checkId(id, `/body/ids/${at}`);
      return (await reader.read(params.graph, query)).lookup(body.ids);
    },
  );

  app.get(
    '/v1/graphs/:graph/connected',
    {
      schema: {
        operationId: 'getConnection',
        tags: ['vertices'],
        summary: 'Say whether two vertices are connected, since when, through which edge',
        params: GraphParams,
        querystring: Type.Object(
          { source: idParameter(idQueryNote), target: idParameter(idQueryNote), ...readParameters },
          CLOSED,
        ),
        response: { 200: json('Whether they are connected.', Connection), ...vertexProblems },
      },
    },
    async ({ params, query }): Promise<Connection> => {
      const { source, target } = query;
      checkId(source, '/query/source');
      checkId(target, '/query/target');
      return (await reader.read(params.graph, query)).connection(source, target);
    },
  );
}

async function showVertex(
  { reader, deps }: RouteContext,
  graph: string,
  id: string,
  query: VertexQuery,
): Promise<Vertex> {
  const { host, reading } = await reader.readAt(graph, query, () => query.asOf);
  const { asOf, ...vertex } = reading.vertex(id);
  if (query.placement !== true) return { ...vertex, asOf };
  return { ...vertex, placement: await placementAnswer(deps, host, id), asOf };
}
