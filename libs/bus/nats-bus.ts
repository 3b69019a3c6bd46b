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
  type StreamInfo,
} from '@nats-io/jetstream';
import { connect, errors, headers, type MsgHdrs, type NatsConnection, nanos, nuid, type Status } from 'nats';
import type { LogName } from '../dataflow/names.ts';
import type {
  Appended,
  AppendOptions,
  Bus,
  LogMessage,
  LogOptions,
  LogReader,
  LogState,
  ProducerHeaders,
} from '../stage/ports.ts';

/** A request that got no answer in this time has an unknown outcome. */
export const REQUEST_TIMEOUT_MS = 5_000;
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

/** Without an answer for this long, a server that is still connected to us is taken to be cut off from the others. */
const UNANSWERED_MS = 4_000;
/** No second change of servers in this time: an election takes up to ten seconds, and every change breaks readers. */
const RECONNECT_PAUSE_MS = 10_000;
const UNANSWERED_CHECK_MS = 500;
const ASKED_LATELY_MS = 1_000;
/** Longer than anybody waits before asking again: else who asks seldom would stay with a server that is cut off. */
const UNANSWERED_FORGOTTEN_MS = 15_000;

const PRODUCER_HEADER = 'Watershed-Producer';
const PRODUCER_SEQUENCE_HEADER = 'Watershed-Producer-Sequence';

const WRONG_LAST_SEQUENCE = [10071, 10164];
/** "insufficient storage resources" and "insufficient resources". */
const STORE_REFUSED = [10047, 10023];
/** "maximum bytes exceeded" and its like, and any other failure of the store. */
const STORE_FAILED = 10077;
const DUPLICATE_IN_PROCESS = 10158;
export const STREAM_NOT_FOUND = 10059;
/** What a server says whose cluster has no leader, as far as it can see. */
const NO_LEADER = [10008, 10009];
/** The client's name for no responders; it does not export the class. */
const NOT_ENABLED = 'JetStreamNotEnabled';

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

/** What to make with how many copies where nobody says it: three in a cluster of servers, which survive one. */
export function defaultReplicas(connection: NatsConnection): number {
  return connection.info?.cluster === undefined ? 1 : 3;
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
    // By itself the client begins with the server that it has just lost, or was to leave.
    reconnectToServer: (pool) =>
      pool.reduce((oldest, server) => (server.lastConnect < oldest.lastConnect ? server : oldest)),
    reconnectTimeWait: 250,
    reconnectJitter: 250,
    timeout: REQUEST_TIMEOUT_MS,
    pingInterval: PING_INTERVAL_MS,
  });
}

/**
 * The requests of one connection, whoever makes them: it sees what a single request cannot.
 *
 * - At a disconnect no answer will come any more: requests in flight fail then and there, not at their time limit.
 *   What is asked while there is no connection waits for the next one, up to that limit, and goes out in order.
 * - A server that a partition has cut off from the others keeps its clients, and answers nothing. When nothing was
 *   answered for `UNANSWERED_MS`, the client is made to change to another one.
 */
export class NatsRequests {
  private static readonly ofConnections = new WeakMap<NatsConnection, NatsRequests>();

  private readonly connection: NatsConnection;
  private connected = true;
  private readonly inFlight = new Set<(reason: Error) => void>();
  /** Long work of several requests, whose silence says nothing. */
  private readonly transfers = new Set<(reason: Error) => void>();
  private readonly waiting = new Set<() => void>();
  private readonly reconnectListeners = new Set<() => void>();
  /** When the first of those was asked that got no answer, none since having got one. */
  private unansweredSince: number | undefined;
  private failedLast = 0;
  private reconnectedLast = -RECONNECT_PAUSE_MS;

  private constructor(connection: NatsConnection) {
    this.connection = connection;
    void this.watch();
  }

  static of(connection: NatsConnection): NatsRequests {
    let requests = NatsRequests.ofConnections.get(connection);
    if (requests === undefined) {
      requests = new NatsRequests(connection);
      NatsRequests.ofConnections.set(connection, requests);
    }
    return requests;
  }

