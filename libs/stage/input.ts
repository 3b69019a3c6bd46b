/**
 * One input of a stage: keeps its messages coming, over any number of readers, from a position that is checked
 * each time it is opened.
 */
import { LogError, type LogErrorCode } from '../dataflow/errors.ts';
import type { LogName } from '../dataflow/names.ts';
import type { MessageIdentity } from '../dataflow/position.ts';
import type { Bus, Clock, Log, LogMessage, LogReader } from './ports.ts';
import { checkPosition, LOG_START } from './position-check.ts';
import { Signal } from './signal.ts';
import type { StageCore } from './stage-core.ts';

const WAIT_MS = 1_000;
const RETRY_MS_MIN = 250;
const RETRY_MS_MAX = 5_000;
const PAUSE_MS = 100;
/** How often the position is looked at while nothing comes. */
const CHECK_MS = 5_000;

export interface Problem {
  readonly code: LogErrorCode | 'retrying' | 'failed';
  readonly message: string;
}

export interface InputHost {
  /** For people: the task. */
  readonly name: string;
  readonly bus: Bus;
  readonly clock: Clock;
  readonly log: Log;
  /**
   * The EDGES stream, where the input is a function of it: then an input that was replaced heals, as long as EDGES still
   * holds the message that the state was read through.
   */
  readonly edgesStream: string | undefined;
  readonly isOver: () => boolean;
  /** Whether the log was given up, so that it will never be there again. */
  readonly isGivenUp: () => boolean;
  readonly setProblem: (about: string, problem: Problem | undefined) => void;
  /** Another look at EDGES behind the input. */
  readonly checkEdges: () => Promise<void>;
  readonly opened: () => void;
  readonly healed: () => void;
  /** The input does not continue the state: only a newer one helps. */
  readonly failed: (error: LogError) => void;
  /** Messages are ready. */
  readonly wake: () => void;
}

export class Input {
  readonly log: LogName;
  position: MessageIdentity;
  ready: readonly LogMessage[] = [];
  taken = 0;
  private readonly at: number;
  private readonly core: StageCore;
  private readonly host: InputHost;
  private reader: LogReader | undefined;
  /** Raised when the loop has taken all that was ready. */
  private readonly emptied: Signal;
  private reading: Promise<void> = Promise.resolve();
  /** When the position was looked at last. */
  private checkedAt = Number.NEGATIVE_INFINITY;

  constructor(log: LogName, at: number, position: MessageIdentity, core: StageCore, host: InputHost) {
    this.log = log;
    this.at = at;
    this.position = position;
    this.core = core;
    this.host = host;
    this.emptied = new Signal(host.clock);
  }

  start(): void {
    this.reading = this.read();
  }

  /** The session is over. */
  async stop(): Promise<void> {
    this.emptied.raise();
    await Promise.all([this.reading, this.reader?.close()]);
  }

  /** The next message, if one is ready. */
  get next(): LogMessage | undefined {
    return this.ready[this.taken];
  }

  take(): void {
    this.taken += 1;
  }

  /** All that was ready is applied, if it is. */
  release(): void {
    if (this.taken < this.ready.length || this.taken === 0) return;
    this.ready = [];
    this.taken = 0;
    this.emptied.raise();
  }

  private async read(): Promise<void> {
    const { host } = this;
    let retryMs = RETRY_MS_MIN;
    while (!host.isOver()) {
      try {
        this.reader = await this.open();
        host.setProblem(this.log.stream, undefined);
        host.opened();
        retryMs = RETRY_MS_MIN;
        while (!host.isOver()) {
          const messages = await this.reader.next(WAIT_MS);
          const last = messages.at(-1);
          if (last === undefined) {
            if (await this.isReplaced()) break;
            continue;
          }
          this.ready = messages;
          this.taken = 0;
          host.wake();
          await this.emptied.wait(undefined);
          if (host.isOver()) break;
          this.position = { ...this.position, sequence: last.sequence, time: last.time };
        }
      } catch (error) {
        if (host.isOver()) break;
        if (error instanceof LogError && error.code === 'log-gap') {
          host.failed(error);
          break;
        }
        host.setProblem(this.log.stream, readProblem(this.log.stream, error));
        await pause(host.clock, retryMs, host.isOver);
        retryMs = Math.min(retryMs * 2, RETRY_MS_MAX);
      }
      await this.reader?.close().catch(() => {});
      this.reader = undefined;
    }
  }

