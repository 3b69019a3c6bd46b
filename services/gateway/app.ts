/**
 * The gateway's HTTP interface as a fastify instance that does not listen: whoever runs it gives it what it
 * needs, and an address.
 */
import swagger from '@fastify/swagger';
import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox';
import { fastify, LogController } from 'fastify';
import { SCHEMAS } from '../../libs/api/schemas.ts';
import { ID_BYTES_MAX } from '../../libs/dataflow/edge-columns.ts';
import { EdgesEnds } from './edges-ends.ts';
import { GraphDirectory } from './graph-directory.ts';
import { GraphMetrics } from './graph-metrics.ts';
import { answerClientError, answerError, answerNotFound, collectMethods } from './http-errors.ts';
import { Ingest } from './ingest.ts';
import { openapiOptions } from './openapi-document.ts';
import type { GatewayDeps } from './ports.ts';
import { RequestProblem } from './problems.ts';
import { isWellEncoded, parseQuery } from './query-string.ts';
import { Readiness } from './readiness.ts';
import { Reader } from './reading.ts';
import { componentRoutes } from './routes/components.ts';
import type { App, RouteContext } from './routes/context.ts';
import { edgesRoutes } from './routes/edges.ts';
import { exportRoutes } from './routes/export.ts';
import { graphRoutes } from './routes/graphs.ts';
import { operationRoutes } from './routes/operations.ts';
import { partitionRoutes } from './routes/partitions.ts';
import { snapshotRoutes } from './routes/snapshots.ts';
import { vertexRoutes } from './routes/vertices.ts';
import { Snapshots } from './snapshots.ts';

/** For the whole of a request to arrive; the largest body needs some time. */
const REQUEST_TIMEOUT_MS = 120_000;
/** Answers under way when the gateway stops may be finished in this time. */
const CLOSE_GRACE_MS = 3_000;
/** Bodies are small unless a route says otherwise. */
const BODY_BYTES_MAX = 16 * 1024;

export async function buildApp(deps: GatewayDeps): Promise<App> {
  const app: App = fastify({
    // Standard output belongs to what a command prints.
    logger: { level: deps.logLevel, stream: process.stderr },
    // Requests are counted and timed in the metrics; those that fail are logged by the error handler.
    logController: new LogController({ disableRequestLogging: true }),
    requestTimeout: REQUEST_TIMEOUT_MS,
    bodyLimit: BODY_BYTES_MAX,
    // Without coercion: a JSON number in a body must not become an id. Without removal: what is not known is named.
    ajv: { customOptions: { coerceTypes: false, removeAdditional: false } },
    routerOptions: {
      // An id of the greatest length, every byte percent-encoded.
      maxParamLength: ID_BYTES_MAX * 3,
      querystringParser: parseQuery,
    },
    frameworkErrors: (error, request, reply) => {
      void answerError(error, request, reply);
    },
    clientErrorHandler: answerClientError,
  }).withTypeProvider<TypeBoxTypeProvider>();
  app.setErrorHandler(answerError);
  app.setNotFoundHandler(answerNotFound);
  // Answers are made field by field, so there is nothing that a generated serialiser would leave out.
  app.setSerializerCompiler(() => JSON.stringify);
  for (const schema of SCHEMAS) app.addSchema(schema);

  app.addHook('onRequest', async ({ url }) => {
    if (isWellEncoded(url)) return;
    throw new RequestProblem('bad-request', 'the URL is not percent-encoded UTF-8');
  });
  app.addHook('onResponse', async (request, reply) => {
    const route = request.routeOptions.url ?? 'none';
    deps.metrics.answered(route, request.method, reply.statusCode, reply.elapsedTime);
  });
  app.addHook('preClose', async () => {
    setTimeout(() => app.server.closeAllConnections(), CLOSE_GRACE_MS).unref();
  });
  app.addHook('onReady', async () => deps.metrics.start());
  app.addHook('onClose', async () => deps.metrics.stop());

  const context = routeContext(deps);
  await app.register(swagger, openapiOptions(deps.instance.version));
  const answerOtherMethods = collectMethods(app);
  graphRoutes(app, context);
  await app.register((scope, _options, done) => {
    edgesRoutes(scope, context);
    done();
  });
  vertexRoutes(app, context);
  componentRoutes(app, context);
  exportRoutes(app, context);
  partitionRoutes(app, context);
  snapshotRoutes(app, context);
  operationRoutes(app, context);
  answerOtherMethods();
  return app;
}

function routeContext(deps: GatewayDeps): RouteContext {
  const directory = new GraphDirectory(deps);
  const ends = new EdgesEnds(deps.bus, deps.clock);
  const snapshots = new Snapshots(deps);
  return {
    deps,
    directory,
    ends,
    reader: new Reader(deps, directory),
    ingest: new Ingest(deps, directory, ends),
    snapshots,
    readiness: new Readiness(deps, directory, ends),
    graphMetrics: new GraphMetrics(deps, directory, ends, snapshots),
  };
}
