/**
 * The records on NATS KV: a bucket is a stream, a key its subject's end, and the last message of a subject the record.
 *
 * Read and written by requests that the stream's leader answers. Not by the KV client's own reads, which any replica
 * may answer with what was; and not by its lists and watches, which need consumers, and a consumer is silent for a
 * minute and more when its server goes away.
 */
import {
  JetStreamApiError,
  type JetStreamClient,
  type JetStreamManager,
  jetstream,
  StorageType,
  type StoredMsg,
} from '@nats-io/jetstream';
import { Kvm } from '@nats-io/kv';
import { headers, type MsgHdrs, type NatsConnection } from 'nats';
import type { Kv, KvEntry } from '../stage/ports.ts';
import { managerOf, NatsRequests, REQUEST_TIMEOUT_MS, STREAM_NOT_FOUND, streamInfo } from './nats-bus.ts';

const WRONG_LAST_SEQUENCE = 10071;
/** Records asked for at once in a list. */
const GETS_AT_ONCE = 32;

const OPERATION_HEADER = 'KV-Operation';

export class NatsKv implements Kv {
  private readonly connection: NatsConnection;
  private readonly replicas: number;
  private readonly requests: NatsRequests;
  private readonly client: JetStreamClient;
  private manager: JetStreamManager | undefined;
  /** The buckets that are made or being made. */
  private readonly buckets = new Map<string, Promise<void>>();

  /** `replicas` of the buckets that this one makes; those that are there are taken as they are. */
  constructor(connection: NatsConnection, replicas: number) {
    this.connection = connection;
    this.replicas = replicas;
    this.requests = NatsRequests.of(connection);
    this.client = jetstream(connection, { timeout: REQUEST_TIMEOUT_MS });
  }

  async get(bucket: string, key: string): Promise<KvEntry | undefined> {
    const message = await this.last(bucket, key);
    if (message === undefined || isMarker(message)) return undefined;
    return { key, value: message.string(), revision: message.seq };
  }

  async list(bucket: string, prefix: string): Promise<readonly KvEntry[]> {
    const { state } = await this.ask(bucket, (manager) =>
      streamInfo(manager, streamOf(bucket), { subjects_filter: subjectOf(bucket, `${prefix}>`) }),
    );
    const start = subjectOf(bucket, '').length;
    const keys = Object.keys(state.subjects ?? {}).map((subject) => subject.slice(start));
    keys.sort();
    const entries: KvEntry[] = [];
    for (let at = 0; at < keys.length; at += GETS_AT_ONCE) {
      const some = await Promise.all(keys.slice(at, at + GETS_AT_ONCE).map((key) => this.get(bucket, key)));
      for (const entry of some) if (entry !== undefined) entries.push(entry);
    }
    return entries;
  }

  async revision(bucket: string): Promise<number> {
    const { state } = await this.ask(bucket, (manager) => streamInfo(manager, streamOf(bucket)));
    return state.last_seq;
  }

  async put(bucket: string, key: string, value: string): Promise<number> {
    return await this.publish(bucket, key, value, headers(), undefined);
  }

  async create(bucket: string, key: string, value: string): Promise<number | undefined> {
    const revision = await this.update(bucket, key, value, 0);
    if (revision !== undefined) return revision;
    // A removed record still has its marker, and the new one comes after that.
    const last = await this.last(bucket, key);
    return last !== undefined && isMarker(last) ? await this.update(bucket, key, value, last.seq) : undefined;
  }

  /**
   * While another write of the record is under way the server refuses this one with 10164, and not as a conflict: which
   * revision will come of it is not known yet. So that throws, like no answer.
   */
  async update(bucket: string, key: string, value: string, revision: number): Promise<number | undefined> {
    try {
      return await this.publish(bucket, key, value, headers(), revision);
    } catch (error) {
      if (error instanceof JetStreamApiError && error.code === WRONG_LAST_SEQUENCE) return undefined;
      throw error;
    }
  }

  async remove(bucket: string, key: string): Promise<void> {
    const head = headers();
    head.set(OPERATION_HEADER, 'PURGE');
    head.set('Nats-Rollup', 'sub');
    await this.publish(bucket, key, '', head, undefined);
  }

  async erase(bucket: string, key: string): Promise<void> {
    // The marker makes the revision grow; then it goes too, or every list would read all that ever was.
    await this.remove(bucket, key);
    const marker = await this.last(bucket, key);
    if (marker === undefined || !isMarker(marker)) return;
    const what = { filter: subjectOf(bucket, key), seq: marker.seq + 1 };
    await this.ask(bucket, (manager) => manager.streams.purge(streamOf(bucket), what));
  }

  async isRemoved(bucket: string, key: string): Promise<boolean> {
    const message = await this.last(bucket, key);
    return message !== undefined && isMarker(message);
  }

  private async last(bucket: string, key: string): Promise<StoredMsg | undefined> {
    const query = { last_by_subj: subjectOf(bucket, key) };
    const message = await this.ask(bucket, (manager) => manager.streams.getMessage(streamOf(bucket), query));
    return message ?? undefined;
  }

  private async publish(
    bucket: string,
    key: string,
    value: string,
    head: MsgHdrs,
    revision: number | undefined,
  ): Promise<number> {
    const { seq } = await this.ask(bucket, () =>
      this.client.publish(subjectOf(bucket, key), value, {
        headers: head,
        expect: {
          streamName: streamOf(bucket),
          ...(revision === undefined ? {} : { lastSubjectSequence: revision }),
        },
      }),
    );
    return seq;
  }

  private async ask<T>(bucket: string, request: (manager: JetStreamManager) => Promise<T>): Promise<T> {
    this.manager ??= await managerOf(this.connection);
    const { manager } = this;
    await this.makeBucket(bucket);
    try {
      return await this.requests.run(() => request(manager));
    } catch (error) {
      // A bucket that was lost is made anew by the next call. A write into none has no better error than no answer.
      const isAnswered = error instanceof JetStreamApiError && error.code !== STREAM_NOT_FOUND;
      if (!isAnswered) this.buckets.delete(bucket);
      throw error;
    }
  }

  private async makeBucket(bucket: string): Promise<void> {
    let made = this.buckets.get(bucket);
    if (made === undefined) {
      made = this.requests.run(async () => {
        await new Kvm(this.client).create(bucket, {
          history: 1,
          replicas: this.replicas,
          storage: StorageType.File,
        });
      });
      this.buckets.set(bucket, made);
    }
    try {
      await made;
    } catch (error) {
      if (this.buckets.get(bucket) === made) this.buckets.delete(bucket);
      throw error;
    }
  }
}

function streamOf(bucket: string): string {
  return `KV_${bucket}`;
}

function subjectOf(bucket: string, key: string): string {
  return `$KV.${bucket}.${key}`;
}

/** Whether the message says that the record was removed. */
function isMarker(message: StoredMsg): boolean {
  const operation = message.header.get(OPERATION_HEADER);
  return operation === 'PURGE' || operation === 'DEL';
}
