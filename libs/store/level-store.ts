/**
 * The store on LevelDB: the only importer of `level`.
 *
 * Chained batches only (an array batch costs ten times as much of the main thread); no snapshots, no long
 * iterators while writing, no `clear`, no `repair`: held snapshots make later reads stale, and repair drops
 * records without a word. After the first failed write the handle is dead, because LevelDB goes on and loses
 * later writes that it acknowledged.
 */
import { mkdirSync, readdirSync, rmSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { Level } from 'level';
import type { Store } from '../stage/ports.ts';

/** Damaged: what the folder holds is no database any more; failed: anything that may pass, as a full disk does. */
type StoreErrorCode = 'store-locked' | 'store-damaged' | 'store-failed';

/** What LevelDB says of files that are not what it wrote: what is in them, their ends, that one is not there. */
const DAMAGE = /Corruption|Invalid argument|No such file|not an sstable/;

/** A folder that another process has open, or that cannot be read. The message names the folder. */
export class StoreError extends Error {
  readonly code: StoreErrorCode;

  constructor(code: StoreErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'StoreError';
    this.code = code;
  }
}

/** Open folders of this process: a second open here would drop the lock that keeps other processes out. */
const openFolders = new Set<string>();

const ENTRIES_AT_ONCE = 256;

export class LevelStore implements Store {
  private readonly db: Level<Uint8Array, Uint8Array>;
  private readonly folder: string;
  private failure: unknown;

  private constructor(db: Level<Uint8Array, Uint8Array>, folder: string) {
    this.db = db;
    this.folder = folder;
  }

  static async open(path: string): Promise<LevelStore> {
    const folder = resolve(path);
    if (openFolders.has(folder)) {
      throw new StoreError('store-locked', `the data folder ${folder} is already open in this process`);
    }
    openFolders.add(folder);
    try {
      mkdirSync(folder, { recursive: true });
      const db = new Level<Uint8Array, Uint8Array>(folder, { keyEncoding: 'view', valueEncoding: 'view' });
      await db.open();
      return new LevelStore(db, folder);
    } catch (error) {
      openFolders.delete(folder);
      const cause = error instanceof Error ? (error.cause as { code?: string } | undefined) : undefined;
      if (cause?.code === 'LEVEL_LOCKED') {
        throw new StoreError(
          'store-locked',
          `the data folder ${folder} is in use by another process: stop that one, or give this one another --data or --name`,
          { cause: error },
        );
      }
      throw new StoreError(
        DAMAGE.test(String(cause ?? error)) ? 'store-damaged' : 'store-failed',
        `the data folder ${folder} cannot be opened: ${String(cause ?? error)}`,
        {
          cause: error,
        },
      );
    }
  }

  /** Removes all that a closed folder holds, but for the lock that keeps other processes out of it. */
  static discard(path: string): void {
    for (const name of readdirSync(path)) {
      if (name !== 'LOCK') rmSync(join(path, name), { recursive: true, force: true });
    }
  }

  async get(key: Uint8Array): Promise<Uint8Array | undefined> {
    this.mustLive();
    try {
      return await this.db.get(key);
    } catch (error) {
      throw this.readError(error);
    }
  }

  async *entries(from: Uint8Array, to: Uint8Array): AsyncIterable<readonly [Uint8Array, Uint8Array]> {
    this.mustLive();
    const iterator = this.db.iterator({ gte: from, lt: to });
    try {
      for (;;) {
        const entries = await iterator.nextv(ENTRIES_AT_ONCE);
        if (entries.length === 0) return;
        yield* entries;
      }
    } catch (error) {
      throw this.readError(error);
    } finally {
      await iterator.close();
    }
  }

  async write(
    puts: readonly (readonly [Uint8Array, Uint8Array])[],
    deletes: readonly Uint8Array[],
    sync: boolean,
  ): Promise<void> {
    this.mustLive();
    const batch = this.db.batch();
    for (const [key, value] of puts) batch.put(key, value);
    for (const key of deletes) batch.del(key);
    try {
      await batch.write({ sync });
    } catch (error) {
      this.failure = error;
      throw new StoreError('store-failed', `writing to ${this.folder} failed: ${String(error)}`, {
        cause: error,
      });
    }
  }

  async close(): Promise<void> {
    await this.db.close();
    openFolders.delete(this.folder);
  }

  private readError(error: unknown): StoreError {
    return new StoreError(
      DAMAGE.test(String(error)) ? 'store-damaged' : 'store-failed',
      `reading from ${this.folder} failed: ${String(error)}`,
      { cause: error },
    );
  }

  private mustLive(): void {
    if (this.failure === undefined) return;
    throw new StoreError(
      'store-failed',
      `a write to ${this.folder} failed before: the store must be opened anew`,
      {
        cause: this.failure,
      },
    );
  }
}
