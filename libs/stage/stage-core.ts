/**
 * What a stage computes, free of I/O: the runtime (stage-task.ts) hosts one of these.
 */
import type { ByteReader } from '../dataflow/bytes.ts';
import type { ChannelEnd } from '../dataflow/channel.ts';
import type { Mark } from '../dataflow/frame.ts';
import type { MessageIdentity } from '../dataflow/position.ts';
import type { LogMessage } from './ports.ts';

/** A message of an input, as far as a state must remember it. */
export interface ReadMark {
  readonly sequence: number;
  readonly time: bigint;
}

/** What one epoch hands on, and the block that records it. */
export interface Cut {
  /** Per output, the payloads to append in order. */
  readonly payloads: readonly (readonly Uint8Array[])[];
  /** Per output, how far it is complete with these. */
  readonly ends: readonly ChannelEnd[];
  /** Per input, the last message that the state holds whole. */
  readonly read: readonly ReadMark[];
  /** What the state gained since the last cut. */
  readonly increment: Uint8Array;
}

/** The end of an output as its last message tells it. */
export interface OutputEnd {
  readonly end: ChannelEnd;
  readonly term: number;
}

export interface StageCore {
  /** What the state is bound to; state of another identity is discarded. */
  readonly identity: string;

  /** Takes back an increment, or a piece of a copy, from a block. */
  restore(payload: ByteReader): void;
  /** Whether the state must not hold more than this output, or only notes for people go there. */
  bindsState(output: number): boolean;
  /** Reads the end of an output from its last message; undefined: it has none. */
  readEnd(output: number, last: Uint8Array | undefined): OutputEnd;
  /**
   * All blocks are restored: `ends` are the state's, `logEnds` the logs', `barrier` is the newest that the state has
   * had.
   */
  resume(
    ends: readonly ChannelEnd[] | undefined,
    logEnds: readonly ChannelEnd[],
    read: readonly MessageIdentity[] | undefined,
    barrier: number,
  ): void;
  /** The message by which this owner fences off all lower terms, if the output has such. */
  fence(output: number, term: number): Uint8Array | undefined;

  /** Input `input` is a stream created then (nanoseconds since 1970). */
  open(input: number, created: bigint): void;
  /** Whether the message is of the input's writer: anybody can publish to a log, and what others did is passed over. */
  accepts(input: number, message: LogMessage): boolean;
  /** Whether a message of an output is of this stage, likewise. */
  isOwn(output: number, payload: Uint8Array): boolean;
  /** Whether there is room for another message of the input. */
  wants(input: number): boolean;
  apply(input: number, message: LogMessage): void;
  /** Goes on with what `apply` left over, for a slice of time; true while there is more to do at once. */
  advance(): boolean;

  /** Whether there is something to cut. */
  readonly dirty: boolean;
  /** Bytes that the next cut will hand on or record. */
  readonly pendingBytes: number;
  /**
   * A mark that came with the input and that the state has reached: the next cut must hand it on, before anything else
   * is applied.
   */
  readonly dueMark: Mark | undefined;
  cut(mark: Mark): Cut;
  /** About the bytes of a copy, where increments repeat what earlier ones had; undefined: they do not. */
  readonly copyBytes?: number;
  /** The whole state as of the last cut, in pieces that `restore` takes; nothing is applied meanwhile. */
  copy(): Iterable<Uint8Array>;

  /** Equal wherever the same state is at the same place, if the core can tell. */
  readonly digest?: string;

  /** The last EDGES message that the state holds whole; undefined before the first. */
  readonly edgesRead: MessageIdentity | undefined;
}
