import {
  Graph,
  GraphList,
  GraphSettings,
  GraphStatus,
  type GraphSettings as Settings,
} from '../../../libs/api/graph.ts';
import { GraphParams, ReadQuery } from '../../../libs/api/query.ts';
import { Named } from '../../../libs/api/schema.ts';
import { RebuildRequest } from '../../../libs/api/snapshot.ts';
import { changeGraph, createGraph, rebuilt, removeGraph } from '../../../libs/bus/graphs.ts';
import {
  type GraphConfig,
  newestGeneration,
  type SnapshotName,
} from '../../../libs/dataflow/graph-config.ts';
import { edgesLog, PARTITIONS_DEFAULT } from '../../../libs/dataflow/names.ts';
import {
  type PartitionerConfig,
  partsProblem,
  readPartitionerConfig,
} from '../../../libs/partitioning/partitioner-config.ts';
import { type Manifest, SnapshotRecords } from '../../../libs/snapshot/records.ts';
import { removeGenerations } from '../../../libs/stage/generation-logs.ts';
import type { LogState } from '../../../libs/stage/ports.ts';
import type { EdgesEnds } from '../edges-ends.ts';
import { natsAnswer, unknownGraph } from '../graph-directory.ts';
import { badRequest, RequestProblem, shown } from '../problems.ts';
import type { HostedReading } from '../reading.ts';
import type { App, RouteContext } from './context.ts';
import { json, problems, READ_PROBLEMS } from './responses.ts';

const SETTINGS_BYTES_MAX = 16 * 1024;