  /** Asks at once while there is a connection, so that requests go out in the order of the calls. */
  async run<T>(ask: () => Promise<T>): Promise<T> {
    return await this.start((resolve, reject) => {
      this.inFlight.add(reject);
      this.unansweredSince ??= performance.now();
      ask().then(
        (value) => {
          this.settle(reject, true);
          resolve(value);
        },
        (error: unknown) => {
          this.settle(reject, !isUnanswered(error));
          reject(error);
        },
      );
    });
  }

  /** The same for work that lawfully takes longer than one request may. */
  async transfer<T>(work: () => Promise<T>): Promise<T> {
    return await this.start((resolve, reject) => {
      this.transfers.add(reject);
      work()
        .finally(() => this.transfers.delete(reject))
        .then(resolve, reject);
    });
  }

  /** Calls `listener` after each reconnect, until the function that it gives is called. */
  onReconnect(listener: () => void): () => void {
    this.reconnectListeners.add(listener);
    return () => this.reconnectListeners.delete(listener);
  }

  private async start<T>(
    begin: (resolve: (value: T) => void, reject: (reason: unknown) => void) => void,
  ): Promise<T> {
    return await new Promise<T>((resolve, reject) => {
      if (this.connected) {
        begin(resolve, reject);
        return;
      }
      const whenConnected = (): void => {
        clearTimeout(timer);
        this.waiting.delete(whenConnected);
        begin(resolve, reject);
      };
      const timer = setTimeout(() => {
        this.waiting.delete(whenConnected);
        reject(new Error('NATS is not connected'));
      }, REQUEST_TIMEOUT_MS);
      this.waiting.add(whenConnected);
    });
  }

  private settle(request: (reason: Error) => void, answered: boolean): void {
    // One that a disconnect has failed already says nothing of the connection that there is now.
    if (!this.inFlight.delete(request)) return;
    const now = performance.now();
    if (!answered) this.failedLast = now;
    else this.unansweredSince = this.inFlight.size > 0 ? now : undefined;
  }

  private async watch(): Promise<void> {
    const timer = setInterval(() => this.leaveIfUnanswered(), UNANSWERED_CHECK_MS);
    timer.unref();
    for await (const { type } of this.connection.status()) {
      if (type === 'disconnect') this.cut();
      else if (type === 'reconnect') this.resume();
    }
    clearInterval(timer);
    // The connection is closed: what waits for it learns that from the client.
    this.resume();
  }

  private cut(): void {
    this.connected = false;
    this.unansweredSince = undefined;
    const lost = [...this.inFlight, ...this.transfers];
    this.inFlight.clear();
    this.transfers.clear();
    for (const fail of lost) fail(new Error('NATS disconnected before it answered'));
  }

  private resume(): void {
    this.connected = true;
    for (const whenConnected of [...this.waiting]) whenConnected();
    for (const listener of [...this.reconnectListeners]) listener();
  }

  private leaveIfUnanswered(): void {
    const now = performance.now();
    if (this.unansweredSince === undefined || now - this.unansweredSince < UNANSWERED_MS) return;
    // Nothing is asked any more: what was asked in vain, of a stream that is not there perhaps, is no news of the server.
    if (this.inFlight.size === 0 && now - this.failedLast > ASKED_LATELY_MS) {
      if (now - this.failedLast > UNANSWERED_FORGOTTEN_MS) this.unansweredSince = undefined;
      return;
    }
    if (now - this.reconnectedLast < RECONNECT_PAUSE_MS) return;
    // Without a cluster there is no other server to change to.
    if (this.connection.info?.cluster === undefined) return;
    this.reconnectedLast = now;
    this.unansweredSince = undefined;
    void this.connection.reconnect();
  }
}

export class NatsBus implements Bus {
  readonly connection: NatsConnection;
  private readonly requests: NatsRequests;
  private readonly client: JetStreamClient;
  private manager: JetStreamManager | undefined;

  constructor(connection: NatsConnection) {
    this.connection = connection;
    this.requests = NatsRequests.of(connection);
    this.client = jetstream(connection, { timeout: REQUEST_TIMEOUT_MS });
  }

  async describe(stream: string): Promise<LogState | undefined> {
    return await orUndefined(STREAM_NOT_FOUND, async () => {
      const { created, state } = await this.ask((manager) => streamInfo(manager, stream));
      return {
        created: parseNanoseconds(created),
        first: state.messages === 0 ? state.last_seq + 1 : state.first_seq,
        last: state.last_seq,
        bytes: state.bytes,
      };
    });
  }

