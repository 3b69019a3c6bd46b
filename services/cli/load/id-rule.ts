/**
 * What an id of a file must be: the rule of all ids (1 to 1,024 bytes of UTF-8), and no null mark. Ids are
 * bytes: nothing is trimmed, unless asked, nothing normalised, and no number is read.
 */

import { ID_BYTES_MAX } from '../../../libs/dataflow/edge-columns.ts';
import { isWord } from '../../../libs/dataflow/edge-op.ts';
import { isUtf8 } from '../../../libs/dataflow/ids.ts';
import { quotedExcerpt } from '../../../libs/dataflow/value-excerpt.ts';
import type { LoadOptions } from './load-options.ts';

const encoder = new TextEncoder();

/** What SQL databases write for NULL; other such words are ids of somebody. */
export const NULL_MARK = '\\N';

export class IdRule {
  /** Where the last id checked stands in its bytes. */
  start = 0;
  end = 0;
  private readonly trim: boolean;
  private readonly nulls: readonly Uint8Array[];

  constructor({ trim, nulls }: Pick<LoadOptions, 'trim' | 'nulls'>) {
    this.trim = trim;
    this.nulls = nulls.filter((text) => text !== '').map((text) => encoder.encode(text));
  }

  /** Whether the text in `bytes[start .. end)` is an id; its place is `start` and `end` then. */
  accepts(bytes: Uint8Array, start: number, end: number): boolean {
    let from = start;
    let to = end;
    if (this.trim) {
      while (from < to && isBlank(bytes[from]!)) from += 1;
      while (to > from && isBlank(bytes[to - 1]!)) to -= 1;
    }
    this.start = from;
    this.end = to;
    const length = to - from;
    if (length < 1 || length > ID_BYTES_MAX || this.isNull(bytes, from, to)) return false;
    let seen = 0;
    for (let p = from; p < to; p++) seen |= bytes[p]!;
    return seen < 0x80 || isUtf8(bytes, from, to);
  }

  /** Why the text that was not accepted is no id. */
  problem(bytes: Uint8Array): string {
    const { start, end } = this;
    const length = end - start;
    if (length === 0) return 'is empty';
    if (length > ID_BYTES_MAX) return `has ${length} bytes: an id has 1 to ${ID_BYTES_MAX}`;
    if (this.isNull(bytes, start, end)) return `${quotedExcerpt(bytes, start, end)} stands for no value`;
    return `${quotedExcerpt(bytes, start, end)} is not UTF-8 text`;
  }

  private isNull(bytes: Uint8Array, start: number, end: number): boolean {
    for (const word of this.nulls) if (isWord(bytes, start, end, word)) return true;
    return false;
  }
}

function isBlank(byte: number): boolean {
  return byte === 32 || byte === 9;
}
