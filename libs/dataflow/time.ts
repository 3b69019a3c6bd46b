/**
 * The time of an edge as text: a calendar date of ISO 8601, to milliseconds since 1970.
 *
 * `Date.parse` is no help here: it reads a time without offset in the zone of the host, guesses at other
 * texts, and accepts 24:00 and February 30 in places. The same edge must have the same time on every machine,
 * so this reads one grammar, byte by byte, and nothing else:
 *
 *     YYYY-MM-DD [ (T | blank) HH:MM [ :SS [ .f{1,9} ] ] [ Z | ±HH:MM | ±HHMM ] ]
 *
 * Without an offset the time is UTC. Digits beyond the millisecond are cut off. Years 0001 to 9999.
 */

/** 0001-01-01T00:00:00.000Z and 9999-12-31T23:59:59.999Z; also the bounds of a time given as a number. */
export const TIME_MS_MIN = -62_135_596_800_000;
export const TIME_MS_MAX = 253_402_300_799_999;

const MS_PER_DAY = 86_400_000;

const ZERO = 48;
const DASH = 45;
const COLON = 58;
const encoder = new TextEncoder();

/** Milliseconds since 1970 of the ISO 8601 text in `text[start .. end)`; NaN if it is none. */
export function parseTime(text: string | Uint8Array, start = 0, end = text.length): number {
  if (typeof text !== 'string') return timeIn(text, start, end);
  const bytes = encoder.encode(text.slice(start, end));
  return timeIn(bytes, 0, bytes.length);
}

/** `ms` if it is an integer in the years 0001 to 9999, else NaN. */
export function checkedTimeMs(ms: number): number {
  return Number.isInteger(ms) && ms >= TIME_MS_MIN && ms <= TIME_MS_MAX ? ms : Number.NaN;
}

function timeIn(bytes: Uint8Array, start: number, end: number): number {
  if (end - start < 10 || bytes[start + 4] !== DASH || bytes[start + 7] !== DASH) return Number.NaN;
  const year = digits(bytes, start, 2) * 100 + digits(bytes, start + 2, 2);
  const month = digits(bytes, start + 5, 2);
  const day = digits(bytes, start + 8, 2);
  // Comparisons are written so that NaN, the value of what are no digits, fails them.
  if (!(year >= 1 && month >= 1 && month <= 12 && day >= 1 && day <= daysInMonth(year, month)))
    return Number.NaN;
  const dateMs = daysSince1970(year, month, day) * MS_PER_DAY;
  if (end - start === 10) return dateMs;

  const separator = bytes[start + 10];
  if ((separator !== 84 && separator !== 32) || end - start < 16 || bytes[start + 13] !== COLON)
    return Number.NaN;
  const hour = digits(bytes, start + 11, 2);
  const minute = digits(bytes, start + 14, 2);
  if (!(hour <= 23 && minute <= 59)) return Number.NaN;
  let timeMs = (hour * 60 + minute) * 60_000;
  let at = start + 16;
  if (at < end && bytes[at] === COLON) {
    if (end - at < 3) return Number.NaN;
    const second = digits(bytes, at + 1, 2);
    if (!(second <= 59)) return Number.NaN;
    timeMs += second * 1000;
    at += 3;
    if (at < end && bytes[at] === 46) {
      const from = at + 1;
      at = from;
      let scale = 100;
      while (at < end && isDigit(bytes[at]!)) {
        timeMs += (bytes[at]! - ZERO) * scale;
        scale = scale === 100 ? 10 : scale === 10 ? 1 : 0;
        at += 1;
      }
      if (at === from || at - from > 9) return Number.NaN;
    }
  }
  return checkedTimeMs(dateMs + timeMs - offsetMs(bytes, at, end));
}

/** The offset from UTC in `bytes[at .. end)`; 0 for none or Z. */
function offsetMs(bytes: Uint8Array, at: number, end: number): number {
  if (at === end) return 0;
  const sign = bytes[at];
  if (sign === 90) return at + 1 === end ? 0 : Number.NaN;
  if (sign !== 43 && sign !== DASH) return Number.NaN;
  const colon = end - at === 6 && bytes[at + 3] === COLON ? 1 : 0;
  if (end - at !== 5 + colon) return Number.NaN;
  const hour = digits(bytes, at + 1, 2);
  const minute = digits(bytes, at + 3 + colon, 2);
  if (!(hour <= 23 && minute <= 59)) return Number.NaN;
  return (sign === 43 ? 1 : -1) * (hour * 60 + minute) * 60_000;
}

function digits(bytes: Uint8Array, at: number, count: number): number {
  let value = 0;
  for (let i = at; i < at + count; i++) {
    if (!isDigit(bytes[i]!)) return Number.NaN;
    value = value * 10 + (bytes[i]! - ZERO);
  }
  return value;
}

function isDigit(byte: number): boolean {
  return byte >= ZERO && byte <= 57;
}

function daysInMonth(year: number, month: number): number {
  if (month === 2) return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0) ? 29 : 28;
  return month === 4 || month === 6 || month === 9 || month === 11 ? 30 : 31;
}

/** Proleptic Gregorian, counted in eras of 400 years that begin on March 1 (H. Hinnant, days_from_civil). */
function daysSince1970(year: number, month: number, day: number): number {
  const y = month <= 2 ? year - 1 : year;
  const era = Math.floor(y / 400);
  const yearOfEra = y - era * 400;
  const dayOfYear = Math.floor((153 * (month > 2 ? month - 3 : month + 9) + 2) / 5) + day - 1;
  const dayOfEra = yearOfEra * 365 + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100) + dayOfYear;
  return era * 146_097 + dayOfEra - 719_468;
}
