/** Where the rows of a file end up: as edges of Arrow payloads, or refused. */

import { ArrowBatchBuilder } from '../../../libs/dataflow/arrow-payload.ts';
import { RefusedRows } from './refused-rows.ts';

/** One message costs little more than an edge of its own, up to about this size. */
const PAYLOAD_BYTES = 64 * 1024;

export interface EdgePayload {
  /** An Arrow stream of one record batch. */
  readonly payload: Uint8Array;
  readonly edges: number;
}

export class EdgeBatches {
  readonly refused = new RefusedRows();
  /** Rows so far, refused ones too. */
  rows = 0;
  /** Edges so far. */
  edges = 0;
  private readonly builder = new ArrowBatchBuilder();
  private ready: EdgePayload[] = [];

  add(
    source: Uint8Array,
    sourceStart: number,
    sourceEnd: number,
    target: Uint8Array,
    targetStart: number,
    targetEnd: number,
    timeMs: number | undefined,
    weight: number | undefined,
  ): void {
    this.rows += 1;
    this.edges += 1;
    const { builder } = this;
    builder.append(source, sourceStart, sourceEnd, target, targetStart, targetEnd, timeMs, weight);
    if (builder.bytes >= PAYLOAD_BYTES) this.close();
  }

  refuse(place: string, reason: string): void {
    this.rows += 1;
    this.refused.add(place, reason);
  }

  /** Full payloads that were not taken yet. */
  take(): readonly EdgePayload[] {
    const { ready } = this;
    if (ready.length > 0) this.ready = [];
    return ready;
  }

  /** Makes a payload of the edges that are left. */
  close(): void {
    const edges = this.builder.count;
    if (edges > 0) this.ready.push({ payload: this.builder.finish(), edges });
  }
}
