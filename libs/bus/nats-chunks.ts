/**
 * The chunks in a NATS object store: objects named by the SHA-256 of their bytes.
 *
 * The client makes the bucket and writes the objects, one message after the other. The rest asks the stream's leader:
 * the client's own reads and lists go through push consumers, which wait for ever for a part that is lost, and for
 * more than a minute where a server went away; and its delete leaves a marker behind, for ever, where contents change
 * with each snapshot.
 */
import { createHash } from 'node:crypto';
import {
  JetStreamApiError,
  type JetStreamClient,
  type JetStreamManager,
  jetstream,
  type MsgRequest,
  type NextMsgRequest,
  StorageType,
  type StoredMsg,
  type StreamInfo,
} from '@nats-io/jetstream';
import { type ObjectInfo, type ObjectStore, Objm } from '@nats-io/obj';
import type { NatsConnection } from 'nats';
import { SNAPSHOTS_BUCKET } from '../dataflow/names.ts';
import type { Chunks } from '../stage/ports.ts';
import { managerOf, NatsRequests, REQUEST_TIMEOUT_MS, STREAM_NOT_FOUND, streamInfo } from './nats-bus.ts';

/** Of a message: large ones are fastest, and half of a server's usual limit leaves room for base64. */
const MESSAGE_BYTES = 512 * 1024;
/** Objects asked for at once in a list. */
const GETS_AT_ONCE = 32;
/** Parts of an object that has no record yet: older than this, their writer died. */
const ABANDONED_MS = 3_600_000;

const STREAM = `OBJ_${SNAPSHOTS_BUCKET}`;
const RECORDS = `$O.${SNAPSHOTS_BUCKET}.M.`;
const PARTS = `$O.${SNAPSHOTS_BUCKET}.C.`;

/** What is used of an object's record. */
type ObjectRecord = Pick<ObjectInfo, 'name' | 'nuid' | 'size' | 'chunks' | 'digest' | 'deleted'>;

export class NatsChunks implements Chunks {
  private readonly connection: NatsConnection;
  private readonly replicas: number;
  private readonly requests: NatsRequests;
  private readonly client: JetStreamClient;
  private manager: JetStreamManager | undefined;
  private opened: Promise<ObjectStore> | undefined;

  /** `replicas` of the bucket, if this one makes it. */
  constructor(connection: NatsConnection, replicas: number) {
    this.connection = connection;
    this.replicas = replicas;
    this.requests = NatsRequests.of(connection);
    this.client = jetstream(connection, { timeout: REQUEST_TIMEOUT_MS });
  }

  /**
   * What has the right name, length and digest in its record is taken to be there: its parts are not read again. A
   * damaged one (`get` says so) must be removed before it is put anew.
   */
  async put(bytes: Uint8Array): Promise<string> {
    const name = sha256(bytes).toString('hex');
    const digest = digestOf(name);
    const known = await this.record(name);
    if (known !== undefined && known.size === bytes.length && known.digest === digest) return name;
    const store = await this.open();
    const { digest: stored } = await this.requests.transfer(() =>
      store.putBlob({ name, options: { max_chunk_size: MESSAGE_BYTES } }, bytes),
    );
    if (stored !== digest) throw new Error(`chunk ${name} was stored with the digest ${stored}`);
    return name;
  }

  async get(name: string): Promise<Uint8Array | 'missing' | 'damaged'> {
    const record = await this.record(name);
    if (record === undefined) return 'missing';
    const bytes = new Uint8Array(record.size);
    let length = 0;
    let sequence = 1;
    for (let part = 0; part < record.chunks; part++) {
      const message = await this.part(record.nuid, sequence);
      if (message === undefined) return 'damaged';
      const { data } = message;
      if (length + data.length > bytes.length) return 'damaged';
      bytes.set(data, length);
      length += data.length;
      sequence = message.seq + 1;
    }
    return sha256(bytes).toString('hex') === name ? bytes : 'damaged';
  }

