/**
 * Vertex ids between requests, where they are text, and the view, where they are bytes. Ids are valid UTF-8, so
 * both ways are exact as long as no decoder drops a byte order mark and no encoder replaces a lone surrogate.
 */
import { ID_BYTES_MAX } from '../../libs/dataflow/edge-columns.ts';
import { badRequest } from './problems.ts';

const decoder = new TextDecoder('utf-8', { ignoreBOM: true });

export function idText(bytes: Uint8Array): string {
  return decoder.decode(bytes);
}

/** Refuses text that no id can be; `pointer` is where it stands in the request. */
export function checkId(text: string, pointer: string): void {
  const bytes = Buffer.byteLength(text);
  if (bytes === 0 || bytes > ID_BYTES_MAX) {
    throw badRequest(pointer, `has ${bytes} bytes: an id has 1 to ${ID_BYTES_MAX}`);
  }
  if (/\p{Surrogate}/u.test(text)) throw badRequest(pointer, 'holds half of a surrogate pair: not an id');
}
