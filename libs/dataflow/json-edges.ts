/**
 * Edges as JSON: one edge, an array of edges, or one edge per line (NDJSON).
 *
 * `JSON.parse` would make an object and several strings per edge, round the numbers that serve as ids, and leave
 * no trace of how they were written. Here the payload is scanned once. Of the known keys of an edge only the
 * kind and the place of the value are noted, the last of duplicate keys winning as in `JSON.parse`; when the
 * edge closes they are checked. An id without escapes is not copied at all: the id columns point into the
 * payload. The first id with an escape makes a copy of the whole payload, in which the text without escapes,
 * which is never longer, replaces the escaped one in place; then the columns point into that copy.
 *
 * Two levels of fault: what breaks the grammar ends the document (of NDJSON: the line), what breaks a rule of
 * edges rejects that edge alone.
 */

import { type EdgeColumns, type IdColumn, OP_ADD, REASONS_MAX } from './edge-columns.ts';
import { isWord, opIn } from './edge-op.ts';
import type { EdgeRanges } from './edge-ranges.ts';
import {
  JsonScanner,
  KIND_ABSENT,
  KIND_ESCAPED_STRING,
  KIND_NUMBER,
  KIND_STRING,
  unescapeJson,
} from './json-scanner.ts';
import { integerIn, integerProblem, isFiniteNumber } from './number-text.ts';
import { checkedTimeMs, parseTime } from './time.ts';
import { excerpt } from './value-excerpt.ts';

const SOURCE = 0;
const TARGET = 1;
const TIME = 2;
const WEIGHT = 3;
const ID = 4;
const OP = 5;
const FIELDS = ['source', 'target', 'time', 'weight', 'id', 'op'] as const;
const FIELD_BYTES = FIELDS.map((name) => new TextEncoder().encode(name));
const OTHER = -1;

const LINE_FEED = 10;
const COMMA = 44;
const OPEN_BRACKET = 91;
const CLOSE_BRACKET = 93;
const OPEN_BRACE = 123;
const CLOSE_BRACE = 125;

/**
 * Decodes a JSON document from byte `from` of the payload on. Returns why it is none, or is no edge and no array
 * of edges; then the columns are empty.
 */
export function decodeJson(
  payload: Uint8Array,
  from: number,
  columns: EdgeColumns,
  ranges?: EdgeRanges,
): string | undefined {
  return new EdgeParser(payload, columns, ranges).document(from);
}

/** Decodes NDJSON from byte `from` of the payload on. A broken line is rejected alone, a blank one is no edge. */
export function decodeNdjson(
  payload: Uint8Array,
  from: number,
  columns: EdgeColumns,
  ranges?: EdgeRanges,
): void {
  new EdgeParser(payload, columns, ranges).lines(from);
}

class EdgeParser {
  private readonly bytes: Uint8Array;
  private readonly columns: EdgeColumns;
  private readonly ranges: EdgeRanges | undefined;
  private readonly scanner: JsonScanner;
  /** What the ids point into: the payload, or the copy of it that has ids without escapes. */
  private idBytes: Uint8Array;
  /** Kind and place of the last value of each field in the edge being read. */
  private readonly kind = new Uint8Array(FIELDS.length);
  private readonly start = new Uint32Array(FIELDS.length);
  private readonly end = new Uint32Array(FIELDS.length);

  constructor(bytes: Uint8Array, columns: EdgeColumns, ranges: EdgeRanges | undefined) {
    this.bytes = bytes;
    this.idBytes = bytes;
    this.columns = columns;
    this.ranges = ranges;
    this.scanner = new JsonScanner(bytes);
    columns.reset();
  }

  document(from: number): string | undefined {
    const { bytes, scanner } = this;
    const at = scanner.blank(from);
    let p: number;
    if (bytes[at] === OPEN_BRACE) {
      p = this.element(at, 0);
      if (p >= 0) this.ranges?.add(at, p);
    } else if (bytes[at] === OPEN_BRACKET) p = this.array(at);
    else {
      p = scanner.value(at, 0);
      if (p >= 0)
        return this.whole(`JSON is neither an edge nor an array of edges: ${excerpt(bytes, at, p)}`);
    }
    if (p >= 0) p = this.documentEnd(p);
    if (p < 0) return this.whole(`not valid JSON at byte ${scanner.problemAt}: ${scanner.problem()}`);
    this.publishIds();
    return undefined;
  }

