/**
 * From one EDGES message to columns: chooses the decoder by the message's Content-Type, or, without one, by its
 * first bytes, and applies the rules that hold for ids of every format.
 *
 * What comes in is whatever somebody published. No payload makes this throw; either the message as a whole is
 * none, and the reason is returned, or each edge stands in the columns, counted or rejected.
 */

import { decodeArrow } from './arrow-edges.ts';
import { decodeCsv } from './csv-edges.ts';
import type { EdgeColumns } from './edge-columns.ts';
import type { EdgeRanges } from './edge-ranges.ts';
import { validateIds } from './ids.ts';
import { decodeJson, decodeNdjson } from './json-edges.ts';
import { quotedExcerpt } from './value-excerpt.ts';

/** The formats, each by the content type under which we write it. */
export type PayloadFormat =
  | 'application/json'
  | 'application/x-ndjson'
  | 'text/csv'
  | 'application/vnd.apache.arrow.stream';

/** The accepted content types, and the format that each one means. */
export const CONTENT_TYPES: Readonly<Record<string, PayloadFormat>> = {
  'application/json': 'application/json',
  'application/x-ndjson': 'application/x-ndjson',
  'application/jsonl': 'application/x-ndjson',
  'text/csv': 'text/csv',
  'application/vnd.apache.arrow.stream': 'application/vnd.apache.arrow.stream',
  'application/vnd.apache.arrow.file': 'application/vnd.apache.arrow.stream',
};

/** `format` is what the payload was read as, found by its first bytes if the message does not say. */
export type DecodedPayload =
  | { readonly kind: 'decoded'; readonly format: PayloadFormat }
  | { readonly kind: 'undecodable'; readonly reason: string };

const OPEN_BRACKET = 91;
const OPEN_BRACE = 123;

/**
 * Fills the columns with the edges of a message. Returns the reason if it cannot be decoded at all; then it is
 * rejected whole, and the columns are empty. The id columns may point into `payload`.
 */
export function decodePayload(
  payload: Uint8Array,
  contentType: string | undefined,
  columns: EdgeColumns,
): string | undefined {
  const decoded = decodePayloadAs(payload, contentType, columns);
  return decoded.kind === 'decoded' ? undefined : decoded.reason;
}

/** The same, and says which format it was; of a text format, notes in `ranges` where each edge stands. */
export function decodePayloadAs(
  payload: Uint8Array,
  contentType: string | undefined,
  columns: EdgeColumns,
  ranges?: EdgeRanges,
): DecodedPayload {
  columns.reset();
  const bytes = plainBytes(payload);
  const decoded = decodeFormat(bytes, contentType, columns, ranges);
  if (decoded.kind === 'decoded') validateIds(columns);
  return decoded;
}

function decodeFormat(
  bytes: Uint8Array,
  contentType: string | undefined,
  columns: EdgeColumns,
  ranges: EdgeRanges | undefined,
): DecodedPayload {
  const name = (contentType ?? '').replace(/;.*/s, '').trim().toLowerCase();
  if (name === '') return decodeByFirstBytes(bytes, columns, ranges);
  const format = Object.hasOwn(CONTENT_TYPES, name) ? CONTENT_TYPES[name]! : undefined;
  switch (format) {
    case 'application/json':
      return outcome(format, decodeJson(bytes, textStart(bytes), columns, ranges));
    case 'application/x-ndjson':
      decodeNdjson(bytes, textStart(bytes), columns, ranges);
      return { kind: 'decoded', format };
    case 'text/csv':
      return outcome(format, decodeCsv(bytes, columns, ranges));
    case 'application/vnd.apache.arrow.stream':
      return outcome(format, decodeArrow(bytes, columns));
    case undefined: {
      const accepted = Object.keys(CONTENT_TYPES).join(', ');
      const shown = JSON.stringify(name.slice(0, 100));
      return { kind: 'undecodable', reason: `content type ${shown} is none of ${accepted}` };
    }
  }
}

function decodeByFirstBytes(
  bytes: Uint8Array,
  columns: EdgeColumns,
  ranges: EdgeRanges | undefined,
): DecodedPayload {
  const text = textStart(bytes);
  let at = text;
  while (at < bytes.length && isWhiteSpace(bytes[at]!)) at += 1;
  const first = bytes[at];
  if (first === OPEN_BRACE || first === OPEN_BRACKET) {
    const reason = decodeJson(bytes, text, columns, ranges);
    if (reason === undefined || first === OPEN_BRACKET) return outcome('application/json', reason);
    decodeNdjson(bytes, text, columns, ranges);
    return { kind: 'decoded', format: 'application/x-ndjson' };
  }
  if (isArrowMarker(bytes))
    return outcome('application/vnd.apache.arrow.stream', decodeArrow(bytes, columns));
  const found = at === bytes.length ? 'nothing' : quotedExcerpt(bytes, at, Math.min(at + 12, bytes.length));
  return {
    kind: 'undecodable',
    reason: `no Content-Type, and the payload begins with ${found}: neither JSON nor an Arrow stream`,
  };
}

function outcome(format: PayloadFormat, reason: string | undefined): DecodedPayload {
  return reason === undefined ? { kind: 'decoded', format } : { kind: 'undecodable', reason };
}

/** Behind the byte order mark, if there is one. */
function textStart(bytes: Uint8Array): number {
  return bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? 3 : 0;
}

function isArrowMarker(bytes: Uint8Array): boolean {
  return (
    bytes.length >= 4 && bytes[0] === 0xff && bytes[1] === 0xff && bytes[2] === 0xff && bytes[3] === 0xff
  );
}

function isWhiteSpace(byte: number): boolean {
  return byte === 32 || byte === 10 || byte === 13 || byte === 9;
}

/** Without what Node's Buffer changes about a Uint8Array: its `slice` does not copy. */
function plainBytes(payload: Uint8Array): Uint8Array {
  return payload.constructor === Uint8Array
    ? payload
    : new Uint8Array(payload.buffer, payload.byteOffset, payload.byteLength);
}
