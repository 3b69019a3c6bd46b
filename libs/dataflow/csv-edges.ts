/**
 * Edges as CSV (RFC 4180): a header line that names the columns, then an edge per record.
 *
 * The id columns point into the bytes of the reader, which are the payload itself as long as no field has a
 * doubled quote. A field that is empty is absent; there is no other way to leave one out of a line.
 */

import { DelimitedReader } from './delimited.ts';
import { type EdgeColumns, OP_ADD, REASONS_MAX } from './edge-columns.ts';
import { opIn } from './edge-op.ts';
import type { EdgeRanges } from './edge-ranges.ts';
import { integerIn, isFiniteNumber, numberEnd } from './number-text.ts';
import { checkedTimeMs, parseTime } from './time.ts';
import { quotedExcerpt } from './value-excerpt.ts';

const COMMA = 44;
const QUOTE = 34;
const NOWHERE = -1;
/** A reason that lists the columns of a header lists no more than this. */
const COLUMNS_SHOWN_MAX = 20;

/** Which field of a record is which; NOWHERE for what the header does not name. */
interface Header {
  readonly fieldCount: number;
  readonly source: number;
  readonly target: number;
  readonly time: number;
  readonly weight: number;
  readonly op: number;
}

/** Decodes a CSV payload. Returns why its header is none; then the columns are empty. */
export function decodeCsv(
  payload: Uint8Array,
  columns: EdgeColumns,
  ranges?: EdgeRanges,
): string | undefined {
  columns.reset();
  const reader = new DelimitedReader({ delimiter: COMMA, quote: QUOTE });
  reader.push(payload, true);
  if (!reader.next()) return 'CSV has no header line';
  if (reader.broken !== undefined) return `CSV header: ${reader.broken}`;
  const header = headerIn(reader);
  if (typeof header === 'string') return header;
  if (ranges !== undefined) ranges.headerBytes = reader.recordEnd;
  while (reader.next()) {
    readEdge(reader, header, columns);
    ranges?.add(reader.recordStart, reader.recordEnd);
  }
  columns.source.bytes = reader.bytes;
  columns.target.bytes = reader.bytes;
  return undefined;
}

function headerIn(reader: DelimitedReader): Header | string {
  const names: string[] = [];
  const decoder = new TextDecoder();
  for (let i = 0; i < reader.fieldCount; i++) {
    names.push(decoder.decode(reader.bytes.subarray(reader.start[i], reader.end[i])));
  }
  for (const name of ['source', 'target']) {
    if (!names.includes(name)) return `CSV header has no column ${name}, only ${listed(reader)}`;
  }
  for (const name of ['source', 'target', 'time', 'weight', 'id', 'op']) {
    if (names.indexOf(name) !== names.lastIndexOf(name)) {
      return `CSV header has the column ${name} more than once: ${listed(reader)}`;
    }
  }
  return {
    fieldCount: names.length,
    source: names.indexOf('source'),
    target: names.indexOf('target'),
    time: names.indexOf('time'),
    weight: names.indexOf('weight'),
    op: names.indexOf('op'),
  };
}

function readEdge(reader: DelimitedReader, header: Header, columns: EdgeColumns): void {
  const index = columns.count;
  columns.reserve(index + 1);
  columns.count = index + 1;
  columns.rejected[index] = 0;
  columns.time[index] = Number.NaN;
  columns.op[index] = OP_ADD;
  if (reader.broken !== undefined) {
    columns.reject(index, reader.broken);
    return;
  }
  if (reader.fieldCount !== header.fieldCount) {
    columns.reject(
      index,
      `line ${reader.line}: the number of fields is ${reader.fieldCount}, of the header ${header.fieldCount}`,
    );
    return;
  }
  const { bytes, start, end } = reader;
  columns.source.start[index] = start[header.source]!;
  columns.source.end[index] = end[header.source]!;
  columns.target.start[index] = start[header.target]!;
  columns.target.end[index] = end[header.target]!;
  if (isGiven(reader, header.time)) {
    const from = start[header.time]!;
    const to = end[header.time]!;
    const ms = integerIn(bytes, from, to);
    const time = Number.isNaN(ms) ? parseTime(bytes, from, to) : checkedTimeMs(ms);
    if (Number.isNaN(time)) {
      const rule = 'is neither an ISO 8601 date nor integer milliseconds in the years 1 to 9999';
      reject(reader, header.time, columns, 'time', rule);
      return;
    }
    columns.time[index] = time;
  }
  if (isGiven(reader, header.weight)) {
    const from = start[header.weight]!;
    const to = end[header.weight]!;
    if (numberEnd(bytes, from, to) !== to || !isFiniteNumber(bytes, from, to)) {
      reject(reader, header.weight, columns, 'weight', 'is not a finite number');
      return;
    }
  }
  if (isGiven(reader, header.op)) {
    const op = opIn(bytes, start[header.op]!, end[header.op]!);
    if (op < 0) {
      reject(reader, header.op, columns, 'op', 'is neither "add" nor "remove"');
      return;
    }
    columns.op[index] = op;
  }
}

function isGiven(reader: DelimitedReader, field: number): boolean {
  return field !== NOWHERE && reader.start[field] !== reader.end[field];
}

/** Rejects the edge read last. */
function reject(
  reader: DelimitedReader,
  field: number,
  columns: EdgeColumns,
  name: string,
  rule: string,
): void {
  // Beyond the last reason that is kept only the count matters, so no text is made.
  const isKept = columns.reasons.length < REASONS_MAX;
  const value = isKept ? quotedExcerpt(reader.bytes, reader.start[field]!, reader.end[field]!) : '';
  columns.reject(columns.count - 1, `line ${reader.line}: ${name} ${value} ${rule}`);
}

function listed(reader: DelimitedReader): string {
  const names: string[] = [];
  for (let i = 0; i < Math.min(reader.fieldCount, COLUMNS_SHOWN_MAX); i++) {
    names.push(quotedExcerpt(reader.bytes, reader.start[i]!, reader.end[i]!));
  }
  return names.join(', ') + (reader.fieldCount > COLUMNS_SHOWN_MAX ? ', …' : '');
}