  lines(from: number): void {
    const { bytes, columns, scanner } = this;
    let line = 0;
    let lineStart = from;
    while (lineStart < bytes.length) {
      const found = bytes.indexOf(LINE_FEED, lineStart);
      const lineEnd = found < 0 ? bytes.length : found;
      line += 1;
      scanner.end = lineEnd;
      const at = scanner.blank(lineStart);
      if (at < lineEnd) {
        const index = columns.count;
        let p = this.element(at, 0);
        if (p >= 0) p = this.documentEnd(p);
        if (p < 0) {
          // The grammar is no fault of the edge read so far: the line as a whole is not one.
          if (columns.count === index) this.open();
          const problem = this.keepsReason() ? scanner.problem() : '';
          columns.reject(index, `line ${line}, byte ${scanner.problemAt}: not valid JSON: ${problem}`);
        }
        this.ranges?.add(lineStart, Math.min(lineEnd + 1, bytes.length));
      }
      lineStart = lineEnd + 1;
    }
    this.publishIds();
  }

  private whole(reason: string): string {
    this.columns.reset();
    if (this.ranges !== undefined) this.ranges.count = 0;
    return reason;
  }

  private publishIds(): void {
    this.columns.source.bytes = this.idBytes;
    this.columns.target.bytes = this.idBytes;
  }

  private documentEnd(at: number): number {
    const p = this.scanner.blank(at);
    return p < this.scanner.end ? this.scanner.unexpected(p) : p;
  }

  private array(at: number): number {
    const { bytes, scanner } = this;
    let p = scanner.blank(at + 1);
    if (bytes[p] === CLOSE_BRACKET) return p + 1;
    for (;;) {
      const start = p;
      p = this.element(p, 1);
      if (p < 0) return -1;
      this.ranges?.add(start, p);
      p = scanner.blank(p);
      if (bytes[p] === CLOSE_BRACKET) return p + 1;
      if (bytes[p] !== COMMA) return scanner.unexpected(p);
      p = scanner.blank(p + 1);
    }
  }

  /** One element of the array, one line, or the whole document: an edge, or a value rejected as none. */
  private element(at: number, depth: number): number {
    return this.bytes[at] === OPEN_BRACE ? this.edge(at, depth + 1) : this.noEdge(at, depth);
  }

  private noEdge(at: number, depth: number): number {
    const behind = this.scanner.value(at, depth);
    if (behind < 0) return -1;
    const value = this.keepsReason() ? excerpt(this.bytes, at, behind) : '';
    this.columns.reject(this.open(), `${value} is not an edge object`);
    return behind;
  }

  private edge(at: number, depth: number): number {
    const { bytes, scanner, kind } = this;
    kind.fill(KIND_ABSENT);
    let p = scanner.blank(at + 1);
    if (bytes[p] !== CLOSE_BRACE) {
      for (;;) {
        p = scanner.key(p);
        if (p < 0) return -1;
        const field = this.field();
        const start = p;
        p = scanner.value(p, depth);
        if (p < 0) return -1;
        if (field !== OTHER) {
          kind[field] = scanner.kind;
          this.start[field] = start;
          this.end[field] = p;
        }
        p = scanner.blank(p);
        if (bytes[p] === CLOSE_BRACE) break;
        if (bytes[p] !== COMMA) return scanner.unexpected(p);
        p = scanner.blank(p + 1);
      }
    }
    this.settle();
    return p + 1;
  }

  /** The field that the last key names. */
  private field(): number {
    const { keyStart, keyEnd, keyEscaped } = this.scanner;
    if (!keyEscaped) return fieldNamed(this.bytes, keyStart, keyEnd);
    const key = this.bytes.slice(keyStart, keyEnd);
    // A key with half a surrogate pair is some other key.
    return fieldNamed(key, 0, unescapeJson(key, 0, key.length, key));
  }

  /** Makes room for the next edge; returns its index. */
  private open(): number {
    const { columns } = this;
    const index = columns.count;
    columns.reserve(index + 1);
    columns.count = index + 1;
    columns.rejected[index] = 0;
    columns.time[index] = Number.NaN;
    columns.op[index] = OP_ADD;
    return index;
  }

  /** The edge has closed: its last values count. The first bad one in the order of FIELDS is the reason. */
  private settle(): void {
    const { kind, columns } = this;
    const index = this.open();
    if (!this.settleId(SOURCE, columns.source, index) || !this.settleId(TARGET, columns.target, index))
      return;
    if (kind[TIME] !== KIND_ABSENT && !this.settleTime(index)) return;
    if (kind[WEIGHT] !== KIND_ABSENT && !this.checkWeight(index)) return;
    if (kind[ID] !== KIND_ABSENT && !this.checkEdgeId(index)) return;
    if (kind[OP] !== KIND_ABSENT) this.settleOp(index);
  }

