/**
 * Numbers as they are written, in the grammar of JSON (RFC 8259 section 6).
 *
 * An id or a time given as a number counts only if it is *written* as an integer and is safe:
 * 9007199254740991.4, 9007199254740993 and 1e3 all become some integer in `Number()`, but not the one that the
 * publisher wrote.
 */

const MINUS = 45;
const DOT = 46;
const ZERO = 48;

const decoder = new TextDecoder();

/** The position behind the JSON number that begins at `at`, or -1 if none does. */
export function numberEnd(bytes: Uint8Array, at: number, end: number): number {
  let p = at < end && bytes[at] === MINUS ? at + 1 : at;
  if (p < end && bytes[p] === ZERO) p += 1;
  else {
    const behind = digitsEnd(bytes, p, end);
    if (behind === p) return -1;
    p = behind;
  }
  if (p < end && bytes[p] === DOT) {
    const behind = digitsEnd(bytes, p + 1, end);
    if (behind === p + 1) return -1;
    p = behind;
  }
  // 0x20 folds E into e.
  if (p < end && (bytes[p]! | 0x20) === 101) {
    p += 1;
    if (p < end && (bytes[p] === 43 || bytes[p] === MINUS)) p += 1;
    const behind = digitsEnd(bytes, p, end);
    if (behind === p) return -1;
    p = behind;
  }
  return p;
}

/** The safe integer written in `bytes[start .. end)`: no fraction, no exponent, no leading zero, not -0. Else NaN. */
export function integerIn(bytes: Uint8Array, start: number, end: number): number {
  const negative = start < end && bytes[start] === MINUS;
  const first = negative ? start + 1 : start;
  const count = end - first;
  // The largest safe integer has 16 digits; a sum of 16 digits beyond it never rounds down to a safe one.
  if (count < 1 || count > 16) return Number.NaN;
  if (bytes[first] === ZERO && (count > 1 || negative)) return Number.NaN;
  let value = 0;
  for (let p = first; p < end; p++) {
    const digit = bytes[p]! - ZERO;
    if (digit < 0 || digit > 9) return Number.NaN;
    value = value * 10 + digit;
  }
  if (value > Number.MAX_SAFE_INTEGER) return Number.NaN;
  return negative ? -value : value;
}

/** Why the JSON number in `bytes[start .. end)` is no `integerIn`. */
export function integerProblem(bytes: Uint8Array, start: number, end: number): string {
  const first = bytes[start] === MINUS ? start + 1 : start;
  const plain = digitsEnd(bytes, first, end) === end && !(first > start && bytes[first] === ZERO);
  return plain ? 'is beyond the safe integers' : 'is not written as an integer';
}

/** Whether the JSON number in `bytes[start .. end)` is finite as a double. */
export function isFiniteNumber(bytes: Uint8Array, start: number, end: number): boolean {
  // Below 300 characters only an exponent can take a number out of range.
  if (end - start < 300) {
    let p = start;
    while (p < end && (bytes[p]! | 0x20) !== 101) p += 1;
    if (p === end) return true;
  }
  return Number.isFinite(Number(decoder.decode(bytes.subarray(start, end))));
}

function digitsEnd(bytes: Uint8Array, at: number, end: number): number {
  let p = at;
  while (p < end && bytes[p]! >= ZERO && bytes[p]! <= 57) p += 1;
  return p;
}
