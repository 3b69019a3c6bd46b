/**
 * Whether the gateway should be asked: /readyz.
 *
 * A graph has caught up once its view held what the EDGES log ended with when the gateway first saw the graph; from
 * then on it only counts whether something is wrong, since a view is always a moment behind a busy log.
 */
import type { EdgesEnds } from './edges-ends.ts';
import type { GraphDirectory } from './graph-directory.ts';
import type { GatewayDeps, HostedGraph } from './ports.ts';

/** How long a probe waits for a view that is about to catch up. */
const WAIT_MS = 100;

interface CatchUp {
  readonly target: number;
  done: boolean;
}

export class Readiness {
  private readonly deps: GatewayDeps;
  private readonly directory: GraphDirectory;
  private readonly ends: EdgesEnds;
  /** By the graph's id. */
  private readonly catchUps = new Map<string, CatchUp>();

  constructor(deps: GatewayDeps, directory: GraphDirectory, ends: EdgesEnds) {
    this.deps = deps;
    this.directory = directory;
    this.ends = ends;
  }

  /** Why the gateway is not ready; nothing if it is. */
  async reasons(): Promise<string[]> {
    const { connected, since } = this.deps.nats();
    const reasons = connected ? [] : [`NATS is not connected since ${since.toISOString()}`];
    if (!this.deps.graphs.known()) reasons.push('the list of graphs is being read');
    const hosts = this.directory.hosted;
    const ids = new Set(hosts.map(({ config }) => config.id));
    for (const id of this.catchUps.keys()) if (!ids.has(id)) this.catchUps.delete(id);
    const found = await Promise.all(hosts.map((host) => this.reason(host, connected)));
    for (const reason of found) if (reason !== undefined) reasons.push(reason);
    return reasons;
  }

  private async reason(host: HostedGraph, connected: boolean): Promise<string | undefined> {
    const { config, problem } = host;
    const graph = `graph ${config.name}`;
    if (problem !== undefined) return `${graph}: ${problem.message} (${problem.code})`;
    if (host.view === undefined) {
      // It may come back with less than it had: where it has to get to is found anew.
      this.catchUps.delete(config.id);
      return `${graph}: its state is being read`;
    }
    const catchUp = await this.catchUp(host, connected);
    if (catchUp === undefined) return `${graph}: the end of its log is not known`;
    if (!catchUp.done && (await host.waitFor(catchUp.target, WAIT_MS))) catchUp.done = true;
    if (catchUp.done) return undefined;
    return `${graph}: catching up, at message ${host.view?.sequence ?? 0} of ${catchUp.target}`;
  }

  private async catchUp({ config }: HostedGraph, connected: boolean): Promise<CatchUp | undefined> {
    const known = this.catchUps.get(config.id);
    if (known !== undefined || !connected) return known;
    try {
      const end = await this.ends.of(config.name);
      const catchUp = { target: end?.last ?? 0, done: false };
      this.catchUps.set(config.id, catchUp);
      return catchUp;
    } catch {
      // NATS does not answer; the next probe asks again.
      return undefined;
    }
  }
}
