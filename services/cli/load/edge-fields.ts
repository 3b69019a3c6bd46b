/**
 * Which fields of a row are the endpoints, the time and the weight: as the options say, else by the names of
 * the columns, else by their place. A graph cannot forget edges, so what is not clear is asked and not guessed.
 */

import { CliError, EXIT } from '../exit.ts';
import { namedColumns } from './column-names.ts';
import { isNumber } from './delimiter.ts';
import type { LoadOptions } from './load-options.ts';
import { lookAtTimes, type TimeUnit, UNIT_NAMES } from './time-value.ts';

/** Columns count from 0 here, and from 1 wherever a person reads. */
export interface EdgeFields {
  readonly source: number;
  readonly target: number;
  readonly time: number | undefined;
  /** Of times that are numbers. */
  readonly timeUnit: TimeUnit | undefined;
  readonly weight: number | undefined;
  readonly op: number | undefined;
  /** What was decided, for a person: `source = column 1 "from"`. */
  readonly description: string;
}

/** What is known of the columns when they are decided. */
export interface ColumnSample {
  readonly names: readonly string[] | undefined;
  /** Columns of a row. */
  readonly count: number;
  readonly rows: readonly (readonly string[])[];
  /** Of a text, the line of each row. */
  readonly lines: readonly number[];
  /** Whether the columns have a place that a person chose; keys of JSON have none. */
  readonly isOrdered: boolean;
  /** Where columns have types: whether that of a column does for a time, or a weight. */
  readonly types?: readonly { readonly isTime: boolean; readonly isNumber: boolean }[];
}

/** More columns than this, without names that say which, are no list of edges at sight. */
const UNNAMED_COLUMNS_MAX = 4;
const NAMES_SHOWN_MAX = 20;
/** So few values in a column are kinds of something rather than things. */
const KINDS_MAX = 5;
/** A header line and rows that differ are believed only where as many rows say so. */
export const UNEVEN_ROWS_MIN = 10;

const CHOOSE = '--source and --target choose them';

/** Throws a usage error that says what cannot be decided, and how to say it. */
export function edgeFields(all: ColumnSample, options: LoadOptions): EdgeFields {
  assertNamesTell(all, options);
  // A name without a column names nothing.
  const names = all.names?.slice(0, all.count);
  const columns = { ...all, names };
  const named = names === undefined ? undefined : namedColumns(names);
  const given = {
    source: column('--source', options.source, columns),
    target: column('--target', options.target, columns),
    time: options.time === false ? undefined : column('--time', options.time, columns),
    weight: options.weight === false ? undefined : column('--weight', options.weight, columns),
  };
  const isGiven = (index: number): boolean => Object.values(given).includes(index);
  const notes: string[] = [];

  let time = given.time;
  let timeUnit: TimeUnit | undefined;
  if (time !== undefined) timeUnit = givenTimeUnit(time, columns, options);
  else if (options.time !== false && named?.time !== undefined && !isGiven(named.time)) {
    const found = namedTime(named.time, columns, options);
    if (typeof found === 'string') notes.push(found);
    else {
      time = named.time;
      timeUnit = found.unit;
    }
  }
  let weight = given.weight;
  const weightNamed = named?.weight;
  if (options.weight === undefined && weightNamed !== undefined && !isGiven(weightNamed)) {
    const isUsable =
      columns.types?.[weightNamed]?.isNumber ??
      valuesOf(columns, weightNamed).every((value) => value === '' || isNumber(value));
    if (isUsable) weight = weightNamed;
    else notes.push(`${columnName(columns, weightNamed)} holds other things than numbers: no weight`);
  }
  const op = named?.op !== undefined && !isGiven(named.op) ? named.op : undefined;

  const others = [time, weight, op, named?.time, named?.weight];
  const [source, target] = endpoints(columns, given, named, others);
  const parts = [`source = ${columnName(columns, source)}`, `target = ${columnName(columns, target)}`];
  if (time !== undefined) parts.push(`time = ${columnName(columns, time)}${unitNote(timeUnit, options)}`);
  if (weight !== undefined) parts.push(`weight = ${columnName(columns, weight)}`);
  if (op !== undefined) parts.push(`op = ${columnName(columns, op)}`);
  const description = [parts.join(', '), ...notes].join('; ');
  return { source, target, time, timeUnit, weight, op, description };
}

