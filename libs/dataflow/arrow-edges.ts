/**
 * Edges as Arrow record batches, in the stream or the file format: the bulk path.
 *
 * apache-arrow reads the metadata, after `arrowProblem` has proved that it may; the columns are then read from
 * their buffers, column by column over all batches of the message. Text columns of one batch are not copied:
 * the id columns point into the payload (or into the reader's aligned copy of the body).
 *
 * A null id rejects its edge. A null in a column that may be absent means absent: a column has no other way to
 * leave a value out of a row.
 */

import { DataType, DateUnit, TimeUnit } from 'apache-arrow';
import { arrowProblem } from './arrow-bounds.ts';
import { type ArrowColumns, type Column, EDGE_COLUMNS, readArrowColumns } from './arrow-columns.ts';
import {
  ByteParts,
  isText,
  NULL_START,
  nullsOf,
  numbersOf,
  type Ranges,
  readDigits,
  TextReader,
} from './arrow-text.ts';
import { type EdgeColumns, type IdColumn, OP_ADD, REASONS_MAX } from './edge-columns.ts';
import { opIn } from './edge-op.ts';
import { rejectInOrder } from './ids.ts';
import { checkedTimeMs, parseTime } from './time.ts';
import { quotedExcerpt } from './value-excerpt.ts';

const MS_PER_DAY = 86_400_000;

/** Decodes an Arrow payload. Returns why it cannot be; then the columns are empty. */
export function decodeArrow(payload: Uint8Array, columns: EdgeColumns): string | undefined {
  columns.reset();
  const problem = arrowProblem(payload) ?? read(payload, columns);
  if (problem === undefined) return undefined;
  columns.reset();
  return `Arrow: ${problem}`;
}

function read(payload: Uint8Array, columns: EdgeColumns): string | undefined {
  try {
    return fillFromArrow(columns, readArrowColumns(payload));
  } catch (error) {
    // Whatever the library makes of damaged bytes, or DamagedColumn: it concerns this message only.
    return error instanceof Error ? error.message : String(error);
  }
}

/** Fills the columns from columns that carry the names of EDGE_COLUMNS; the reason if they cannot be edges. */
export function fillFromArrow(columns: EdgeColumns, arrow: ArrowColumns): string | undefined {
  const { rows } = arrow;
  const known: Partial<Record<(typeof EDGE_COLUMNS)[number], Column>> = {};
  for (const name of EDGE_COLUMNS) {
    const columnsNamed = arrow.columns.filter((column) => column.name === name);
    if (columnsNamed.length > 1) return `the column ${name} is there more than once`;
    known[name] = columnsNamed[0];
  }
  const { source, target, time, weight, id, op } = known;
  if (source === undefined || target === undefined) {
    const names = arrow.columns.slice(0, 20).map((column) => JSON.stringify(column.name.slice(0, 40)));
    return `no column ${source === undefined ? 'source' : 'target'}, only ${names.join(', ')}`;
  }
  for (const column of [source, target])
    if (!isIdType(column.type)) return typeProblem(column, 'text or integers');
  if (time !== undefined && !isTimeType(time.type))
    return typeProblem(time, 'timestamps, dates, integers or text');
  if (weight !== undefined && !isWeightType(weight.type)) return typeProblem(weight, 'numbers');
  if (id !== undefined && !isIdType(id.type) && !DataType.isNull(id.type))
    return typeProblem(id, 'text or integers');
  if (op !== undefined && !isText(op.type) && !DataType.isNull(op.type)) return typeProblem(op, 'text');

  columns.reserve(rows);
  columns.count = rows;
  columns.rejected.fill(0, 0, rows);
  columns.time.fill(Number.NaN, 0, rows);
  columns.op.fill(OP_ADD, 0, rows);
  for (const [column, into] of [
    [source, columns.source],
    [target, columns.target],
  ] as const) {
    rejectInOrder(columns, () => readIds(column, into, columns));
  }
  if (time !== undefined) rejectInOrder(columns, () => readTimes(time, columns));
  if (weight !== undefined) rejectInOrder(columns, () => checkWeights(weight, columns));
  if (op !== undefined) rejectInOrder(columns, () => readOps(op, columns));
  return undefined;
}

function isIdType(type: DataType): boolean {
  return isText(type) || DataType.isInt(type);
}

function isTimeType(type: DataType): boolean {
  if (DataType.isInt(type)) return type.isSigned && type.bitWidth >= 32;
  return DataType.isTimestamp(type) || DataType.isDate(type) || DataType.isNull(type) || isText(type);
}

function isWeightType(type: DataType): boolean {
  return DataType.isFloat(type) || DataType.isInt(type) || DataType.isNull(type);
}

function typeProblem(column: Column, expected: string): string {
  return `the column ${column.name} is of type ${column.type}, not ${expected}`;
}

