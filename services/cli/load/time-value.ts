/**
 * Times as files have them: ISO 8601 text, or a number since 1970 in some unit.
 *
 * A number does not tell its unit, its size does: between 2001 and 2286 a count of seconds has 10 digits, of
 * milliseconds 13, and so on. Smaller numbers (a step, a sentence, seconds since the start of the experiment)
 * are no such times, and are never taken for one without a unit given.
 *
 * A number is read digit by digit: as a double, 1289241911.72836 seconds and a count of nanoseconds would be
 * rounded before they are cut to milliseconds.
 */

import { checkedTimeMs, parseTime } from '../../../libs/dataflow/time.ts';

export type TimeUnit = 's' | 'ms' | 'us' | 'ns';

/** By how many decimal places a number in this unit is smaller than in milliseconds. */
const PLACES: Readonly<Record<TimeUnit, number>> = { s: 3, ms: 0, us: -3, ns: -6 };

export const UNIT_NAMES: Readonly<Record<TimeUnit, string>> = {
  s: 'seconds',
  ms: 'milliseconds',
  us: 'microseconds',
  ns: 'nanoseconds',
};

export function isTimeUnit(text: string): text is TimeUnit {
  return Object.hasOwn(PLACES, text);
}

/**
 * Milliseconds since 1970 of the time in `bytes[start .. end)`, NaN if it is none. Without a unit only texts are
 * times. What is beyond the millisecond is cut off, towards the past.
 */
export function timeMsIn(bytes: Uint8Array, start: number, end: number, unit: TimeUnit | undefined): number {
  const ms = unit === undefined ? Number.NaN : scaledNumber(bytes, start, end, PLACES[unit]);
  return Number.isNaN(ms) ? parseTime(bytes, start, end) : checkedTimeMs(ms);
}

/** What the values of a column look like. */
export interface TimeLook {
  readonly kind: 'texts' | 'numbers' | 'small-numbers' | 'no-times' | 'empty';
  /** Of numbers: the unit that their size tells. */
  readonly unit?: TimeUnit;
  /** Of a column without times: the first value. */
  readonly example?: string;
}

/** Looks at the values of a column in a sample; empty ones tell nothing. */
export function lookAtTimes(values: readonly string[]): TimeLook {
  const counts: Record<TimeUnit, number> = { s: 0, ms: 0, us: 0, ns: 0 };
  let texts = 0;
  let smallNumbers = 0;
  let example: string | undefined;
  for (const value of values) {
    if (value === '') continue;
    const integer = /^[+-]?(\d+)(?:\.\d+)?$/.exec(value)?.[1];
    const unit = integer === undefined ? undefined : UNIT_OF_DIGITS[integer.length];
    if (unit !== undefined) counts[unit] += 1;
    else if (integer !== undefined && integer.length < 19) smallNumbers += 1;
    else if (!Number.isNaN(parseTime(value))) texts += 1;
    else example ??= value;
  }
  let unit: TimeUnit = 's';
  for (const candidate of ['ms', 'us', 'ns'] as const) if (counts[candidate] > counts[unit]) unit = candidate;
  if (counts[unit] > 0 && counts[unit] >= smallNumbers) return { kind: 'numbers', unit };
  if (texts > 0) return { kind: 'texts' };
  if (smallNumbers > 0) return { kind: 'small-numbers' };
  return example === undefined ? { kind: 'empty' } : { kind: 'no-times', example };
}

const UNIT_OF_DIGITS: Readonly<Record<number, TimeUnit>> = { 10: 's', 13: 'ms', 16: 'us', 19: 'ns' };

/** The decimal number in `bytes[start .. end)` times 10 to the power of `places`, rounded down; NaN if none. */
function scaledNumber(bytes: Uint8Array, start: number, end: number, places: number): number {
  const isNegative = bytes[start] === 45;
  let p = isNegative || bytes[start] === 43 ? start + 1 : start;
  let value = 0;
  let point = -1;
  let digits = 0;
  let integerDigits = 0;
  while (p < end && isDigit(bytes[p]!)) {
    integerDigits += 1;
    p += 1;
  }
  const kept = integerDigits + places;
  if (integerDigits === 0 || kept > 16) return Number.NaN;
  let isCut = false;
  for (p -= integerDigits; p < end; p++) {
    const byte = bytes[p]!;
    if (byte === 46 && point < 0 && p + 1 < end) point = p;
    else if (!isDigit(byte)) return Number.NaN;
    else {
      if (digits < kept) value = value * 10 + (byte - 48);
      else if (byte !== 48) isCut = true;
      digits += 1;
    }
  }
  for (; digits < kept; digits++) value *= 10;
  if (!isNegative) return value;
  return isCut ? -value - 1 : -value;
}

function isDigit(byte: number): boolean {
  return byte >= 48 && byte <= 57;
}