/** Throws if rows have another number of columns than there are names, so that the names do not tell the ids. */
function assertNamesTell({ names, rows, count }: ColumnSample, options: LoadOptions): void {
  const isByNumber = [options.source, options.target].every((text) => /^\d+$/.test(text ?? ''));
  if (names === undefined || isByNumber || rows.length < UNEVEN_ROWS_MIN) return;
  const wider = rows.filter((row) => row.length > names.length).length;
  const { source, target } = namedColumns(names);
  if (wider * 2 < rows.length && (source ?? 0) < count && (target ?? 0) < count) return;
  throw undecided(
    `the header line names ${names.length} columns, most rows have ${wider * 2 < rows.length ? 'fewer' : 'more'}, ` +
      'so it does not tell which is which: choose --source and --target by number',
  );
}

function endpoints(
  columns: ColumnSample,
  given: { readonly source: number | undefined; readonly target: number | undefined },
  named: { readonly source: number | undefined; readonly target: number | undefined } | undefined,
  others: readonly (number | undefined)[],
): [number, number] {
  const unless = (column: number | undefined, taken: number | undefined): number | undefined =>
    column === taken ? undefined : column;
  const source = given.source ?? unless(named?.source, given.target);
  const target = given.target ?? unless(named?.target, given.source);
  if (source !== undefined && target !== undefined) {
    if (source !== target) return [source, target];
    throw undecided(`source and target are the same ${columnName(columns, source)}`);
  }
  const free: number[] = [];
  for (let i = 0; i < columns.count; i++) {
    // A first column without a name holds the numbers of the rows.
    const isRowNumber = i === 0 && columns.names?.[0] === '' && columns.count > 2;
    if (!isRowNumber && !others.includes(i) && i !== source && i !== target) free.push(i);
  }
  const needed = source === undefined && target === undefined ? 2 : 1;
  if (free.length < needed) {
    const left = free.map((i) => columnName(columns, i)).join(', ') || 'none';
    throw undecided(
      `an edge needs two columns of ids, and beside time and weight there is: ${left}; ${CHOOSE}`,
    );
  }
  if (free.length > needed) assertPlaceTells(columns, free, source ?? target);
  if (source !== undefined) return [source, free[0]!];
  if (target !== undefined) return [free[0]!, target];
  return [free[0]!, free[1]!];
}

/** Throws unless the first free columns can be taken for the endpoints just because they come first. */
function assertPlaceTells(columns: ColumnSample, free: readonly number[], known: number | undefined): void {
  const [first, second, third] = [free[0]!, free[1]!, free[2]];
  if (columns.isOrdered && known === undefined && third !== undefined) {
    const oddity =
      columns.names === undefined ? oddityOf(columns, first, second, third) : timeLike(columns, first);
    if (oddity !== undefined) {
      throw undecided(
        `column ${first + 1} ${oddity}, so which columns are the ids cannot be decided; if they are columns ` +
          `${second + 1} and ${third + 1}, say --source ${second + 1} --target ${third + 1}`,
      );
    }
    if (free.length <= UNNAMED_COLUMNS_MAX) return;
  }
  throw undecided(`which columns are the ids cannot be decided: ${columnList(columns)}; ${CHOOSE}`);
}

/** Why the first column, of three or more without names, does not look like ids; undefined if it does. */
function oddityOf(columns: ColumnSample, first: number, second: number, third: number): string | undefined {
  const asTime = timeLike(columns, first);
  if (asTime !== undefined) return asTime;
  const values = new Set(valuesOf(columns, first));
  const seconds = new Set(valuesOf(columns, second));
  const thirds = new Set(valuesOf(columns, third));
  const all = new Set([...seconds, ...thirds]);
  const alike = shared(seconds, thirds) / Math.max(seconds.size, thirds.size);
  const known = shared(values, all) / values.size;
  // In "time source target" and "op source target" the last two have values in common, and the first has its
  // own. Times may be small numbers, and some the same as ids, but they do not go back.
  const isStranger = known <= 0.05 && alike >= 0.1;
  const isClock = known <= 0.5 && alike >= 0.5 && isOrdered(valuesOf(columns, first));
  if ((!isStranger && !isClock) || shared(seconds, thirds) < 2) return undefined;
  if (values.size <= KINDS_MAX) {
    const listed = [...values].map((value) => JSON.stringify(value)).join(', ');
    return `holds only ${listed}, as an operation or a type would`;
  }
  return `has other values than columns ${second + 1} and ${third + 1}, which share theirs`;
}

function timeLike(columns: ColumnSample, index: number): string | undefined {
  const values = valuesOf(columns, index).filter((value) => value !== '');
  const look = lookAtTimes(values);
  if (look.kind === 'texts') return `looks like a time ("${values[0]}")`;
  if (look.kind !== 'numbers' || values.length < 2) return undefined;
  return isOrdered(values) ? `looks like a time ("${values[0]}")` : undefined;
}

