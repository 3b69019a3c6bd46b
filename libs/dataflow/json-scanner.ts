/**
 * The grammar of JSON (RFC 8259) over bytes, without building values.
 *
 * Every method takes a position and returns the one behind what it read, or -1 with `problemAt` set, and
 * `problem` to tell what is wrong there. It accepts exactly the texts that `JSON.parse` accepts, except that values may nest DEPTH_MAX deep only,
 * and that bytes of a string which are no UTF-8 are let through: what reads the string decides about them.
 *
 * `end` may stand before the end of `bytes` only where the byte at `end` is a line feed. No token can hold a
 * raw line feed, so the hot loops need not compare positions with `end` at every byte.
 */

import { numberEnd } from './number-text.ts';
import { quotedExcerpt } from './value-excerpt.ts';

/** What `value` read. */
export const KIND_ABSENT = 0;
export const KIND_STRING = 1;
/** A string with at least one backslash. */
export const KIND_ESCAPED_STRING = 2;
export const KIND_NUMBER = 3;
/** true, false, null, an object or an array. */
const KIND_OTHER = 4;

/** An edge needs one or two levels; the limit is for the unknown values that it may carry along. */
export const DEPTH_MAX = 64;

const QUOTE = 34;
const COMMA = 44;
const COLON = 58;
const OPEN_BRACKET = 91;
const BACKSLASH = 92;
const CLOSE_BRACKET = 93;
const OPEN_BRACE = 123;
const CLOSE_BRACE = 125;

const TRUE = new TextEncoder().encode('true');
const FALSE = new TextEncoder().encode('false');
const NULL = new TextEncoder().encode('null');

export class JsonScanner {
  readonly bytes: Uint8Array;
  end: number;
  /** Kind of the last value read. */
  kind = KIND_ABSENT;
  /** The last key read, between its quotes, and whether it has escapes. */
  keyStart = 0;
  keyEnd = 0;
  keyEscaped = false;
  problemAt = 0;
  /** What is wrong at `problemAt`, unless simply the byte there. */
  private rule: string | undefined;
  private escaped = false;
  /** For each open level, 1 if it is an object. */
  private readonly inObject = new Uint8Array(DEPTH_MAX + 1);

  constructor(bytes: Uint8Array) {
    this.bytes = bytes;
    this.end = bytes.length;
  }

  /** Behind the white space at `at`. */
  blank(at: number): number {
    const { bytes, end } = this;
    let p = at;
    while (p < end) {
      const byte = bytes[p]!;
      if (byte !== 32 && byte !== 10 && byte !== 13 && byte !== 9) break;
      p += 1;
    }
    return p;
  }

  /** The value at `at`, inside of `depth` open objects and arrays. */
  value(at: number, depth: number): number {
    const byte = this.bytes[at];
    if (byte !== OPEN_BRACE && byte !== OPEN_BRACKET) return this.scalar(at);
    const behind = this.nested(at, depth);
    this.kind = KIND_OTHER;
    return behind;
  }

  /** A key and its colon; returns where the value begins. */
  key(at: number): number {
    if (at >= this.end || this.bytes[at] !== QUOTE) return this.unexpected(at);
    const close = this.string(at + 1);
    if (close < 0) return -1;
    this.keyStart = at + 1;
    this.keyEnd = close;
    this.keyEscaped = this.escaped;
    const colon = this.blank(close + 1);
    if (colon >= this.end || this.bytes[colon] !== COLON) return this.unexpected(colon);
    return this.blank(colon + 1);
  }

  unexpected(at: number): number {
    return this.stop(at, undefined);
  }

  /** The problem in words. Made on demand: a message may have more broken lines than reasons are kept. */
  problem(): string {
    if (this.problemAt >= this.end) return 'unexpected end';
    return this.rule ?? `unexpected ${quotedExcerpt(this.bytes, this.problemAt, this.problemAt + 1)}`;
  }

  private stop(at: number, rule: string | undefined): number {
    this.rule = rule;
    this.problemAt = at;
    return -1;
  }

  private scalar(at: number): number {
    const byte = at < this.end ? this.bytes[at] : undefined;
    switch (byte) {
      case QUOTE: {
        const close = this.string(at + 1);
        this.kind = this.escaped ? KIND_ESCAPED_STRING : KIND_STRING;
        return close < 0 ? -1 : close + 1;
      }
      case 116:
        return this.literal(at, TRUE);
      case 102:
        return this.literal(at, FALSE);
      case 110:
        return this.literal(at, NULL);
      default: {
        if (byte === undefined || (byte !== 45 && (byte < 48 || byte > 57))) return this.unexpected(at);
        this.kind = KIND_NUMBER;
        const behind = numberEnd(this.bytes, at, this.end);
        return behind < 0 ? this.stop(at, 'bad number') : behind;
      }
    }
  }

  private literal(at: number, word: Uint8Array): number {
    for (let i = 0; i < word.length; i++) if (this.bytes[at + i] !== word[i]) return this.unexpected(at + i);
    this.kind = KIND_OTHER;
    return at + word.length;
  }

