/** What a stage asks of a store, held against both twins. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import type { Store } from '../../libs/stage/ports.ts';
import { LevelStore, StoreError } from '../../libs/store/level-store.ts';
import { MemoryDisk } from '../../libs/store/memory-store.ts';

const folders: string[] = [];

afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'watershed-store-'));
  folders.push(folder);
  return folder;
}

const twins: Record<string, () => () => Promise<Store>> = {
  LevelDB: () => {
    const folder = newFolder();
    return () => LevelStore.open(folder);
  },
  memory: () => {
    const disk = new MemoryDisk();
    return async () => disk.openStore();
  },
};

const bytes = (...values: number[]): Uint8Array => Uint8Array.from(values);

async function all(store: Store, from: Uint8Array, to: Uint8Array): Promise<number[][]> {
  const entries: number[][] = [];
  for await (const [key, value] of store.entries(from, to)) entries.push([...key, ...value]);
  return entries;
}

for (const [name, twin] of Object.entries(twins)) {
  describe(`the store on ${name}`, () => {
    it('gives back what was written, and nothing else', async () => {
      const store = await twin()();
      await store.write(
        [
          [bytes(1), bytes(10)],
          [bytes(2), new Uint8Array(4096).fill(7)],
        ],
        [],
        false,
      );
      expect([...(await store.get(bytes(1)))!]).toEqual([10]);
      expect((await store.get(bytes(2)))!.length).toBe(4096);
      expect(await store.get(bytes(3))).toBeUndefined();
      await store.close();
    });

    it('lists entries in key order, from the first key up to but not with the last', async () => {
      const store = await twin()();
      const puts = [9, 3, 255, 0, 128, 4].map((key) => [bytes(key), bytes(key)] as const);
      await store.write(puts, [], false);
      expect(await all(store, bytes(3), bytes(255))).toEqual([
        [3, 3],
        [4, 4],
        [9, 9],
        [128, 128],
      ]);
      await store.close();
    });

    it('lists more entries than it reads at once', async () => {
      const store = await twin()();
      const puts = Array.from({ length: 1000 }, (_, n) => [bytes(n >> 8, n & 255), bytes(1)] as const);
      await store.write(puts, [], false);
      expect((await all(store, bytes(0), bytes(255))).length).toBe(1000);
      await store.close();
    });

    it('puts and deletes in one step, and keeps it over close and open', async () => {
      const open = twin();
      const store = await open();
      await store.write(
        [
          [bytes(1), bytes(1)],
          [bytes(2), bytes(2)],
        ],
        [],
        false,
      );
      await store.write([[bytes(3), bytes(3)]], [bytes(1)], true);
      await store.close();
      const again = await open();
      expect(await all(again, bytes(0), bytes(9))).toEqual([
        [2, 2],
        [3, 3],
      ]);
      await again.close();
    });

    it('refuses a second handle while the first is open', async () => {
      const open = twin();
      const store = await open();
      await expect(open()).rejects.toThrow(/already open|in use/);
      await store.write([[bytes(1), bytes(1)]], [], false);
      await store.close();
      await (await open()).close();
    });
  });
}

describe('the memory twin', () => {
  it('is dead after a failed write, until it is opened again', async () => {
    const disk = new MemoryDisk();
    const store = disk.openStore();
    disk.beforeWrite = () => {
      throw new Error('no space');
    };
    await expect(store.write([[bytes(1), bytes(1)]], [], false)).rejects.toThrow('no space');
    disk.beforeWrite = () => {};
    await expect(store.write([[bytes(1), bytes(1)]], [], false)).rejects.toThrow('opened anew');
    await store.close();
    expect(await disk.openStore().get(bytes(1))).toBeUndefined();
  });

  it('loses any unsynced writes in a power cut, and no synced one', async () => {
    const disk = new MemoryDisk();
    const store = disk.openStore();
    await store.write([[bytes(1), bytes(1)]], [], true);
    for (const key of [2, 3, 4]) await store.write([[bytes(key), bytes(key)]], [], false);
    disk.powerCut((write) => write === 1);
    expect(await all(disk.openStore(), bytes(0), bytes(9))).toEqual([
      [1, 1],
      [3, 3],
    ]);
  });
});

describe('the store on LevelDB', () => {
  it('names the folder that it cannot open', async () => {
    const folder = newFolder();
    const store = await LevelStore.open(folder);
    const error = await LevelStore.open(folder).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(StoreError);
    expect(String(error)).toContain(folder);
    await store.close();
  });
});
