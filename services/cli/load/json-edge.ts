/**
 * One edge object of JSON text, with the keys that the user chose, scanned in place: no value is built, so ids
 * that are numbers keep their digits. The rules are those of libs/dataflow/json-edges.ts, whose keys are fixed.
 */

import { OP_ADD } from '../../../libs/dataflow/edge-columns.ts';
import { isWord, opIn } from '../../../libs/dataflow/edge-op.ts';
import {
  JsonScanner,
  KIND_ABSENT,
  KIND_ESCAPED_STRING,
  KIND_NUMBER,
  KIND_STRING,
  unescapeJson,
} from '../../../libs/dataflow/json-scanner.ts';
import { integerIn, integerProblem, isFiniteNumber } from '../../../libs/dataflow/number-text.ts';
import { excerpt } from '../../../libs/dataflow/value-excerpt.ts';
import type { EdgeBatches } from './edge-batches.ts';
import type { IdRule } from './id-rule.ts';
import { type TimeUnit, timeMsIn } from './time-value.ts';

const SOURCE = 0;
const TARGET = 1;
const TIME = 2;
const WEIGHT = 3;
const OP = 4;

const OPEN_BRACE = 123;
const CLOSE_BRACE = 125;
const COMMA = 44;

const encoder = new TextEncoder();

/** Keys of an edge object; undefined for what edges do not have. */
export interface EdgeKeys {
  readonly source: string;
  readonly target: string;
  readonly time: string | undefined;
  readonly timeUnit: TimeUnit | undefined;
  readonly weight: string | undefined;
  readonly op: string | undefined;
}

/** A string without its escapes, or a number as it is written. */
interface Text {
  bytes: Uint8Array;
  start: number;
  end: number;
}

export class JsonEdges {
  private readonly batches: EdgeBatches;
  private readonly rule: IdRule;
  private readonly timeUnit: TimeUnit | undefined;
  private readonly names: readonly string[];
  private readonly keys: readonly (Uint8Array | undefined)[];
  private readonly kind = new Uint8Array(5);
  private readonly start = new Uint32Array(5);
  private readonly end = new Uint32Array(5);
  private readonly texts: readonly Text[] = [0, 1, 2].map(() => ({
    bytes: new Uint8Array(0),
    start: 0,
    end: 0,
  }));
  private scanner = new JsonScanner(new Uint8Array(0));

  constructor(keys: EdgeKeys, rule: IdRule, batches: EdgeBatches) {
    this.batches = batches;
    this.rule = rule;
    this.timeUnit = keys.timeUnit;
    const { source, target, time, weight, op } = keys;
    this.names = [source, target, time ?? '', weight ?? '', op ?? ''];
    this.keys = [source, target, time, weight, op].map((key) =>
      key === undefined ? undefined : encoder.encode(key),
    );
  }

  /** What the following calls read from. */
  use(scanner: JsonScanner): void {
    this.scanner = scanner;
  }

  /**
   * Reads the value at `at`, which must end at `end`, blanks aside: one row, accepted or refused. `place` is
   * asked for only if it is refused.
   */
  read(at: number, end: number, place: () => string): void {
    const { scanner } = this;
    const isObject = scanner.bytes[at] === OPEN_BRACE;
    let p = isObject ? this.members(at) : scanner.value(at, 0);
    if (p >= 0) {
      p = scanner.blank(p);
      if (p < end) p = scanner.unexpected(p);
    }
    if (p < 0)
      this.refuse(place, `not valid JSON at byte ${scanner.problemAt - at + 1}: ${scanner.problem()}`);
    else if (!isObject) this.refuse(place, `${excerpt(scanner.bytes, at, end)} is not an edge object`);
    else this.settle(place);
  }

  private members(at: number): number {
    const { scanner, kind } = this;
    const { bytes } = scanner;
    kind.fill(KIND_ABSENT);
    let p = scanner.blank(at + 1);
    if (bytes[p] === CLOSE_BRACE) return p + 1;
    for (;;) {
      p = scanner.key(p);
      if (p < 0) return -1;
      const field = this.field();
      const start = p;
      p = scanner.value(p, 1);
      if (p < 0) return -1;
      if (field >= 0) {
        kind[field] = scanner.kind;
        this.start[field] = start;
        this.end[field] = p;
      }
      p = scanner.blank(p);
      if (bytes[p] === CLOSE_BRACE) return p + 1;
      if (bytes[p] !== COMMA) return scanner.unexpected(p);
      p = scanner.blank(p + 1);
    }
  }

