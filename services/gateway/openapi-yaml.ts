/** The OpenAPI document as text, from an app that serves nobody: its needs are never asked for. */
import { buildApp } from './app.ts';
import { GatewayMetrics } from './metrics.ts';
import { LIMITS_DEFAULT } from './ports.ts';

export async function openapiYaml(version: string): Promise<string> {
  const unused = (): never => {
    throw new Error('this app only describes itself');
  };
  const app = await buildApp({
    graphs: { list: unused, find: unused, known: unused },
    registry: { graphs: unused, graph: unused, createGraph: unused, removeGraph: unused },
    bus: { describe: unused, message: unused, append: unused, read: unused, create: unused, remove: unused },
    clock: { now: unused, sleep: unused, yield: unused },
    logLevel: 'silent',
    limits: LIMITS_DEFAULT,
    instance: { name: '', version, started: new Date(0) },
    nats: unused,
    clusterReport: unused,
    metrics: new GatewayMetrics(() => 0),
  });
  await app.ready();
  try {
    return app.swagger({ yaml: true });
  } finally {
    await app.close();
  }
}
