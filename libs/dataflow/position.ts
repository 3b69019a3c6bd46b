/**
 * Places in the edge stream.
 *
 * A position is an edge: (sequence of its EDGES message, index in it). A watermark is exclusive: the first
 * position not yet handed on, `(q + 1, 0)` once message q is done; it may stand in the middle of a message.
 */
export interface Position {
  readonly sequence: number;
  readonly index: number;
}

export function comparePositions(a: Position, b: Position): number {
  return a.sequence - b.sequence || a.index - b.index;
}

/** The watermark of a channel that is complete through message `sequence`. */
export function behindMessage(sequence: number): Position {
  return { sequence: sequence + 1, index: 0 };
}

/** The last whole message below a watermark. */
export function wholeMessagesBelow(watermark: Position): number {
  return watermark.sequence - 1;
}

/** A message of a log, known well enough to notice when the log has another one in its place. */
export interface MessageIdentity {
  readonly sequence: number;
  /** Arrival, nanoseconds since 1970. */
  readonly time: bigint;
  /** Creation of the stream, nanoseconds since 1970. */
  readonly created: bigint;
}
