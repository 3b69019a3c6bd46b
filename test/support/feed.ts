/**
 * Edges through the real cores (partitioner, workers, view) in one go, without runtime, bus or disk: what was
 * published is in the view when `publish` returns.
 */
import { CHANNEL_START } from '../../libs/dataflow/channel.ts';
import { NO_MARK } from '../../libs/dataflow/frame.ts';
import { type GraphConfig, newGraphConfig } from '../../libs/dataflow/graph-config.ts';
import { DEFAULT_PARTITIONER, type PartitionerConfig } from '../../libs/partitioning/partitioner-config.ts';
import type { LogMessage } from '../../libs/stage/ports.ts';
import type { StageCore } from '../../libs/stage/stage-core.ts';
import { View, type ViewObserver } from '../../services/gateway/view.ts';
import { Partitioner } from '../../services/partitioner/partitioner.ts';
import { Worker } from '../../services/worker/worker.ts';

export const FEED_GRAPH_ID = '0123456789abcdef0123456789abcdef';
/** Message n arrives n seconds after this, ms since 1970. */
export const FEED_START_MS = Date.UTC(2026, 0, 1);

const NOBODY: ViewObserver = { visible: () => {}, advanced: () => {} };

export type FeedPayload = object | string | Uint8Array;

export interface FeedOptions {
  readonly partitions: number;
  readonly name?: string;
  readonly graphId?: string;
  readonly partitioner?: PartitionerConfig;
  readonly observer?: ViewObserver;
}

export class Feed {
  readonly config: GraphConfig;
  readonly view: View;
  readonly partitioner: Partitioner;
  private readonly workers: readonly Worker[];
  /** Of the last message. */
  sequence = 0;

  constructor({
    partitions,
    name = 'g',
    graphId = FEED_GRAPH_ID,
    partitioner = DEFAULT_PARTITIONER,
    observer = NOBODY,
  }: FeedOptions) {
    const generation = { generation: 1, partitions, after: 0 };
    this.config = newGraphConfig(
      { name, id: graphId, created: new Date(FEED_START_MS).toISOString() },
      { partitions, partitioner },
    );
    this.partitioner = new Partitioner({ graphId, ...generation, partitioner });
    this.workers = Array.from(
      { length: partitions },
      (_, partition) => new Worker({ graphId, partition, ...generation }),
    );
    this.view = new View({ graphId, origin: 1 }, observer);
    this.view.begin(generation);
    begin(this.partitioner, partitions + 1, 1);
    for (const worker of this.workers) begin(worker, 1, 1);
    begin(this.view, 0, partitions);
  }

  /** A message: an edge or a list of edges, or a payload as it is. Gives its sequence. */
  publish(payload: FeedPayload, contentType?: string): number {
    const sequence = this.sequence + 1;
    const time = BigInt(FEED_START_MS + sequence * 1000) * 1_000_000n;
    this.take([{ sequence, time, payload: payloadBytes(payload), contentType }]);
    return sequence;
  }

  /** Messages of EDGES, as one epoch of the partitioner. */
  take(messages: readonly LogMessage[]): void {
    const last = messages.at(-1);
    if (last === undefined) return;
    for (const message of messages) this.partitioner.apply(0, message);
    this.sequence = last.sequence;
    const { payloads } = this.partitioner.cut(NO_MARK);
    for (const [partition, worker] of this.workers.entries()) {
      for (const frame of payloads[partition]!) worker.apply(0, frameMessage(last, frame));
      for (const frame of worker.cut(NO_MARK).payloads[0]!)
        this.view.apply(partition, frameMessage(last, frame));
    }
    while (this.view.advance());
  }
}

/** All payloads, one message each, for a number of partitions. */
export function feedView(payloads: readonly FeedPayload[], partitions: number): View {
  const feed = new Feed({ partitions });
  for (const payload of payloads) feed.publish(payload);
  return feed.view;
}

function begin(core: StageCore, outputs: number, inputs: number): void {
  const ends = Array.from({ length: outputs }, () => CHANNEL_START);
  core.resume(undefined, ends, undefined, 0);
  for (let input = 0; input < inputs; input++) core.open(input, 1n);
}

function frameMessage({ sequence, time }: LogMessage, payload: Uint8Array): LogMessage {
  return { sequence, time, payload: payload.slice(), contentType: undefined };
}

function payloadBytes(payload: FeedPayload): Uint8Array {
  if (payload instanceof Uint8Array) return payload;
  return new TextEncoder().encode(typeof payload === 'string' ? payload : JSON.stringify(payload));
}
