/**
 * The bus's in-memory twin. Besides the lawful behaviour it does what real logs do on bad days: a stream
 * deleted, recreated, purged at the head or cut at the tail, an append whose answer is lost.
 */
import type { LogName } from '../dataflow/names.ts';
import type {
  Appended,
  AppendOptions,
  Bus,
  Clock,
  LogMessage,
  LogOptions,
  LogReader,
  LogState,
} from '../stage/ports.ts';

interface MemoryLog {
  readonly created: bigint;
  readonly options: LogOptions;
  first: number;
  messages: LogMessage[];
  /** Of all payloads. */
  bytes: number;
  isRemoved: boolean;
  /** Grows whenever all readers are reset. */
  readings: number;
  readonly ids: Map<string, number>;
  readonly waiting: Set<() => void>;
}

/** What happens to an append: it fails before it is stored, or is stored and the answer is lost. */
export type AppendFault = 'none' | 'lost-before' | 'lost-after';

export class MemoryBus implements Bus {
  private readonly logs = new Map<string, MemoryLog>();
  private readonly now: () => bigint;
  private readonly clock: Clock;
  /** Asked at each append; may throw, as a killed process does. */
  onAppend: (log: LogName) => AppendFault = () => 'none';
  afterAppend: (log: LogName) => void = () => {};

  /** `now`: nanoseconds since 1970. */
  constructor(now: () => bigint, clock: Clock) {
    this.now = now;
    this.clock = clock;
  }

  async describe(stream: string): Promise<LogState | undefined> {
    const log = this.logs.get(stream);
    if (log === undefined) return undefined;
    const { created, first, bytes } = log;
    return { created, first, last: first + log.messages.length - 1, bytes };
  }

  async message(stream: string, sequence: number): Promise<LogMessage | undefined> {
    const log = this.logs.get(stream);
    return log?.messages[sequence - log.first];
  }

  async append(name: LogName, payload: Uint8Array, options: AppendOptions): Promise<Appended> {
    const fault = this.onAppend(name);
    const log = this.logs.get(name.stream);
    if (fault === 'lost-before') return { kind: 'unknown', reason: 'no answer' };
    if (log === undefined) return { kind: 'unknown', reason: 'no such stream' };
    const known = options.messageId === undefined ? undefined : log.ids.get(options.messageId);
    if (known !== undefined) return { kind: 'stored', sequence: known, duplicate: true };
    const last = log.first + log.messages.length - 1;
    if (options.expectLast !== undefined && options.expectLast !== last) return { kind: 'conflict' };
    const sequence = last + 1;
    log.messages.push({
      sequence,
      time: this.now(),
      payload: payload.slice(),
      contentType: options.contentType,
      producer: options.producer,
    });
    log.bytes += payload.length;
    if (options.messageId !== undefined) log.ids.set(options.messageId, sequence);
    for (const wake of [...log.waiting]) wake();
    this.afterAppend(name);
    if (fault === 'lost-after') return { kind: 'unknown', reason: 'the answer was lost' };
    return { kind: 'stored', sequence, duplicate: false };
  }

  async read(stream: string, from: number): Promise<LogReader> {
    const log = this.logs.get(stream);
    if (log === undefined) throw new Error(`no stream ${stream}`);
    return new MemoryReader(log, from, this.clock);
  }

  async create(stream: string, options: LogOptions): Promise<void> {
    if (this.logs.has(stream)) return;
    this.logs.set(stream, {
      created: this.now(),
      options,
      first: options.firstSequence ?? 1,
      messages: [],
      bytes: 0,
      isRemoved: false,
      readings: 0,
      ids: new Map(),
      waiting: new Set(),
    });
  }

  async remove(stream: string): Promise<void> {
    const log = this.logs.get(stream);
    if (log === undefined) return;
    log.isRemoved = true;
    this.logs.delete(stream);
    for (const wake of [...log.waiting]) wake();
  }

  async purge(stream: string, sequence: number): Promise<void> {
    const log = this.logs.get(stream);
    if (log === undefined) throw new Error(`no stream ${stream}`);
    log.messages = log.messages.slice(Math.max(0, sequence - log.first));
    log.first = Math.max(log.first, sequence);
    log.bytes = bytesOf(log.messages);
  }

  /** Loses all messages above `sequence`, whose numbers are then given again; readers may not notice. */
  cutTail(stream: string, sequence: number, resetsReaders = false): void {
    const log = this.logs.get(stream)!;
    if (resetsReaders) log.readings += 1;
    log.messages = log.messages.slice(0, Math.max(0, sequence - log.first + 1));
    log.bytes = bytesOf(log.messages);
  }

  /** Deletes a log and makes it again, empty. */
  async recreate(stream: string): Promise<void> {
    const { options } = this.logs.get(stream)!;
    await this.remove(stream);
    await this.create(stream, options);
  }

  /** Of the last message, if there is one. */
  lastPayload(stream: string): Uint8Array | undefined {
    return this.logs.get(stream)?.messages.at(-1)?.payload;
  }

  /** The names of the logs that are there. */
  get streams(): string[] {
    return [...this.logs.keys()];
  }
}

function bytesOf(messages: readonly LogMessage[]): number {
  return messages.reduce((sum, { payload }) => sum + payload.length, 0);
}

class MemoryReader implements LogReader {
  private readonly log: MemoryLog;
  private readonly clock: Clock;
  private readonly reading: number;
  private nextSequence: number;
  private closed = false;

  constructor(log: MemoryLog, from: number, clock: Clock) {
    this.log = log;
    this.reading = log.readings;
    this.nextSequence = from;
    this.clock = clock;
  }

  async next(waitMs: number): Promise<readonly LogMessage[]> {
    const { log } = this;
    if (log.first + log.messages.length <= this.nextSequence && !this.closed && !log.isRemoved) {
      await new Promise<void>((resolve) => {
        const wake = (): void => {
          cancel();
          log.waiting.delete(wake);
          resolve();
        };
        const cancel = this.clock.after(waitMs, wake);
        log.waiting.add(wake);
      });
    }
    if (this.closed) return [];
    if (log.isRemoved) throw new Error('the log was deleted');
    if (log.readings !== this.reading) throw new Error('the reader was reset');
    if (log.first > this.nextSequence) throw new Error(`message ${this.nextSequence} is gone`);
    const messages = log.messages.slice(this.nextSequence - log.first, this.nextSequence - log.first + 64);
    this.nextSequence += messages.length;
    return messages;
  }

  async close(): Promise<void> {
    this.closed = true;
    for (const wake of [...this.log.waiting]) wake();
  }
}