  /** From behind the opening quote to the closing one. */
  private string(at: number): number {
    const bytes = this.bytes;
    this.escaped = false;
    let p = at;
    for (;;) {
      const byte = bytes[p]!;
      if (byte === QUOTE) return p;
      if (byte === BACKSLASH) {
        this.escaped = true;
        const behind = this.escape(p + 1);
        if (behind < 0) return -1;
        p = behind;
      } else if (byte >= 0x20) p += 1;
      else return this.stop(p, 'control character inside of a string');
    }
  }

  /** From behind a backslash. */
  private escape(at: number): number {
    switch (this.bytes[at]) {
      case QUOTE:
      case BACKSLASH:
      case 47:
      case 98:
      case 102:
      case 110:
      case 114:
      case 116:
        return at + 1;
      case 117:
        for (let i = 1; i <= 4; i++)
          if (hexDigit(this.bytes[at + i]!) < 0) return this.stop(at + i, 'bad escape');
        return at + 5;
      default:
        return this.stop(at, 'bad escape');
    }
  }

  /** An object or array, by an explicit stack: input decides how deep it goes. */
  private nested(at: number, depth: number): number {
    const { bytes, inObject } = this;
    let level = depth;
    let p = at;
    // Each turn stands on the first byte of a value.
    for (;;) {
      const byte = bytes[p];
      if (byte === OPEN_BRACE || byte === OPEN_BRACKET) {
        if (level === DEPTH_MAX) return this.stop(p, `nested deeper than ${DEPTH_MAX}`);
        level += 1;
        const isObject = byte === OPEN_BRACE;
        inObject[level] = isObject ? 1 : 0;
        p = this.blank(p + 1);
        if (bytes[p] !== (isObject ? CLOSE_BRACE : CLOSE_BRACKET)) {
          if (isObject) p = this.key(p);
          if (p < 0) return -1;
          continue;
        }
      } else {
        p = this.scalar(p);
        if (p < 0) return -1;
        p = this.blank(p);
      }
      // Behind a value, or on the end of an empty object or array: close all that closes here.
      for (;;) {
        const isObject = inObject[level] === 1;
        if (bytes[p] === (isObject ? CLOSE_BRACE : CLOSE_BRACKET)) {
          level -= 1;
          p += 1;
          if (level === depth) return p;
          p = this.blank(p);
          continue;
        }
        if (bytes[p] !== COMMA) return this.unexpected(p);
        p = this.blank(p + 1);
        if (isObject) p = this.key(p);
        if (p < 0) return -1;
        break;
      }
    }
  }
}

/**
 * Writes the string in `bytes[start .. end)`, which the scanner has accepted, without its escapes to `into`
 * from `start` on, and returns the end there; -1 at a surrogate without its other half. The text without
 * escapes is never longer, so `into` may have the layout of `bytes`.
 */
export function unescapeJson(bytes: Uint8Array, start: number, end: number, into: Uint8Array): number {
  let p = start;
  let out = start;
  while (p < end) {
    const byte = bytes[p]!;
    if (byte !== BACKSLASH) {
      into[out++] = byte;
      p += 1;
      continue;
    }
    const letter = bytes[p + 1]!;
    if (letter !== 117) {
      into[out++] = plainEscape(letter);
      p += 2;
      continue;
    }
    let code = codeUnit(bytes, p + 2);
    p += 6;
    if (code >= 0xd800 && code <= 0xdfff) {
      if (code >= 0xdc00 || p + 6 > end || bytes[p] !== BACKSLASH || bytes[p + 1] !== 117) return -1;
      const low = codeUnit(bytes, p + 2);
      if (low < 0xdc00 || low > 0xdfff) return -1;
      code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
      p += 6;
    }
    out = writeUtf8(into, out, code);
  }
  return out;
}

function plainEscape(byte: number): number {
  switch (byte) {
    case 98:
      return 8;
    case 102:
      return 12;
    case 110:
      return 10;
    case 114:
      return 13;
    case 116:
      return 9;
    default:
      return byte;
  }
}

function writeUtf8(into: Uint8Array, at: number, code: number): number {
  if (code < 0x80) {
    into[at] = code;
    return at + 1;
  }
  if (code < 0x800) {
    into[at] = 0xc0 | (code >> 6);
    into[at + 1] = 0x80 | (code & 0x3f);
    return at + 2;
  }
  if (code < 0x10000) {
    into[at] = 0xe0 | (code >> 12);
    into[at + 1] = 0x80 | ((code >> 6) & 0x3f);
    into[at + 2] = 0x80 | (code & 0x3f);
    return at + 3;
  }
  into[at] = 0xf0 | (code >> 18);
  into[at + 1] = 0x80 | ((code >> 12) & 0x3f);
  into[at + 2] = 0x80 | ((code >> 6) & 0x3f);
  into[at + 3] = 0x80 | (code & 0x3f);
  return at + 4;
}

function codeUnit(bytes: Uint8Array, at: number): number {
  let code = 0;
  for (let i = 0; i < 4; i++) code = code * 16 + hexDigit(bytes[at + i]!);
  return code;
}

function hexDigit(byte: number): number {
  if (byte >= 48 && byte <= 57) return byte - 48;
  const lower = byte | 0x20;
  return lower >= 97 && lower <= 102 ? lower - 87 : -1;
}