  /** Also drops the parts that writers left behind which died before they wrote the record. */
  async list(): Promise<readonly { readonly name: string; readonly ageMs: number }[]> {
    const { records, now } = await this.records();
    const parts = await this.subjects(`${PARTS}>`);
    const used = new Set(records.map(({ record }) => `${PARTS}${record.nuid}`));
    for (const subject of parts.subjects) {
      if (used.has(subject)) continue;
      const last = await this.lastOf(subject);
      if (last !== undefined && now - last.time.getTime() > ABANDONED_MS) await this.purge(subject);
    }
    return records.map(({ record, time }) => ({ name: record.name, ageMs: Math.max(0, now - time) }));
  }

  /** The parts go last: whoever finds the record without them sees damage, and removes it again. */
  async remove(name: string): Promise<void> {
    const record = await this.record(name);
    if (record === undefined) return;
    await this.purge(`${PARTS}${record.nuid}`);
    await this.purge(recordSubject(name));
  }

  private async records(): Promise<{ records: { record: ObjectRecord; time: number }[]; now: number }> {
    const { subjects, now } = await this.subjects(`${RECORDS}>`);
    const records: { record: ObjectRecord; time: number }[] = [];
    for (let at = 0; at < subjects.length; at += GETS_AT_ONCE) {
      const some = await Promise.all(
        subjects.slice(at, at + GETS_AT_ONCE).map((subject) => this.lastOf(subject)),
      );
      for (const message of some) {
        if (message === undefined) continue;
        const record = message.json<ObjectRecord>();
        if (!record.deleted) records.push({ record, time: message.time.getTime() });
      }
    }
    return { records, now };
  }

  private async record(name: string): Promise<ObjectRecord | undefined> {
    const record = (await this.lastOf(recordSubject(name)))?.json<ObjectRecord>();
    return record === undefined || record.deleted ? undefined : record;
  }

  /** The subjects that are there, and the time now by the clock that stamps messages. */
  private async subjects(filter: string): Promise<{ subjects: string[]; now: number }> {
    await this.open();
    const info: StreamInfo = await this.ask((manager) =>
      streamInfo(manager, STREAM, { subjects_filter: filter }),
    );
    return {
      subjects: Object.keys(info.state.subjects ?? {}),
      now: info.ts === undefined ? Date.now() : Date.parse(info.ts),
    };
  }

  private async lastOf(subject: string): Promise<StoredMsg | undefined> {
    return await this.message({ last_by_subj: subject });
  }

  /** The first message of an object's bytes at `sequence` or later. */
  private async part(nuid: string, sequence: number): Promise<StoredMsg | undefined> {
    return await this.message({ seq: sequence, next_by_subj: `${PARTS}${nuid}` });
  }

  private async message(query: MsgRequest | NextMsgRequest): Promise<StoredMsg | undefined> {
    await this.open();
    // The leader takes both; the client's types know the second of direct reads only.
    return (
      (await this.ask((manager) => manager.streams.getMessage(STREAM, query as MsgRequest))) ?? undefined
    );
  }

  private async purge(subject: string): Promise<void> {
    await this.ask((manager) => manager.streams.purge(STREAM, { filter: subject }));
  }

  private async ask<T>(request: (manager: JetStreamManager) => Promise<T>): Promise<T> {
    this.manager ??= await managerOf(this.connection);
    const { manager } = this;
    try {
      return await this.requests.run(() => request(manager));
    } catch (error) {
      // A bucket that was lost is made anew by the next call. A write into none has no better error than no answer.
      const isAnswered = error instanceof JetStreamApiError && error.code !== STREAM_NOT_FOUND;
      if (!isAnswered) this.opened = undefined;
      throw error;
    }
  }

  private async open(): Promise<ObjectStore> {
    this.opened ??= this.ask(() =>
      new Objm(this.client).create(SNAPSHOTS_BUCKET, { replicas: this.replicas, storage: StorageType.File }),
    );
    return await this.opened;
  }
}

function recordSubject(name: string): string {
  return `${RECORDS}${urlBase64(Buffer.from(name))}`;
}

/** The digest as an object's record has it. */
function digestOf(name: string): string {
  return `SHA-256=${urlBase64(Buffer.from(name, 'hex'))}`;
}

/** With padding, which Node's own `base64url` leaves out. */
function urlBase64(bytes: Buffer): string {
  return bytes.toString('base64').replaceAll('+', '-').replaceAll('/', '_');
}

function sha256(bytes: Uint8Array): Buffer {
  return createHash('sha256').update(bytes).digest();
}
