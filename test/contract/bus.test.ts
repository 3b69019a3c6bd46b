/** What a stage asks of a bus, held against both twins: a real nats-server and the memory. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { MemoryBus } from '../../libs/bus/memory-bus.ts';
import { connectNats, NatsBus } from '../../libs/bus/nats-bus.ts';
import type { LogName } from '../../libs/dataflow/names.ts';
import type { Bus, LogMessage, LogReader } from '../../libs/stage/ports.ts';
import { testNatsServer } from '../integration/harness/nats.ts';
import { realClock } from '../support/memory-pipeline.ts';

const encoder = new TextEncoder();
let made = 0;

async function newLog(bus: Bus, maxBytes?: number): Promise<LogName> {
  const log = { stream: `S${made}`, subject: `s.${made}` };
  made += 1;
  const options = { subjects: [log.subject], discard: 'new', denyDelete: false } as const;
  await bus.create(log.stream, maxBytes === undefined ? options : { ...options, maxBytes });
  return log;
}

async function take(reader: LogReader, count: number): Promise<LogMessage[]> {
  const messages: LogMessage[] = [];
  while (messages.length < count) {
    const next = await reader.next(5_000);
    expect(next.length, 'messages come before the wait is over').toBeGreaterThan(0);
    messages.push(...next);
  }
  return messages;
}

function contract(name: string, open: () => Promise<{ bus: Bus; close: () => Promise<void> }>): void {
  describe(`the bus on ${name}`, () => {
    let bus: Bus;
    let close: () => Promise<void>;
    beforeAll(async () => {
      ({ bus, close } = await open());
    });
    afterAll(() => close());

    it('appends in order, and reads back from any sequence', async () => {
      const log = await newLog(bus);
      for (const text of ['one', 'two', 'three']) {
        await bus.append(log, encoder.encode(text), text === 'two' ? { contentType: 'text/csv' } : {});
      }
      const reader = await bus.read(log.stream, 2);
      const messages = await take(reader, 2);
      await reader.close();
      expect(
        messages.map(({ sequence, payload, contentType }) => [
          sequence,
          new TextDecoder().decode(payload),
          contentType,
        ]),
      ).toEqual([
        [2, 'two', 'text/csv'],
        [3, 'three', undefined],
      ]);
      const third = await bus.message(log.stream, 3);
      expect(third?.time).toBe(messages[1]!.time);
      expect([...third!.payload]).toEqual([...messages[1]!.payload]);
      expect(await bus.message(log.stream, 4)).toBeUndefined();
    });

    it('describes a log, an empty one and none', async () => {
      const log = await newLog(bus);
      expect(await bus.describe(log.stream)).toMatchObject({ first: 1, last: 0 });
      await bus.append(log, encoder.encode('x'), {});
      const state = await bus.describe(log.stream);
      expect(state).toMatchObject({ first: 1, last: 1 });
      expect(state!.created).toBeGreaterThan(0n);
      expect(await bus.describe('NOBODY')).toBeUndefined();
    });

    it('wakes a reader that waits, with the message that comes', async () => {
      const log = await newLog(bus);
      const reader = await bus.read(log.stream, 1);
      expect(await reader.next(10)).toEqual([]);
      const waiting = reader.next(10_000);
      await bus.append(log, encoder.encode('late'), {});
      expect((await waiting).map(({ sequence }) => sequence)).toEqual([1]);
      await reader.close();
    });

    it('refuses an append that expects another end of the log', async () => {
      const log = await newLog(bus);
      expect(await bus.append(log, encoder.encode('a'), { expectLast: 0 })).toMatchObject({
        kind: 'stored',
        sequence: 1,
      });
      expect(await bus.append(log, encoder.encode('b'), { expectLast: 0 })).toEqual({ kind: 'conflict' });
      expect(await bus.append(log, encoder.encode('b'), { expectLast: 1 })).toMatchObject({
        kind: 'stored',
        sequence: 2,
      });
    });

    it('takes pipelined appends that each expect the one before', async () => {
      const log = await newLog(bus);
      const results = await Promise.all(
        Array.from({ length: 200 }, (_, n) => bus.append(log, encoder.encode(String(n)), { expectLast: n })),
      );
      expect(results.every(({ kind }) => kind === 'stored')).toBe(true);
      expect(await bus.describe(log.stream)).toMatchObject({ last: 200 });
    });

    it('stores a message id once, and says so the second time', async () => {
      const log = await newLog(bus);
      const first = await bus.append(log, encoder.encode('a'), { messageId: 'm' });
      const second = await bus.append(log, encoder.encode('a'), { messageId: 'm' });
      expect(first).toMatchObject({ kind: 'stored', sequence: 1, duplicate: false });
      expect(second).toMatchObject({ kind: 'stored', sequence: 1, duplicate: true });
      expect(await bus.describe(log.stream)).toMatchObject({ last: 1 });
    });

    it('removes a log; what reads it is told or finds nothing more', async () => {
      const log = await newLog(bus);
      await bus.append(log, encoder.encode('a'), {});
      await bus.remove(log.stream);
      expect(await bus.describe(log.stream)).toBeUndefined();
      await bus.remove(log.stream);
    });

    it('creates a log once: a second time changes nothing', async () => {
      const log = await newLog(bus);
      await bus.append(log, encoder.encode('a'), {});
      const before = await bus.describe(log.stream);
      await bus.create(log.stream, { subjects: [log.subject], discard: 'new', denyDelete: false });
      expect(await bus.describe(log.stream)).toEqual(before);
    });

    it('begins a log at the sequence that it is made with', async () => {
      const log = { stream: `S${made}`, subject: `s.${made}` };
      made += 1;
      await bus.create(log.stream, {
        subjects: [log.subject],
        discard: 'new',
        denyDelete: true,
        replicas: 1,
        firstSequence: 1001,
      });
      expect(await bus.describe(log.stream)).toMatchObject({ first: 1001, last: 1000 });
      expect(await bus.append(log, encoder.encode('a'), { expectLast: 1000 })).toMatchObject({
        sequence: 1001,
      });
      const reader = await bus.read(log.stream, 1001);
      expect((await take(reader, 1)).map(({ sequence }) => sequence)).toEqual([1001]);
      await reader.close();
    });

    it('creates a log once, although several do it at the same time', async () => {
      const log = { stream: `S${made}`, subject: `s.${made}` };
      made += 1;
      const options = { subjects: [log.subject], discard: 'new', denyDelete: true } as const;
      await Promise.all(Array.from({ length: 5 }, () => bus.create(log.stream, options)));
      expect(await bus.describe(log.stream)).toMatchObject({ first: 1, last: 0 });
    });

    it.each([
      [3, 3, 5],
      [6, 6, 5],
      [9, 9, 8],
      [1, 1, 5],
    ])('purges what is below message %i, so that the log is %i to %i', async (sequence, first, last) => {
      const log = await newLog(bus);
      for (let n = 0; n < 5; n++) await bus.append(log, encoder.encode(String(n)), {});
      await bus.purge(log.stream, sequence);
      expect(await bus.describe(log.stream)).toMatchObject({ first, last });
      if (sequence > 1) expect(await bus.message(log.stream, sequence - 1)).toBeUndefined();
      expect(await bus.append(log, encoder.encode('next'), { expectLast: last })).toMatchObject({
        kind: 'stored',
        sequence: last + 1,
      });
    });

    it('cannot purge a log that is not there', async () => {
      await expect(bus.purge('NOBODY', 2)).rejects.toThrow();
    });

    it('says what the publisher said of itself, in a message and in a reader', async () => {
      const log = await newLog(bus);
      const producers = [{ id: 'p', sequence: '7' }, { id: 'p', sequence: undefined }, undefined];
      for (const producer of producers) {
        await bus.append(log, encoder.encode('a'), producer === undefined ? {} : { producer });
      }
      const reader = await bus.read(log.stream, 1);
      const read = await take(reader, 3);
      await reader.close();
      expect(read.map(({ producer }) => producer)).toEqual(producers);
      expect((await bus.message(log.stream, 1))?.producer).toEqual(producers[0]);
    });

    it('gives all messages to a reader that takes them slowly', async () => {
      const log = await newLog(bus);
      const payload = new Uint8Array(20_000);
      for (let n = 0; n < 40; n++) {
        await Promise.all(Array.from({ length: 25 }, () => bus.append(log, payload, {})));
      }
      const reader = await bus.read(log.stream, 1);
      const messages = await take(reader, 1000);
      await reader.close();
      expect(messages.map(({ sequence }) => sequence)).toEqual(Array.from({ length: 1000 }, (_, n) => n + 1));
    });
  });
}

contract('memory', async () => {
  let time = 1_700_000_000_000_000_000n;
  const bus = new MemoryBus(() => time++, realClock);
  return { bus, close: async () => {} };
});

contract('nats-server', async () => {
  const server = await testNatsServer();
  const connection = await connectNats({ url: server.url, name: 'contract', wait: true });
  return {
    bus: new NatsBus(connection),
    close: async () => {
      await connection.close();
      await server.stop();
    },
  };
});

describe('the bus on nats-server', () => {
  it('says that a log is full', async () => {
    const server = await testNatsServer();
    const connection = await connectNats({ url: server.url, name: 'full', wait: true });
    const bus = new NatsBus(connection);
    const log = await newLog(bus, 10_000);
    const results = [];
    for (let n = 0; n < 5; n++) results.push((await bus.append(log, new Uint8Array(4_000), {})).kind);
    expect(results).toEqual(['stored', 'stored', 'full', 'full', 'full']);
    await connection.close();
    await server.stop();
  });
});
