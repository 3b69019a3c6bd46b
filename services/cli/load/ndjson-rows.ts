/** NDJSON: a row per line. A broken line is refused alone; a blank one is no row. */

import { JsonScanner } from '../../../libs/dataflow/json-scanner.ts';
import type { EdgeBatches } from './edge-batches.ts';
import type { IdRule } from './id-rule.ts';
import { joinedBytes } from './joined-bytes.ts';
import { type EdgeKeys, JsonEdges } from './json-edge.ts';
import type { RowReader } from './row-reader.ts';

/** A longer line is refused; so much of it may be held. */
const LINE_BYTES_MAX = 4 * 1024 * 1024;

const LINE_FEED = 10;

export class NdjsonRows implements RowReader {
  private readonly edges: JsonEdges;
  private readonly batches: EdgeBatches;
  /** What is left of the last chunk: a line without its end. */
  private rest: Uint8Array[] = [];
  private restBytes = 0;
  /** Of the next line, from 1. */
  private line: number;
  private isTooLong = false;

  /** `linesBefore` were left out at the start of the file. */
  constructor(keys: EdgeKeys, rule: IdRule, batches: EdgeBatches, linesBefore: number) {
    this.edges = new JsonEdges(keys, rule, batches);
    this.batches = batches;
    this.line = linesBefore + 1;
  }

  push(chunk: Uint8Array, isLast: boolean): void {
    const lastEnd = chunk.lastIndexOf(LINE_FEED);
    if (lastEnd < 0) this.keep(chunk);
    else {
      const firstEnd = this.isTooLong || this.restBytes > 0 ? chunk.indexOf(LINE_FEED) + 1 : 0;
      if (firstEnd > 0) this.finishRest(chunk.subarray(0, firstEnd));
      if (firstEnd <= lastEnd) this.lines(chunk.subarray(firstEnd, lastEnd + 1));
      this.keep(chunk.subarray(lastEnd + 1));
    }
    if (isLast && (this.restBytes > 0 || this.isTooLong)) this.finishRest(new Uint8Array(0));
  }

  private keep(part: Uint8Array): void {
    if (part.length === 0 || this.isTooLong) return;
    this.rest.push(part);
    this.restBytes += part.length;
    if (this.restBytes <= LINE_BYTES_MAX) return;
    this.isTooLong = true;
    this.rest = [];
    this.restBytes = 0;
  }

  /** The line that began in an earlier chunk ends with `end`. */
  private finishRest(end: Uint8Array): void {
    if (this.isTooLong) {
      this.batches.refuse(`line ${this.line}`, `longer than ${LINE_BYTES_MAX} bytes`);
      this.line += 1;
    } else this.lines(joinedBytes([...this.rest, end]));
    this.isTooLong = false;
    this.rest = [];
    this.restBytes = 0;
  }

  /** Whole lines; the last one may lack its line end. */
  private lines(bytes: Uint8Array): void {
    const scanner = new JsonScanner(bytes);
    this.edges.use(scanner);
    const place = (): string => `line ${this.line}`;
    let start = 0;
    while (start < bytes.length) {
      const found = bytes.indexOf(LINE_FEED, start);
      const end = found < 0 ? bytes.length : found;
      scanner.end = end;
      const at = scanner.blank(start);
      if (at < end) this.edges.read(at, end, place);
      this.line += 1;
      start = end + 1;
    }
  }
}
