/**
 * The bus on NATS JetStream. Only libs/bus imports the NATS client.
 *
 * Reading: an ephemeral pull consumer without acks and a fetch loop, not `consume()` and not durable
 * consumers: the read position lives with the state that it belongs to, and a second one in the server could
 * only disagree. Appending: `expectLast` on the whole stream keeps out a second owner.
 */
import {
  AckPolicy,
  type Consumer,
  type ConsumerMessages,
  DeliverPolicy,
  DiscardPolicy,
  JetStreamApiError,
  type JetStreamClient,
  type JetStreamManager,
  type JsMsg,
  jetstream,
  jetstreamManager,
  RetentionPolicy,
  StorageType,
} from '@nats-io/jetstream';
import { connect, errors, headers, type NatsConnection, nanos, nuid, type Status } from 'nats';
import type { LogName } from '../dataflow/names.ts';
import type {
  Appended,
  AppendOptions,
  Bus,
  LogMessage,
  LogOptions,
  LogReader,
  LogState,
} from '../stage/ports.ts';

/** A request that got no answer in this time has an unknown outcome. */
const REQUEST_TIMEOUT_MS = 5_000;
const PING_INTERVAL_MS = 5_000;
const CONNECT_RETRY_MS = 250;
/** A fetch that finds nothing ends after this, and the next begins; the server notices our death by it. */
const FETCH_EXPIRES_MS = 2_000;
const FETCH_HEARTBEAT_MS = 500;
/** The server forgets the consumer of a dead reader after this. */
const CONSUMER_INACTIVE_MS = 60_000;
/**
 * A reader holds at most about this many bytes that its stage has not taken yet, going by the mean size of messages;
 * and, where large ones follow small ones, at most this many messages.
 */
const READER_BYTES_MAX = 4 * 1024 * 1024;
const READER_MESSAGES_MAX = 128;

const WRONG_LAST_SEQUENCE = [10071, 10164];
/** "maximum bytes exceeded" and its like, "insufficient storage resources". */
const STORE_REFUSED = [10077, 10047, 10023];
const DUPLICATE_IN_PROCESS = 10158;
const STREAM_NOT_FOUND = 10059;
const MESSAGE_NOT_FOUND = 10037;

export interface NatsOptions {
  readonly url: string;
  /** Shown in the server's list of connections. */
  readonly name: string;
  /** Keep trying until the first connection succeeds; otherwise fail at once. */
  readonly wait: boolean;
  /** Ends the waiting: then the last attempt's error is thrown. */
  readonly signal?: AbortSignal;
  /** Told after each attempt in vain. */
  readonly onWaiting?: (reason: string) => void;
  readonly onStatus?: (status: Status) => void;
}

export async function connectNats(options: NatsOptions): Promise<NatsConnection> {
  const connection = await firstConnection(options);
  const { onStatus } = options;
  if (onStatus !== undefined) {
    void (async () => {
      for await (const status of connection.status()) onStatus(status);
    })();
  }
  return connection;
}

/** The client could wait by itself, but then nothing stops it any more. */
async function firstConnection(options: NatsOptions): Promise<NatsConnection> {
  const { wait, signal, onWaiting } = options;
  for (;;) {
    try {
      return await connectOnce(options);
    } catch (error) {
      if (!wait || signal?.aborted === true) throw error;
      onWaiting?.(error instanceof Error ? error.message : String(error));
      await new Promise((resolve) => setTimeout(resolve, CONNECT_RETRY_MS));
    }
  }
}

async function connectOnce(options: NatsOptions): Promise<NatsConnection> {
  const urls = options.url.split(',').map((url) => new URL(url.includes('://') ? url : `nats://${url}`));
  const [user, pass] = [urls[0]!.username, urls[0]!.password].map(decodeURIComponent);
  return await connect({
    servers: urls.map(({ host }) => host),
    // The client leaves out what stands before an @.
    ...(user === '' ? {} : pass === '' ? { token: user } : { user, pass }),
    ...(urls[0]!.protocol === 'tls:' ? { tls: {} } : {}),
    name: options.name,
    // The default keeps a stack trace per request: a third of the cost of an append.
    noAsyncTraces: true,
    maxReconnectAttempts: -1,
    reconnectTimeWait: 250,
    reconnectJitter: 250,
    timeout: REQUEST_TIMEOUT_MS,
    pingInterval: PING_INTERVAL_MS,
  });
}