  async message(stream: string, sequence: number): Promise<LogMessage | undefined> {
    const message = await this.ask((manager) => manager.streams.getMessage(stream, { seq: sequence }));
    if (message === null) return undefined;
    return {
      sequence: message.seq,
      time: parseNanoseconds(message.timestamp),
      payload: message.data,
      contentType: message.header.get('Content-Type') || undefined,
      producer: producerOf(message.header),
    };
  }

  async append(log: LogName, payload: Uint8Array, options: AppendOptions): Promise<Appended> {
    const { contentType, producer } = options;
    const head = headers();
    if (contentType !== undefined) head.set('Content-Type', contentType);
    if (producer !== undefined) {
      head.set(PRODUCER_HEADER, producer.id);
      if (producer.sequence !== undefined) head.set(PRODUCER_SEQUENCE_HEADER, producer.sequence);
    }
    try {
      const ack = await this.requests.run(async () => {
        const answer = await this.client.publish(log.subject, payload, {
          headers: head,
          ...(options.messageId === undefined ? {} : { msgID: options.messageId }),
          expect: {
            streamName: log.stream,
            ...(options.expectLast === undefined ? {} : { lastSequence: options.expectLast }),
          },
        });
        // A leader that is cut off from the others says so of an id that it has seen and cannot store (nats-server
        // 2.10.27, tried): the message is lost with that leader's place.
        if (answer.seq === 0) throw new NoAnswer(`a message of this id is in process at ${log.stream}`);
        return answer;
      });
      return { kind: 'stored', sequence: ack.seq, duplicate: ack.duplicate };
    } catch (error) {
      return appendFailure(error);
    }
  }

  async read(stream: string, from: number): Promise<LogReader> {
    const info = await this.ask((manager) =>
      manager.consumers.add(stream, {
        name: `watershed-${nuid.next()}`,
        ack_policy: AckPolicy.None,
        deliver_policy: DeliverPolicy.StartSequence,
        opt_start_seq: from,
        inactive_threshold: nanos(CONSUMER_INACTIVE_MS),
        mem_storage: true,
        num_replicas: 1,
      }),
    );
    return new NatsReader(this.requests, this.client.consumers.getConsumerFromInfo(info), from);
  }

  async create(stream: string, options: LogOptions): Promise<void> {
    const { firstSequence = 1 } = options;
    if (firstSequence > 1) {
      await this.createAt(stream, options, firstSequence);
      return;
    }
    if ((await this.describe(stream)) === undefined) await this.add(stream, options, options.subjects);
  }

  /**
   * A stream with `first_seq` in its configuration loses all messages whenever nats-server 2.10.27 starts (tried). So
   * the first sequence is set by a purge, while nobody can publish: until it has its subjects, the stream takes only
   * the one of its own name, which also tells whoever comes later that it is not finished.
   */
  private async createAt(stream: string, options: LogOptions, firstSequence: number): Promise<void> {
    if ((await this.describe(stream)) === undefined) await this.add(stream, options, [stream]);
    const { config, state } = await this.ask((manager) => streamInfo(manager, stream));
    if (config.subjects?.length !== 1 || config.subjects[0] !== stream) return;
    if (state.last_seq < firstSequence - 1) await this.purge(stream, firstSequence);
    await this.ask((manager) => manager.streams.update(stream, { subjects: [...options.subjects] }));
  }

  private async add(stream: string, options: LogOptions, subjects: readonly string[]): Promise<void> {
    try {
      await this.ask((manager) =>
        manager.streams.add({
          name: stream,
          subjects: [...subjects],
          storage: StorageType.File,
          retention: RetentionPolicy.Limits,
          discard: options.discard === 'new' ? DiscardPolicy.New : DiscardPolicy.Old,
          deny_delete: options.denyDelete,
          max_bytes: options.maxBytes ?? -1,
          num_replicas: options.replicas ?? 1,
        }),
      );
    } catch (error) {
      // Another one made it the same moment, perhaps with other replicas: that one is taken as it is.
      if (!(error instanceof JetStreamApiError) || (await this.describe(stream)) === undefined) throw error;
    }
  }

