import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ByteReader, ByteWriter } from '../../../libs/dataflow/bytes.ts';
import { Producers, type Taken } from '../../../libs/dataflow/producers.ts';

const WINDOW = 1024;
/** Small, so that random runs come to both. */
const LIMITS = { expiryMessages: 50, producersMax: 4 };

interface Message {
  readonly sequence: number;
  readonly id: string;
  readonly number: number;
}

/** What the rules say, with every number that was ever taken. */
class Oracle {
  private producers: { id: string; last: number; taken: Set<number> }[] = [];

  take({ sequence, id, number }: Message): Taken['kind'] {
    this.producers = this.producers.filter(({ last }) => sequence - last <= LIMITS.expiryMessages);
    const known = this.producers.find((producer) => producer.id === id);
    if (known === undefined) {
      if (number > WINDOW) return 'rejected';
      this.producers.push({ id, last: sequence, taken: new Set([number]) });
      this.producers.sort((a, b) => b.last - a.last);
      this.producers = this.producers.slice(0, LIMITS.producersMax);
      return 'new';
    }
    known.last = sequence;
    if (number > this.contiguous(id) && number <= this.highest(id) - WINDOW) return 'rejected';
    if (known.taken.has(number)) return 'duplicate';
    known.taken.add(number);
    return 'new';
  }

  get count(): number {
    return this.producers.length;
  }

  highest(id: string): number {
    return Math.max(0, ...this.taken(id));
  }

  /** The last of 1, 2, 3 … that was taken with all before it. */
  private contiguous(id: string): number {
    const taken = this.taken(id);
    let number = 0;
    while (taken.has(number + 1)) number += 1;
    return number;
  }

  private taken(id: string): Set<number> {
    return this.producers.find((producer) => producer.id === id)?.taken ?? new Set();
  }
}

/** Numbers as distances from the producer's highest, and some from the beginning. */
const pick = fc.oneof(
  { weight: 6, arbitrary: fc.constant(1) },
  { weight: 3, arbitrary: fc.integer({ min: -12, max: 4 }) },
  { weight: 1, arbitrary: fc.constantFrom(500, 3000) },
  { weight: 2, arbitrary: fc.integer({ min: 1010, max: 1028 }) },
  { weight: 2, arbitrary: fc.constantFrom(-8, -500, -1015, -1016, -1022, -1023, -1024, -1025, -1026) },
  { weight: 1, arbitrary: fc.integer({ min: -2100, max: 2100 }) },
);
const step = fc.record({
  id: fc.constantFrom('a', 'a', 'a', 'b', 'b', 'c', 'd', 'e', 'f'),
  by: pick,
  fromStart: fc.constantFrom(false, false, false, false, false, true),
  gap: fc.oneof(
    { weight: 20, arbitrary: fc.constant(1) },
    { weight: 1, arbitrary: fc.constantFrom(3, 25, 50, 51) },
  ),
  next: fc.constantFrom('go on', 'go on', 'go on', 'cut', 'copy', 'new chain', 'restart'),
});
const steps = fc.array(step, { maxLength: 200, size: 'max' });

/** A task's state: the blocks on disk, and what was taken after the last of them. */
class Stored {
  producers = new Producers(LIMITS);
  private blocks: Uint8Array[] = [];
  private since: { message: Message; kind: Taken['kind'] }[] = [];

  take(message: Message): Taken['kind'] {
    const { kind } = take(this.producers, message);
    this.since.push({ message, kind });
    return kind;
  }

  do(action: string): void {
    if (action === 'cut') this.cut();
    else if (action === 'copy') {
      // A copy is made of what was just cut.
      this.cut();
      this.blocks = [whole(this.producers)];
    } else if (action === 'new chain') {
      this.producers.markAllChanged();
      this.blocks = [];
      this.cut();
    } else if (action === 'restart') this.restart();
  }

  restart(): void {
    this.producers = new Producers(LIMITS);
    for (const block of this.blocks) this.producers.read(new ByteReader(block));
    for (const { message, kind } of this.since) expect(take(this.producers, message).kind).toBe(kind);
  }

  private cut(): void {
    const writer = new ByteWriter();
    const atMost = this.producers.pendingBytes + 16;
    this.producers.writeIncrement(writer);
    expect(writer.length).toBeLessThanOrEqual(atMost);
    this.blocks.push(writer.copy());
    this.since = [];
  }
}

function take(producers: Producers, { sequence, id, number }: Message): Taken {
  return producers.take(sequence, { id, sequence: String(number) });
}

function whole(producers: Producers): Uint8Array {
  const writer = new ByteWriter();
  producers.writeAll(writer);
  return writer.copy();
}

/** Takes the numbers of one producer at sequences from `from` on. */
function kinds(producers: Producers, id: string, numbers: readonly number[], from: number): string[] {
  return numbers.map((number, at) => take(producers, { sequence: from + at, id, number }).kind);
}

