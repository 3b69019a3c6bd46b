/**
 * From a request's `asOf`, `atLeast` and `timeout` to a view that holds what it needs.
 */
import { type ReadQuery, TIMEOUT_SECONDS_DEFAULT } from '../../libs/api/query.ts';
import { Reading } from './answers.ts';
import { assertSameLog, type GraphDirectory } from './graph-directory.ts';
import type { GatewayDeps, HostedGraph } from './ports.ts';
import { RequestProblem, shown } from './problems.ts';

type Wait = Pick<ReadQuery, 'atLeast' | 'timeout'>;

export interface HostedReading {
  readonly host: HostedGraph;
  readonly reading: Reading;
}

export class Reader {
  private readonly deps: GatewayDeps;
  private readonly directory: GraphDirectory;

  constructor(deps: GatewayDeps, directory: GraphDirectory) {
    this.deps = deps;
    this.directory = directory;
  }

  async read(graph: string, query: ReadQuery): Promise<Reading> {
    return (await this.readAt(graph, query, () => query.asOf)).reading;
  }

  /**
   * `sequenceOf` gives the sequence to answer for, once the graph is known; undefined: the one the view has
   * reached. A cursor, which is bound to the graph's id, may be what tells.
   */
  async readAt(
    graph: string,
    { atLeast = 0, timeout = TIMEOUT_SECONDS_DEFAULT }: Wait,
    sequenceOf: (host: HostedGraph) => number | undefined,
  ): Promise<HostedReading> {
    const { clock } = this.deps;
    const deadline = clock.now() + timeout * 1000;
    const host = await this.directory.await(graph, deadline);
    // The sequence that the reader has may be of another log.
    if (atLeast > 0) assertSameLog(host);
    const sequence = sequenceOf(host);
    const needed = Math.max(atLeast, sequence ?? 0);
    if (host.view === undefined || host.view.sequence < needed) {
      await host.waitFor(needed, Math.max(0, deadline - clock.now()));
    }
    const { view } = host;
    if (view === undefined) throw restoring(host);
    if (view.sequence < needed) {
      throw new RequestProblem(
        'not-yet',
        `the answers hold messages through ${view.sequence}, not ${needed} yet: wait longer (timeout=), or ask again`,
        { sequence: view.sequence, retryAfterSeconds: 1 },
      );
    }
    return { host, reading: new Reading(view, sequence ?? view.sequence, sequence !== undefined) };
  }
}

function restoring({ config, problem }: HostedGraph): RequestProblem {
  const why = problem === undefined ? 'its state is being read' : problem.message;
  return new RequestProblem('not-ready', `graph ${shown(config.name)} cannot be read yet: ${why}`, {
    retryAfterSeconds: 1,
  });
}