  async remove(stream: string): Promise<void> {
    await orUndefined(STREAM_NOT_FOUND, () => this.ask((manager) => manager.streams.delete(stream)));
  }

  async purge(stream: string, sequence: number): Promise<void> {
    // To the server, 1 and 0 mean all messages.
    if (sequence <= 1) return;
    await this.ask((manager) => manager.streams.purge(stream, { seq: sequence }));
  }

  private async ask<T>(request: (manager: JetStreamManager) => Promise<T>): Promise<T> {
    this.manager ??= await managerOf(this.connection);
    const { manager } = this;
    return await this.requests.run(() => request(manager));
  }
}

/** Asks no server, so that it can be made before JetStream is there. */
export async function managerOf(connection: NatsConnection): Promise<JetStreamManager> {
  return await jetstreamManager(connection, { timeout: REQUEST_TIMEOUT_MS, checkAPI: false });
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
  private readonly requests: NatsRequests;
  private readonly stopListening: () => void;

  constructor(requests: NatsRequests, consumer: Consumer, from: number) {
    this.requests = requests;
    this.consumer = consumer;
    this.nextSequence = from;
    // The client would wait for the consumer, which may have been on the server that is gone.
    this.stopListening = requests.onReconnect(() => this.fail(new Error('the connection was made anew')));
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
    this.stopListening();
    this.stop();
    await this.pumping;
    // Best effort, and not waited for: one that cannot be deleted now is forgotten by the server in a minute.
    void this.requests.run(() => this.consumer.delete()).catch(() => false);
  }

  private fail(error: unknown): void {
    this.failure ??= error;
    this.stop();
  }

  private stop(): void {
    this.fetching?.stop();
    this.wake?.();
    this.drained?.();
  }

  private async pump(): Promise<void> {
    try {
      while (!this.closed && this.failure === undefined) {
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
      this.fail(error);
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
      producer: producerOf(message.headers),
    });
    this.wake?.();
  }
}

function producerOf(head: MsgHdrs | undefined): ProducerHeaders | undefined {
  const id = head?.get(PRODUCER_HEADER);
  if (head === undefined || !id) return undefined;
  return { id, sequence: head.get(PRODUCER_SEQUENCE_HEADER) || undefined };
}

function appendFailure(error: unknown): Appended {
  if (error instanceof JetStreamApiError) {
    const { code, status, message } = error;
    if (WRONG_LAST_SEQUENCE.includes(code)) return { kind: 'conflict' };
    if (STORE_REFUSED.includes(code)) return { kind: 'full', reason: message };
    if (code === STORE_FAILED && /\b(?:maximum|space)\b/.test(message))
      return { kind: 'full', reason: message };
    // No leader yet, a store that is closing, too many requests at once: all may pass, and some store it nevertheless.
    if (code === DUPLICATE_IN_PROCESS || status >= 500 || status === 429)
      return { kind: 'unknown', reason: message };
    throw error;
  }
  if (error instanceof errors.ClosedConnectionError || error instanceof errors.InvalidArgumentError)
    throw error;
  // No answer in time, no server, a broken connection, no stream on the subject: all may pass.
  return { kind: 'unknown', reason: error instanceof Error ? error.message : String(error) };
}

/** An answer that is none: of a server that is cut off from the others. */
class NoAnswer extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'NoAnswer';
  }
}

/**
 * What a stream's leader says of it. A server that is cut off from the others answers this question too (nats-server
 * 2.10.27, tried), for as long as that lasts: with what it knew before, and without the name of a leader.
 */
export async function streamInfo(
  manager: JetStreamManager,
  stream: string,
  options?: { readonly subjects_filter: string },
): Promise<StreamInfo> {
  const info = await manager.streams.info(stream, options);
  const { cluster } = info;
  if (cluster !== undefined && (cluster.leader ?? '') === '')
    throw new NoAnswer(`stream ${stream} has no leader`);
  return info;
}

function isUnanswered(error: unknown): boolean {
  if (error instanceof JetStreamApiError) return NO_LEADER.includes(error.code);
  if (error instanceof NoAnswer) return true;
  return error instanceof errors.TimeoutError || (error instanceof Error && error.name === NOT_ENABLED);
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
