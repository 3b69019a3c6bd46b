import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { MemoryBus } from '../../../../libs/bus/memory-bus.ts';
import { edgesLog, edgesSubjects, type LogName } from '../../../../libs/dataflow/names.ts';
import type { Appended, AppendOptions, Clock } from '../../../../libs/stage/ports.ts';
import { CliError, EXIT } from '../../../../services/cli/exit.ts';
import { EdgeSender, UNKNOWN_MS_MAX, WINDOW } from '../../../../services/cli/load/send.ts';

const LOG = edgesLog('g');

/** Time passes only in `sleep`. */
class TestClock implements Clock {
  private ms = 0;
  now(): number {
    return this.ms;
  }
  async sleep(ms: number): Promise<void> {
    this.ms += ms;
  }
  after(): () => void {
    return () => {};
  }
  async yield(): Promise<void> {}
}

/** Answers come some turns of the event loop later, as they do from a server. */
class LateBus extends MemoryBus {
  inFlight = 0;
  inFlightMax = 0;
  isFull = (): boolean => false;

  override async append(name: LogName, payload: Uint8Array, options: AppendOptions): Promise<Appended> {
    this.inFlight += 1;
    this.inFlightMax = Math.max(this.inFlightMax, this.inFlight);
    const appended: Appended = this.isFull()
      ? { kind: 'full', reason: 'maximum bytes exceeded' }
      : await super.append(name, payload, options);
    for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setImmediate(resolve));
    this.inFlight -= 1;
    return appended;
  }
}

async function emptyLog(): Promise<LateBus> {
  const bus = new LateBus(() => 0n, new TestClock());
  await bus.create(LOG.stream, { subjects: edgesSubjects('g'), discard: 'new', denyDelete: true });
  return bus;
}

const payloadOf = (n: number): { payload: Uint8Array; edges: number } => ({
  payload: new TextEncoder().encode(`payload ${n}`),
  edges: n + 1,
});

async function stored(bus: MemoryBus): Promise<string[]> {
  const { last } = (await bus.describe(LOG.stream))!;
  const texts: string[] = [];
  for (let sequence = 1; sequence <= last; sequence++) {
    texts.push(new TextDecoder().decode((await bus.message(LOG.stream, sequence))!.payload));
  }
  return texts;
}

async function sendMany(sender: EdgeSender, count: number): Promise<EdgeSender['sent']> {
  for (let n = 0; n < count; n++) await sender.send(payloadOf(n));
  return await sender.finish();
}

const edgesOf = (count: number): number => (count * (count + 1)) / 2;

describe('EdgeSender', () => {
  it('keeps a window of payloads in flight, and their order', async () => {
    const bus = await emptyLog();
    const sent = await sendMany(new EdgeSender(bus, LOG, 'run', new TestClock(), () => {}), 100);
    expect(sent).toEqual({ edges: edgesOf(100), duplicates: 0, firstSequence: 1, lastSequence: 100 });
    expect(await stored(bus)).toEqual(Array.from({ length: 100 }, (_, n) => `payload ${n}`));
    expect(bus.inFlightMax).toBe(WINDOW);
  });

  it('stores every payload once, whatever is lost on the way there or back', async () => {
    const fault = fc.constantFrom('none', 'none', 'lost-before', 'lost-after', 'full' as const);
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 80 }),
        fc.array(fault, { maxLength: 120 }),
        async (count, faults) => {
          const bus = await emptyLog();
          let next: string | undefined;
          bus.isFull = () => {
            next = faults.shift();
            return next === 'full';
          };
          bus.onAppend = () => (next === 'lost-before' || next === 'lost-after' ? next : 'none');
          const sent = await sendMany(new EdgeSender(bus, LOG, 'run', new TestClock(), () => {}), count);
          const texts = await stored(bus);
          expect([...texts].sort()).toEqual(Array.from({ length: count }, (_, n) => `payload ${n}`).sort());
          expect(sent).toEqual({
            edges: edgesOf(count),
            duplicates: 0,
            firstSequence: 1,
            lastSequence: count,
          });
        },
      ),
      { numRuns: 300 },
    );
  });

  it('sends again in order when all that was in flight was lost', async () => {
    const bus = await emptyLog();
    let appends = 0;
    bus.onAppend = () => (appends++ >= 5 && appends <= 60 ? 'lost-before' : 'none');
    const messages: string[] = [];
    await sendMany(
      new EdgeSender(bus, LOG, 'run', new TestClock(), (message) => messages.push(message)),
      100,
    );
    expect(await stored(bus)).toEqual(Array.from({ length: 100 }, (_, n) => `payload ${n}`));
    expect(messages[0]).toBe(`${LOG.stream} gives no answer (no answer): trying again`);
    expect(messages.at(-1)).toBe('it goes on');
    expect(messages.length).toBeLessThan(6);
  });

  it('waits for room as long as it takes, and says so', async () => {
    const bus = await emptyLog();
    let refusals = 1000;
    bus.isFull = () => refusals-- > 0;
    const messages: string[] = [];
    const clock = new TestClock();
    await sendMany(new EdgeSender(bus, LOG, 'run', clock, (message) => messages.push(message)), 3);
    expect(await stored(bus)).toHaveLength(3);
    expect(clock.now()).toBeGreaterThan(UNKNOWN_MS_MAX * 2);
    expect(messages[0]).toBe(`${LOG.stream} is full (maximum bytes exceeded): waiting until there is room`);
  });

  it('gives up a payload of unknown outcome before the log forgets its id, and not sooner', async () => {
    const bus = await emptyLog();
    bus.onAppend = () => 'lost-before';
    const clock = new TestClock();
    const sender = new EdgeSender(bus, LOG, 'run', clock, () => {});
    const error = await sendMany(sender, 3).catch((caught: unknown) => caught);
    expect(error).toBeInstanceOf(CliError);
    expect((error as CliError).status).toBe(EXIT.unavailable);
    expect(clock.now()).toBeGreaterThanOrEqual(60_000);
    expect(clock.now()).toBeLessThan(120_000);
    expect(sender.sent).toMatchObject({ edges: 0, firstSequence: undefined });
  });

  it('counts what an earlier load of the same name stored as duplicates', async () => {
    const bus = await emptyLog();
    await sendMany(new EdgeSender(bus, LOG, 'key', new TestClock(), () => {}), 10);
    const again = await sendMany(new EdgeSender(bus, LOG, 'key', new TestClock(), () => {}), 10);
    expect(again).toEqual({ edges: 55, duplicates: 55, firstSequence: 1, lastSequence: 10 });
    expect(await stored(bus)).toHaveLength(10);
    const other = await sendMany(new EdgeSender(bus, LOG, 'other', new TestClock(), () => {}), 10);
    expect(other).toMatchObject({ duplicates: 0, firstSequence: 11 });
  });

  it('passes on an error of the bus that no wait can mend', async () => {
    const bus = await emptyLog();
    bus.onAppend = () => {
      throw new Error('connection closed');
    };
    const sender = new EdgeSender(bus, LOG, 'run', new TestClock(), () => {});
    await expect(sendMany(sender, 3)).rejects.toThrow('connection closed');
  });
});
