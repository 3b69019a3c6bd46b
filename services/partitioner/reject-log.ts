/**
 * The log of rejects: one JSON message per EDGES message that had any, so that nothing is dropped in silence.
 *
 * Its messages name the EDGES message they are about. So its last one tells how far it is complete, and a
 * replay leaves out what is there.
 */
import { CHANNEL_START, type ChannelEnd } from '../../libs/dataflow/channel.ts';
import { NO_LANES } from '../../libs/dataflow/checksum.ts';
import { REASONS_MAX } from '../../libs/dataflow/edge-columns.ts';
import { behindMessage } from '../../libs/dataflow/position.ts';

/** A message of REJECTED. */
export interface Reject {
  /** The EDGES message. */
  readonly sequence: number;
  /** Its rejected edges; 1 where it could not be decoded at all. */
  readonly count: number;
  /** The first 100; without an index where the whole message is meant. */
  readonly reasons: readonly { readonly index?: number; readonly reason: string }[];
}

/** Whether a message of the log was written by a partitioner, and not by somebody who published there. */
export function isReject(payload: Uint8Array): boolean {
  let value: unknown;
  try {
    value = JSON.parse(new TextDecoder().decode(payload));
  } catch {
    return false;
  }
  if (typeof value !== 'object' || value === null) return false;
  const { sequence, count, reasons } = value as Partial<Reject>;
  return Number.isSafeInteger(sequence) && Number.isSafeInteger(count) && Array.isArray(reasons);
}

export class RejectLog {
  private last = 0;
  private logLast = 0;
  private pending: Uint8Array[] = [];
  pendingBytes = 0;

  static readEnd(last: Uint8Array | undefined): ChannelEnd {
    if (last === undefined) return CHANNEL_START;
    const { sequence } = JSON.parse(new TextDecoder().decode(last)) as Reject;
    return { ...CHANNEL_START, through: behindMessage(sequence) };
  }

  get end(): ChannelEnd {
    return { through: behindMessage(this.last), count: 0, hash: NO_LANES };
  }

  resume(state: ChannelEnd, logEnd: ChannelEnd): void {
    this.last = state.through.sequence - 1;
    this.logLast = logEnd.through.sequence - 1;
    this.pending = [];
    this.pendingBytes = 0;
  }

  add(
    sequence: number,
    count: number,
    reasons: readonly { index: number | undefined; reason: string }[],
  ): void {
    this.last = sequence;
    if (sequence <= this.logLast) return;
    const reject: Reject = {
      sequence,
      count,
      reasons: reasons
        .slice(0, REASONS_MAX)
        .map(({ index, reason }) => (index === undefined ? { reason } : { index, reason })),
    };
    const payload = new TextEncoder().encode(JSON.stringify(reject));
    this.pending.push(payload);
    this.pendingBytes += payload.length;
  }

  cut(): Uint8Array[] {
    const { pending } = this;
    this.pending = [];
    this.pendingBytes = 0;
    return pending;
  }
}
