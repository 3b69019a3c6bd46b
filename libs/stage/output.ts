/**
 * Appending to an output log that this stage alone writes, whatever becomes of each append.
 *
 * Every append expects the log's last sequence, so that two owners cannot both append. An append without an
 * answer may be there or not; then the log itself is read: own messages count, others tell who else writes.
 */
import { LogError } from '../dataflow/errors.ts';
import type { LogName } from '../dataflow/names.ts';
import type { Bus, Clock, LogState } from './ports.ts';

const RETRY_MS = 200;
/** So many messages of others are passed over, in search of one of the log's writer. */
const FOREIGN_MAX = 1_000;

/** What to make of messages that others published on the log's subject. */
interface Others {
  /** Whether the message is of the log's writer, be it this one or another owner of its task. */
  readonly isOwn: (payload: Uint8Array) => boolean;
  /** Told of one that is not. */
  readonly passOver: (sequence: number) => void;
}

export class OutputLog {
  readonly log: LogName;
  private readonly bus: Bus;
  private readonly clock: Clock;
  private readonly stopping: () => boolean;
  private readonly onProblem: (problem: string | undefined) => void;
  private readonly others: Others;
  private created = 0n;
  private last = 0;
  private appending = false;

  constructor(
    log: LogName,
    bus: Bus,
    clock: Clock,
    stopping: () => boolean,
    onProblem: (problem: string | undefined) => void,
    others: Others,
  ) {
    this.log = log;
    this.bus = bus;
    this.clock = clock;
    this.stopping = stopping;
    this.onProblem = onProblem;
    this.others = others;
  }

  /** Reads where the log ends; gives the last message that its writer wrote. */
  async open(): Promise<Uint8Array | undefined> {
    const state = await this.bus.describe(this.log.stream);
    if (state === undefined) throw new LogError('log-missing', `there is no stream ${this.log.stream}`);
    this.created = state.created;
    this.last = state.last;
    const { first, last } = state;
    for (let sequence = last; sequence >= first; sequence--) {
      if (last - sequence === FOREIGN_MAX) {
        throw new Error(
          `the last ${FOREIGN_MAX} messages of ${this.log.stream} are not of its writer: remove them`,
        );
      }
      const message = await this.bus.message(this.log.stream, sequence);
      if (message !== undefined && this.others.isOwn(message.payload)) return message.payload;
    }
    return undefined;
  }

  /** One append of a new owner; false if the log has grown since it was opened. */
  async tryAppend(payload: Uint8Array): Promise<boolean> {
    const appended = await this.bus.append(this.log, payload, { expectLast: this.last });
    if (appended.kind !== 'stored') return false;
    this.last = appended.sequence;
    return true;
  }

  /** Appends all payloads in order; returns when the log holds them. */
  async appendAll(payloads: readonly Uint8Array[]): Promise<void> {
    this.appending = true;
    try {
      await this.appendInOrder(payloads);
    } finally {
      this.appending = false;
    }
  }

  /**
   * One at a time: of several on their way, one that is refused because somebody else was there first would leave the
   * next one to be stored in its place.
   */
  private async appendInOrder(payloads: readonly Uint8Array[]): Promise<void> {
    for (const payload of payloads) {
      let isStored = false;
      while (!isStored) {
        const result = await this.bus.append(this.log, payload, { expectLast: this.last });
        if (result.kind === 'stored') {
          this.last = result.sequence;
          break;
        }
        if (this.stopping()) throw new Error('stopped while an append had no answer');
        if (result.kind === 'full') {
          this.onProblem(
            `stream ${this.log.stream} is full (${result.reason}): the stage waits until it drains`,
          );
          await this.clock.sleep(RETRY_MS);
          continue;
        }
        if (result.kind === 'unknown') {
          this.onProblem(`stream ${this.log.stream} does not answer (${result.reason}): retrying`);
          await this.clock.sleep(RETRY_MS);
        }
        isStored = await this.recognise(payload);
      }
    }
    this.onProblem(undefined);
  }

  /** Throws if the log is gone, was created again, has lost what was appended, or grows by somebody else's hand. */
  async check(): Promise<void> {
    const { last } = this;
    const { stream } = this.log;
    const state = await this.bus.describe(stream);
    this.assertKept(state, last);
    const isStill = !this.appending && this.last === last;
    if (!isStill) return;
    for (let sequence = last + 1; sequence <= Math.min(state.last, last + FOREIGN_MAX); sequence++) {
      const message = await this.bus.message(stream, sequence);
      if (message !== undefined && this.others.isOwn(message.payload)) {
        throw new ForeignMessage(this.log, message.payload);
      }
    }
  }

  private assertKept(state: LogState | undefined, last: number): asserts state is LogState {
    const { stream } = this.log;
    if (state === undefined) throw new OutputLost(`stream ${stream} is gone`);
    if (state.created !== this.created) throw new OutputLost(`stream ${stream} was created again`);
    if (state.last < last) throw new OutputLost(`stream ${stream} ends at ${state.last}, it had ${last}`);
  }

  /** Whether the log holds the payload behind what was known to be there. */
  private async recognise(payload: Uint8Array): Promise<boolean> {
    const { stream } = this.log;
    const state = await this.describe();
    this.assertKept(state, this.last);
    let isStored = false;
    while (this.last < state.last) {
      const message = await this.bus.message(stream, this.last + 1);
      if (message !== undefined && !this.others.isOwn(message.payload))
        this.others.passOver(message.sequence);
      else if (message !== undefined && !isStored && sameBytes(message.payload, payload)) isStored = true;
      else throw new ForeignMessage(this.log, message?.payload);
      this.last += 1;
    }
    return isStored;
  }

  private async describe(): ReturnType<Bus['describe']> {
    for (;;) {
      try {
        return await this.bus.describe(this.log.stream);
      } catch (error) {
        if (this.stopping()) throw error;
        this.onProblem(`stream ${this.log.stream} does not answer (${String(error)}): retrying`);
        await this.clock.sleep(RETRY_MS);
      }
    }
  }
}

/** An output is not what was appended to it. A new session makes it so again. */
export class OutputLost extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'OutputLost';
  }
}

/** Somebody else appended to an output. */
export class ForeignMessage extends Error {
  readonly log: LogName;
  readonly payload: Uint8Array | undefined;

  constructor(log: LogName, payload: Uint8Array | undefined) {
    super(`somebody else appended to ${log.stream}`);
    this.name = 'ForeignMessage';
    this.log = log;
    this.payload = payload;
  }
}

function sameBytes(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && a.every((byte, at) => byte === b[at]);
}