/** Whether the values are numbers that never go back, or never forth. */
function isOrdered(values: readonly string[]): boolean {
  const steps = values.slice(1).map((value, i) => Number(value) - Number(values[i]));
  return steps.every((step) => step >= 0) || steps.every((step) => step <= 0);
}

function shared(a: ReadonlySet<string>, b: ReadonlySet<string>): number {
  let count = 0;
  for (const value of a) if (b.has(value)) count += 1;
  return count;
}

/** The unit of the column that --time chooses. */
function givenTimeUnit(time: number, columns: ColumnSample, options: LoadOptions): TimeUnit | undefined {
  if (options.timeUnit !== undefined) return options.timeUnit;
  const look = lookAtTimes(valuesOf(columns, time));
  if (look.kind !== 'small-numbers') return look.unit;
  throw undecided(
    `the numbers in ${columnName(columns, time)} do not tell their unit; --time-unit s, ms, us or ns does`,
  );
}

/** The unit of the column that is named like a time; or why it is not taken for one. */
function namedTime(
  time: number,
  columns: ColumnSample,
  options: LoadOptions,
): { readonly unit: TimeUnit | undefined } | string {
  const name = columnName(columns, time);
  if (columns.types !== undefined) {
    return columns.types[time]!.isTime
      ? { unit: options.timeUnit }
      : `the type of ${name} is none of times: no time`;
  }
  const look = lookAtTimes(valuesOf(columns, time));
  switch (look.kind) {
    case 'texts':
      return { unit: options.timeUnit };
    case 'numbers':
      return { unit: options.timeUnit ?? look.unit };
    case 'small-numbers':
      if (options.timeUnit !== undefined) return { unit: options.timeUnit };
      return `the numbers in ${name} do not tell their unit: no time (--time-unit takes them for one)`;
    case 'empty':
    case 'no-times': {
      const line = columns.lines[0];
      const at = line === undefined ? '' : ` (line ${line})`;
      const value =
        look.kind === 'empty'
          ? 'has none'
          : `holds ${JSON.stringify(look.example)}, which is no ISO 8601 date and no number of (milli)seconds`;
      throw undecided(
        `${name} is named like a time and ${value}${at}; --no-time loads the edges without it, --time takes ` +
          'another column',
      );
    }
  }
}

function unitNote(unit: TimeUnit | undefined, options: LoadOptions): string {
  if (unit === undefined) return '';
  return ` (${UNIT_NAMES[unit]}${options.timeUnit === undefined ? ', by their size' : ''})`;
}

/** The index of the column that an option chooses. */
function column(option: string, text: string | undefined, columns: ColumnSample): number | undefined {
  if (text === undefined) return undefined;
  const { names, count, isOrdered } = columns;
  if (isOrdered && /^\d+$/.test(text)) {
    const index = Number(text) - 1;
    if (index >= 0 && index < count) return index;
    throw undecided(`${option} ${text}: columns are numbered from 1 to ${count}`);
  }
  if (names === undefined) {
    throw undecided(
      `${option} ${JSON.stringify(text)}: no line names the columns; --header says that the first does`,
    );
  }
  for (const alike of [
    (name: string) => name === text,
    (name: string) => name.trim() === text.trim(),
    (name: string) => name.trim().toLowerCase() === text.trim().toLowerCase(),
  ]) {
    const found = names.flatMap((name, index) => (alike(name) ? [index] : []));
    if (found.length === 1) return found[0];
    if (found.length > 1) {
      const places = found.map((index) => index + 1).join(' and ');
      throw undecided(`${option} ${JSON.stringify(text)} is the name of columns ${places}: give the number`);
    }
  }
  throw undecided(`${option} ${JSON.stringify(text)}: there is no such column in ${columnList(columns)}`);
}

function valuesOf(columns: ColumnSample, index: number): string[] {
  return columns.rows.flatMap((row) => (index < row.length ? [row[index]!.trim()] : []));
}

function columnName(columns: ColumnSample, index: number): string {
  const name = columns.names?.[index];
  if (!columns.isOrdered) return JSON.stringify(name);
  return name === undefined || name === ''
    ? `column ${index + 1}`
    : `column ${index + 1} ${JSON.stringify(name)}`;
}

function columnList(columns: ColumnSample): string {
  const { names, count } = columns;
  if (names === undefined) return `${count} columns without names`;
  const shown = names.slice(0, NAMES_SHOWN_MAX).map((name) => JSON.stringify(name));
  return shown.join(', ') + (names.length > shown.length ? ', …' : '');
}

function undecided(message: string): CliError {
  return new CliError(EXIT.usage, message);
}
