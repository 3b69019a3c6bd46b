/**
 * How lines are cut into fields, found by looking at the first of them: which lines are comments, what stands
 * between two fields, whether quotes enclose fields.
 *
 * The extension of a file says little: of the files in our tests called `.csv` a third are separated by blanks
 * or tabs. A delimiter is one that cuts nearly every line into two fields or more, and most lines into the same
 * number.
 */

import type { DelimitedFormat } from '../../../libs/dataflow/delimited.ts';
import type { Sample } from './input-file.ts';
import type { LoadOptions } from './load-options.ts';
import { linesOf, recordsOf } from './sample-records.ts';

const TAB = 9;
const COMMA = 44;
const SEMICOLON = 59;
const PIPE = 124;
const PERCENT = 37;
const HASH = 35;
const QUOTE = 34;

const RECORDS_MAX = 2000;
/** So few broken quotes are mistakes in a file that has quotes. */
const BROKEN_MAX = 2;
/** Of all records, so many must have two fields or more. */
const CUT_SHARE_MIN = 0.9;

const DELIMITER_NAMES: Readonly<Record<number, string>> = {
  [TAB]: 'tab',
  [COMMA]: 'comma',
  [SEMICOLON]: 'semicolon',
  [PIPE]: 'pipe',
  [PERCENT]: 'percent',
};

export function delimiterName(delimiter: DelimitedFormat['delimiter']): string {
  if (delimiter === 'blanks') return 'blank';
  return DELIMITER_NAMES[delimiter] ?? JSON.stringify(String.fromCharCode(delimiter));
}

/** `ambiguous-comments`: some lines begin with #, and those may be comments or edges. */
export type TextShape =
  | {
      readonly kind: 'shape';
      readonly format: DelimitedFormat;
      /** Some fields begin with a quote that encloses nothing. */
      readonly hasPlainQuotes: boolean;
    }
  | { readonly kind: 'no-delimiter' }
  | { readonly kind: 'ambiguous-comments'; readonly example: string };

export function shapeOf(sample: Sample, options: LoadOptions): TextShape {
  const comment = commentOf(sample, options);
  if (typeof comment === 'string') return { kind: 'ambiguous-comments', example: comment };
  const common = { trim: options.trim, ...(comment.byte === undefined ? {} : { comment: comment.byte }) };
  const delimiter = options.delimiter ?? delimiterOf(sample, common);
  if (delimiter === undefined) return { kind: 'no-delimiter' };
  const text = { ...common, delimiter };
  const quoted = { ...text, quote: QUOTE };
  const isLoose = delimiter === 'blanks' || delimiter === TAB;
  const withQuotes = recordsOf(sample, text, RECORDS_MAX).rows.filter((row) =>
    row.some((cell) => cell.startsWith('"')),
  );
  const { broken } = recordsOf(sample, quoted, RECORDS_MAX);
  // A quote in a table of words is most often a letter of one; in a file with commas it encloses a field.
  const isQuoted = isLoose
    ? withQuotes.length > 0 && broken === 0
    : broken <= Math.max(BROKEN_MAX, withQuotes.length / 2);
  // Where no comment is to be seen, a line of # further down is one in a table of words, not in one with commas.
  const isHash = isLoose && comment.byte === undefined && comment.isFree;
  const format = { ...(isQuoted ? quoted : text), ...(isHash ? { comment: HASH } : {}) };
  return { kind: 'shape', format, hasPlainQuotes: !isQuoted && withQuotes.length > 0 };
}

/** The byte that begins a comment; or an example of a line of which that is unclear. */
function commentOf(
  sample: Sample,
  { comment }: LoadOptions,
): { readonly byte: number | undefined; readonly isFree: boolean } | string {
  if (comment !== undefined) return { byte: comment === false ? undefined : comment, isFree: false };
  const lines = linesOf(sample).filter((line) => line.trim() !== '');
  const first = lines[0] ?? '';
  // KONECT and Matrix Market. A percent sign with a letter behind it may be an encoded character of an id.
  if (/^%(?:$|[\s%]|MatrixMarket)/.test(first)) return { byte: PERCENT, isFree: false };
  const marked = lines.filter((line) => line.startsWith('#'));
  if (marked.length === 0) return { byte: undefined, isFree: true };
  const isPlain = (line: string): boolean => /^#(?:$|[\s#!])/.test(line);
  if (isPlain(first) || marked.every(isPlain)) return { byte: HASH, isFree: false };
  // `#source,target`: nothing but the head of the file.
  const headLines = lines.findIndex((line) => !line.startsWith('#'));
  if (headLines === marked.length) return { byte: HASH, isFree: false };
  // All of them, or none of the first: ids that begin with #.
  if (marked.length === lines.length || headLines === 0) return { byte: undefined, isFree: false };
  return marked.find((line) => !isPlain(line))!;
}

interface Candidate {
  readonly delimiter: DelimitedFormat['delimiter'];
  /** The most frequent number of fields. */
  readonly fields: number;
  /** The share of records that have it. */
  readonly evenness: number;
  readonly isNumeric: boolean;
}

function delimiterOf(
  sample: Sample,
  common: Pick<DelimitedFormat, 'trim' | 'comment'>,
): DelimitedFormat['delimiter'] | undefined {
  // What cuts well where quotes enclose fields is better than what does only where they are text.
  return bestDelimiter(sample, { ...common, quote: QUOTE }) ?? bestDelimiter(sample, common);
}

function bestDelimiter(
  sample: Sample,
  common: Omit<DelimitedFormat, 'delimiter'>,
): DelimitedFormat['delimiter'] | undefined {
  const candidate = (delimiter: DelimitedFormat['delimiter']) =>
    candidateOf(sample, { ...common, delimiter });
  const blanks = candidate('blanks');
  const tab = candidate(TAB);
  // Some writers put a blank between the ids and a tab before what follows; numbers have neither inside.
  if (blanks?.isNumeric && blanks.evenness === 1 && !tab?.isNumeric) return 'blanks';
  let best: Candidate | undefined;
  for (const other of [tab, candidate(COMMA), candidate(SEMICOLON), candidate(PIPE)]) {
    if (other === undefined) continue;
    if (best === undefined || other.evenness > best.evenness) best = other;
    else if (other.evenness === best.evenness && other.fields > best.fields && best.delimiter !== TAB)
      best = other;
  }
  return (best ?? blanks ?? candidate(PERCENT))?.delimiter;
}

/** Undefined if the delimiter does not cut nearly all lines. */
function candidateOf(sample: Sample, format: DelimitedFormat): Candidate | undefined {
  const { rows, broken } = recordsOf(sample, format, RECORDS_MAX);
  const counts = new Map<number, number>();
  let cut = 0;
  for (const row of rows) {
    counts.set(row.length, (counts.get(row.length) ?? 0) + 1);
    if (row.length >= 2) cut += 1;
  }
  const all = rows.length + broken;
  if (rows.length === 0 || cut < all * CUT_SHARE_MIN) return undefined;
  let fields = 0;
  let most = 0;
  for (const [count, times] of counts) if (times > most && count >= 2) [fields, most] = [count, times];
  const isNumeric = rows.every((row) => row.every(isNumber));
  return { delimiter: format.delimiter, fields, evenness: most / all, isNumeric };
}

export function isNumber(text: string): boolean {
  return /^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$/.test(text);
}
