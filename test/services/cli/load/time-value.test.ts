import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { lookAtTimes, type TimeUnit, timeMsIn } from '../../../../services/cli/load/time-value.ts';

const timeMs = (text: string, unit?: TimeUnit): number => {
  const bytes = new TextEncoder().encode(`<${text}>`);
  return timeMsIn(bytes, 1, bytes.length - 1, unit);
};

describe('timeMsIn', () => {
  it('shifts the point and cuts off the rest towards the past, in every unit', () => {
    const units = [
      ['s', 1_000_000_000n],
      ['ms', 1_000_000n],
      ['us', 1000n],
      ['ns', 1n],
    ] as const;
    fc.assert(
      fc.property(
        fc.bigInt({ min: -9_000_000_000_000_000_000n, max: 9_000_000_000_000_000_000n }),
        fc.constantFrom(...units),
        (nanoseconds, [unit, perUnit]) => {
          const isNegative = nanoseconds < 0n;
          const size = isNegative ? -nanoseconds : nanoseconds;
          const fraction = String(size % perUnit).padStart(String(perUnit).length - 1, '0');
          const text = `${isNegative ? '-' : ''}${size / perUnit}${perUnit === 1n ? '' : `.${fraction}`}`;
          const quotient = nanoseconds / 1_000_000n;
          const floor = quotient * 1_000_000n > nanoseconds ? quotient - 1n : quotient;
          expect(timeMs(text, unit)).toBe(Number(floor) + 0);
        },
      ),
      { numRuns: 5000 },
    );
  });

  it('reads ISO 8601 with or without a unit, and nothing else without one', () => {
    expect(timeMs('2024-02-29 12:00')).toBe(Date.UTC(2024, 1, 29, 12));
    expect(timeMs('2024-02-29', 's')).toBe(Date.UTC(2024, 1, 29));
    expect(timeMs('1700000000')).toBeNaN();
  });

  it.each(['', '-', '.', '.5', '5.', '1e9', '1 2', '0x10', '1.2.3', '999999999999999999999', 'NaN'])(
    '%j is no time',
    (text) => {
      expect(timeMs(text, 's')).toBeNaN();
    },
  );
});

describe('lookAtTimes', () => {
  it('tells the unit by the size of most numbers', () => {
    expect(lookAtTimes(['999999999', '1000000000', '1700000000'])).toEqual({ kind: 'numbers', unit: 's' });
    expect(lookAtTimes(['1700000000000', ''])).toEqual({ kind: 'numbers', unit: 'ms' });
    expect(lookAtTimes(['1700000000000000'])).toEqual({ kind: 'numbers', unit: 'us' });
    expect(lookAtTimes(['1', '2', '1700000000'])).toEqual({ kind: 'small-numbers' });
  });

  it('knows texts, and what is neither', () => {
    expect(lookAtTimes(['', 'x', '2024-01-01'])).toEqual({ kind: 'texts' });
    expect(lookAtTimes(['', '13/06/2019'])).toEqual({ kind: 'no-times', example: '13/06/2019' });
    expect(lookAtTimes([''])).toEqual({ kind: 'empty' });
  });
});
