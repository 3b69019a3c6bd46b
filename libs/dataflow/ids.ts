/**
 * The rule that every vertex id obeys, whatever the format it came in: 1 to ID_BYTES_MAX bytes of valid UTF-8
 * (Unicode 15, table 3-7: no overlong form, no surrogate, nothing beyond U+10FFFF). Ids are compared byte for
 * byte everywhere after this point, and come back in JSON, so an id that is not UTF-8 could not come back as
 * it was given.
 */

import {
  type EdgeColumns,
  ID_BYTES_MAX,
  type IdColumn,
  REASONS_MAX,
  type Rejection,
} from './edge-columns.ts';

/** Rejects every edge whose source or target breaks the rule. */
export function validateIds(columns: EdgeColumns): void {
  rejectInOrder(columns, () => {
    const { source, target, rejected } = columns;
    for (let i = 0; i < columns.count; i++) {
      if (rejected[i] === 1) continue;
      if (!isId(source, i)) columns.reject(i, `source ${idProblem(source, i)}`);
      else if (!isId(target, i)) columns.reject(i, `target ${idProblem(target, i)}`);
    }
  });
}

/**
 * Runs one pass of rejections over a message that may have had others before. A pass goes through the edges in
 * index order, but `columns.reasons` must be in index order over all passes, and end at the same REASONS_MAX.
 */
export function rejectInOrder(columns: EdgeColumns, pass: () => void): void {
  const before = columns.reasons;
  columns.reasons = [];
  pass();
  // Passes never reject the same edge twice, so the first reasons of all are among the first of each.
  if (before.length > 0) columns.reasons = merge(before, columns.reasons);
}

/** Whether `bytes[start .. end)` is valid UTF-8. */
export function isUtf8(bytes: Uint8Array, start: number, end: number): boolean {
  let p = start;
  while (p < end) {
    const lead = bytes[p]!;
    if (lead < 0x80) {
      p += 1;
      continue;
    }
    // `low` and `high` bound the second byte: this is where overlong forms, surrogates and > U+10FFFF fall out.
    let low = 0x80;
    let high = 0xbf;
    let length: number;
    if (lead < 0xc2) return false;
    if (lead < 0xe0) length = 2;
    else if (lead < 0xf0) {
      length = 3;
      if (lead === 0xe0) low = 0xa0;
      else if (lead === 0xed) high = 0x9f;
    } else if (lead < 0xf5) {
      length = 4;
      if (lead === 0xf0) low = 0x90;
      else if (lead === 0xf4) high = 0x8f;
    } else return false;
    if (end - p < length) return false;
    const second = bytes[p + 1]!;
    if (second < low || second > high) return false;
    for (let i = 2; i < length; i++) if ((bytes[p + i]! & 0xc0) !== 0x80) return false;
    p += length;
  }
  return true;
}

function isId(column: IdColumn, index: number): boolean {
  const bytes = column.bytes;
  const start = column.start[index]!;
  const end = column.end[index]!;
  const length = end - start;
  if (length < 1 || length > ID_BYTES_MAX) return false;
  let seen = 0;
  for (let p = start; p < end; p++) seen |= bytes[p]!;
  return seen < 0x80 || isUtf8(bytes, start, end);
}

function idProblem(column: IdColumn, index: number): string {
  const length = column.end[index]! - column.start[index]!;
  if (length === 0) return `is empty: an id has 1 to ${ID_BYTES_MAX} bytes`;
  if (length > ID_BYTES_MAX) return `has ${length} bytes: an id has 1 to ${ID_BYTES_MAX}`;
  return 'is not valid UTF-8';
}

function merge(a: readonly Rejection[], b: readonly Rejection[]): Rejection[] {
  return [...a, ...b].sort((x, y) => x.index - y.index).slice(0, REASONS_MAX);
}
