/** An export as text, in chunks each of which is a slice of work. */
import type { ExportFormat } from '../../libs/api/vertex.ts';
import type { Reading } from './answers.ts';

const CHUNK_ROWS = 512;
const CHUNK_CHARS = 64 * 1024;

export function* exportChunks(reading: Reading, format: ExportFormat): Generator<string> {
  let chunk = format === 'csv' ? 'vertex,component\r\n' : '';
  let rows = 0;
  for (const row of reading.exportRows()) {
    chunk +=
      format === 'csv'
        ? `${csvField(row.vertex)},${csvField(row.component)}\r\n`
        : `${JSON.stringify(row)}\n`;
    rows += 1;
    if (rows < CHUNK_ROWS && chunk.length < CHUNK_CHARS) continue;
    yield chunk;
    chunk = '';
    rows = 0;
  }
  if (chunk !== '') yield chunk;
}

/** As RFC 4180 has it; besides, what a reader might trim is quoted. */
export function csvField(text: string): string {
  return /[",\r\n]|^\s|\s$/u.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
