import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { integerIn, isFiniteNumber, numberEnd } from '../../../libs/dataflow/number-text.ts';

const encoder = new TextEncoder();
const integer = (text: string): number => integerIn(encoder.encode(text), 0, text.length);

const text = fc.oneof(
  fc.bigInt({ min: -(2n ** 60n), max: 2n ** 60n }).map(String),
  fc.bigInt({ min: 2n ** 53n - 20n, max: 2n ** 53n + 20n }).map(String),
  fc.double().map(String),
  fc.string({ unit: fc.constantFrom('0', '1', '9', '-', '.', 'e', '+'), maxLength: 18 }),
);

describe('integerIn', () => {
  it('gives an integer exactly when it is written as one and is safe', () => {
    fc.assert(
      fc.property(text, (t) => {
        const isInteger = /^(0|-?[1-9][0-9]*)$/.test(t) && Number.isSafeInteger(Number(t));
        expect(integer(t)).toBe(isInteger ? Number(t) : Number.NaN);
      }),
      { numRuns: 5000 },
    );
  });
});

describe('numberEnd', () => {
  it('takes exactly the numbers of JSON', () => {
    fc.assert(
      fc.property(text, (t) => {
        const isNumber = /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/.test(t);
        expect(numberEnd(encoder.encode(t), 0, t.length) === t.length && t !== '').toBe(isNumber);
      }),
      { numRuns: 5000 },
    );
  });
});

describe('isFiniteNumber', () => {
  it.each([
    ['1e308', true],
    ['1e309', false],
    [`1${'0'.repeat(308)}`, true],
    [`1${'0'.repeat(309)}`, false],
    [`0.${'0'.repeat(400)}1`, true],
  ])('says of %s: %s', (t, expected) => {
    expect(isFiniteNumber(encoder.encode(t), 0, t.length)).toBe(expected);
  });
});
