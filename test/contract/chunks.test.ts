/** What snapshots ask of a store of chunks, held against all three. */
import { createHash, randomBytes } from 'node:crypto';
import { mkdtempSync, readdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { jetstream, jetstreamManager } from '@nats-io/jetstream';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { connectNats } from '../../libs/bus/nats-bus.ts';
import { NatsChunks } from '../../libs/bus/nats-chunks.ts';
import type { Chunks } from '../../libs/stage/ports.ts';
import { FileChunks } from '../../libs/store/file-chunks.ts';
import { MemoryChunks } from '../../libs/store/memory-chunks.ts';
import { testNatsServer } from '../integration/harness/nats.ts';
import { realClock } from '../support/memory-pipeline.ts';

interface Opened {
  readonly chunks: Chunks;
  /** Flips a bit of the one chunk that is there. */
  damage(name: string): Promise<void>;
  /** Removes part or all of its bytes. */
  lose(name: string): Promise<void>;
  readonly lost: 'missing' | 'damaged';
  close(): Promise<void>;
}

const none = '0'.repeat(64);

function nameOf(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}

async function removeAll(chunks: Chunks): Promise<void> {
  for (const { name } of await chunks.list()) await chunks.remove(name);
}

function contract(kind: string, open: () => Promise<Opened>): void {
  describe(`chunks on ${kind}`, () => {
    let opened: Opened;
    let chunks: Chunks;
    beforeAll(async () => {
      opened = await open();
      ({ chunks } = opened);
    });
    afterAll(() => opened.close());

    it.each([0, 1, 1000, 512 * 1024, 512 * 1024 + 1, 3_000_000])('gives back %i bytes', async (length) => {
      const bytes = new Uint8Array(randomBytes(length));
      const name = await chunks.put(bytes);
      expect(name).toBe(nameOf(bytes));
      const back = await chunks.get(name);
      expect(Buffer.compare(back as Uint8Array, bytes)).toBe(0);
    });

    it('knows nothing of a chunk that was not put', async () => {
      expect(await chunks.get(none)).toBe('missing');
      await chunks.remove(none);
    });

    it('lists what is there, with its age, and not what was removed', async () => {
      await removeAll(chunks);
      expect(await chunks.list()).toEqual([]);
      const names: string[] = [];
      for (let n = 0; n < 40; n++) names.push(await chunks.put(Uint8Array.of(n)));
      await chunks.remove(names[0]!);
      const list = await chunks.list();
      expect(list.map(({ name }) => name).sort()).toEqual(names.slice(1).sort());
      for (const { ageMs } of list) {
        expect(ageMs).toBeGreaterThanOrEqual(0);
        expect(ageMs).toBeLessThan(60_000);
      }
      expect(await chunks.get(names[0]!)).toBe('missing');
      expect(await chunks.put(Uint8Array.of(0))).toBe(names[0]);
      expect(await chunks.get(names[0]!)).toEqual(Uint8Array.of(0));
    });

    it('takes the same bytes from several at once', async () => {
      const bytes = new Uint8Array(randomBytes(1_200_000));
      const names = await Promise.all([1, 2, 3].map(() => chunks.put(bytes)));
      expect(new Set(names)).toEqual(new Set([nameOf(bytes)]));
      expect(Buffer.compare((await chunks.get(names[0]!)) as Uint8Array, bytes)).toBe(0);
    });

    it.each(['damage', 'lose'] as const)('sees a chunk after %s, and takes it anew', async (what) => {
      await removeAll(chunks);
      const bytes = new Uint8Array(randomBytes(700_000));
      const name = await chunks.put(bytes);
      await opened[what](name);
      expect(await chunks.get(name)).toBe(what === 'damage' ? 'damaged' : opened.lost);
      await chunks.remove(name);
      expect(await chunks.get(name)).toBe('missing');
      await chunks.put(bytes);
      expect(Buffer.compare((await chunks.get(name)) as Uint8Array, bytes)).toBe(0);
    });
  });
}

contract('memory', async () => {
  const chunks = new MemoryChunks(realClock);
  return {
    chunks,
    damage: async () => chunks.damage(0, 12_345),
    lose: async () => chunks.lose(0),
    lost: 'missing',
    close: async () => {},
  };
});

const pathIn = (folder: string, name: string): string => join(folder, 'chunks', name.slice(0, 2), name);

contract('files', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'watershed-chunks-'));
  return {
    chunks: new FileChunks(folder),
    damage: async (name) => writeFileSync(pathIn(folder, name), 'x', { flag: 'r+' }),
    lose: async (name) => rmSync(pathIn(folder, name)),
    lost: 'missing',
    close: async () => rmSync(folder, { recursive: true }),
  };
});

