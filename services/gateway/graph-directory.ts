/**
 * From a graph's name to what is known of it: the record of all graphs, and the views that this gateway holds.
 *
 * The process learns of new and removed graphs a moment after the record says so. What this gateway changed
 * itself it must not forget in that moment: after a graph was removed, or created anew, the view that still stands
 * under its name is of another graph.
 */
import type { GraphConfig } from '../../libs/dataflow/graph-config.ts';
import type { Clock } from '../../libs/stage/ports.ts';
import type { GatewayDeps, HostedGraph } from './ports.ts';
import { RequestProblem, shown } from './problems.ts';

const POLL_MS = 20;

export class GraphDirectory {
  private readonly deps: GatewayDeps;
  private readonly clock: Clock;
  /** Name → id of a graph that is gone, but whose view still stands. */
  private readonly gone = new Map<string, string>();

  constructor(deps: GatewayDeps) {
    this.deps = deps;
    this.clock = deps.clock;
  }

  /** All graphs whose view belongs to the graph that the name stands for now. */
  get hosted(): readonly HostedGraph[] {
    return this.deps.graphs.list().filter((host) => this.isCurrent(host));
  }

  host(name: string): HostedGraph | undefined {
    const host = this.deps.graphs.find(name);
    if (host === undefined || this.isCurrent(host)) this.gone.delete(name);
    return this.gone.has(name) ? undefined : host;
  }

  /** As its record says; undefined: there is none of that name. */
  async record(name: string): Promise<GraphConfig | undefined> {
    return (await natsAnswer(() => this.deps.registry.graph(name)))?.config;
  }

  async records(): Promise<GraphConfig[]> {
    const records = await natsAnswer(() => this.deps.registry.graphs());
    return records.map(({ config }) => config);
  }

  /** The configuration of a graph that is there. */
  async config(name: string): Promise<GraphConfig> {
    const config = this.host(name)?.config ?? (await this.record(name));
    if (config === undefined) throw unknownGraph(name);
    return config;
  }

  /** The hosted graph; waits until `deadline` (of the clock) for one that was just created. */
  async await(name: string, deadline: number): Promise<HostedGraph> {
    let host = this.host(name);
    if (host !== undefined) return host;
    await this.config(name);
    while (this.clock.now() < deadline) {
      await this.clock.sleep(POLL_MS);
      host = this.host(name);
      if (host !== undefined) return host;
    }
    const detail = `this gateway has not begun to read graph ${shown(name)} yet`;
    throw new RequestProblem('not-ready', detail, { retryAfterSeconds: 1 });
  }

  /** Told that `config` was created here: another graph's view under the name is not its. */
  created(config: GraphConfig): void {
    const host = this.deps.graphs.find(config.name);
    if (host !== undefined && host.config.id !== config.id) this.gone.set(config.name, host.config.id);
  }

  /** Told that `config` was removed here. */
  removed(config: GraphConfig): void {
    if (this.deps.graphs.find(config.name)?.config.id === config.id) this.gone.set(config.name, config.id);
  }

  private isCurrent(host: HostedGraph): boolean {
    return this.gone.get(host.config.name) !== host.config.id;
  }
}

/** EDGES is not the log that the view was made from: its sequences mean other edges, and new ones will not count. */
const LOG_LIES: readonly string[] = ['log-recreated', 'log-truncated', 'log-diverged'];

/** Refuses what relies on the sequences of EDGES while they are not those of the view. */
export function assertSameLog({ config, problem }: HostedGraph): void {
  if (problem === undefined || !LOG_LIES.includes(problem.code)) return;
  throw new RequestProblem('not-ready', `graph ${shown(config.name)}: ${problem.message}`, {
    retryAfterSeconds: 1,
  });
}

export function unknownGraph(name: string): RequestProblem {
  return new RequestProblem(
    'unknown-graph',
    `there is no graph ${shown(name)}: create it with PUT /v1/graphs/${name}`,
  );
}

/** What NATS answers; a problem if it does not. */
export async function natsAnswer<T>(ask: () => Promise<T>): Promise<T> {
  try {
    return await ask();
  } catch (error) {
    // Found out on the way, about the request.
    if (error instanceof RequestProblem) throw error;
    throw natsUnavailable(error instanceof Error ? error.message : String(error), error);
  }
}

export function natsUnavailable(reason: string, cause?: unknown): RequestProblem {
  return new RequestProblem(
    'nats-unavailable',
    `NATS gave no answer (${reason}): try again`,
    { retryAfterSeconds: 1 },
    { cause },
  );
}
