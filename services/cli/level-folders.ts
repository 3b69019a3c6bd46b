/** The state of a graph on this machine: a folder for each of its tasks, LevelDB in each. */
import { mkdir, readdir, readFile, rm, stat, statfs, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Log, Store } from '../../libs/stage/ports.ts';
import { LevelStore, StoreError } from '../../libs/store/level-store.ts';
import type { StateFolders } from './hosted-graph.ts';

/**
 * LevelDB loses writes on a full disk, and cannot even be opened on one (notes/reliability.md, 0): so while less than
 * this is free, or less than a share of a small disk, writes wait. What is in memory is answered meanwhile.
 */
const FREE_BYTES_MIN = 64 * 1024 * 1024;
const FREE_SHARE_MIN = 0.25;
const FREE_CHECK_MS = 500;
/**
 * At some damages LevelDB ends the process (an assertion fails): when it has died so often in a row while it read a
 * state, that state is given up.
 */
const DEATHS_MAX = 3;

export class LevelFolders implements StateFolders {
  private readonly folder: string;
  private readonly log: Log;
  private readonly stopping: AbortSignal;
  /** Tasks whose folders could not be read. */
  private readonly damaged = new Set<string>();

  /** `stopping`: nothing waits for space any more. */
  constructor(folder: string, log: Log, stopping: AbortSignal) {
    this.folder = folder;
    this.log = log;
    this.stopping = stopping;
  }

  /** What LevelDB cannot read is given up when it is opened the next time: snapshots and logs have it too. */
  async open(task: string): Promise<Store> {
    const folder = join(this.folder, task);
    await this.beginReading(task);
    try {
      if (!this.damaged.has(task)) return this.watched(task, await LevelStore.open(folder));
    } catch (error) {
      this.noticeDamage(task, error);
      if (!this.damaged.has(task)) {
        await this.endReading(task);
        throw error;
      }
    }
    if (await exists(folder)) LevelStore.discard(folder);
    this.damaged.delete(task);
    return this.watched(task, await LevelStore.open(folder));
  }

  async list(): Promise<string[]> {
    return await readdir(this.folder).catch(() => []);
  }

  async remove(task: string): Promise<void> {
    await rm(join(this.folder, task), { recursive: true, force: true });
  }

  async removeAll(): Promise<void> {
    await rm(this.folder, { recursive: true, force: true });
  }

  private watched(task: string, store: LevelStore): Store {
    const noticeDamage = (error: unknown): never => {
      this.noticeDamage(task, error);
      throw error;
    };
    const hasRead = (): Promise<void> => this.endReading(task);
    let isRead = false;
    return {
      get: (key) => store.get(key).catch(noticeDamage),
      async *entries(from, to) {
        try {
          yield* store.entries(from, to);
        } catch (error) {
          noticeDamage(error);
        }
        if (isRead) return;
        isRead = true;
        await hasRead();
      },
      write: async (puts, deletes, sync) => {
        await this.spaceFor(task);
        await store.write(puts, deletes, sync);
      },
      close: async () => {
        await store.close();
        await hasRead();
      },
    };
  }

  /** Counts how often the process has begun to read a state without coming to the end. */
  private async beginReading(task: string): Promise<void> {
    await mkdir(this.folder, { recursive: true });
    const deaths = Number(await readFile(this.readingFile(task), 'utf8').catch(() => '0'));
    if (deaths >= DEATHS_MAX) {
      this.damaged.add(task);
      this.log.error(
        { task, deaths },
        'the stored state is damaged, the process died each time that it was read: it is discarded, and made again ' +
          'from a snapshot or the logs',
      );
    }
    await writeFile(this.readingFile(task), String(deaths + 1)).catch((error: unknown) => {
      // A full disk: then nobody dies of the state that was read before.
      this.log.warn({ task, error: String(error) }, 'it cannot be noted that a state is being read');
    });
  }

  private async endReading(task: string): Promise<void> {
    await rm(this.readingFile(task), { force: true });
  }

  private readingFile(task: string): string {
    return join(this.folder, `${task}.reading`);
  }

  private async spaceFor(task: string): Promise<void> {
    if (await this.hasSpace()) return;
    this.log.error(
      { task, folder: this.folder },
      'the disk is nearly full: the task waits until there is space',
    );
    do {
      if (this.stopping.aborted) {
        throw new StoreError(
          'store-failed',
          `the disk of ${this.folder} is nearly full: nothing was written`,
        );
      }
      await new Promise((resolve) => setTimeout(resolve, FREE_CHECK_MS));
    } while (!(await this.hasSpace()));
    this.log.info({ task, folder: this.folder }, 'there is space on the disk again: the task goes on');
  }

  private async hasSpace(): Promise<boolean> {
    const { bavail, blocks, bsize } = await statfs(this.folder);
    return bavail * bsize >= Math.min(FREE_BYTES_MIN, FREE_SHARE_MIN * blocks * bsize);
  }

  private noticeDamage(task: string, error: unknown): void {
    if (!(error instanceof StoreError) || error.code !== 'store-damaged') return;
    this.damaged.add(task);
    this.log.error(
      { task, error: error.message },
      'the stored state is damaged: it is discarded, and made again from a snapshot or the logs',
    );
  }
}

async function exists(path: string): Promise<boolean> {
  return await stat(path).then(
    () => true,
    () => false,
  );
}