  private field(): number {
    const { bytes, keyStart, keyEnd, keyEscaped } = this.scanner;
    let text = bytes;
    let start = keyStart;
    let end = keyEnd;
    if (keyEscaped) {
      text = bytes.slice(keyStart, keyEnd);
      start = 0;
      end = unescapeJson(text, 0, text.length, text);
    }
    for (let field = 0; field < this.keys.length; field++) {
      const key = this.keys[field];
      if (key !== undefined && isWord(text, start, end, key)) return field;
    }
    return -1;
  }

  private settle(place: () => string): void {
    const { texts, kind, scanner, rule } = this;
    for (const field of [SOURCE, TARGET]) {
      const problem = this.idText(field);
      if (problem !== undefined) {
        this.refuse(place, `${this.names[field]} ${problem}`);
        return;
      }
      const text = texts[field]!;
      if (!rule.accepts(text.bytes, text.start, text.end)) {
        this.refuse(place, `${this.names[field]} ${rule.problem(text.bytes)}`);
        return;
      }
      text.start = rule.start;
      text.end = rule.end;
    }
    let timeMs: number | undefined;
    if (kind[TIME] !== KIND_ABSENT) {
      timeMs = this.timeMs();
      if (Number.isNaN(timeMs)) {
        this.refuse(place, `${this.shown(TIME)} is no time`);
        return;
      }
    }
    let weight: number | undefined;
    if (kind[WEIGHT] !== KIND_ABSENT) {
      const start = this.start[WEIGHT]!;
      const end = this.end[WEIGHT]!;
      if (kind[WEIGHT] !== KIND_NUMBER || !isFiniteNumber(scanner.bytes, start, end)) {
        this.refuse(place, `${this.shown(WEIGHT)} is not a finite number`);
        return;
      }
      weight = Number(Buffer.from(scanner.bytes.subarray(start, end)).toString('latin1'));
    }
    if (kind[OP] !== KIND_ABSENT) {
      const isAdd =
        kind[OP] === KIND_STRING && opIn(scanner.bytes, this.start[OP]! + 1, this.end[OP]! - 1) === OP_ADD;
      if (!isAdd) {
        this.refuse(place, `${this.shown(OP)} is not "add"`);
        return;
      }
    }
    const source = texts[SOURCE]!;
    const target = texts[TARGET]!;
    this.batches.add(
      source.bytes,
      source.start,
      source.end,
      target.bytes,
      target.start,
      target.end,
      timeMs,
      weight,
    );
  }

  /** Finds the text of an id; or why it has none. */
  private idText(field: number): string | undefined {
    const { bytes } = this.scanner;
    const start = this.start[field]!;
    const end = this.end[field]!;
    switch (this.kind[field]) {
      case KIND_STRING:
      case KIND_ESCAPED_STRING:
        return this.stringText(field) ? undefined : `${excerpt(bytes, start, end)} has half a surrogate pair`;
      case KIND_NUMBER: {
        if (Number.isNaN(integerIn(bytes, start, end))) {
          return `${excerpt(bytes, start, end)} ${integerProblem(bytes, start, end)}: quote it`;
        }
        const text = this.texts[field]!;
        text.bytes = bytes;
        text.start = start;
        text.end = end;
        return undefined;
      }
      case KIND_ABSENT:
        return 'is missing';
      default:
        return `${excerpt(bytes, start, end)} is not a string`;
    }
  }

  /** Finds the text of a string; false if its escapes make none. */
  private stringText(field: number): boolean {
    const { bytes } = this.scanner;
    const text = this.texts[field]!;
    text.bytes = bytes;
    text.start = this.start[field]! + 1;
    text.end = this.end[field]! - 1;
    if (this.kind[field] === KIND_STRING) return true;
    text.bytes = bytes.slice(text.start, text.end);
    text.start = 0;
    text.end = unescapeJson(text.bytes, 0, text.bytes.length, text.bytes);
    return text.end >= 0;
  }

  private timeMs(): number {
    const { kind, texts, timeUnit } = this;
    if (kind[TIME] === KIND_NUMBER) {
      return timeMsIn(this.scanner.bytes, this.start[TIME]!, this.end[TIME]!, timeUnit ?? 'ms');
    }
    if (kind[TIME] !== KIND_STRING && kind[TIME] !== KIND_ESCAPED_STRING) return Number.NaN;
    if (!this.stringText(TIME)) return Number.NaN;
    const text = texts[TIME]!;
    return timeMsIn(text.bytes, text.start, text.end, timeUnit);
  }

  private shown(field: number): string {
    return `${this.names[field]} ${excerpt(this.scanner.bytes, this.start[field]!, this.end[field]!)}`;
  }

  private refuse(place: () => string, reason: string): void {
    const { isKept } = this.batches.refused;
    this.batches.refuse(isKept ? place() : '', reason);
  }
}
