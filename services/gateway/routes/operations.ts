import { Cluster, Health, Readiness } from '../../../libs/api/cluster.ts';
import { clusterAnswer } from '../cluster.ts';
import { RequestProblem } from '../problems.ts';
import type { App, RouteContext } from './context.ts';
import { content, json, problems } from './responses.ts';

export function operationRoutes(app: App, { deps, ends, readiness, graphMetrics }: RouteContext): void {
  app.get(
    '/v1/cluster',
    {
      schema: {
        operationId: 'getCluster',
        tags: ['operations'],
        summary: 'List the instances, and the tasks with who runs them',
        response: {
          200: json('The instances and tasks.', Cluster),
          ...problems('bad-request', 'internal-error', 'nats-unavailable'),
        },
      },
    },
    async (): Promise<Cluster> => await clusterAnswer(deps, ends),
  );

  app.get(
    '/healthz',
    {
      schema: {
        operationId: 'getHealth',
        tags: ['operations'],
        summary: 'Say that the process runs',
        response: { 200: json('It runs.', Health), ...problems('bad-request', 'internal-error') },
      },
    },
    async (): Promise<Health> => {
      const { name, version, started } = deps.instance;
      return { status: 'ok', instance: name, version, started: started.toISOString() };
    },
  );

  app.get(
    '/readyz',
    {
      schema: {
        operationId: 'getReadiness',
        tags: ['operations'],
        summary: 'Say whether this gateway should be asked, or why not',
        response: {
          200: json('It should.', Readiness),
          ...problems('bad-request', 'internal-error', 'not-ready'),
        },
      },
    },
    async (): Promise<Readiness> => {
      const reasons = await readiness.reasons();
      if (reasons.length === 0) return { status: 'ready' };
      throw new RequestProblem('not-ready', reasons.join('; '), {
        errors: reasons.map((detail) => ({ detail })),
        retryAfterSeconds: 1,
      });
    },
  );

  app.get(
    '/metrics',
    {
      schema: {
        operationId: 'getMetrics',
        tags: ['operations'],
        summary: 'Metrics for Prometheus',
        response: {
          200: content('Metrics.', { 'text/plain': { type: 'string' } }),
          ...problems('bad-request', 'internal-error'),
        },
      },
    },
    async (_request, reply) => {
      const text = await graphMetrics.render();
      return reply.type(deps.metrics.registry.contentType).send(text);
    },
  );

  app.get(
    '/openapi.json',
    {
      schema: {
        operationId: 'getOpenapi',
        tags: ['operations'],
        summary: 'This interface as an OpenAPI document',
        response: {
          200: content('The document.', { 'application/json': { type: 'object' } }),
          ...problems('bad-request', 'internal-error'),
        },
      },
    },
    async (_request, reply) => reply.type('application/json').send(JSON.stringify(app.swagger())),
  );
}
