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
    registry: {
      graphs: unused,
      graph: unused,
      createGraph: unused,
      updateGraph: unused,
      removeGraph: unused,
    },
    bus: {
      describe: unused,
      message: unused,
      append: unused,
      read: unused,
      create: unused,
      remove: unused,
      purge: unused,
    },
    clock: { now: unused, sleep: unused, after: unused, yield: unused },
    logLevel: 'silent',
    limits: LIMITS_DEFAULT,
    instance: { name: '', version, started: new Date(0) },
    nats: unused,
    cluster: unused,
    kv: {
      get: unused,
      list: unused,
      revision: unused,
      put: unused,
      create: unused,
      update: unused,
      remove: unused,
      erase: unused,
      isRemoved: unused,
    },
    questions: { answer: unused, ask: unused },
    replicas: 1,
    metrics: new GatewayMetrics(() => 0),
  });
  await app.ready();
  try {
    return app.swagger({ yaml: true });
  } finally {
    await app.close();
  }
}
