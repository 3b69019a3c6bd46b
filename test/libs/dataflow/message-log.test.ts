import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ByteReader, ByteWriter } from '../../../libs/dataflow/bytes.ts';
import { type MessageEntry, MessageLog } from '../../../libs/dataflow/message-log.ts';

const step = fc.record({
  gap: fc.constantFrom(0, 0, 0, 1, 5000, 2 ** 40),
  pause: fc.constantFrom(0, 1, 86_400_000),
  edges: fc.nat(100_000),
  rejected: fc.nat(5),
});

function entriesOf(steps: { gap: number; pause: number; edges: number; rejected: number }[]): MessageEntry[] {
  let sequence = 0;
  let time = 1_700_000_000_000;
  return steps.map(({ gap, pause, edges, rejected }) => {
    sequence += 1 + gap;
    time += pause;
    return { sequence, time, edges, rejected };
  });
}

function naive(entries: readonly MessageEntry[], sequence: number): object {
  const prefix = entries.filter((entry) => entry.sequence <= sequence);
  const last = prefix.at(-1);
  return {
    sequence: last?.sequence ?? 0,
    time: last?.time ?? Number.NaN,
    edges: prefix.reduce((sum, entry) => sum + entry.edges, 0),
    rejected: prefix.reduce((sum, entry) => sum + entry.rejected, 0),
  };
}

describe('the message log', () => {
  it('sums up any prefix, and is the same after being written and read in pieces', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 300 }), fc.nat(), (steps, pick) => {
        const entries = entriesOf(steps);
        const log = new MessageLog();
        for (const entry of entries) log.push(entry);
        const asked = [0, 1, ...entries.flatMap(({ sequence }) => [sequence - 1, sequence, sequence + 1])];
        for (const sequence of asked) expect(log.through(sequence)).toEqual(naive(entries, sequence));
        const at = entries.length === 0 ? 0 : pick % (entries.length + 1);
        const copy = new MessageLog();
        for (const [from, to] of [
          [0, at],
          [at, entries.length],
        ] as const) {
          const writer = new ByteWriter();
          log.write(from, to, writer);
          copy.read(new ByteReader(writer.written()));
        }
        expect(copy.totals).toEqual(log.totals);
        for (const sequence of asked) expect(copy.through(sequence)).toEqual(log.through(sequence));
      }),
      { numRuns: 60 },
    );
  });

  it('refuses a message that does not follow the last one', () => {
    const log = new MessageLog();
    log.push({ sequence: 5, time: 10, edges: 1, rejected: 0 });
    expect(() => log.push({ sequence: 5, time: 11, edges: 1, rejected: 0 })).toThrow('message 5 comes after');
    expect(() => log.push({ sequence: 6, time: 9, edges: 1, rejected: 0 })).toThrow(RangeError);
  });
});
