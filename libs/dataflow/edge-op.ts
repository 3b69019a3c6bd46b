/** The names of the two operations in payloads. */

import { OP_ADD, OP_REMOVE } from './edge-columns.ts';

const ADD = new TextEncoder().encode('add');
const REMOVE = new TextEncoder().encode('remove');

/** OP_ADD or OP_REMOVE as named in `bytes[start .. end)`, -1 for any other text. */
export function opIn(bytes: Uint8Array, start: number, end: number): number {
  if (isWord(bytes, start, end, ADD)) return OP_ADD;
  return isWord(bytes, start, end, REMOVE) ? OP_REMOVE : -1;
}

/** Whether `bytes[start .. end)` is the word. */
export function isWord(bytes: Uint8Array, start: number, end: number, word: Uint8Array): boolean {
  if (end - start !== word.length) return false;
  for (let i = 0; i < word.length; i++) if (bytes[start + i] !== word[i]) return false;
  return true;
}