function upTo(highest: number): number[] {
  return Array.from({ length: highest }, (_, at) => at + 1);
}

function reasonOf(taken: Taken): string {
  return taken.kind === 'rejected' ? taken.reason : taken.kind;
}

describe('producers', () => {
  it('decide as one who remembers every number, wherever the state is cut, copied and restored', () => {
    const seen = new Map<string, number>();
    fc.assert(
      fc.property(steps, (steps) => {
        const oracle = new Oracle();
        const plain = new Producers(LIMITS);
        const stored = new Stored();
        let sequence = 0;
        for (const { id, by, fromStart, gap, next } of steps) {
          sequence += gap;
          const number = Math.max(1, (fromStart ? 0 : oracle.highest(id)) + by);
          const message = { sequence, id, number };
          const expected = oracle.take(message);
          seen.set(expected, (seen.get(expected) ?? 0) + 1);
          expect(take(plain, message).kind).toBe(expected);
          expect(stored.take(message)).toBe(expected);
          expect(plain.count).toBe(oracle.count);
          stored.do(next);
          expect(Buffer.compare(whole(stored.producers), whole(plain))).toBe(0);
          expect(stored.producers.byteLength).toBe(plain.byteLength);
        }
      }),
      { numRuns: 150 },
    );
    for (const kind of ['new', 'duplicate', 'rejected']) expect(seen.get(kind)).toBeGreaterThan(100);
  });

  it('count a failed message that is sent again after later ones, and each once', () => {
    const producers = new Producers();
    expect(kinds(producers, 'x', [1, 2, 4, 5, 3, 3, 4, 6, 2], 1)).toEqual([
      ...['new', 'new', 'new', 'new', 'new'],
      ...['duplicate', 'duplicate', 'new', 'duplicate'],
    ]);
  });

  it('keep no trace of a number in the place that it leaves to the number 1024 above', () => {
    const producers = new Producers();
    expect(kinds(producers, 'x', [1, 3, 4, 10, 1027, 1028, 1027, 1028, 1034, 1034], 1)).toEqual([
      ...['new', 'new', 'new', 'new', 'new', 'new'],
      ...['duplicate', 'duplicate', 'new', 'duplicate'],
    ]);
  });

  it('know every number of a producer that left none out, however long ago', () => {
    const producers = new Producers();
    kinds(producers, 'x', upTo(5000), 1);
    expect(kinds(producers, 'x', [1, 17, 3976, 3977, 5000], 6000)).toEqual(Array(5).fill('duplicate'));
    expect(producers.byteLength).toBeLessThan(300);
  });

  it('reject a number that left the window without being known as counted, by name', () => {
    const producers = new Producers();
    kinds(producers, 'x', [...upTo(16), 18, 977, 2000], 1);
    expect(kinds(producers, 'x', [16, 977, 978, 978], 100)).toEqual([
      'duplicate',
      'duplicate',
      'new',
      'duplicate',
    ]);
    // 18 was counted, but that is not known any more.
    for (const [at, number] of [17, 18, 976].entries()) {
      expect(reasonOf(take(producers, { sequence: 200 + at, id: 'x', number }))).toBe(
        `number ${number} of producer "x" lies 1024 or more below its highest, 2000: ` +
          'whether it was counted is not known any more',
      );
    }
  });

  it('remember a number left out also when the whole window came in order after it', () => {
    const producers = new Producers();
    kinds(producers, 'x', [...upTo(5), ...upTo(1200).map((number) => 5000 + number)], 1);
    expect(producers.byteLength).toBeLessThan(300);
    expect(kinds(producers, 'x', [5, 6, 4999, 5001, 5176, 5177, 6200, 6201, 6], 2000)).toEqual([
      ...['duplicate', 'rejected', 'rejected', 'rejected', 'rejected'],
      ...['duplicate', 'duplicate', 'new', 'rejected'],
    ]);
  });

  it('begin with a number in the first window, else the producer is told to take a new id', () => {
    const producers = new Producers();
    expect(reasonOf(producers.take(1, { id: 'x', sequence: '1025' }))).toBe(
      'producer "x" is not known here (new, or expired after 1000000 messages or 100000 producers that came ' +
        'after it): begin anew with another id and number 1',
    );
    expect(producers.count).toBe(0);
    expect(kinds(producers, 'x', [1024, ...upTo(1024)], 2)).toEqual([
      'new',
      ...Array(1023).fill('new'),
      'duplicate',
    ]);
  });

  it('expire by distance in the log, at a message of any producer', () => {
    const producers = new Producers();
    kinds(producers, 'x', [1, 2], 1);
    take(producers, { sequence: 1_000_002, id: 'y', number: 1 });
    expect(producers.count).toBe(2);
    // A message with a bad number counts too.
    producers.take(1_000_003, { id: 'y', sequence: undefined });
    expect(producers.count).toBe(1);
    expect(reasonOf(take(producers, { sequence: 1_000_004, id: 'x', number: 2000 }))).toContain(
      'is not known here',
    );
    // The documented limit: under the same id it looks like a new one.
    expect(take(producers, { sequence: 1_000_005, id: 'x', number: 2 }).kind).toBe('new');
  });

  it('expire the same when all that happened since the last increment is a message that left no trace', () => {
    const producers = new Producers();
    const copy = new Producers();
    for (const act of [
      () => take(producers, { sequence: 1, id: 'x', number: 1 }),
      () => producers.take(2_000_000, { id: '', sequence: '1' }),
    ]) {
      act();
      const writer = new ByteWriter();
      producers.writeIncrement(writer);
      copy.read(new ByteReader(writer.written()));
      expect(whole(copy)).toEqual(whole(producers));
    }
    expect(copy.count).toBe(0);
    expect(copy.byteLength).toBe(0);
  });

  it('are at most 100,000: the least recently used is forgotten', () => {
    const producers = new Producers();
    let sequence = 0;
    for (let at = 0; at < 100_000; at++) take(producers, { sequence: ++sequence, id: `p${at}`, number: 1 });
    expect(take(producers, { sequence: ++sequence, id: 'p0', number: 1 }).kind).toBe('duplicate');
    take(producers, { sequence: ++sequence, id: 'one more', number: 1 });
    expect(producers.count).toBe(100_000);
    expect(take(producers, { sequence: ++sequence, id: 'p0', number: 1 }).kind).toBe('duplicate');
    expect(take(producers, { sequence: ++sequence, id: 'p1', number: 1 }).kind).toBe('new');
  });

  it('write in an increment only who was there since the last one', () => {
    const producers = new Producers();
    for (let at = 0; at < 1000; at++) take(producers, { sequence: 1 + at, id: `p${at}`, number: 1 });
    producers.writeIncrement(new ByteWriter());
    expect(producers.pendingBytes).toBe(0);
    take(producers, { sequence: 2000, id: 'p7', number: 2 });
    const writer = new ByteWriter();
    producers.writeIncrement(writer);
    expect(writer.length).toBeLessThan(16);
    producers.markAllChanged();
    expect(producers.pendingBytes).toBeGreaterThan(5000);
    writer.clear();
    producers.writeIncrement(writer);
    expect(writer.copy()).toEqual(whole(producers));
  });

  it('take numbers up to the largest safe one', () => {
    const producers = new Producers();
    const largest = Number.MAX_SAFE_INTEGER;
    kinds(producers, 'x', [1, largest - 1023, largest - 1, largest], 1);
    const copy = new Producers();
    copy.read(new ByteReader(whole(producers)));
    expect(whole(copy)).toEqual(whole(producers));
    expect(
      kinds(copy, 'x', [largest, largest - 1, largest - 2, largest - 1023, largest - 1024, 1], 10),
    ).toEqual(['duplicate', 'duplicate', 'new', 'duplicate', 'rejected', 'duplicate']);
  });

  it.each([
    '',
    ' 1',
    '1 ',
    '+1',
    '-1',
    '0',
    '01',
    '1.0',
    '1e3',
    '0x1',
    '１',
    '9007199254740992',
    '1'.repeat(400),
  ])('reject the number %j', (sequence) => {
    const producers = new Producers();
    const reason = reasonOf(producers.take(1, { id: 'x', sequence }));
    expect(reason).toContain('a message of producer "x" came with number "');
    expect(reason).toContain(JSON.stringify(sequence).slice(0, 40));
    expect(reason.length).toBeLessThan(200);
    expect(producers.count).toBe(0);
  });

  it('reject a message without a number', () => {
    expect(reasonOf(new Producers().take(1, { id: 'x', sequence: undefined }))).toBe(
      'a message of producer "x" came without a number: it must be written 1, 2, 3 and so on to 2^53 - 1',
    );
  });

  it.each(['', 'x'.repeat(129), 'caf\u00e9', 'a\tb', 'a\u007f', '\ud800'])('reject the id %j', (id) => {
    const producers = new Producers();
    const reason = reasonOf(producers.take(1, { id, sequence: '1' }));
    expect(reason).toMatch(/^producer ".*" is no id: it must be 1 to 128 bytes of printable ASCII$/);
    expect(reason).not.toMatch(/\p{Surrogate}/u);
    expect(producers.count).toBe(0);
  });

  it.each(['x', 'x'.repeat(128), ' !"#~', '__proto__'])('take the id %j', (id) => {
    const producers = new Producers();
    expect(kinds(producers, id, [1, 1], 1)).toEqual(['new', 'duplicate']);
    const copy = new Producers();
    copy.read(new ByteReader(whole(producers)));
    expect(kinds(copy, id, [1, 2], 3)).toEqual(['duplicate', 'new']);
  });

  it('refuse a message that does not follow the last one', () => {
    const producers = new Producers();
    take(producers, { sequence: 5, id: 'x', number: 1 });
    expect(() => take(producers, { sequence: 5, id: 'x', number: 2 })).toThrow(RangeError);
  });
});
