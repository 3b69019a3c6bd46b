/**
 * Records of delimited text (RFC 4180 and its relatives), read from bytes in chunks.
 *
 * A record is found by one pass over its bytes with a table that says which bytes end a field; its fields are
 * ranges in `bytes`, kept in arrays that the next record uses again. Nothing is copied, except: what is left of
 * a chunk is joined with the next one, and the first doubled quote inside of a quoted field makes `bytes` a copy
 * in which such fields are rewritten, shorter, in place (a reader does not change what it was given).
 *
 * The records do not depend on how the input is cut into chunks: whenever a decision needs a byte that has not
 * come yet, the record is read again from its start when it has.
 *
 * A quote that is never closed would swallow all that follows. So a record must end within RECORD_BYTES_MAX;
 * if a quoted field is still open there, or at the end of the input, the line in which the record began is
 * broken, and reading goes on at the line after it.
 *
 * Lines end with LF, CRLF or CR; the last one needs no end. Blank lines are no records. A byte order mark at
 * the start of the input is skipped.
 */

/** A record has fewer bytes than this. */
export const RECORD_BYTES_MAX = 1 << 20;

export interface DelimitedFormat {
  /** The byte between two fields, or 'blanks': any run of spaces and tabs, none at either end of a line. */
  readonly delimiter: number | 'blanks';
  /** The byte that encloses a field in which delimiters and line ends are text; none if absent. */
  readonly quote?: number;
  /** Whether spaces and tabs around a field are not part of it. */
  readonly trim?: boolean;
  /** A line that begins with this byte is no record; there are no such lines if absent. */
  readonly comment?: number;
}

const TAB = 9;
const LINE_FEED = 10;
const CARRIAGE_RETURN = 13;
const SPACE = 32;

/** What a byte does outside of quotes. */
const TEXT = 0;
const DELIMITER = 1;
const LINE_END = 2;

/** In place of a quote or comment byte: no byte has this value. */
const NONE = -1;

/** Outcomes of looking for one record. */
const FOUND = 0;
const BLANK_LINE = 1;
const MORE = 2;

export class DelimitedReader {
  /** What the field ranges point into; another array after a `push`, and perhaps after a `next`. */
  bytes: Uint8Array = new Uint8Array(0);
  /** Field i of the record is `bytes[start[i] .. end[i])`. */
  start = new Uint32Array(16);
  end = new Uint32Array(16);
  /** 0 for a broken record. */
  fieldCount = 0;
  /** The line in which the record begins, from 1. */
  line = 0;
  /** Why the record is none, with its line. */
  broken: string | undefined;
  /** Where the record stands in the whole input, with its line end: [recordStart, recordEnd). */
  recordStart = 0;
  recordEnd = 0;

  private readonly quote: number;
  private readonly comment: number;
  private readonly trim: boolean;
  private readonly isBlanks: boolean;
  private readonly classes = new Uint8Array(256);
  private doubled = new Uint8Array(16);
  private hasDoubled = false;
  /** Whether `bytes` is ours to change. */
  private isOwn = false;
  private limit = 0;
  /** Where in `bytes` the next record begins. */
  private position = 0;
  /** Bytes of the input before `bytes[0]`. */
  private bytesBefore = 0;
  private nextLine = 1;
  private isBegun = false;
  private isLast = false;
  /** A broken record or a comment was found, and its line end is looked for, perhaps in later chunks. */
  private isSkipping = false;
  private isComment = false;

  constructor(format: DelimitedFormat) {
    this.quote = format.quote ?? NONE;
    this.comment = format.comment ?? NONE;
    this.isBlanks = format.delimiter === 'blanks';
    this.trim = format.trim === true || this.isBlanks;
    this.classes[LINE_FEED] = LINE_END;
    this.classes[CARRIAGE_RETURN] = LINE_END;
    if (format.delimiter === 'blanks') {
      this.classes[SPACE] = DELIMITER;
      this.classes[TAB] = DELIMITER;
    } else this.classes[format.delimiter] = DELIMITER;
  }

