/**
 * The ports: the logs and the records of the cluster (NATS JetStream and its KV, libs/bus), the local state
 * (LevelDB, libs/store), the chunks of snapshots (NATS object store or a folder).
 * Each has an in-memory twin; `test/contract` holds both to the same behaviour.
 */
import type { LogName } from '../dataflow/names.ts';

/** A message of a log. */
export interface LogMessage {
  readonly sequence: number;
  /** Arrival, nanoseconds since 1970. */
  readonly time: bigint;
  readonly payload: Uint8Array;
  readonly contentType: string | undefined;
  /** What a publisher says in the headers Watershed-Producer and Watershed-Producer-Sequence, as it is. */
  readonly producer?: ProducerHeaders | undefined;
}

export interface ProducerHeaders {
  readonly id: string;
  readonly sequence: string | undefined;
}

/** A log as its leader describes it. */
export interface LogState {
  /** Nanoseconds since 1970. */
  readonly created: bigint;
  /** Sequence of the first message that is there; last + 1 in an empty log. */
  readonly first: number;
  /** Sequence of the last message ever stored; 0 before the first. */
  readonly last: number;
  readonly bytes: number;
}

export interface AppendOptions {
  /** Refused (`conflict`) unless the log's last sequence is this. */
  readonly expectLast?: number;
  /** A second append with the same id inside the log's duplicate window stores nothing. */
  readonly messageId?: string;
  readonly contentType?: string;
  readonly producer?: ProducerHeaders;
}

/**
 * What became of an append. `unknown`: no answer came, the message may be there or not. `full`: the log's own
 * limit refuses it.
 */
export type Appended =
  | { readonly kind: 'stored'; readonly sequence: number; readonly duplicate: boolean }
  | { readonly kind: 'conflict' }
  | { readonly kind: 'full'; readonly reason: string }
  | { readonly kind: 'unknown'; readonly reason: string };

export interface LogOptions {
  readonly subjects: readonly string[];
  /** Undefined: no limit. */
  readonly maxBytes?: number;
  /** At the limit: refuse new messages, or drop the oldest. */
  readonly discard: 'new' | 'old';
  readonly denyDelete: boolean;
  /** Servers that hold a copy; 1 if absent. */
  readonly replicas?: number;
  /** Sequence of the first message; 1 if absent. */
  readonly firstSequence?: number;
}

export interface Bus {
  /** Undefined: there is no such log. */
  describe(stream: string): Promise<LogState | undefined>;
  message(stream: string, sequence: number): Promise<LogMessage | undefined>;
  append(log: LogName, payload: Uint8Array, options: AppendOptions): Promise<Appended>;
  /** A reader of all messages from sequence `from` on; the log must be there. */
  read(stream: string, from: number): Promise<LogReader>;
  /** Creates the log unless it is there. */
  create(stream: string, options: LogOptions): Promise<void>;
  remove(stream: string): Promise<void>;
  /** Removes all messages below `sequence`, which becomes the first one's. */
  purge(stream: string, sequence: number): Promise<void>;
}

export interface LogReader {
  /**
   * The next messages in order: at once what is there, else after the first arrives, or none after about
   * `waitMs`. Throws where the messages do not continue (the caller checks its position and opens anew).
   */
  next(waitMs: number): Promise<readonly LogMessage[]>;
  close(): Promise<void>;
}

/** Local state: bytes by key, in key order. */
export interface Store {
  get(key: Uint8Array): Promise<Uint8Array | undefined>;
  /** All entries with from ≤ key < to, in order; the store is not written meanwhile. */
  entries(from: Uint8Array, to: Uint8Array): AsyncIterable<readonly [Uint8Array, Uint8Array]>;
  /**
   * All or nothing. After a failed write the handle is dead: every later call fails, until the store is
   * closed and opened again.
   */
  write(
    puts: readonly (readonly [Uint8Array, Uint8Array])[],
    deletes: readonly Uint8Array[],
    sync: boolean,
  ): Promise<void>;
  close(): Promise<void>;
}

/** A record of a bucket. */
export interface KvEntry {
  readonly key: string;
  /** JSON text. */
  readonly value: string;
  /** Changes with every write; 0 is none's. */
  readonly revision: number;
}

/**
 * Records by bucket and key, as the buckets' leader has them. A bucket is made at its first use. A call that throws got
 * no answer: what it was to write may be there or not.
 */
export interface Kv {
  get(bucket: string, key: string): Promise<KvEntry | undefined>;
  /** All records whose key begins with `prefix` (empty, or ending in a dot), by key. */
  list(bucket: string, prefix: string): Promise<readonly KvEntry[]>;
  /** Grows with every change of the bucket, so that what did not change need not be listed again. */
  revision(bucket: string): Promise<number>;
  put(bucket: string, key: string, value: string): Promise<number>;
  /** The new revision; undefined: there is such a record. */
  create(bucket: string, key: string, value: string): Promise<number | undefined>;
  /** The new revision; undefined: the record is not of `revision` any more. */
  update(bucket: string, key: string, value: string, revision: number): Promise<number | undefined>;
  /** Leaves a trace, `isRemoved`, for ever. */
  remove(bucket: string, key: string): Promise<void>;
  /** Removes the record without a trace; the bucket's revision grows all the same. */
  erase(bucket: string, key: string): Promise<void>;
  /** Whether somebody removed the record; one that is merely not there may be lost. */
  isRemoved(bucket: string, key: string): Promise<boolean>;
}

/** Content-addressed bytes: what snapshots are made of. */
export interface Chunks {
  /** Stores the bytes unless they are there; their name is their SHA-256, 64 hexadecimal digits. */
  put(bytes: Uint8Array): Promise<string>;
  /** `damaged`: what is there does not have that SHA-256. */
  get(name: string): Promise<Uint8Array | 'missing' | 'damaged'>;
  list(): Promise<readonly { readonly name: string; readonly ageMs: number }[]>;
  remove(name: string): Promise<void>;
}

/** Questions to whoever answers them now: one answer or none, and nothing is kept. */
export interface Questions {
  /** Answers what is asked about `subject`, in this process, until the function that it gives is called. */
  answer(subject: string, answer: (question: Uint8Array) => Uint8Array): () => void;
  /** The first answer; undefined: nobody answered in time. */
  ask(subject: string, question: Uint8Array, timeoutMs: number): Promise<Uint8Array | undefined>;
}

/** Time and waiting, so that a simulation can own them. */
export interface Clock {
  /** Monotonic, ms. */
  now(): number;
  sleep(ms: number): Promise<void>;
  /** Calls `then` in `ms`, unless the function that it gives is called before. */
  after(ms: number, then: () => void): () => void;
  /** Lets other work of the process run. */
  yield(): Promise<void>;
}

/** Where a stage's owner says what it does; fields, not sentences. */
export interface Log {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}
