/** What leases, snapshots and the registry ask of records, held against both twins. */
import { jetstreamManager } from '@nats-io/jetstream';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { MemoryKv } from '../../libs/bus/memory-kv.ts';
import { connectNats } from '../../libs/bus/nats-bus.ts';
import { NatsKv } from '../../libs/bus/nats-kv.ts';
import type { Kv } from '../../libs/stage/ports.ts';
import { testNatsServer } from '../integration/harness/nats.ts';

let made = 0;

function newBucket(): string {
  made += 1;
  return `bucket_${made}`;
}

/** `kvs`: the same records, as several instances have them. */
function contract(name: string, open: () => Promise<{ kvs: Kv[]; close: () => Promise<void> }>): void {
  describe(`records on ${name}`, () => {
    let kv: Kv;
    let kvs: Kv[];
    let close: () => Promise<void>;
    beforeAll(async () => {
      ({ kvs, close } = await open());
      kv = kvs[0]!;
    });
    afterAll(() => close());

    it('gives back what was put, and nothing of what was not', async () => {
      const bucket = newBucket();
      expect(await kv.get(bucket, 'a')).toBeUndefined();
      const first = await kv.put(bucket, 'a', '{"n":1}');
      expect(first).toBeGreaterThan(0);
      expect(await kv.get(bucket, 'a')).toEqual({ key: 'a', value: '{"n":1}', revision: first });
      const second = await kv.put(bucket, 'a', '{"n":"ü"}');
      expect(second).toBeGreaterThan(first);
      expect(await kv.get(bucket, 'a')).toEqual({ key: 'a', value: '{"n":"ü"}', revision: second });
      expect(await kv.isRemoved(bucket, 'a')).toBe(false);
    });

    it('lists the records under a prefix by key, without the removed', async () => {
      const bucket = newBucket();
      expect(await kv.list(bucket, '')).toEqual([]);
      for (const key of ['b.2', 'a', 'b.10', 'bb.1', 'b.3']) await kv.put(bucket, key, `"${key}"`);
      await kv.remove(bucket, 'b.3');
      const keys = async (prefix: string): Promise<string[]> =>
        (await kv.list(bucket, prefix)).map(({ key }) => key);
      expect(await keys('b.')).toEqual(['b.10', 'b.2']);
      expect(await keys('')).toEqual(['a', 'b.10', 'b.2', 'bb.1']);
      expect(await keys('c.')).toEqual([]);
      expect(await kv.list(bucket, 'bb.')).toEqual([await kv.get(bucket, 'bb.1')]);
    });

    it('lists more records than it asks for at once', async () => {
      const bucket = newBucket();
      const keys = Array.from({ length: 100 }, (_, n) => `k.${String(n).padStart(3, '0')}`);
      await Promise.all(keys.map((key) => kv.put(bucket, key, '0')));
      expect((await kv.list(bucket, 'k.')).map(({ key }) => key)).toEqual(keys);
    });

    it('creates a record once, and again after it was removed', async () => {
      const bucket = newBucket();
      const first = await kv.create(bucket, 'a', '1');
      expect(first).toBeGreaterThan(0);
      expect(await kv.create(bucket, 'a', '2')).toBeUndefined();
      await kv.remove(bucket, 'a');
      expect(await kv.get(bucket, 'a')).toBeUndefined();
      expect(await kv.isRemoved(bucket, 'a')).toBe(true);
      const again = await kv.create(bucket, 'a', '3');
      expect(again).toBeGreaterThan(first!);
      expect(await kv.get(bucket, 'a')).toEqual({ key: 'a', value: '3', revision: again });
      expect(await kv.isRemoved(bucket, 'a')).toBe(false);
      expect(await kv.create(bucket, 'a', '4')).toBeUndefined();
    });

    it('updates only what has the revision', async () => {
      const bucket = newBucket();
      expect(await kv.update(bucket, 'a', '1', 7)).toBeUndefined();
      const first = (await kv.create(bucket, 'a', '1'))!;
      await kv.put(bucket, 'other', '1');
      const second = (await kv.update(bucket, 'a', '2', first))!;
      expect(second).toBeGreaterThan(first);
      expect(await kv.update(bucket, 'a', '3', first)).toBeUndefined();
      expect(await kv.get(bucket, 'a')).toEqual({ key: 'a', value: '2', revision: second });
      await kv.remove(bucket, 'a');
      expect(await kv.update(bucket, 'a', '4', second)).toBeUndefined();
      expect(await kv.isRemoved(bucket, 'a')).toBe(true);
    });

    it('lets one of several create, and one of several update', async () => {
      const bucket = newBucket();
      const created = await Promise.all(kvs.map((one, n) => one.create(bucket, 'a', String(n))));
      const [revision, ...others] = created.filter((one) => one !== undefined);
      expect(others).toEqual([]);
      expect(await kv.get(bucket, 'a')).toEqual({
        key: 'a',
        value: String(created.indexOf(revision)),
        revision,
      });
      const updated = await Promise.all(kvs.map((one, n) => one.update(bucket, 'a', String(n), revision!)));
      expect(updated.filter((one) => one !== undefined).length).toBe(1);
    });

    it('tells by its revision that something changed', async () => {
      const bucket = newBucket();
      let before = await kv.revision(bucket);
      for (const change of [
        () => kv.create(bucket, 'a', '1'),
        () => kv.put(bucket, 'a', '1'),
        () => kv.put(bucket, 'b', '1'),
        () => kv.remove(bucket, 'a'),
      ]) {
        await change();
        const after = await kv.revision(bucket);
        expect(after).toBeGreaterThan(before);
        before = after;
      }
      await kv.get(bucket, 'a');
      await kv.list(bucket, '');
      await kv.create(bucket, 'b', '1');
      expect(await kv.revision(bucket)).toBe(before);
    });

    it('leaves no trace of what is erased, but for the revision', async () => {
      const bucket = newBucket();
      await kv.put(bucket, 'a', '1');
      await kv.put(bucket, 'b', '2');
      const before = await kv.revision(bucket);
      await kv.erase(bucket, 'a');
      await kv.erase(bucket, 'never');
      expect(await kv.get(bucket, 'a')).toBeUndefined();
      expect(await kv.isRemoved(bucket, 'a')).toBe(false);
      expect((await kv.list(bucket, '')).map(({ key }) => key)).toEqual(['b']);
      expect(await kv.revision(bucket)).toBeGreaterThan(before);
      expect(await kv.create(bucket, 'a', '3')).toBeGreaterThan(before);
    });

    it('leaves a trace of what is removed, and none of what was never there', async () => {
      const bucket = newBucket();
      expect(await kv.isRemoved(bucket, 'a')).toBe(false);
      await kv.put(bucket, 'a', '1');
      await kv.remove(bucket, 'a');
      await kv.remove(bucket, 'a');
      expect(await kv.isRemoved(bucket, 'a')).toBe(true);
      expect(await kv.isRemoved(bucket, 'b')).toBe(false);
    });
  });
}

