import {
  Graph,
  GraphList,
  GraphSettings,
  GraphStatus,
  type GraphSettings as Settings,
} from '../../../libs/api/graph.ts';
import { GraphParams, ReadQuery } from '../../../libs/api/query.ts';
import { Named } from '../../../libs/api/schema.ts';
import { createGraph, removeGraph } from '../../../libs/bus/graphs.ts';
import { PARTITIONS_DEFAULT } from '../../../libs/dataflow/names.ts';
import type { EdgesEnds } from '../edges-ends.ts';
import { natsAnswer, unknownGraph } from '../graph-directory.ts';
import { RequestProblem, shown } from '../problems.ts';
import type { HostedReading } from '../reading.ts';
import type { App, RouteContext } from './context.ts';
import { json, problems, READ_PROBLEMS } from './responses.ts';

const SETTINGS_BYTES_MAX = 16 * 1024;

export function graphRoutes(app: App, { deps, directory, ends, reader }: RouteContext): void {
  const { bus, registry, metrics } = deps;

  app.get(
    '/v1/graphs',
    {
      schema: {
        operationId: 'listGraphs',
        tags: ['graphs'],
        summary: 'List all graphs',
        response: {
          200: json('All graphs.', GraphList),
          ...problems('bad-request', 'internal-error', 'nats-unavailable'),
        },
      },
    },
    async (): Promise<GraphList> => ({ graphs: await directory.records() }),
  );

  app.get(
    '/v1/graphs/:graph',
    {
      schema: {
        operationId: 'getGraph',
        tags: ['graphs'],
        summary: 'Show a graph: its configuration, its totals, how it is',
        params: GraphParams,
        querystring: ReadQuery,
        response: { 200: json('The graph.', GraphStatus), ...problems(...READ_PROBLEMS) },
      },
    },
    async ({ params, query }): Promise<GraphStatus> =>
      await graphStatus(await reader.readAt(params.graph, query, () => query.asOf), ends),
  );

  app.put(
    '/v1/graphs/:graph',
    {
      bodyLimit: SETTINGS_BYTES_MAX,
      schema: {
        operationId: 'putGraph',
        tags: ['graphs'],
        summary: 'Create a graph, or see that it is as asked for',
        description:
          'The body may be absent. An EDGES stream of the graph that is there already is read from its start.',
        params: GraphParams,
        body: Named(GraphSettings),
        response: {
          200: json('The graph was there.', Graph),
          201: json('The graph was created.', Graph),
          ...problems(
            'bad-request',
            'partitions-fixed',
            'payload-too-large',
            'unsupported-media-type',
            'internal-error',
            'nats-unavailable',
          ),
        },
      },
      preValidation: async (request) => {
        request.body ??= {};
      },
    },
    async ({ params, body }, reply): Promise<Graph> => {
      const name = params.graph;
      const { partitions }: Settings = body;
      const { config, created } = await natsAnswer(() =>
        createGraph(bus, registry, name, partitions ?? PARTITIONS_DEFAULT),
      );
      if (created) {
        directory.created(config);
        ends.forget(name);
      } else if (partitions !== undefined && partitions !== config.partitions) {
        throw new RequestProblem(
          'partitions-fixed',
          `graph ${shown(name)} has ${config.partitions} partitions: changing them (rescaling) comes with a later release`,
        );
      }
      reply.code(created ? 201 : 200);
      return config;
    },
  );

  app.delete(
    '/v1/graphs/:graph',
    {
      schema: {
        operationId: 'deleteGraph',
        tags: ['graphs'],
        summary: 'Remove a graph and all its edges',
        params: GraphParams,
        response: {
          204: { description: 'The graph is gone.', type: 'null' },
          ...problems('bad-request', 'unknown-graph', 'internal-error', 'nats-unavailable'),
        },
      },
    },
    async ({ params }, reply): Promise<void> => {
      const config = await directory.record(params.graph);
      if (config === undefined) throw unknownGraph(params.graph);
      await natsAnswer(() => removeGraph(bus, registry, config));
      directory.removed(config);
      ends.forget(config.name);
      metrics.forget(config.name);
      reply.code(204);
    },
  );
}

async function graphStatus({ host, reading }: HostedReading, ends: EdgesEnds): Promise<GraphStatus> {
  const { config, problem } = host;
  const { view } = reading;
  // NATS may be away; what the view holds can be told without it. And what was asked for a moment ago may be less.
  const last = await ends.of(config.name).then(
    (end) => (end === undefined ? undefined : Math.max(end.last, view.sequence)),
    () => undefined,
  );
  return {
    config,
    totals: reading.totals,
    asOf: reading.asOf,
    ...(last === undefined ? {} : { lag: { messages: last - view.sequence, last } }),
    partitions: view.watermarks.map((watermark, partition) => ({ partition, watermark })),
    ...(problem === undefined ? {} : { problem: { code: problem.code, message: problem.message } }),
  };
}
