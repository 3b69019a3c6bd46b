/** The records' in-memory twin, with answers and requests that get lost. */
import type { Kv, KvEntry } from '../stage/ports.ts';

export type KvCall = keyof Kv;

/** What happens to a call: it fails before it has an effect, or has it and the answer is lost. */
export type KvFault = 'none' | 'lost-before' | 'lost-after';

interface MemoryRecord {
  /** Undefined: removed. */
  readonly value: string | undefined;
  readonly revision: number;
}

interface MemoryBucket {
  revision: number;
  readonly records: Map<string, MemoryRecord>;
}

export class MemoryKv implements Kv {
  private readonly buckets = new Map<string, MemoryBucket>();
  /** Asked at each call; `key` is a list's prefix, and empty for `revision`. */
  onCall: ((what: KvCall, bucket: string, key: string) => KvFault) | undefined;

  async get(bucket: string, key: string): Promise<KvEntry | undefined> {
    return this.call('get', bucket, key, ({ records }) => {
      const record = records.get(key);
      if (record?.value === undefined) return undefined;
      return { key, value: record.value, revision: record.revision };
    });
  }

  async list(bucket: string, prefix: string): Promise<readonly KvEntry[]> {
    return this.call('list', bucket, prefix, ({ records }) => {
      const entries: KvEntry[] = [];
      for (const [key, { value, revision }] of records) {
        if (value !== undefined && key.startsWith(prefix)) entries.push({ key, value, revision });
      }
      return entries.sort((a, b) => (a.key < b.key ? -1 : 1));
    });
  }

  async revision(bucket: string): Promise<number> {
    return this.call('revision', bucket, '', ({ revision }) => revision);
  }

  async put(bucket: string, key: string, value: string): Promise<number> {
    return this.call('put', bucket, key, (into) => write(into, key, value));
  }

  async create(bucket: string, key: string, value: string): Promise<number | undefined> {
    return this.call('create', bucket, key, (into) =>
      into.records.get(key)?.value === undefined ? write(into, key, value) : undefined,
    );
  }

  async update(bucket: string, key: string, value: string, revision: number): Promise<number | undefined> {
    return this.call('update', bucket, key, (into) =>
      (into.records.get(key)?.revision ?? 0) === revision ? write(into, key, value) : undefined,
    );
  }

  async remove(bucket: string, key: string): Promise<void> {
    this.call('remove', bucket, key, (from) => write(from, key, undefined));
  }

  async erase(bucket: string, key: string): Promise<void> {
    this.call('erase', bucket, key, (from) => {
      write(from, key, undefined);
      from.records.delete(key);
    });
  }

  async isRemoved(bucket: string, key: string): Promise<boolean> {
    return this.call('isRemoved', bucket, key, ({ records }) => {
      const record = records.get(key);
      return record !== undefined && record.value === undefined;
    });
  }

  private call<T>(what: KvCall, name: string, key: string, act: (bucket: MemoryBucket) => T): T {
    const fault = this.onCall?.(what, name, key) ?? 'none';
    if (fault === 'lost-before') throw new Error('no answer');
    let bucket = this.buckets.get(name);
    if (bucket === undefined) {
      bucket = { revision: 0, records: new Map() };
      this.buckets.set(name, bucket);
    }
    const result = act(bucket);
    if (fault === 'lost-after') throw new Error('the answer was lost');
    return result;
  }
}

function write(bucket: MemoryBucket, key: string, value: string | undefined): number {
  bucket.revision += 1;
  bucket.records.set(key, { value, revision: bucket.revision });
  return bucket.revision;
}
