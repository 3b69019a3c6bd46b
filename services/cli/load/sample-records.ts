/** The first records of delimited text as strings: what decisions look at. The rest of a file never is. */

import { type DelimitedFormat, DelimitedReader } from '../../../libs/dataflow/delimited.ts';
import type { Sample } from './input-file.ts';

export interface SampleRecords {
  readonly rows: readonly (readonly string[])[];
  /** Of each row, from 1. */
  readonly lines: readonly number[];
  /** Records that are none, such as those with a quote that is never closed. */
  readonly broken: number;
}

export function recordsOf(sample: Sample, format: DelimitedFormat, rowsMax: number): SampleRecords {
  const reader = new DelimitedReader(format);
  reader.push(sample.bytes, sample.isWhole);
  const rows: string[][] = [];
  const lines: number[] = [];
  let broken = 0;
  while (rows.length < rowsMax && reader.next()) {
    if (reader.broken !== undefined) {
      broken += 1;
      continue;
    }
    const { bytes, start, end } = reader;
    const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    const row: string[] = [];
    for (let i = 0; i < reader.fieldCount; i++) row.push(text.toString('utf8', start[i], end[i]));
    rows.push(row);
    lines.push(reader.line);
  }
  return { rows, lines, broken };
}

/** The beginning of a text, line by line, without what is cut off. */
export function linesOf(sample: Sample): string[] {
  const text = Buffer.from(sample.bytes.buffer, sample.bytes.byteOffset, sample.bytes.byteLength);
  const lines = text.toString('utf8').split(/\r\n|\n|\r/);
  if (!sample.isWhole && lines.length > 1) lines.pop();
  return lines;
}