  /** Adds input; `isLast` says that no more comes. The chunk must not change until all its records are read. */
  push(chunk: Uint8Array, isLast: boolean): void {
    if (this.isLast) throw new Error('the input has ended');
    this.isLast = isLast;
    const rest = this.limit - this.position;
    this.bytesBefore += this.position;
    if (rest === 0) {
      this.bytes = chunk;
      this.isOwn = false;
    } else {
      const joined = new Uint8Array(rest + chunk.length);
      joined.set(this.bytes.subarray(this.position, this.limit));
      joined.set(chunk, rest);
      this.bytes = joined;
      this.isOwn = true;
    }
    this.position = 0;
    this.limit = this.bytes.length;
  }

  /** Goes to the next record. False: push more input, or, after the last chunk, there is none. */
  next(): boolean {
    if (!this.isBegun && !this.begin()) return false;
    for (;;) {
      if (this.isSkipping) {
        if (!this.skipLine()) return false;
        if (!this.isComment) return true;
        this.isComment = false;
      }
      const outcome = this.read();
      if (outcome === MORE) return false;
      if (outcome === BLANK_LINE || this.isSkipping) continue;
      if (this.hasDoubled) this.undouble();
      this.recordEnd = this.bytesBefore + this.position;
      return true;
    }
  }

  private begin(): boolean {
    const { bytes, limit } = this;
    if (limit < 3 && !this.isLast && (limit === 0 || bytes[0] === 0xef)) return false;
    if (bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf) this.position = 3;
    this.isBegun = true;
    return true;
  }

  /**
   * Reads the record at `position`, and moves there behind it. A broken one leaves `isSkipping`, with `position`
   * somewhere in the line to skip.
   */
  private read(): number {
    const { bytes, limit, classes, quote, isLast } = this;
    const from = this.position;
    const bound = Math.min(limit, from + RECORD_BYTES_MAX);
    let p = this.trim ? this.afterBlanks(from, bound) : from;
    if (p === limit) {
      // The end of the input; or the chunk's, and what follows decides whether this is a blank line.
      if (isLast) this.position = limit;
      return MORE;
    }
    if (p < bound && classes[bytes[p]!] === LINE_END) {
      const behind = this.afterLineEnd(p);
      if (behind < 0) return MORE;
      this.position = behind;
      this.nextLine += 1;
      return BLANK_LINE;
    }
    if (p < bound && bytes[p] === this.comment) {
      this.position = p;
      this.isComment = true;
      this.isSkipping = true;
      return FOUND;
    }
    this.fieldCount = 0;
    this.hasDoubled = false;
    this.broken = undefined;
    this.line = this.nextLine;
    this.recordStart = this.bytesBefore + from;
    let lineEndsInside = 0;
    for (;;) {
      let start: number;
      let end: number;
      let isDoubled = false;
      if (p < bound && bytes[p] === quote) {
        start = p + 1;
        p = start;
        for (;;) {
          while (p < bound && bytes[p] !== quote) p += 1;
          if (p >= bound) {
            if (bound === limit && !isLast && !this.isTooLong(bound, from)) return MORE;
            const where = this.isTooLong(bound, from)
              ? `after ${RECORD_BYTES_MAX} bytes`
              : 'at the end of the input';
            return this.breakAt(from, 0, `quoted field still open ${where}`);
          }
          if (p + 1 >= limit && !isLast) return MORE;
          if (p + 1 >= limit || bytes[p + 1] !== quote) break;
          isDoubled = true;
          p += 2;
        }
        end = p;
        p += 1;
        lineEndsInside += countLineEnds(bytes, start, end);
        if (this.trim && !this.isBlanks) p = this.afterBlanks(p, bound);
        if (p < bound && classes[bytes[p]!] === TEXT) {
          return this.breakAt(p, lineEndsInside, 'text after a closing quote');
        }
      } else {
        start = p;
        while (p < bound && classes[bytes[p]!] === TEXT) p += 1;
        end = p;
        if (this.trim) while (end > start && isBlank(bytes[end - 1]!)) end -= 1;
      }
      this.addField(start, end, isDoubled);
      if (this.isTooLong(p, from))
        return this.breakAt(p, lineEndsInside, `longer than ${RECORD_BYTES_MAX} bytes`);
      if (p === limit) {
        if (!isLast) return MORE;
        this.position = limit;
        this.nextLine += lineEndsInside + 1;
        return FOUND;
      }
      if (classes[bytes[p]!] === DELIMITER) {
        p += 1;
        if (this.trim) p = this.afterBlanks(p, bound);
        if (!this.isBlanks || (p < bound && classes[bytes[p]!] !== LINE_END)) continue;
        // Blanks at the end of the line separate nothing.
        if (p === limit && isLast) {
          this.position = limit;
          this.nextLine += lineEndsInside + 1;
          return FOUND;
        }
        if (this.isTooLong(p, from))
          return this.breakAt(p, lineEndsInside, `longer than ${RECORD_BYTES_MAX} bytes`);
        if (p === limit) return MORE;
      }
      const behind = this.afterLineEnd(p);
      if (behind < 0) return MORE;
      this.position = behind;
      this.nextLine += lineEndsInside + 1;
      return FOUND;
    }
  }

