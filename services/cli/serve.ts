/** `watershed serve`: one instance, until it is told to stop. */
import { mkdirSync } from 'node:fs';
import pino from 'pino';
import { buildApp } from '../gateway/app.ts';
import { GatewayMetrics } from '../gateway/metrics.ts';
import { LIMITS_DEFAULT } from '../gateway/ports.ts';
import { CliError, EXIT } from './exit.ts';
import { Instance, processClock } from './instance.ts';
import type { Role } from './roles.ts';
import { programVersion } from './version.ts';

export interface ServeOptions {
  readonly name: string;
  readonly roles: readonly Role[];
  readonly natsUrl: string;
  readonly dataFolder: string;
  readonly snapshotFolder: string | undefined;
  readonly replicas: number | undefined;
  readonly leaseMs: number;
  readonly http: { readonly host: string; readonly port: number };
  readonly maxLagBytes: number;
  readonly logLevel: string;
}

/** Runs until `untilStopped` resolves, then stops in order: no new requests, tasks, connection, folder. */
export async function serve(options: ServeOptions, untilStopped: Promise<void>): Promise<void> {
  const logger = pino({ level: options.logLevel, base: { instance: options.name } }, pino.destination(2));
  const version = programVersion();
  const metrics = new GatewayMetrics(Date.now);
  mkdirSync(options.dataFolder, { recursive: true });
  const waiting = new AbortController();
  const starting = Instance.start(
    {
      name: options.name,
      roles: options.roles,
      natsUrl: options.natsUrl,
      dataFolder: options.dataFolder,
      snapshotFolder: options.snapshotFolder,
      replicas: options.replicas,
      leaseMs: options.leaseMs,
      version,
      logger,
      visible: (graph, time) => metrics.visible(graph, time),
    },
    waiting.signal,
  );
  const instance = await Promise.race([starting, untilStopped]);
  if (instance === undefined) {
    // Told to stop while it still waited for nats-server, which may come in this very moment.
    waiting.abort();
    const late = await starting.catch(() => undefined);
    await late?.stop();
    return;
  }
  try {
    if (!options.roles.includes('gateway')) {
      await untilStopped;
      return;
    }
    const app = await buildApp({
      graphs: {
        list: () => instance.hosts,
        find: (name) => instance.host(name),
        known: () => instance.graphsKnown,
      },
      registry: instance.registry,
      bus: instance.bus,
      clock: processClock,
      logLevel: options.logLevel,
      limits: { ...LIMITS_DEFAULT, ingestMaxLagBytes: options.maxLagBytes },
      instance: { name: options.name, version, started: instance.started },
      nats: () => instance.nats,
      cluster: () => instance.cluster,
      kv: instance.kv,
      questions: instance.questions,
      replicas: instance.replicas,
      metrics,
    });
    try {
      await app.listen(options.http);
    } catch (error) {
      const isTaken = (error as NodeJS.ErrnoException).code === 'EADDRINUSE';
      if (!isTaken) throw error;
      const { host, port } = options.http;
      throw new CliError(EXIT.failed, `${host}:${port} is taken: choose another address with --http`, {
        cause: error,
      });
    }
    logger.info({ http: options.http }, 'serving');
    await untilStopped;
    await app.close();
  } finally {
    await instance.stop();
  }
}
