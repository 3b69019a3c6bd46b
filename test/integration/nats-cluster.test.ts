/** A cluster of three nats-servers, of which one dies or falls silent: logs and records go on, and lose nothing. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { connectNats, NatsBus } from '../../libs/bus/nats-bus.ts';
import { NatsChunks } from '../../libs/bus/nats-chunks.ts';
import { NatsKv } from '../../libs/bus/nats-kv.ts';
import type { LogName } from '../../libs/dataflow/names.ts';
import type { Appended } from '../../libs/stage/ports.ts';
import { type TestNatsCluster, testNatsCluster } from './harness/nats.ts';

/** An election takes up to ten seconds. */
const RESUME_MS = 15_000;

const encoder = new TextEncoder();
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Asks until it is answered: elections take their time, and calls without an answer throw. */
async function answered<T>(ask: () => Promise<T>): Promise<T> {
  const deadline = performance.now() + RESUME_MS;
  for (;;) {
    try {
      return await ask();
    } catch (error) {
      if (performance.now() > deadline) throw error;
      await pause(100);
    }
  }
}

describe('a cluster of nats-servers', () => {
  let cluster: TestNatsCluster;
  const closing: (() => Promise<void>)[] = [];

  beforeAll(async () => {
    cluster = await testNatsCluster({ servers: 3 });
  });
  afterEach(async () => {
    for (const close of closing.splice(0)) await close();
  });
  afterAll(() => cluster.stop());

  async function connect(url: string, statuses: string[] = []) {
    const onStatus = ({ type }: { type: string }): void => void statuses.push(type);
    const connection = await connectNats({ url, name: 'test', wait: true, onStatus });
    closing.push(() => connection.close());
    return connection;
  }

  async function newLog(bus: NatsBus, stream: string): Promise<LogName> {
    const log = { stream, subject: stream.toLowerCase() };
    const options = { subjects: [log.subject], discard: 'new', denyDelete: true, replicas: 3 } as const;
    await answered(() => bus.create(stream, options));
    return log;
  }

  it('appends and reads on after the death of the log’s leader, and nothing is lost or stored twice', {
    timeout: 120_000,
  }, async () => {
    const bus = new NatsBus(await connect(cluster.urls));
    const log = await newLog(bus, 'KILLED');
    let last = 0;
    let isOver = false;
    const appending = (async () => {
      while (!isOver) {
        const result: Appended = await bus.append(log, encoder.encode(String(last + 1)), {
          expectLast: last,
        });
        if (result.kind === 'stored') last = result.sequence;
        else if (result.kind === 'unknown') last = (await answered(() => bus.describe(log.stream)))!.last;
        else throw new Error(`the only writer was refused: ${result.kind}`);
      }
    })();
    const until = async (count: number, ms: number): Promise<void> => {
      const deadline = performance.now() + ms;
      while (last < count) {
        expect(performance.now(), `message ${count} is stored in time`).toBeLessThan(deadline);
        await Promise.race([pause(10), appending]);
      }
    };
    await until(100, RESUME_MS);

    const leader = await cluster.leaderOf(log.stream);
    await cluster.kill(leader);
    const began = performance.now();
    await until(last + 100, RESUME_MS);
    console.log(`appends went on ${Math.round(performance.now() - began)} ms after the leader was killed`);
    isOver = true;
    await appending;

    const read: string[] = [];
    let reader = await answered(() => bus.read(log.stream, 1));
    while (read.length < last) {
      try {
        for (const { payload } of await reader.next(1_000)) read.push(new TextDecoder().decode(payload));
      } catch {
        await reader.close();
        reader = await answered(() => bus.read(log.stream, read.length + 1));
      }
    }
    await reader.close();
    expect(read).toEqual(Array.from({ length: last }, (_, n) => String(n + 1)));
    await cluster.restart(leader);
  });

  it('keeps records that one of several creates, and one of several updates, also over a leader’s death', {
    timeout: 120_000,
  }, async () => {
    const connections = await Promise.all([0, 1, 2].map(() => connect(cluster.urls)));
    const kvs = connections.map((connection) => new NatsKv(connection, 3));
    const kv = kvs[0]!;
    // Both makers of the bucket at once.
    await Promise.all(kvs.map((one, n) => answered(() => one.put('records', `own.${n}`, '0'))));
    expect((await answered(() => kv.list('records', 'own.'))).length).toBe(3);

    /** How many were told that they won; where none was, whoever's write is there was not told so. */
    const race = async (
      write: (one: NatsKv, value: string) => Promise<number | undefined>,
    ): Promise<number[]> => {
      const results = await Promise.allSettled(kvs.map((one, n) => write(one, `${n}`)));
      return results.flatMap((result) =>
        result.status === 'fulfilled' && result.value !== undefined ? [result.value] : [],
      );
    };
    const exclusive = async (): Promise<void> => {
      for (let round = 0; round < 20; round++) {
        const before = await answered(() => kv.get('records', 'a'));
        const won = await race((one, value) =>
          before === undefined
            ? one.create('records', 'a', value)
            : one.update('records', 'a', value, before.revision),
        );
        expect(won.length).toBeLessThanOrEqual(1);
        const after = await answered(() => kv.get('records', 'a'));
        if (won.length === 1) expect(after?.revision).toBe(won[0]);
        if (round % 5 === 4) await answered(() => kv.remove('records', 'a'));
      }
    };
    await exclusive();
    const leader = await cluster.leaderOf('KV_records');
    await cluster.kill(leader);
    await exclusive();
    await cluster.restart(leader);
  });

  it('keeps chunks on all servers, of which one may die', { timeout: 120_000 }, async () => {
    const chunks = new NatsChunks(await connect(cluster.urls), 3);
    const bytes = new Uint8Array(2_000_000).fill(7);
    const name = await answered(() => chunks.put(bytes));
    const leader = await cluster.leaderOf('OBJ_watershed_snapshots');
    await cluster.kill(leader);
    expect(Buffer.compare((await answered(() => chunks.get(name))) as Uint8Array, bytes)).toBe(0);
    expect((await answered(() => chunks.list())).map((chunk) => chunk.name)).toEqual([name]);
    await cluster.restart(leader);
  });

  it('is left at once by requests in flight when their server dies, and goes on with what waits', {
    timeout: 120_000,
  }, async () => {
    const admin = new NatsBus(await connect(cluster.urls));
    const log = await newLog(admin, 'LEFT');
    const follower = ((await cluster.leaderOf(log.stream)) + 1) % 3;
    const bus = new NatsBus(await connect(cluster.servers[follower]!.url));
    await answered(async () =>
      expect(await bus.append(log, encoder.encode('1'), {})).toMatchObject({ sequence: 1 }),
    );
    cluster.pause(follower);
    const inFlight = bus.append(log, encoder.encode('2'), {});
    const began = performance.now();
    await cluster.kill(follower);
    expect(await inFlight).toMatchObject({ kind: 'unknown', reason: 'NATS disconnected before it answered' });
    const next = [await bus.append(log, encoder.encode('3'), { messageId: '3' })];
    expect(next).toMatchObject([{ kind: 'stored' }]);
    expect(performance.now() - began).toBeLessThan(4_000);
    await cluster.restart(follower);
  });

  it('has a client leave a server that is connected and answers nothing', { timeout: 120_000 }, async () => {
    const admin = new NatsBus(await connect(cluster.urls));
    const log = await newLog(admin, 'SILENT');
    const follower = ((await cluster.leaderOf(log.stream)) + 1) % 3;
    const statuses: string[] = [];
    const bus = new NatsBus(await connect(cluster.servers[follower]!.url, statuses));
    await answered(async () =>
      expect(await bus.append(log, encoder.encode('1'), {})).toMatchObject({ sequence: 1 }),
    );
    cluster.pause(follower);
    const began = performance.now();
    expect(await bus.append(log, encoder.encode('2'), {})).toMatchObject({ kind: 'unknown' });
    expect(await bus.append(log, encoder.encode('2'), {})).toMatchObject({ kind: 'stored' });
    console.log(`the silent server was left after ${Math.round(performance.now() - began)} ms`);
    expect(statuses).toContain('forceReconnect');
    expect(statuses).not.toContain('staleConnection');
    cluster.resume(follower);
  });
});
