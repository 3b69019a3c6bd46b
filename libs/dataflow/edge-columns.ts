/**
 * The edges of one EDGES message as columns: what every payload decoder fills and the partitioner reads.
 *
 * One instance is reused for message after message, so decoding allocates nothing per edge. Ids stay bytes
 * from the payload to the vertex table; no JavaScript string is made of them on the way.
 */

/** Bytes of `count` ids: id i is `bytes[start[i] .. end[i])`. */
export interface IdColumn {
  bytes: Uint8Array;
  start: Uint32Array;
  end: Uint32Array;
}

/** Why one edge of a message does not count. `index` counts every edge of the message, rejected ones too. */
export interface Rejection {
  readonly index: number;
  readonly reason: string;
}

export const OP_ADD = 0;
export const OP_REMOVE = 1;

/** An id has 1 to this many bytes. */
export const ID_BYTES_MAX = 1024;

/** REJECTED carries the exact count and at most this many reasons per message. */
export const REASONS_MAX = 100;

export class EdgeColumns {
  /** Edges of the message, rejected ones too. */
  count = 0;
  source: IdColumn = emptyIdColumn();
  target: IdColumn = emptyIdColumn();
  /** Milliseconds since 1970 as the edge gives it; NaN where it gives none (the message's arrival counts). */
  time = new Float64Array(0);
  /** OP_ADD or OP_REMOVE. */
  op = new Uint8Array(0);
  /** 1 where the edge is rejected; its other columns then mean nothing. */
  rejected = new Uint8Array(0);
  rejectedCount = 0;
  /** The first REASONS_MAX reasons, in index order. */
  reasons: Rejection[] = [];

  /** Forgets all edges and makes room for `capacity` of them. */
  reset(capacity = 0): void {
    this.count = 0;
    this.rejectedCount = 0;
    this.reasons = [];
    if (capacity > this.time.length) this.grow(capacity);
  }

  /** Room for `capacity` edges in all columns; what is there stays. */
  reserve(capacity: number): void {
    if (capacity > this.time.length) this.grow(Math.max(capacity, this.time.length * 2, 64));
  }

  /** Marks edge `index` rejected; `reason` names the field, the value and the rule. */
  reject(index: number, reason: string): void {
    if (this.rejected[index] === 1) return;
    this.rejected[index] = 1;
    this.rejectedCount += 1;
    if (this.reasons.length < REASONS_MAX) this.reasons.push({ index, reason });
  }

  private grow(capacity: number): void {
    this.source = {
      ...this.source,
      start: wider(this.source.start, capacity),
      end: wider(this.source.end, capacity),
    };
    this.target = {
      ...this.target,
      start: wider(this.target.start, capacity),
      end: wider(this.target.end, capacity),
    };
    const time = new Float64Array(capacity);
    time.set(this.time);
    this.time = time;
    const op = new Uint8Array(capacity);
    op.set(this.op);
    this.op = op;
    const rejected = new Uint8Array(capacity);
    rejected.set(this.rejected);
    this.rejected = rejected;
  }
}

function emptyIdColumn(): IdColumn {
  return { bytes: new Uint8Array(0), start: new Uint32Array(0), end: new Uint32Array(0) };
}

function wider(column: Uint32Array, capacity: number): Uint32Array {
  const wide = new Uint32Array(capacity);
  wide.set(column);
  return wide;
}
