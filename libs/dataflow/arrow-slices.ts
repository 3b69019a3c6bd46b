/**
 * Cuts an Arrow payload into payloads of at most so many bytes, with the same edges in the same order.
 *
 * The rows of all batches are taken as one table of the columns that mean something, and written again in runs
 * as long as fit. Text columns become plain utf8, since a dictionary would have to go into every part; numbers
 * keep their type, and nulls stay, so that every edge is accepted or rejected as before.
 */

import { type Data, DataType, Field, type Int, makeData, Null, Utf8 } from 'apache-arrow';
import { type ArrowColumns, type Column, EDGE_COLUMNS, readArrowColumns } from './arrow-columns.ts';
import { readRanges } from './arrow-edges.ts';
import { encodeArrowBatch, TextBuffer } from './arrow-payload.ts';
import { isText, NULL_START, nullsOf, numbersOf, type Ranges } from './arrow-text.ts';

/** One column, rows of all batches together. */
interface WholeColumn {
  readonly field: Field;
  /** Bytes of row i without padding, beyond what every row costs. */
  textBytes(row: number): number;
  /** Bytes that a row costs whatever its value. */
  readonly rowBytes: number;
  slice(from: number, to: number): Data;
}

/** Cuts a payload that decodes. Returns a reason if one edge alone is too large. */
export function sliceArrow(payload: Uint8Array, bytesMax: number): Uint8Array[] | string {
  const table = readArrowColumns(payload);
  const columns = wholeColumns(table);
  const encode = (from: number, to: number): Uint8Array =>
    encodeArrowBatch(
      columns.map((column) => column.field),
      columns.map((column) => column.slice(from, to)),
      to - from,
    );
  // Metadata have the same size for any number of rows. Of the up to three buffers of a column each is padded
  // by less than 8 bytes, and the offsets of a text have one entry more than rows.
  const fixedBytes = encode(0, 0).length + columns.length * 3 * 8;
  const parts: Uint8Array[] = [];
  let from = 0;
  let size = fixedBytes;
  for (let row = 0; row < table.rows; row++) {
    let rowBytes = 0;
    for (const column of columns) rowBytes += column.rowBytes + column.textBytes(row);
    if (fixedBytes + rowBytes > bytesMax) {
      return `edge ${row} alone takes ${Math.ceil(fixedBytes + rowBytes)} bytes of at most ${bytesMax}`;
    }
    if (size + rowBytes > bytesMax) {
      parts.push(encode(from, row));
      from = row;
      size = fixedBytes;
    }
    size += rowBytes;
  }
  parts.push(encode(from, table.rows));
  return parts;
}

function wholeColumns(table: ArrowColumns): WholeColumn[] {
  const columns: WholeColumn[] = [];
  for (const name of EDGE_COLUMNS) {
    const column = table.columns.find((candidate) => candidate.name === name);
    if (column === undefined) continue;
    if (DataType.isNull(column.type)) columns.push(nullColumn(column));
    else if (isText(column.type)) columns.push(textColumn(column, table.rows));
    else columns.push(numberColumn(column, table.rows));
  }
  return columns;
}

function nullColumn(column: Column): WholeColumn {
  return {
    field: new Field(column.name, new Null(), true),
    rowBytes: 0,
    textBytes: () => 0,
    slice: (from, to) => makeData({ type: new Null(), length: to - from }),
  };
}

function textColumn(column: Column, rows: number): WholeColumn {
  const ranges: Ranges = { start: new Uint32Array(rows), end: new Uint32Array(rows) };
  const bytes = readRanges(column, ranges);
  const isNull = (row: number): boolean => ranges.start[row] === NULL_START;
  return {
    field: new Field(column.name, new Utf8(), true),
    // An offset and the bit of the null bitmap.
    rowBytes: 4 + 1 / 8,
    textBytes: (row) => (isNull(row) ? 0 : ranges.end[row]! - ranges.start[row]!),
    slice: (from, to) => {
      const text = new TextBuffer();
      for (let row = from; row < to; row++) {
        if (isNull(row)) text.append(bytes, 0, 0);
        else text.append(bytes, ranges.start[row]!, ranges.end[row]!);
      }
      return text.data(bitmapOf(isNull, from, to));
    },
  };
}

function numberColumn(column: Column, rows: number): WholeColumn {
  const { type } = column;
  const valueBytes = type.ArrayType.BYTES_PER_ELEMENT as number;
  const values = new Uint8Array(rows * valueBytes);
  const nulls = new Uint8Array(rows);
  for (const chunk of column.chunks) {
    // Checks that the values are there.
    numbersOf(chunk.data, chunk.rows);
    const { buffer, byteOffset } = chunk.data.values as unknown as Uint8Array;
    values.set(new Uint8Array(buffer, byteOffset, chunk.rows * valueBytes), chunk.first * valueBytes);
    const isNull = nullsOf(chunk.data, chunk.rows);
    if (isNull === undefined) continue;
    for (let row = 0; row < chunk.rows; row++) if (isNull(row)) nulls[chunk.first + row] = 1;
  }
  return {
    field: new Field(column.name, type, true),
    rowBytes: valueBytes + 1 / 8,
    textBytes: () => 0,
    slice: (from, to) =>
      makeData({
        // makeData has one overload per type; whatever the type, it views the bytes as its values.
        type: type as Int,
        length: to - from,
        ...bitmapOf((row) => nulls[row] === 1, from, to),
        data: values.slice(from * valueBytes, to * valueBytes),
      }),
  };
}

function bitmapOf(
  isNull: (row: number) => boolean,
  from: number,
  to: number,
): { nullCount: number; nullBitmap?: Uint8Array } {
  const nullBitmap = new Uint8Array((to - from + 7) >> 3);
  let nullCount = 0;
  for (let row = from; row < to; row++) {
    if (isNull(row)) nullCount += 1;
    else nullBitmap[(row - from) >> 3]! |= 1 << ((row - from) & 7);
  }
  return nullCount === 0 ? { nullCount } : { nullCount, nullBitmap };
}