contract('memory', async () => {
  const kv = new MemoryKv();
  return { kvs: [kv, kv, kv], close: async () => {} };
});

contract('nats-server', async () => {
  const server = await testNatsServer();
  const connections = await Promise.all(
    ['a', 'b', 'c'].map((name) => connectNats({ url: server.url, name, wait: true })),
  );
  return {
    kvs: connections.map((connection) => new NatsKv(connection, 1)),
    close: async () => {
      await Promise.all(connections.map((connection) => connection.close()));
      await server.stop();
    },
  };
});

describe('the memory twin of records', () => {
  it('loses a call before it has an effect, or its answer after', async () => {
    const kv = new MemoryKv();
    kv.onCall = () => 'lost-before';
    await expect(kv.create('b', 'a', '1')).rejects.toThrow('no answer');
    kv.onCall = (what, bucket, key) => (`${what} ${bucket}.${key}` === 'create b.a' ? 'lost-after' : 'none');
    await expect(kv.create('b', 'a', '1')).rejects.toThrow('the answer was lost');
    expect(await kv.get('b', 'a')).toMatchObject({ value: '1' });
  });
});

describe('records on nats-server', () => {
  it('are made anew where their bucket was lost, and of nothing it is said that it was removed', async () => {
    const server = await testNatsServer();
    const connection = await connectNats({ url: server.url, name: 'lost', wait: true });
    const kv = new NatsKv(connection, 1);
    await kv.put('lost', 'a', '1');
    const other = new NatsKv(connection, 1);
    await other.remove('lost', 'a');
    await (await jetstreamManager(connection)).streams.delete('KV_lost');
    await expect(kv.get('lost', 'a')).rejects.toThrow('stream not found');
    expect(await kv.isRemoved('lost', 'a')).toBe(false);
    await expect(other.put('lost', 'a', '2')).resolves.toBe(1);
    await connection.close();
    await server.stop();
  });
});
