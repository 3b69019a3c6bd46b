/**
 * Sends payloads to the log of edges, several in flight, so that none is lost and none counts twice.
 *
 * Each payload has a message id, and is sent again under the same one until the log has said that it is there;
 * the log drops what it has already. That holds as long as the log remembers the id: so a payload whose outcome
 * is unknown is given up before that, rather than stored twice.
 *
 * While all goes well, up to WINDOW payloads are on their way at once. At the first failure no more are sent;
 * when all on their way have been answered, those that are not stored are sent again in their order, one by one.
 */

import type { LogName } from '../../../libs/dataflow/names.ts';
import type { Appended, Bus, Clock } from '../../../libs/stage/ports.ts';
import { CliError, EXIT } from '../exit.ts';
import type { EdgePayload } from './edge-batches.ts';

export const WINDOW = 32;
/** JetStream remembers message ids for two minutes; the rest is for an answer that is late. */
export const UNKNOWN_MS_MAX = 100_000;
const RETRY_MS = 500;
const REPORT_EVERY_MS = 10_000;

const ARROW = 'application/vnd.apache.arrow.stream';

/** What the log has acknowledged. */
export interface Sent {
  readonly edges: number;
  /** Of these, the edges that an earlier load of the same name had stored. */
  readonly duplicates: number;
  readonly firstSequence: number | undefined;
  readonly lastSequence: number | undefined;
}

interface Entry {
  readonly messageId: string;
  readonly payload: EdgePayload;
  /** When the first append began that got no answer. */
  unknownSince: number | undefined;
  isStored: boolean;
  failure: Appended | undefined;
  /** Never rejects. */
  settled: Promise<void>;
}

export class EdgeSender {
  private readonly bus: Bus;
  private readonly log: LogName;
  private readonly key: string;
  private readonly clock: Clock;
  private readonly report: (message: string) => void;
  private readonly contentType: string;
  private readonly window: Entry[] = [];
  private count = 0;
  private edges = 0;
  private duplicates = 0;
  private firstSequence: number | undefined;
  private lastSequence: number | undefined;
  private hasFailed = false;
  private thrown: unknown;

  /** `key` begins all message ids; `report` tells a person why nothing goes on. */
  constructor(
    bus: Bus,
    log: LogName,
    key: string,
    clock: Clock,
    report: (message: string) => void,
    contentType: string = ARROW,
  ) {
    this.contentType = contentType;
    this.bus = bus;
    this.log = log;
    this.key = key;
    this.clock = clock;
    this.report = report;
  }

  get sent(): Sent {
    const { edges, duplicates, firstSequence, lastSequence } = this;
    return { edges, duplicates, firstSequence, lastSequence };
  }

  /** Returns when there is room for the next payload. Throws if the log cannot be reached any more. */
  async send(payload: EdgePayload): Promise<void> {
    const messageId = `${this.key}:${this.count++}`;
    const entry: Entry = {
      messageId,
      payload,
      unknownSince: undefined,
      isStored: false,
      failure: undefined,
      settled: Promise.resolve(),
    };
    entry.settled = this.attempt(entry);
    this.window.push(entry);
    await this.shrink(WINDOW - 1);
  }

  /** Returns when all is stored. */
  async finish(): Promise<Sent> {
    await this.shrink(0);
    return this.sent;
  }

  /** Waits until at most `entriesMax` are on their way. */
  private async shrink(entriesMax: number): Promise<void> {
    const { window } = this;
    while (window.length > entriesMax || this.hasFailed) {
      if (this.hasFailed) await this.recover();
      else await window[0]!.settled;
      while (window[0]?.isStored) window.shift();
    }
  }

  /** Sends again what is not stored, in order. */
  private async recover(): Promise<void> {
    await Promise.all(this.window.map(({ settled }) => settled));
    if (this.thrown !== undefined) throw this.thrown;
    let reportedAt: number | undefined;
    let mustWait = true;
    for (const entry of this.window) {
      while (!entry.isStored) {
        if (mustWait) {
          const now = this.clock.now();
          if (reportedAt === undefined || now - reportedAt >= REPORT_EVERY_MS) {
            this.report(this.trouble(entry));
            reportedAt = now;
          }
          await this.clock.sleep(RETRY_MS);
        }
        // Not sooner than here: the wait may have been long.
        this.assertRemembered(entry);
        await this.attempt(entry);
        if (this.thrown !== undefined) throw this.thrown;
        mustWait = !entry.isStored;
      }
    }
    this.hasFailed = false;
    if (reportedAt !== undefined) this.report('it goes on');
  }

  private async attempt(entry: Entry): Promise<void> {
    const startedAt = this.clock.now();
    try {
      const appended = await this.bus.append(this.log, entry.payload.payload, {
        messageId: entry.messageId,
        contentType: this.contentType,
      });
      if (appended.kind === 'stored') this.stored(entry, appended.sequence, appended.duplicate);
      else {
        if (appended.kind === 'unknown') entry.unknownSince ??= startedAt;
        entry.failure = appended;
        this.hasFailed = true;
      }
    } catch (error) {
      this.thrown ??= error;
      this.hasFailed = true;
    }
  }

  private stored(entry: Entry, sequence: number, isDuplicate: boolean): void {
    entry.isStored = true;
    const { edges } = entry.payload;
    this.edges += edges;
    // What was sent without an answer and is there now was stored by that.
    if (isDuplicate && entry.unknownSince === undefined) this.duplicates += edges;
    this.firstSequence = Math.min(this.firstSequence ?? sequence, sequence);
    this.lastSequence = Math.max(this.lastSequence ?? sequence, sequence);
  }

  private assertRemembered({ unknownSince, failure }: Entry): void {
    if (unknownSince === undefined || this.clock.now() - unknownSince < UNKNOWN_MS_MAX) return;
    const seconds = UNKNOWN_MS_MAX / 1000;
    throw new CliError(
      EXIT.unavailable,
      `${this.log.stream} gave no answer for ${seconds} s (${reasonOf(failure)}); the next message may be stored ` +
        'or not, and to send it again could count its edges twice',
    );
  }

  private trouble({ failure }: Entry): string {
    return failure?.kind === 'full'
      ? `${this.log.stream} is full (${failure.reason}): waiting until there is room`
      : `${this.log.stream} gives no answer (${reasonOf(failure)}): trying again`;
  }
}

function reasonOf(failure: Appended | undefined): string {
  return failure === undefined || failure.kind === 'stored' || failure.kind === 'conflict'
    ? 'no reason given'
    : failure.reason;
}
