/**
 * JSON: an array of edge objects, or objects one after the other, each over as many lines as it likes.
 *
 * The text is cut into elements by counting brackets outside of strings, so that a file may be larger than
 * memory; each element is then read with the whole grammar. Between elements the grammar is checked here, and a
 * fault there ends the reading: nothing tells where the next element would begin.
 */

import { JsonScanner } from '../../../libs/dataflow/json-scanner.ts';
import { CliError, EXIT } from '../exit.ts';
import type { EdgeBatches } from './edge-batches.ts';
import type { IdRule } from './id-rule.ts';
import { joinedBytes } from './joined-bytes.ts';
import { type EdgeKeys, JsonEdges } from './json-edge.ts';
import type { RowReader } from './row-reader.ts';

/** A larger element is no edge, and so much of one may be held. */
const ELEMENT_BYTES_MAX = 4 * 1024 * 1024;

const QUOTE = 34;
const COMMA = 44;
const OPEN_BRACKET = 91;
const BACKSLASH = 92;
const CLOSE_BRACKET = 93;
const OPEN_BRACE = 123;
const CLOSE_BRACE = 125;

/** What may come next outside of elements. */
type Expected = 'start' | 'element' | 'element-or-end' | 'comma-or-end' | 'nothing';

export class JsonRows implements RowReader {
  private readonly name: string;
  private readonly isArray: boolean;
  private readonly edges: JsonEdges;
  private bytes: Uint8Array = new Uint8Array(0);
  /** Where the scan stands in `bytes`. */
  private at = 0;
  /** Bytes of the content before `bytes`. */
  private bytesBefore = 0;
  private expected: Expected;
  /** Where the open element begins; -1 if none is. */
  private start = -1;
  private depth = 0;
  private isInString = false;
  private isEscaped = false;
  private element = 1;

  constructor(name: string, isArray: boolean, keys: EdgeKeys, rule: IdRule, batches: EdgeBatches) {
    this.name = name;
    this.isArray = isArray;
    this.edges = new JsonEdges(keys, rule, batches);
    this.expected = isArray ? 'start' : 'element';
  }

  push(chunk: Uint8Array, isLast: boolean): void {
    const from = this.start < 0 ? this.at : this.start;
    this.bytesBefore += from;
    const rest = this.bytes.subarray(from);
    if (rest.length > ELEMENT_BYTES_MAX)
      throw this.fault(0, `element ${this.element} has more than ${ELEMENT_BYTES_MAX} bytes`);
    this.bytes = rest.length === 0 ? chunk : joinedBytes([rest, chunk]);
    this.at -= from;
    if (this.start >= 0) this.start = 0;
    this.edges.use(new JsonScanner(this.bytes));
    this.scan(isLast);
    if (!isLast) return;
    if (this.start >= 0 || (this.isArray && this.expected !== 'nothing')) {
      throw new CliError(EXIT.failed, `${this.name} is cut short: it ends inside of its JSON`);
    }
  }

  private scan(isLast: boolean): void {
    const { bytes } = this;
    let p = this.at;
    while (p < bytes.length) {
      if (this.start >= 0) {
        p = this.elementEnd(p, isLast);
        if (p < 0) break;
        continue;
      }
      const byte = bytes[p]!;
      if (byte === 32 || byte === 10 || byte === 13 || byte === 9) p += 1;
      else p = this.between(p, byte);
    }
    this.at = p < 0 ? bytes.length : p;
  }

  /** Takes the byte at `p`, which is in no element; returns where to go on. */
  private between(p: number, byte: number): number {
    switch (this.expected) {
      case 'start':
        if (byte !== OPEN_BRACKET) break;
        this.expected = 'element-or-end';
        return p + 1;
      case 'comma-or-end':
        if (byte === COMMA) {
          this.expected = 'element';
          return p + 1;
        }
        if (byte !== CLOSE_BRACKET) break;
        this.expected = 'nothing';
        return p + 1;
      case 'element-or-end':
        if (byte === CLOSE_BRACKET) {
          this.expected = 'nothing';
          return p + 1;
        }
        if (byte === COMMA) break;
        this.start = p;
        return p;
      case 'element':
        if (byte === COMMA || byte === CLOSE_BRACKET || byte === CLOSE_BRACE) break;
        this.start = p;
        return p;
      case 'nothing':
        break;
    }
    throw this.fault(p, `unexpected ${JSON.stringify(String.fromCharCode(byte))}`);
  }

  /** Goes on through the open element; behind it, or -1 if it does not end in these bytes. */
  private elementEnd(from: number, isLast: boolean): number {
    const { bytes } = this;
    let { depth, isInString, isEscaped } = this;
    let p = from;
    let isEnd = false;
    for (; p < bytes.length && !isEnd; p++) {
      const byte = bytes[p]!;
      if (isInString) {
        if (isEscaped) isEscaped = false;
        else if (byte === BACKSLASH) isEscaped = true;
        else if (byte === QUOTE) {
          isInString = false;
          isEnd = depth === 0;
        }
      } else if (byte === QUOTE) isInString = true;
      else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) depth += 1;
      else if ((byte === CLOSE_BRACE || byte === CLOSE_BRACKET) && depth > 0) {
        depth -= 1;
        isEnd = depth === 0;
      } else if (depth === 0 && (byte === COMMA || byte === CLOSE_BRACKET || byte <= 32)) {
        // The end of a number or a word; this byte does not belong to it.
        break;
      }
    }
    const isWordAtEnd = p === bytes.length && isLast && depth === 0 && !isInString;
    if (!isEnd && p === bytes.length && !isWordAtEnd) {
      this.depth = depth;
      this.isInString = isInString;
      this.isEscaped = isEscaped;
      return -1;
    }
    this.edges.read(this.start, p, () => `element ${this.element}`);
    this.element += 1;
    this.start = -1;
    this.depth = 0;
    this.isInString = false;
    this.isEscaped = false;
    this.expected = this.isArray ? 'comma-or-end' : 'element';
    return p;
  }

  private fault(at: number, problem: string): CliError {
    return new CliError(
      EXIT.failed,
      `${this.name} cannot be read on: not valid JSON at byte ${this.bytesBefore + at + 1}: ${problem}`,
    );
  }
}