export function graphRoutes(app: App, { deps, directory, ends, reader, snapshots }: RouteContext): void {
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
    async (): Promise<GraphList> => ({ graphs: (await directory.records()).map(graphAnswer) }),
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
        summary: 'Create a graph, or change its settings',
        description:
          'The body may be absent. An EDGES stream of the graph that is there already is read from its start. Another number ' +
          'of partitions, or another partitioner, takes effect a moment later, at an exact message, while answers stay exact.',
        params: GraphParams,
        body: Named(GraphSettings),
        response: {
          200: json('The graph was there; it is as asked for now.', Graph),
          201: json('The graph was created.', Graph),
          ...problems(
            'bad-request',
            'replicas-fixed',
            'payload-too-large',
            'unsupported-media-type',
            'internal-error',
            'nats-unavailable',
          ),
        },
      },
      preValidation: async (request) => {
        request.body ??= {};
        readPartitioner(request.body);
      },
    },
    async ({ params, body }, reply): Promise<Graph> => {
      const name = params.graph;
      const replicas = body.replicas ?? deps.replicas;
      const known = await directory.record(name);
      if (known === undefined) checkParts(body, body.partitioner, body.partitions ?? PARTITIONS_DEFAULT);
      const { config, created } = await natsAnswer(() =>
        createGraph(bus, registry, name, {
          ...body,
          partitions: body.partitions ?? PARTITIONS_DEFAULT,
          replicas,
        }),
      ).catch((error: unknown) => {
        throw tooFewServers(error, replicas) ?? error;
      });
      if (created) {
        directory.created(config);
        ends.forget(name);
        reply.code(201);
        return graphAnswer(config);
      }
      if (body.replicas !== undefined && body.replicas !== config.replicas) {
        throw new RequestProblem(
          'replicas-fixed',
          `graph ${shown(name)} has ${config.replicas} ${config.replicas === 1 ? 'replica' : 'replicas'}: that was fixed ` +
            `when its streams were made; restore a snapshot of it as a new graph instead (watershed snapshot restore)`,
        );
      }
      const changed = await natsAnswer(() =>
        changeGraph(registry, name, (known) => withSettings(known, body)),
      );
      if (changed === undefined) throw unknownGraph(name);
      return graphAnswer(changed);
    },
  );

  app.post(
    '/v1/graphs/:graph/rebuild',
    {
      schema: {
        operationId: 'rebuildGraph',
        tags: ['graphs'],
        summary: 'Rebuild a graph from its edges: from a snapshot on, or from the first message',
        description:
          'The body may be absent. Begins a new generation; answers go back to where it begins, and catch up.',
        params: GraphParams,
        body: Named(RebuildRequest),
        response: {
          200: json('The graph, with the new generation.', Graph),
          ...problems(
            'bad-request',
            'unknown-graph',
            'unknown-snapshot',
            'cannot-rebuild',
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
    async ({ params, body }): Promise<Graph> => {
      const known = await directory.record(params.graph);
      if (known === undefined) throw unknownGraph(params.graph);
      const start = await startOf(known, body);
      const { stream } = edgesLog(known.name);
      assertGoesOn(await natsAnswer(() => bus.describe(stream)), stream, start);
      let before = known;
      const config = await natsAnswer(() =>
        changeGraph(registry, known.name, (current) => {
          before = current;
          if (current.id !== known.id) return current;
          const next = rebuilt(current, start.snapshot);
          return start.base === undefined ? next : { ...next, base: start.base };
        }),
      );
      if (config?.id !== known.id) throw unknownGraph(known.name);
      const { base } = before;
      // Nobody reads them any more; a log that is left over by a gateway that dies here does no harm.
      await natsAnswer(() => removeGenerations(bus, config.name, before.generations));
      if (base !== undefined && base.graphId !== config.id && config.base?.graphId !== base.graphId)
        await snapshots.removeBase(base.graphId);
      return graphAnswer(config);
    },
  );

  /** What a rebuilding begins with. */
  async function startOf(config: GraphConfig, { from, snapshot }: RebuildRequest): Promise<Start> {
    const { id, base } = config;
    if (from !== 'start') {
      const manifest = await snapshots.manifest(config, snapshot);
      if (manifest !== undefined) return { snapshot: manifest };
      if (from === 'snapshot')
        throw cannotRebuild(
          `graph ${shown(config.name)} has no snapshot that was read back: rebuild it from the start`,
        );
    } else if (snapshot !== undefined) {
      throw badRequest('/body/snapshot', 'is of no use with from "start"');
    }
    if (base === undefined || base.graphId === id) return {};
    // The start of a graph that began with another one's snapshot.
    const records = new SnapshotRecords(deps.kv, base.graphId);
    const manifest = await natsAnswer(() => records.get<Manifest>('manifest', String(base.barrier)));
    if (manifest === undefined)
      throw cannotRebuild(`the snapshot that graph ${shown(config.name)} began with is not there any more`);
    return { snapshot: manifest, base };
  }

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
      await snapshots.removeAll(config);
      directory.removed(config);
      ends.forget(config.name);
      metrics.forget(config.name);
      reply.code(204);
    },
  );
}

interface Start {
  /** Undefined: the first message of EDGES. */
  readonly snapshot?: Manifest;
  /** Where the snapshot is another graph's. */
  readonly base?: SnapshotName;
}

/** Whether EDGES still holds all that comes after `start`. */
function assertGoesOn(edges: LogState | undefined, stream: string, { snapshot }: Start): void {
  const sequence = snapshot?.sequence ?? 0;
  const where = snapshot === undefined ? 'the start' : `snapshot ${snapshot.barrier}, at message ${sequence}`;
  if (edges === undefined) throw cannotRebuild(`there is no stream ${stream}`);
  if (edges.first > sequence + 1) {
    throw cannotRebuild(
      `${stream} begins with message ${edges.first}, so it does not go on from ${where}: choose ` +
        `${snapshot === undefined ? 'a snapshot' : 'a newer one'}`,
    );
  }
  if (edges.last < sequence) {
    throw cannotRebuild(
      `${stream} ends with message ${edges.last}, before ${where}: it was truncated or made anew. Choose an older ` +
        'snapshot or the start',
    );
  }
}

/** If what NATS says of the new streams is that it has not so many servers: that. */
function tooFewServers(error: unknown, replicas: number): RequestProblem | undefined {
  if (!(error instanceof RequestProblem) || !/replicas|no suitable peers/.test(error.message))
    return undefined;
  return badRequest('/body/replicas', `NATS has not the servers for ${replicas} copies of each stream`);
}

function cannotRebuild(detail: string): RequestProblem {
  return new RequestProblem('cannot-rebuild', detail);
}

/** Checks a partitioner by its own rules, which say more than a schema, and gives it its defaults. */
function readPartitioner(body: unknown): void {
  if (typeof body !== 'object' || body === null || !('partitioner' in body)) return;
  const reading = readPartitionerConfig(body.partitioner);
  if (reading.kind === 'invalid') throw badRequest('/body/partitioner', reading.problem);
  body.partitioner = reading.config;
}

function checkParts(body: Settings, partitioner: PartitionerConfig | undefined, partitions: number): void {
  const problem = partitioner === undefined ? undefined : partsProblem(partitioner, partitions);
  if (problem === undefined) return;
  throw badRequest(body.partitioner === undefined ? '/body/partitions' : '/body/partitioner', problem);
}

function withSettings(config: GraphConfig, settings: Settings): GraphConfig {
  const { snapshots, purgeEdges } = settings;
  const { partitions = config.partitions, partitioner = config.partitioner } = settings;
  checkParts(settings, partitioner, partitions);
  return {
    ...config,
    partitions,
    partitioner,
    snapshots: { ...config.snapshots, ...snapshots },
    purgeEdges: purgeEdges ?? config.purgeEdges,
  };
}

function graphAnswer(config: GraphConfig): Graph {
  const { name, id, partitions, partitioner, replicas, snapshots, purgeEdges, created } = config;
  const { generation } = newestGeneration(config);
  return { name, id, generation, partitions, partitioner, replicas, snapshots, purgeEdges, created };
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
    config: graphAnswer(config),
    totals: reading.totals,
    asOf: reading.asOf,
    ...(last === undefined ? {} : { lag: { messages: last - view.sequence, last } }),
    generation: (view.generation ?? newestGeneration(config)).generation,
    partitions: view.watermarks.map((watermark, partition) => ({ partition, watermark })),
    ...(problem === undefined ? {} : { problem: { code: problem.code, message: problem.message } }),
  };
}