contract('nats-server', async () => {
  const server = await testNatsServer();
  const connection = await connectNats({ url: server.url, name: 'chunks', wait: true });
  const manager = await jetstreamManager(connection);
  const stream = 'OBJ_watershed_snapshots';
  const partsOf = async (name: string): Promise<string> => {
    const record = await manager.streams.getMessage(stream, {
      last_by_subj: `$O.watershed_snapshots.M.${Buffer.from(name).toString('base64')}`,
    });
    return `$O.watershed_snapshots.C.${record!.json<{ nuid: string }>().nuid}`;
  };
  return {
    chunks: new NatsChunks(connection, 1),
    damage: async (name) => {
      const subject = await partsOf(name);
      const last = await manager.streams.getMessage(stream, { last_by_subj: subject });
      const bytes = last!.data.slice();
      bytes[7]! ^= 1;
      await manager.streams.deleteMessage(stream, last!.seq);
      await jetstream(connection).publish(subject, bytes);
    },
    lose: async (name) => {
      await manager.streams.purge(stream, { filter: await partsOf(name) });
    },
    lost: 'damaged',
    close: async () => {
      await connection.close();
      await server.stop();
    },
  };
});

describe('chunks on files', () => {
  const folder = mkdtempSync(join(tmpdir(), 'watershed-chunks-'));
  afterAll(() => rmSync(folder, { recursive: true }));

  it('forms no path from what is not the name of a chunk', async () => {
    const chunks = new FileChunks(folder);
    for (const name of ['', '../../etc/passwd', `${none}0`, none.replaceAll('0', 'A'), `${none}\n`]) {
      await expect(chunks.get(name)).rejects.toThrow('not the name of a chunk');
      await expect(chunks.remove(name)).rejects.toThrow('not the name of a chunk');
    }
  });

  it('replaces a damaged chunk that is put again', async () => {
    const chunks = new FileChunks(folder);
    const name = await chunks.put(Uint8Array.of(1, 2, 3));
    writeFileSync(pathIn(folder, name), 'xyz');
    expect(await chunks.get(name)).toBe('damaged');
    await chunks.put(Uint8Array.of(1, 2, 3));
    expect(Buffer.from((await chunks.get(name)) as Uint8Array)).toEqual(Buffer.of(1, 2, 3));
  });

  it('drops what a writer left behind that died, and not what one is writing', async () => {
    const chunks = new FileChunks(folder);
    const name = await chunks.put(Uint8Array.of(4));
    const [old, young] = ['old.tmp', 'young.tmp'].map((ending) => `${pathIn(folder, name)}.${ending}`);
    writeFileSync(old!, 'x');
    writeFileSync(young!, 'x');
    utimesSync(old!, 0, 0);
    expect((await chunks.list()).map((chunk) => chunk.name)).toContain(name);
    expect(readdirSync(join(folder, 'chunks', name.slice(0, 2))).sort()).toEqual([name, `${name}.young.tmp`]);
  });
});

describe('chunks on nats-server', () => {
  it('keep parts without a record while their writer may still live', async () => {
    const server = await testNatsServer();
    const connection = await connectNats({ url: server.url, name: 'orphans', wait: true });
    const chunks = new NatsChunks(connection, 1);
    expect(await chunks.list()).toEqual([]);
    await jetstream(connection).publish('$O.watershed_snapshots.C.someone', 'x');
    expect(await chunks.list()).toEqual([]);
    const { state } = await (await jetstreamManager(connection)).streams.info('OBJ_watershed_snapshots');
    expect(state.messages).toBe(1);
    await connection.close();
    await server.stop();
  });
});
