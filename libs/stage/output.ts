/**
 * Appending to an output log that this stage alone writes, whatever becomes of each append.
 *
 * Every append expects the log's last sequence, so that two owners cannot both append. An append without an
 * answer may be there or not; then the log itself is read: own messages count, others tell who else writes.
 */
import { LogError } from '../dataflow/errors.ts';
import type { LogName } from '../dataflow/names.ts';
import type { Bus, Clock } from './ports.ts';

const RETRY_MS = 200;

export class OutputLog {
  readonly log: LogName;
  private readonly bus: Bus;
  private readonly clock: Clock;
  private readonly stopping: () => boolean;
  private readonly onProblem: (problem: string | undefined) => void;
  private created = 0n;
  private last = 0;

  constructor(
    log: LogName,
    bus: Bus,
    clock: Clock,
    stopping: () => boolean,
    onProblem: (problem: string | undefined) => void,
  ) {
    this.log = log;
    this.bus = bus;
    this.clock = clock;
    this.stopping = stopping;
    this.onProblem = onProblem;
  }

  /** Reads where the log ends; gives its last message. */
  async open(): Promise<Uint8Array | undefined> {
    const state = await this.bus.describe(this.log.stream);
    if (state === undefined) throw new LogError('log-missing', `there is no stream ${this.log.stream}`);
    this.created = state.created;
    this.last = state.last;
    if (state.first > state.last) return undefined;
    return (await this.bus.message(this.log.stream, state.last))?.payload;
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
    let stored = 0;
    while (stored < payloads.length) {
      const results = await Promise.all(
        payloads
          .slice(stored)
          .map((payload, at) => this.bus.append(this.log, payload, { expectLast: this.last + at })),
      );
      const failed = results.findIndex((result) => result.kind !== 'stored');
      const good = failed === -1 ? results.length : failed;
      stored += good;
      this.last += good;
      if (failed === -1) break;
      if (this.stopping()) throw new Error('stopped while an append had no answer');
      const result = results[failed]!;
      if (result.kind === 'full') {
        this.onProblem(
          `stream ${this.log.stream} is full (${result.reason}): the stage waits until it drains`,
        );
        await this.clock.sleep(RETRY_MS);
      } else {
        if (result.kind === 'unknown') {
          this.onProblem(`stream ${this.log.stream} does not answer (${result.reason}): retrying`);
          await this.clock.sleep(RETRY_MS);
        }
        stored += await this.recognise(payloads.slice(stored));
      }
    }
    this.onProblem(undefined);
  }

  /** How many of the payloads the log holds behind what was known to be there. */
  private async recognise(payloads: readonly Uint8Array[]): Promise<number> {
    const { stream } = this.log;
    const state = await this.describe();
    if (state === undefined) throw new LogError('log-missing', `stream ${stream} is gone`);
    if (state.created !== this.created)
      throw new LogError('log-recreated', `stream ${stream} was created again`);
    if (state.last < this.last) {
      throw new LogError('log-truncated', `stream ${stream} ends at ${state.last}, it had ${this.last}`);
    }
    let own = 0;
    while (this.last < state.last) {
      const message = await this.bus.message(stream, this.last + 1);
      const payload = payloads[own];
      if (message === undefined || payload === undefined || !sameBytes(message.payload, payload)) {
        throw new ForeignMessage(this.log, message?.payload);
      }
      own += 1;
      this.last += 1;
    }
    return own;
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
