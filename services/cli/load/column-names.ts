/**
 * What the names of columns tell: which ones are the endpoints, the time, the weight.
 *
 * Three strengths, and a weaker one counts only where the stronger say nothing: the whole name is known
 * (`source`, `From`); a word in it is (`from_address`, `DCC ORIGINE`); two names differ in their last character
 * only, 1 and 2 (`id1`, `id2`). If two columns qualify alike, neither is taken.
 */

export interface NamedColumns {
  readonly source: number | undefined;
  readonly target: number | undefined;
  readonly time: number | undefined;
  readonly weight: number | undefined;
  readonly op: number | undefined;
}

/** Pairs: the first names the source, the second the target. */
const ENDPOINT_PAIRS: readonly (readonly [string, string])[] = [
  ['source', 'target'],
  ['src', 'dst'],
  ['src', 'dest'],
  ['src', 'tgt'],
  ['source', 'destination'],
  ['from', 'to'],
  ['i', 'j'],
  ['u', 'v'],
  ['tail', 'head'],
  ['subject', 'object'],
  ['sender', 'receiver'],
  ['sender', 'recipient'],
  ['citing', 'cited'],
  ['follower', 'followee'],
  ['parent', 'child'],
  ['origin', 'destination'],
  ['origin', 'dest'],
  ['origine', 'destination'],
];

/** Of several, the first in this order is the time. */
const TIME_NAMES = ['time', 'timestamp', 't', 'ts', 'unixtime', 'unix_time', 'epoch', 'datetime', 'date'];
/** A longer name is one of a time if its last word is one of these: `block_timestamp`, but not `date_of_birth`. */
const TIME_WORDS = ['time', 'timestamp', 'datetime', 'date'];

const NUMBERED_STEMS = ['id', 'node', 'vertex', 'v', 'n', 'user', 'person', 'name', 'entity', 'item', 'd'];

export function namedColumns(names: readonly string[]): NamedColumns {
  const lower = names.map((name) => name.trim().toLowerCase());
  const words = names.map(wordsOf);
  const [source, target] = endpoints(lower, words);
  return {
    source,
    target,
    time: timeColumn(lower, words, [source, target]),
    weight: only(lower, (name) => name === 'weight'),
    op: only(lower, (name) => name === 'op'),
  };
}

/** Whether a text would do for the name of a column: what it says would be odd as a value. */
export function isColumnName(text: string): boolean {
  const name = text.trim().toLowerCase();
  if (ENDPOINT_PAIRS.some((pair) => pair[0] === name || pair[1] === name)) return name.length > 1;
  if (name !== 't' && TIME_NAMES.includes(name)) return true;
  if (NAMES_OF_COLUMNS.includes(name)) return true;
  const words = wordsOf(text);
  if (words.length < 2) return false;
  return words.includes('id') || words.includes('address') || TIME_WORDS.includes(words.at(-1)!);
}

const NAMES_OF_COLUMNS = [
  'id',
  'id1',
  'id2',
  'name',
  'type',
  'kind',
  'label',
  'weight',
  'value',
  'count',
  'rating',
  'relation',
  'category',
  'status',
  'version',
  'constraint',
  'package',
  'op',
];

function endpoints(
  lower: readonly string[],
  words: readonly (readonly string[])[],
): [number | undefined, number | undefined] {
  let one: [number | undefined, number | undefined] | undefined;
  const tests = [
    (word: string) => (_: string, column: number) => lower[column] === word,
    (word: string) => (_: string, column: number) => word.length > 1 && words[column]!.includes(word),
  ];
  for (const test of tests) {
    for (const [sourceName, targetName] of ENDPOINT_PAIRS) {
      const source = only(lower, test(sourceName));
      const target = only(lower, test(targetName));
      if (source !== undefined && target !== undefined && source !== target) return [source, target];
      // One of a pair is kept for the caller, who may know the other; letters of a pair mean nothing alone.
      if (sourceName.length > 1 && (source !== undefined || target !== undefined)) one ??= [source, target];
    }
  }
  return numberedPair(lower) ?? one ?? [undefined, undefined];
}

function numberedPair(lower: readonly string[]): [number, number] | undefined {
  for (const stem of NUMBERED_STEMS) {
    for (const joint of ['', '_', ' ', '-', '.']) {
      const source = only(lower, (name) => name === `${stem}${joint}1`);
      const target = only(lower, (name) => name === `${stem}${joint}2`);
      if (source !== undefined && target !== undefined) return [source, target];
    }
  }
  return undefined;
}

function timeColumn(
  lower: readonly string[],
  words: readonly (readonly string[])[],
  taken: readonly (number | undefined)[],
): number | undefined {
  for (const name of TIME_NAMES) {
    const column = only(lower, (other) => other === name);
    if (column !== undefined && !taken.includes(column)) return column;
  }
  return only(lower, (_, column) => {
    const last = words[column]!.at(-1);
    return last !== undefined && TIME_WORDS.includes(last) && !taken.includes(column);
  });
}

/** The one column that qualifies; undefined if none does, or several do. */
function only(
  names: readonly string[],
  qualifies: (name: string, column: number) => boolean,
): number | undefined {
  let found: number | undefined;
  for (let column = 0; column < names.length; column++) {
    if (!qualifies(names[column]!, column)) continue;
    if (found !== undefined) return undefined;
    found = column;
  }
  return found;
}

/** `fromAddress`, `from_address` and `From Address` are the words from and address. */
function wordsOf(name: string): string[] {
  const spaced = name.replace(/([a-z])([A-Z])/g, '$1 $2');
  return spaced.toLowerCase().match(/[\p{L}]+/gu) ?? [];
}
