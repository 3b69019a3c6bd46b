/**
 * What the graph is through message S, by the slowest and simplest means: every message is parsed by JSON.parse, every
 * component is a set that is copied into another. It shares no code with the product.
 */
import type { LogMessage } from '../../../libs/stage/ports.ts';

interface OracleMessage {
  readonly message: LogMessage;
  readonly edges: readonly (readonly [string, string])[];
  readonly rejected: number;
}

export interface Totals {
  readonly edges: number;
  readonly rejected: number;
  readonly bytes: number;
}

export interface Components {
  /** In order of arrival. */
  readonly vertices: readonly string[];
  /** Per vertex, the oldest one of its component. */
  readonly oldest: readonly string[];
}

export class Oracle {
  /** From message 1 on. */
  private readonly messages: OracleMessage[] = [];
  private readonly sums: Totals[] = [{ edges: 0, rejected: 0, bytes: 0 }];
  private readonly counted = new Set<string>();

  /** The last message. */
  get sequence(): number {
    return this.messages.length;
  }

  take(message: LogMessage): void {
    if (message.sequence !== this.messages.length + 1)
      throw new Error(`message ${message.sequence} is out of turn`);
    const taken = this.parse(message);
    this.messages.push(taken);
    const before = this.sums.at(-1)!;
    this.sums.push({
      edges: before.edges + taken.edges.length,
      rejected: before.rejected + taken.rejected,
      bytes: before.bytes + message.payload.length,
    });
  }

  /** Forgets what came behind a message: the log has lost it. */
  totals(sequence: number): Totals {
    return this.sums[sequence]!;
  }

  message(sequence: number): LogMessage | undefined {
    return this.messages[sequence - 1]?.message;
  }

  /** The messages with rejects through `sequence`, with their counts. */
  rejects(sequence: number): (readonly [sequence: number, count: number])[] {
    return this.messages
      .slice(0, sequence)
      .flatMap(({ message, rejected }) => (rejected > 0 ? [[message.sequence, rejected] as const] : []));
  }

  /** The components of the edges of messages `after` + 1 through `sequence`. */
  components(sequence: number, after = 0): Components {
    const component = new Map<string, Set<string>>();
    for (const { edges } of this.messages.slice(after, sequence)) {
      for (const edge of edges) {
        for (const vertex of [...edge].sort())
          if (!component.has(vertex)) component.set(vertex, new Set([vertex]));
        const [one, other] = edge.map((vertex) => component.get(vertex)!);
        if (one === other) continue;
        for (const vertex of other!) {
          one!.add(vertex);
          component.set(vertex, one!);
        }
      }
    }
    const oldest = new Map<Set<string>, string>();
    for (const [vertex, members] of component) if (!oldest.has(members)) oldest.set(members, vertex);
    return {
      vertices: [...component.keys()],
      oldest: [...component.values()].map((members) => oldest.get(members)!),
    };
  }

  private parse(message: LogMessage): OracleMessage {
    const { producer, payload } = message;
    if (producer !== undefined) {
      const number = Number(producer.sequence);
      if (!(number >= 1)) return { message, edges: [], rejected: 1 };
      const key = `${producer.id} ${number}`;
      if (this.counted.has(key)) return { message, edges: [], rejected: 0 };
      this.counted.add(key);
    }
    let value: unknown;
    try {
      value = JSON.parse(new TextDecoder().decode(payload));
    } catch {
      return { message, edges: [], rejected: 1 };
    }
    const all = (Array.isArray(value) ? value : [value]) as { source?: unknown; target?: unknown }[];
    const edges = all.flatMap(({ source, target }) =>
      isId(source) && isId(target) ? [[source, target] as const] : [],
    );
    return { message, edges, rejected: all.length - edges.length };
  }
}

function isId(value: unknown): value is string {
  return typeof value === 'string' && value.length > 0;
}
