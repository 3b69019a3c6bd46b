import { type Static, Type } from 'typebox';
import { Partitions, PartitionVertices } from '../../../libs/api/partitioner.ts';
import { GraphParams, PAGE_ITEMS_DEFAULT, pageParameters, readParameters } from '../../../libs/api/query.ts';
import { CLOSED } from '../../../libs/api/schema.ts';
import { readPartitionCursor } from '../cursor.ts';
import { partitionsAnswer } from '../partitions.ts';
import type { App, RouteContext } from './context.ts';
import { json, problems, READ_PROBLEMS } from './responses.ts';

const { atLeast, timeout } = readParameters;
/** A layout is of the present alone: there is no `asOf`. */
const PresentQuery = Type.Object({ atLeast, timeout }, CLOSED);
const PageQuery = Type.Object({ ...pageParameters, atLeast, timeout }, CLOSED);
type PageQuery = Static<typeof PageQuery>;

export function partitionRoutes(app: App, context: RouteContext): void {
  const { reader, deps } = context;

  app.get(
    '/v1/graphs/:graph/partitions',
    {
      schema: {
        operationId: 'getPartitions',
        tags: ['partitions'],
        summary: 'Show how edges are spread over the partitions, and how well',
        description:
          'Since the generation began, and over the last minute. Reports come every few seconds. Figures are of a layout, ' +
          'not of the graph: another partitioner or number of partitions begins anew.',
        params: GraphParams,
        querystring: PresentQuery,
        response: { 200: json('The partitions.', Partitions), ...problems(...READ_PROBLEMS) },
      },
    },
    async ({ params, query }): Promise<Partitions> =>
      partitionsAnswer(deps, await reader.readAt(params.graph, query, () => undefined)),
  );

  app.get(
    '/v1/graphs/:graph/partitions/:partition/vertices',
    {
      schema: {
        operationId: 'listPartitionVertices',
        tags: ['partitions'],
        summary: 'List the vertices that have an edge in a partition',
        params: Type.Object(
          {
            ...GraphParams.properties,
            partition: Type.String({ pattern: '^[0-9]{1,4}$', description: 'Its number, from 0.' }),
          },
          CLOSED,
        ),
        querystring: PageQuery,
        response: {
          200: json('A page of vertices.', PartitionVertices),
          ...problems(...READ_PROBLEMS, 'bad-cursor', 'unknown-partition'),
        },
      },
    },
    async ({ params, query }): Promise<PartitionVertices> =>
      await listVertices(context, params.graph, Number(params.partition), query),
  );
}

async function listVertices(
  { reader, deps }: RouteContext,
  graph: string,
  partition: number,
  query: PageQuery,
): Promise<PartitionVertices> {
  const { host, reading } = await reader.readAt(graph, query, () => undefined);
  const { id } = host.config;
  const cursor = query.cursor === undefined ? undefined : readPartitionCursor(query.cursor, id);
  const steps = reading.partitionVertices(id, partition, cursor, query.limit ?? PAGE_ITEMS_DEFAULT);
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
    await deps.clock.yield();
  }
}
