/**
 * Every view is the graph of an exact prefix: at S its vertices, components and totals are those of messages 1..S, and all
 * views that were ever at S had the same digest there.
 */
import { NONE } from '../../../../libs/graph/columns.ts';
import type { View } from '../../../../services/gateway/view.ts';
import type { Oracle } from '../oracle.ts';
import type { Breach, Checker } from './checker.ts';

export class PrefixChecker implements Checker {
  private readonly oracle: Oracle;
  private readonly every: number;
  private readonly breach: Breach;
  private advances = 0;
  private readonly digests = new Map<number, string>();

  /** The whole view is compared when it is asked, and at one in `every` of its steps. */
  constructor(oracle: Oracle, every: number, breach: Breach) {
    this.oracle = oracle;
    this.every = every;
    this.breach = breach;
  }

  advanced(view: View, by: string): void {
    // In the middle of a step from one message to a later one.
    if (view.messages.totals.sequence !== view.sequence) return;
    this.checkDigest(view, by);
    this.advances += 1;
    if (this.advances % this.every === 0) this.checkWhole(view, by);
  }

  asked(view: View, by: string): void {
    this.checkWhole(view, by);
    this.checkDigest(view, by);
  }

  private checkWhole(view: View, by: string): void {
    const wrong = viewFault(view, this.oracle);
    if (wrong !== undefined)
      this.breach(`the view of ${by} at ${view.sequence} is not the graph of 1..S: ${wrong}`);
  }

  private checkDigest(view: View, by: string): void {
    const { sequence, digest } = view;
    const known = this.digests.get(sequence);
    if (known === undefined) this.digests.set(sequence, digest);
    else if (known !== digest) {
      this.breach(`the view of ${by} at ${sequence} has digest ${digest}, another had ${known}`);
    }
  }
}

/** How a view differs from the prefix that it says it is; undefined: it does not. */
export function viewFault(view: View, oracle: Oracle): string | undefined {
  const { sequence, forest, messages } = view;
  if (sequence > oracle.sequence) return `the log ends at ${oracle.sequence}`;
  const { edges, rejected } = messages.totals;
  const totals = oracle.totals(sequence);
  if (edges !== totals.edges || rejected !== totals.rejected) {
    return `it counts ${edges} edges and ${rejected} rejects instead of ${totals.edges} and ${totals.rejected}`;
  }
  const { vertices, oldest } = oracle.components(sequence);
  if (forest.rows !== vertices.length) return `it has ${forest.rows} vertices instead of ${vertices.length}`;
  const ids = Array.from({ length: forest.rows }, (_, row) => textOf(forest.vertices.idOf(row)));
  for (const [row, vertex] of vertices.entries()) {
    if (ids[row] !== vertex) return `vertex ${row} is ${ids[row]} instead of ${vertex}`;
    const found = ids[forest.oldest(forest.root(row, NONE), NONE)];
    if (found !== oldest[row]) return `${vertex} is in the component of ${found} instead of ${oldest[row]}`;
  }
  return undefined;
}

const decoder = new TextDecoder();

export function textOf(bytes: Uint8Array): string {
  return decoder.decode(bytes);
}
