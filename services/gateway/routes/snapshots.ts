import { GraphParams } from '../../../libs/api/query.ts';
import { Named } from '../../../libs/api/schema.ts';
import {
  SNAPSHOT_TIMEOUT_SECONDS_DEFAULT,
  Snapshot,
  SnapshotList,
  SnapshotParams,
  SnapshotRequest,
  TakeQuery,
} from '../../../libs/api/snapshot.ts';
import type { App, RouteContext } from './context.ts';
import { json, problems } from './responses.ts';

export function snapshotRoutes(app: App, { directory, snapshots }: RouteContext): void {
  app.get(
    '/v1/graphs/:graph/snapshots',
    {
      schema: {
        operationId: 'listSnapshots',
        tags: ['snapshots'],
        summary: 'List the snapshots of a graph, newest first',
        params: GraphParams,
        response: {
          200: json('The snapshots.', SnapshotList),
          ...problems('bad-request', 'unknown-graph', 'internal-error', 'nats-unavailable'),
        },
      },
    },
    async ({ params }): Promise<SnapshotList> => ({
      snapshots: await snapshots.list(await directory.config(params.graph)),
    }),
  );

  app.get(
    '/v1/graphs/:graph/snapshots/:snapshot',
    {
      schema: {
        operationId: 'getSnapshot',
        tags: ['snapshots'],
        summary: 'Show a snapshot',
        params: SnapshotParams,
        response: {
          200: json('The snapshot.', Snapshot),
          ...problems(
            'bad-request',
            'unknown-graph',
            'unknown-snapshot',
            'internal-error',
            'nats-unavailable',
          ),
        },
      },
    },
    async ({ params }): Promise<Snapshot> =>
      await snapshots.get(await directory.config(params.graph), params.snapshot),
  );

  app.post(
    '/v1/graphs/:graph/snapshots',
    {
      schema: {
        operationId: 'takeSnapshot',
        tags: ['snapshots'],
        summary: 'Take a snapshot, and wait until it is there',
        description:
          'The body may be absent. A request that has been waited for in vain is not taken back: the snapshot comes later.',
        params: GraphParams,
        querystring: TakeQuery,
        body: Named(SnapshotRequest),
        response: {
          201: json('The snapshot; all of it was stored and read back.', Snapshot),
          ...problems(
            'bad-request',
            'unknown-graph',
            'name-taken',
            'payload-too-large',
            'unsupported-media-type',
            'internal-error',
            'nats-unavailable',
            'not-yet',
          ),
        },
      },
      preValidation: async (request) => {
        request.body ??= {};
      },
    },
    async ({ params, query, body }, reply): Promise<Snapshot> => {
      const config = await directory.config(params.graph);
      const { timeout = SNAPSHOT_TIMEOUT_SECONDS_DEFAULT } = query;
      const snapshot = await snapshots.take(config, body.name, timeout * 1000);
      reply.code(201);
      return snapshot;
    },
  );

  app.delete(
    '/v1/graphs/:graph/snapshots/:snapshot',
    {
      schema: {
        operationId: 'giveSnapshotUp',
        tags: ['snapshots'],
        summary: 'Give a named snapshot up: it goes when it is not among the newest any more',
        params: SnapshotParams,
        response: {
          204: { description: 'The name is free again.', type: 'null' },
          ...problems(
            'bad-request',
            'unknown-graph',
            'unknown-snapshot',
            'internal-error',
            'nats-unavailable',
          ),
        },
      },
    },
    async ({ params }, reply): Promise<void> => {
      await snapshots.giveUp(await directory.config(params.graph), params.snapshot);
      reply.code(204);
    },
  );
}