function readIds(column: Column, into: IdColumn, columns: EdgeColumns): void {
  const bytes = readRanges(column, into);
  for (let i = 0; i < columns.count; i++) {
    if (into.start[i] === NULL_START) columns.reject(i, `${column.name} is null`);
  }
  into.bytes = bytes;
}

/** Writes the ranges of the values of a text or integer column; returns the bytes that they are ranges of. */
export function readRanges(column: Column, into: Ranges): Uint8Array {
  const parts = new ByteParts();
  const reader = new TextReader(parts);
  for (const { data, first, rows } of column.chunks) {
    if (DataType.isInt(column.type)) readDigits(data, rows, parts, into, first);
    else reader.read(data, rows, into, first);
  }
  return parts.joined();
}

function readTimes(column: Column, columns: EdgeColumns): void {
  if (DataType.isNull(column.type)) return;
  if (isText(column.type)) {
    readTextTimes(column, columns);
    return;
  }
  const { time } = columns;
  const toMs = msOf(column.type);
  for (const { data, first, rows } of column.chunks) {
    const values = numbersOf(data, rows);
    const isNull = nullsOf(data, rows);
    for (let row = 0; row < rows; row++) {
      if (isNull?.(row)) continue;
      const ms = checkedTimeMs(toMs(values[row]!));
      time[first + row] = ms;
      if (Number.isNaN(ms)) columns.reject(first + row, `time ${values[row]} is not in the years 1 to 9999`);
    }
  }
}

function readTextTimes(column: Column, columns: EdgeColumns): void {
  const { ranges, bytes } = readText(column, columns.count);
  for (let i = 0; i < columns.count; i++) {
    const start = ranges.start[i]!;
    if (start === NULL_START) continue;
    columns.time[i] = parseTime(bytes, start, ranges.end[i]);
    if (Number.isNaN(columns.time[i])) {
      reject(columns, i, 'time', bytes, ranges, 'is not an ISO 8601 date in the years 1 to 9999');
    }
  }
}

function readOps(column: Column, columns: EdgeColumns): void {
  if (DataType.isNull(column.type)) return;
  const { ranges, bytes } = readText(column, columns.count);
  for (let i = 0; i < columns.count; i++) {
    const start = ranges.start[i]!;
    if (start === NULL_START) continue;
    const op = opIn(bytes, start, ranges.end[i]!);
    if (op < 0) reject(columns, i, 'op', bytes, ranges, 'is neither "add" nor "remove"');
    else columns.op[i] = op;
  }
}

function checkWeights(column: Column, columns: EdgeColumns): void {
  if (!DataType.isFloat(column.type)) return;
  const isHalf = column.type.precision === 0;
  for (const { data, first, rows } of column.chunks) {
    const values = numbersOf(data, rows);
    const isNull = nullsOf(data, rows);
    for (let row = 0; row < rows; row++) {
      const value = Number(values[row]);
      // Half floats come as their bits; all ones in the exponent are infinity and NaN.
      const isGood = isHalf ? (value & 0x7c00) !== 0x7c00 : Number.isFinite(value);
      if (!isGood && !isNull?.(row)) columns.reject(first + row, 'weight is not a finite number');
    }
  }
}

function readText(column: Column, count: number): { ranges: Ranges; bytes: Uint8Array } {
  const ranges = { start: new Uint32Array(count), end: new Uint32Array(count) };
  const bytes = readRanges(column, ranges);
  return { ranges, bytes };
}

function reject(
  columns: EdgeColumns,
  index: number,
  name: string,
  bytes: Uint8Array,
  ranges: Ranges,
  rule: string,
): void {
  const isKept = columns.reasons.length < REASONS_MAX;
  const value = isKept ? quotedExcerpt(bytes, ranges.start[index]!, ranges.end[index]!) : '';
  columns.reject(index, `${name} ${value} ${rule}`);
}

/** From a stored value to milliseconds, rounded down; NaN or out of range for what is none. */
function msOf(type: DataType): (value: number | bigint) => number {
  if (DataType.isDate(type) && type.unit === DateUnit.DAY) return (value) => Number(value) * MS_PER_DAY;
  if (DataType.isTimestamp(type)) {
    switch (type.unit) {
      case TimeUnit.SECOND:
        return (value) => Number(value) * 1000;
      case TimeUnit.MICROSECOND:
        return (value) => flooredQuotient(value, 1000n);
      case TimeUnit.NANOSECOND:
        return (value) => flooredQuotient(value, 1_000_000n);
    }
  }
  return (value) => Number(value);
}

/** In whole numbers: as a double, a count of nanoseconds since 1970 would be rounded first. */
function flooredQuotient(value: number | bigint, divisor: bigint): number {
  const whole = BigInt(value);
  const quotient = whole / divisor;
  return Number(quotient * divisor > whole ? quotient - 1n : quotient);
}
