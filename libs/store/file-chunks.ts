/**
 * The chunks in a folder: `chunks/<first two digits>/<name>`. A chunk appears by a rename, whole and on disk, or not at
 * all.
 */
import { createHash, randomBytes } from 'node:crypto';
import { mkdir, open, readdir, readFile, rename, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Chunks } from '../stage/ports.ts';

const CHUNK_NAME = /^[0-9a-f]{64}$/;
const TEMPORARY_ENDING = '.tmp';
/** A temporary file older than this was left behind by a writer that died. */
const ABANDONED_MS = 3_600_000;

export class FileChunks implements Chunks {
  private readonly folder: string;

  constructor(folder: string) {
    this.folder = join(folder, 'chunks');
  }

  /** One that is there is read again, and replaced if it is damaged. */
  async put(bytes: Uint8Array): Promise<string> {
    const name = createHash('sha256').update(bytes).digest('hex');
    if (typeof (await this.get(name)) !== 'string') return name;
    const path = this.pathOf(name);
    const folder = dirname(path);
    const made = await mkdir(folder, { recursive: true });
    const temporary = `${path}.${randomBytes(8).toString('hex')}${TEMPORARY_ENDING}`;
    try {
      const file = await open(temporary, 'wx');
      try {
        await file.writeFile(bytes);
        await file.sync();
      } finally {
        await file.close();
      }
      await rename(temporary, path);
    } catch (error) {
      await rm(temporary, { force: true });
      throw error;
    }
    await syncFolder(folder);
    // A folder that was made is itself an entry of the one above it.
    if (made !== undefined) {
      for (let at = folder; at !== dirname(made); at = dirname(at)) await syncFolder(dirname(at));
    }
    return name;
  }

  async get(name: string): Promise<Uint8Array | 'missing' | 'damaged'> {
    const bytes = await orMissing(readFile(this.pathOf(name)));
    if (bytes === undefined) return 'missing';
    if (createHash('sha256').update(bytes).digest('hex') !== name) return 'damaged';
    return new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.length);
  }

  /** Also drops the temporary files that writers left behind. */
  async list(): Promise<readonly { readonly name: string; readonly ageMs: number }[]> {
    const chunks: { name: string; ageMs: number }[] = [];
    const folders = (await orMissing(readdir(this.folder))) ?? [];
    for (const prefix of folders) {
      const folder = join(this.folder, prefix);
      for (const name of (await orMissing(readdir(folder))) ?? []) {
        const isTemporary = name.endsWith(TEMPORARY_ENDING);
        if (!isTemporary && !CHUNK_NAME.test(name)) continue;
        const stats = await orMissing(stat(join(folder, name)));
        if (stats === undefined) continue;
        const ageMs = Math.max(0, Date.now() - stats.mtimeMs);
        if (!isTemporary) chunks.push({ name, ageMs });
        else if (ageMs > ABANDONED_MS) await rm(join(folder, name), { force: true });
      }
    }
    return chunks;
  }

  async remove(name: string): Promise<void> {
    await rm(this.pathOf(name), { force: true });
  }

  private pathOf(name: string): string {
    if (!CHUNK_NAME.test(name)) throw new RangeError(`not the name of a chunk: ${JSON.stringify(name)}`);
    return join(this.folder, name.slice(0, 2), name);
  }
}

/** Makes renames in the folder last over a power cut; Windows has no such call, and does not need it. */
async function syncFolder(folder: string): Promise<void> {
  if (process.platform === 'win32') return;
  const handle = await open(folder, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

async function orMissing<T>(answer: Promise<T>): Promise<T | undefined> {
  try {
    return await answer;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined;
    throw error;
  }
}
