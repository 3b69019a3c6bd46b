/** What the routes are made with. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox';
import type { FastifyBaseLogger, FastifyInstance, RawServerDefault } from 'fastify';
import type { EdgesEnds } from '../edges-ends.ts';
import type { GraphDirectory } from '../graph-directory.ts';
import type { GraphMetrics } from '../graph-metrics.ts';
import type { Ingest } from '../ingest.ts';
import type { GatewayDeps } from '../ports.ts';
import type { Readiness } from '../readiness.ts';
import type { Reader } from '../reading.ts';
import type { Snapshots } from '../snapshots.ts';

export type App = FastifyInstance<
  RawServerDefault,
  IncomingMessage,
  ServerResponse,
  FastifyBaseLogger,
  TypeBoxTypeProvider
>;

export interface RouteContext {
  readonly deps: GatewayDeps;
  readonly directory: GraphDirectory;
  readonly ends: EdgesEnds;
  readonly reader: Reader;
  readonly ingest: Ingest;
  readonly snapshots: Snapshots;
  readonly readiness: Readiness;
  readonly graphMetrics: GraphMetrics;
}
