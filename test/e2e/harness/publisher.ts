/**
 * A publisher of random edges that keeps an oracle: the pipeline's cores in this process, fed with the same messages
 * in the same order, undisturbed.
 */
import assert from 'node:assert/strict';
import type { ComponentsPage } from '../../../libs/api/component.ts';
import type { GraphStatus } from '../../../libs/api/graph.ts';
import { connectNats, NatsBus } from '../../../libs/bus/nats-bus.ts';
import { edgesLog } from '../../../libs/dataflow/names.ts';
import type { View } from '../../../services/gateway/view.ts';
import { CorePipeline } from '../../support/core-pipeline.ts';
import { seeded } from '../../support/seeded.ts';
import { type Gateway, until } from './cluster.ts';

const EDGES_PER_MESSAGE = 40;
const VERTICES = 20_000;
const PAUSE_MS = 5;
const RETRY_MS = 100;

export class Publisher {
  readonly oracle = new CorePipeline(1);
  /** Sequence of the last message that was acknowledged. */
  last = 0;
  /** Messages begun so far; all but the last of them are stored. */
  private begun = 0;
  private readonly bus: NatsBus;
  private readonly graph: string;
  private readonly random: () => number;
  private readonly close: () => Promise<void>;
  private running: Promise<void> | undefined;
  private stopping = false;

  private constructor(bus: NatsBus, graph: string, seed: number) {
    this.bus = bus;
    this.graph = graph;
    this.random = seeded(seed);
    this.close = () => bus.connection.close();
  }

  static async connect(
    natsUrl: string,
    graph: string,
    seed: number = Date.now() % 1_000_000,
  ): Promise<Publisher> {
    console.log(`${graph}: seed ${seed}`);
    const connection = await connectNats({ url: natsUrl, name: 'publisher', wait: true });
    return new Publisher(new NatsBus(connection), graph, seed);
  }

  /** Publishes until told to stop, whatever becomes of the server meanwhile. */
  start(): void {
    this.stopping = false;
    this.running = (async () => {
      while (!this.stopping) {
        await this.publish(this.edges());
        await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
      }
    })();
  }

  async stop(): Promise<void> {
    this.stopping = true;
    await this.running;
  }

  /** The sequence of a message that is not begun yet, once it is stored. */
  async nextMessage(ms: number): Promise<number> {
    const { begun } = this;
    await until(() => this.begun > begun + 1, 'another message to be stored', ms);
    return this.last;
  }

  /** Publishes so many messages of random edges. */
  async messages(count: number): Promise<void> {
    for (let message = 0; message < count; message++) await this.publish(this.edges());
  }

  /** Returns when the payload is stored. Its id makes sure that it is stored once. */
  async publish(payload: string | Uint8Array): Promise<void> {
    const bytes = typeof payload === 'string' ? new TextEncoder().encode(payload) : payload;
    const messageId = `${this.graph}:${Math.floor(this.random() * 2 ** 52)}`;
    this.begun += 1;
    for (;;) {
      const appended = await this.bus.append(edgesLog(this.graph), bytes, { messageId });
      if (appended.kind === 'stored') {
        // The only publisher: an acknowledgement of an older message would be a false one.
        assert.ok(appended.sequence > this.last, `${appended.sequence} was acknowledged after ${this.last}`);
        this.last = appended.sequence;
        break;
      }
      if (appended.kind !== 'unknown') throw new Error(appended.kind);
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
    }
    this.oracle.publish(bytes);
  }

  async disconnect(): Promise<void> {
    await this.stop();
    await this.close();
  }

  private edges(): string {
    const { random } = this;
    const edges = Array.from({ length: EDGES_PER_MESSAGE }, () => ({
      source: `v${Math.floor(random() ** 2 * VERTICES)}`,
      target: random() < 0.01 ? '' : `v${Math.floor(random() * VERTICES)}`,
    }));
    return JSON.stringify(edges);
  }
}

/** The totals and the largest components of the graph, as of the last message, are those of the oracle. */
export async function expectOracle(
  gateway: Gateway,
  graph: string,
  { oracle, last }: Pick<Publisher, 'oracle' | 'last'>,
): Promise<void> {
  const status = await gateway.get<GraphStatus>(`/v1/graphs/${graph}?asOf=${last}&timeout=60`);
  const view = oracle.settle();
  assert.deepEqual(status.totals, {
    sequence: last,
    vertices: view.forest.rows,
    components: view.forest.rows - view.forest.links,
    edges: view.messages.totals.edges,
    rejected: view.messages.totals.rejected,
  });
  const page = await gateway.get<ComponentsPage>(`/v1/graphs/${graph}/components?limit=1000&asOf=${last}`);
  assert.deepEqual(page.components, largestOf(view));
}

function largestOf(view: View): { id: string; size: number }[] {
  return view.forest.order.page(undefined, 1000).map(({ oldest, size }) => ({
    id: new TextDecoder().decode(view.forest.vertices.idOf(oldest)),
    size,
  }));
}