  private settleId(field: number, column: IdColumn, index: number): boolean {
    const start = this.start[field]!;
    const end = this.end[field]!;
    switch (this.kind[field]) {
      case KIND_STRING:
        column.start[index] = start + 1;
        column.end[index] = end - 1;
        return true;
      case KIND_ESCAPED_STRING: {
        const textEnd = this.unescaped(start + 1, end - 1);
        if (textEnd < 0) return this.bad(index, field, 'has half a surrogate pair');
        column.start[index] = start + 1;
        column.end[index] = textEnd;
        return true;
      }
      case KIND_NUMBER:
        if (Number.isNaN(integerIn(this.bytes, start, end))) {
          return this.bad(index, field, `${integerProblem(this.bytes, start, end)}: quote it`);
        }
        column.start[index] = start;
        column.end[index] = end;
        return true;
      case KIND_ABSENT:
        this.columns.reject(index, `${FIELDS[field]} is missing`);
        return false;
      default:
        return this.bad(index, field, 'is not a string');
    }
  }

  private settleTime(index: number): boolean {
    const start = this.start[TIME]!;
    const end = this.end[TIME]!;
    let time = Number.NaN;
    switch (this.kind[TIME]) {
      case KIND_STRING:
        time = parseTime(this.bytes, start + 1, end - 1);
        break;
      case KIND_ESCAPED_STRING: {
        const textEnd = this.unescaped(start + 1, end - 1);
        if (textEnd >= 0) time = parseTime(this.idBytes, start + 1, textEnd);
        break;
      }
      case KIND_NUMBER:
        time = checkedTimeMs(integerIn(this.bytes, start, end));
        break;
    }
    if (Number.isNaN(time)) {
      return this.bad(
        index,
        TIME,
        'is neither an ISO 8601 date nor integer milliseconds in the years 1 to 9999',
      );
    }
    this.columns.time[index] = time;
    return true;
  }

  private checkWeight(index: number): boolean {
    const isGood =
      this.kind[WEIGHT] === KIND_NUMBER && isFiniteNumber(this.bytes, this.start[WEIGHT]!, this.end[WEIGHT]!);
    return isGood || this.bad(index, WEIGHT, 'is not a finite number');
  }

  private checkEdgeId(index: number): boolean {
    switch (this.kind[ID]) {
      case KIND_STRING:
      case KIND_ESCAPED_STRING:
        return true;
      case KIND_NUMBER:
        if (!Number.isNaN(integerIn(this.bytes, this.start[ID]!, this.end[ID]!))) return true;
        return this.bad(index, ID, `${integerProblem(this.bytes, this.start[ID]!, this.end[ID]!)}: quote it`);
      default:
        return this.bad(index, ID, 'is neither a string nor an integer');
    }
  }

  private settleOp(index: number): boolean {
    const start = this.start[OP]! + 1;
    let end = this.end[OP]! - 1;
    let bytes = this.bytes;
    if (this.kind[OP] === KIND_ESCAPED_STRING) {
      end = this.unescaped(start, end);
      bytes = this.idBytes;
    } else if (this.kind[OP] !== KIND_STRING) end = -1;
    const op = opIn(bytes, start, end);
    if (op < 0) return this.bad(index, OP, 'is neither "add" nor "remove"');
    this.columns.op[index] = op;
    return true;
  }

  /** Takes the escapes out of a string, in the copy of the payload; its end there, -1 at half a surrogate pair. */
  private unescaped(start: number, end: number): number {
    if (this.idBytes === this.bytes) this.idBytes = new Uint8Array(this.bytes);
    return unescapeJson(this.bytes, start, end, this.idBytes);
  }

  /** Beyond the last reason that is kept only the count matters, and texts would cost more than the edges. */
  private keepsReason(): boolean {
    return this.columns.reasons.length < REASONS_MAX;
  }

  private bad(index: number, field: number, rule: string): false {
    const value = this.keepsReason() ? excerpt(this.bytes, this.start[field]!, this.end[field]!) : '';
    this.columns.reject(index, `${FIELDS[field]} ${value} ${rule}`);
    return false;
  }
}

/** The field named in `bytes[start .. end)`. Length and first byte leave one candidate each. */
function fieldNamed(bytes: Uint8Array, start: number, end: number): number {
  let field = OTHER;
  switch (end - start) {
    case 6:
      field = bytes[start] === 115 ? SOURCE : bytes[start] === 116 ? TARGET : WEIGHT;
      break;
    case 4:
      field = TIME;
      break;
    case 2:
      field = bytes[start] === 105 ? ID : OP;
      break;
  }
  return field !== OTHER && isWord(bytes, start, end, FIELD_BYTES[field]!) ? field : OTHER;
}