  /**
   * No message tells that the log lost its end: its numbers are given again, and until they are beyond the reader's,
   * none comes.
   */
  private async isReplaced(): Promise<boolean> {
    const { bus, clock } = this.host;
    if (clock.now() - this.checkedAt < CHECK_MS) return false;
    this.checkedAt = clock.now();
    try {
      await checkPosition(bus, this.log.stream, this.position);
      return false;
    } catch (error) {
      // A server that does not answer the reader will notice.
      return error instanceof LogError;
    }
  }

  private async open(): Promise<LogReader> {
    const { host, core, log } = this;
    if ((await host.bus.describe(log.stream)) === undefined) {
      const isDerived = host.edgesStream !== undefined;
      if (host.isGivenUp())
        throw new LogError('log-gap', `stream ${log.stream} was given up before it was read to its end`);
      // Between stages this is how every start looks until the writer has made its log.
      if (isDerived) throw new Error('it is not there (yet): its writer is not running, or it was deleted');
      throw new LogError(
        'log-missing',
        `there is no stream ${log.stream}: restore it, or remove the graph and create it again`,
      );
    }
    this.checkedAt = host.clock.now();
    let reader = await host.bus.read(log.stream, this.position.sequence + 1);
    try {
      const created = await this.check();
      if (created !== this.position.created) {
        this.position = { ...this.position, created };
        // A healed position is behind the reader's: read what is there from its first message.
        await reader.close();
        reader = await host.bus.read(log.stream, this.position.sequence + 1);
      }
      await host.checkEdges();
      core.open(this.at, created);
      return reader;
    } catch (error) {
      await reader.close();
      throw error;
    }
  }

  /**
   * Checks the position. PARTS and FOREST are functions of EDGES: where such a log is not the one that was
   * read, but EDGES still is, its frames from the first one on are read again, what the state has of them
   * dropped, and the running hash compared. EDGES itself never heals silently.
   */
  private async check(): Promise<bigint> {
    const { host, core } = this;
    const { stream } = this.log;
    try {
      return await checkPosition(host.bus, stream, this.position);
    } catch (error) {
      const { edgesStream } = host;
      if (!(error instanceof LogError) || error.code === 'log-missing' || edgesStream === undefined)
        throw error;
      await checkPosition(host.bus, edgesStream, core.edgesRead ?? LOG_START);
      const state = await host.bus.describe(stream);
      if (state === undefined) throw error;
      if (error.code === 'log-truncated' && state.first > state.last && state.last > this.position.sequence) {
        // A stage's own purge leaves the last message; here no message is left to tell where the log goes on.
        throw new LogError('log-gap', `stream ${stream} was emptied, and not all of it had been read`);
      }
      host.healed();
      host.log.warn(
        { task: host.name, stream, code: error.code },
        `${error.message}; EDGES is unchanged, reading ${stream} again`,
      );
      this.position = { sequence: state.first - 1, time: 0n, created: 0n };
      return state.created;
    }
  }
}

export function problemOf(error: unknown): Problem {
  if (error instanceof LogError) return { code: error.code, message: error.message };
  return { code: 'failed', message: error instanceof Error ? error.message : String(error) };
}

function readProblem(stream: string, error: unknown): Problem {
  const problem = problemOf(error);
  if (problem.code !== 'failed') return problem;
  return { code: 'retrying', message: `stream ${stream} cannot be read (${problem.message}): retrying` };
}

/** Sleeps for `ms`, less if it is over before. */
export async function pause(clock: Clock, ms: number, isOver: () => boolean): Promise<void> {
  const until = clock.now() + ms;
  while (!isOver() && clock.now() < until) await clock.sleep(Math.min(PAUSE_MS, until - clock.now()));
}