export class NatsBus implements Bus {
  readonly connection: NatsConnection;
  private readonly client: JetStreamClient;
  private manager: JetStreamManager | undefined;

  constructor(connection: NatsConnection) {
    this.connection = connection;
    this.client = jetstream(connection, { timeout: REQUEST_TIMEOUT_MS });
  }

  async describe(stream: string): Promise<LogState | undefined> {
    const manager = await this.manage();
    return await orUndefined(STREAM_NOT_FOUND, async () => {
      const { created, state } = await manager.streams.info(stream);
      return {
        created: parseNanoseconds(created),
        first: state.messages === 0 ? state.last_seq + 1 : state.first_seq,
        last: state.last_seq,
        bytes: state.bytes,
      };
    });
  }

  async message(stream: string, sequence: number): Promise<LogMessage | undefined> {
    const manager = await this.manage();
    return await orUndefined(MESSAGE_NOT_FOUND, async () => {
      const message = await manager.streams.getMessage(stream, { seq: sequence });
      if (message === null) return undefined;
      return {
        sequence: message.seq,
        time: parseNanoseconds(message.timestamp),
        payload: message.data,
        contentType: message.header?.get('Content-Type') || undefined,
      };
    });
  }

  async append(log: LogName, payload: Uint8Array, options: AppendOptions): Promise<Appended> {
    const head = headers();
    if (options.contentType !== undefined) head.set('Content-Type', options.contentType);
    try {
      const ack = await this.client.publish(log.subject, payload, {
        headers: head,
        ...(options.messageId === undefined ? {} : { msgID: options.messageId }),
        expect: {
          streamName: log.stream,
          ...(options.expectLast === undefined ? {} : { lastSequence: options.expectLast }),
        },
      });
      return { kind: 'stored', sequence: ack.seq, duplicate: ack.duplicate };
    } catch (error) {
      return appendFailure(error);
    }
  }

  async read(stream: string, from: number): Promise<LogReader> {
    const manager = await this.manage();
    const name = `watershed-${nuid.next()}`;
    await manager.consumers.add(stream, {
      name,
      ack_policy: AckPolicy.None,
      deliver_policy: DeliverPolicy.StartSequence,
      opt_start_seq: from,
      inactive_threshold: nanos(CONSUMER_INACTIVE_MS),
      mem_storage: true,
      num_replicas: 1,
    });
    return new NatsReader(await this.client.consumers.get(stream, name), from);
  }

  async create(stream: string, options: LogOptions): Promise<void> {
    if ((await this.describe(stream)) !== undefined) return;
    const manager = await this.manage();
    await manager.streams.add({
      name: stream,
      subjects: [...options.subjects],
      storage: StorageType.File,
      retention: RetentionPolicy.Limits,
      discard: options.discard === 'new' ? DiscardPolicy.New : DiscardPolicy.Old,
      deny_delete: options.denyDelete,
      max_bytes: options.maxBytes ?? -1,
      num_replicas: 1,
    });
  }

  async remove(stream: string): Promise<void> {
    const manager = await this.manage();
    await orUndefined(STREAM_NOT_FOUND, () => manager.streams.delete(stream));
  }

  /** Asks the server at first use, so that a bus can be made before the server is there. */
  private async manage(): Promise<JetStreamManager> {
    this.manager ??= await jetstreamManager(this.connection, { timeout: REQUEST_TIMEOUT_MS });
    return this.manager;
  }
}