  private isTooLong(at: number, from: number): boolean {
    return at - from >= RECORD_BYTES_MAX;
  }

  /** Ends a broken record: its line is skipped from `at` on, and that is `lineEndsInside` lines further down. */
  private breakAt(at: number, lineEndsInside: number, problem: string): number {
    this.broken = `line ${this.line}: ${problem}`;
    this.fieldCount = 0;
    this.nextLine = this.line + lineEndsInside;
    this.position = at;
    this.isSkipping = true;
    return FOUND;
  }

  /** Drops input up to the end of the broken line. */
  private skipLine(): boolean {
    const { bytes, limit, classes } = this;
    let p = this.position;
    while (p < limit && classes[bytes[p]!] !== LINE_END) p += 1;
    const behind = p < limit ? this.afterLineEnd(p) : this.isLast ? limit : -1;
    this.position = behind < 0 ? p : behind;
    if (behind < 0) return false;
    this.isSkipping = false;
    this.nextLine += 1;
    this.recordEnd = this.bytesBefore + behind;
    return true;
  }

  /** Behind the line end at `at`, or -1 if the byte that decides between CR and CRLF has not come. */
  private afterLineEnd(at: number): number {
    if (this.bytes[at] === LINE_FEED) return at + 1;
    if (at + 1 < this.limit) return this.bytes[at + 1] === LINE_FEED ? at + 2 : at + 1;
    return this.isLast ? at + 1 : -1;
  }

  /** Behind spaces and tabs, except those that delimit. */
  private afterBlanks(at: number, bound: number): number {
    const { bytes, classes, isBlanks } = this;
    let p = at;
    while (p < bound && isBlank(bytes[p]!) && (isBlanks || classes[bytes[p]!] === TEXT)) p += 1;
    return p;
  }

  private addField(start: number, end: number, isDoubled: boolean): void {
    const field = this.fieldCount;
    if (field === this.start.length) this.widen();
    this.start[field] = start;
    this.end[field] = end;
    this.doubled[field] = isDoubled ? 1 : 0;
    if (isDoubled) this.hasDoubled = true;
    this.fieldCount = field + 1;
  }

  private widen(): void {
    const { start, end, doubled } = this;
    this.start = new Uint32Array(start.length * 2);
    this.start.set(start);
    this.end = new Uint32Array(end.length * 2);
    this.end.set(end);
    this.doubled = new Uint8Array(doubled.length * 2);
    this.doubled.set(doubled);
  }

  /** Makes one quote of two in the fields of the record, which is complete and will not be read again. */
  private undouble(): void {
    if (!this.isOwn) {
      this.bytes = new Uint8Array(this.bytes);
      this.isOwn = true;
    }
    const { bytes, quote } = this;
    for (let field = 0; field < this.fieldCount; field++) {
      if (this.doubled[field] === 0) continue;
      let out = this.start[field]!;
      for (let p = out; p < this.end[field]!; p++) {
        bytes[out++] = bytes[p]!;
        if (bytes[p] === quote) p += 1;
      }
      this.end[field] = out;
    }
  }
}

function isBlank(byte: number): boolean {
  return byte === SPACE || byte === TAB;
}

function countLineEnds(bytes: Uint8Array, start: number, end: number): number {
  let count = 0;
  for (let p = start; p < end; p++) {
    if (
      bytes[p] === CARRIAGE_RETURN ||
      (bytes[p] === LINE_FEED && (p === start || bytes[p - 1] !== CARRIAGE_RETURN))
    ) {
      count += 1;
    }
  }
  return count;
}
