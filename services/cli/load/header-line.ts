/**
 * Whether the first line names the columns. It does if it says so: its cells are words above numbers or times,
 * or the first is empty above the numbers of the rows, or they are words that name columns everywhere. Text above text, without such a word, is an edge: to leave out an edge
 * is worse than to keep a header, which shows as a vertex.
 */

import { parseTime } from '../../../libs/dataflow/time.ts';
import { isColumnName, namedColumns } from './column-names.ts';
import { isNumber } from './delimiter.ts';

/** `rows` are the first records of a text, the first one included. */
export function isHeaderLine(rows: readonly (readonly string[])[]): boolean {
  const [first, ...others] = rows;
  if (first === undefined || first.some(isValue) || first.every((cell) => cell.trim() === '')) return false;
  const isNumbered = first[0] === '' && first.slice(1).every((cell) => cell !== '');
  if (isNumbered && isColumnOfValues(others, 0)) return true;
  if (first.some((cell, column) => cell.trim() !== '' && isColumnOfValues(others, column))) return true;
  const { source, target } = namedColumns(first);
  const names = first.filter(
    (cell, column) => isColumnName(cell) && !others.some((row) => row[column] === cell),
  );
  if (names.length === 0) return false;
  return (source !== undefined && target !== undefined) || names.length >= 2;
}

function isColumnOfValues(rows: readonly (readonly string[])[], column: number): boolean {
  let count = 0;
  for (const row of rows) {
    const cell = row[column];
    if (cell === undefined || cell === '') continue;
    if (!isValue(cell)) return false;
    count += 1;
  }
  return count > 0;
}

function isValue(cell: string): boolean {
  return isNumber(cell.trim()) || !Number.isNaN(parseTime(cell.trim()));
}