class NatsReader implements LogReader {
  private readonly consumer: Consumer;
  private nextSequence: number;
  private queue: LogMessage[] = [];
  private failure: unknown;
  private closed = false;
  private wake: (() => void) | undefined;
  private drained: (() => void) | undefined;
  private fetching: ConsumerMessages | undefined;
  /** Mean size of a message, to turn a budget of bytes into one of messages. */
  private meanBytes = READER_BYTES_MAX / 16;
  private readonly pumping: Promise<void>;

  constructor(consumer: Consumer, from: number) {
    this.consumer = consumer;
    this.nextSequence = from;
    this.pumping = this.pump();
  }

  async next(waitMs: number): Promise<readonly LogMessage[]> {
    if (this.queue.length === 0 && this.failure === undefined && !this.closed) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, waitMs);
        this.wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
      this.wake = undefined;
    }
    if (this.queue.length === 0 && this.failure !== undefined) throw this.failure;
    const messages = this.queue;
    this.queue = [];
    this.drained?.();
    return messages;
  }

  async close(): Promise<void> {
    this.closed = true;
    this.fetching?.stop();
    this.wake?.();
    this.drained?.();
    await this.pumping;
    // Best effort: a consumer that cannot be deleted now is forgotten by the server in a minute.
    await this.consumer.delete().catch(() => false);
  }

  private async pump(): Promise<void> {
    try {
      while (!this.closed) {
        const slots = this.slots();
        if (slots === 0) {
          await new Promise<void>((resolve) => {
            this.drained = resolve;
          });
          this.drained = undefined;
          continue;
        }
        this.fetching = await this.consumer.fetch({
          max_messages: slots,
          expires: FETCH_EXPIRES_MS,
          idle_heartbeat: FETCH_HEARTBEAT_MS,
        });
        for await (const message of this.fetching) this.take(message);
      }
    } catch (error) {
      this.failure = error;
      this.wake?.();
    }
  }

  /** Messages that may be asked for now; 0 until half of the room is free, so that fetches are not tiny. */
  private slots(): number {
    const room = Math.max(1, Math.min(READER_MESSAGES_MAX, Math.floor(READER_BYTES_MAX / this.meanBytes)));
    const free = room - this.queue.length;
    return free * 2 >= room ? free : 0;
  }

  private take(message: JsMsg): void {
    const sequence = message.seq;
    if (sequence !== this.nextSequence) {
      throw new Error(`message ${this.nextSequence} was expected and ${sequence} came`);
    }
    this.nextSequence += 1;
    this.meanBytes += (message.data.length - this.meanBytes) / 16;
    this.queue.push({
      sequence,
      time: message.timestampNanos,
      payload: message.data,
      contentType: message.headers?.get('Content-Type') || undefined,
    });
    this.wake?.();
  }
}

function appendFailure(error: unknown): Appended {
  if (error instanceof JetStreamApiError) {
    if (WRONG_LAST_SEQUENCE.includes(error.code)) return { kind: 'conflict' };
    if (STORE_REFUSED.includes(error.code)) return { kind: 'full', reason: error.message };
    if (error.code === DUPLICATE_IN_PROCESS) return { kind: 'unknown', reason: error.message };
    throw error;
  }
  if (error instanceof errors.ClosedConnectionError || error instanceof errors.InvalidArgumentError)
    throw error;
  // No answer in time, no server, a broken connection, no stream on the subject: all may pass.
  return { kind: 'unknown', reason: error instanceof Error ? error.message : String(error) };
}

async function orUndefined<T>(code: number, ask: () => Promise<T>): Promise<T | undefined> {
  try {
    return await ask();
  } catch (error) {
    if (error instanceof JetStreamApiError && error.code === code) return undefined;
    throw error;
  }
}

/** RFC 3339 with up to nine digits of seconds' fraction, as JetStream writes it. */
function parseNanoseconds(text: string): bigint {
  const match = /^(.*T\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)$/.exec(text);
  if (match === null) throw new Error(`not a time: ${text}`);
  const seconds = Date.parse(`${match[1]}${match[3]}`);
  return BigInt(seconds) * 1_000_000n + BigInt((match[2] ?? '').padEnd(9, '0'));
}
