/** The options of `watershed load`: as the command line gives them, and as the readers use them. */

import type { Command } from 'commander';
import { CliError, EXIT } from '../exit.ts';
import { isTimeUnit, type TimeUnit } from './time-value.ts';

/** What commander collects. */
export interface LoadFlags {
  readonly source?: string;
  readonly target?: string;
  readonly time?: string | false;
  readonly weight?: string | false;
  readonly timeUnit?: string;
  readonly header?: boolean;
  readonly delimiter?: string;
  readonly skip?: string;
  readonly comment?: string | false;
  readonly trim?: boolean;
  readonly null?: readonly string[];
  readonly id?: string;
  readonly strict?: boolean;
  readonly json?: boolean;
}

/** How to read a file; what is undefined is found by content. */
export interface LoadOptions {
  /** A name, or a number from 1 on. */
  readonly source: string | undefined;
  readonly target: string | undefined;
  /** False: no column is one. */
  readonly time: string | false | undefined;
  readonly weight: string | false | undefined;
  readonly timeUnit: TimeUnit | undefined;
  readonly hasHeader: boolean | undefined;
  readonly delimiter: number | 'blanks' | undefined;
  /** Lines at the start of the file that are not looked at. */
  readonly skipLines: number;
  /** False: no line is a comment. */
  readonly comment: number | false | undefined;
  readonly trim: boolean;
  /** Texts that are no id. */
  readonly nulls: readonly string[];
}

/** How files are read. */
export function readingOptions(command: Command): Command {
  return command
    .option('--source <column>', 'column of the one endpoint: a name, or a number from 1 on')
    .option('--target <column>', 'column of the other endpoint')
    .option('--time <column>', 'column of the time of the edge')
    .option('--no-time', 'take no column for a time, whatever its name')
    .option('--weight <column>', 'column of the weight of the edge')
    .option('--no-weight', 'take no column for a weight, whatever its name')
    .option('--time-unit <unit>', 'unit of times that are numbers since 1970: s, ms, us or ns')
    .option('--header', 'the first line names the columns')
    .option('--no-header', 'the first line is an edge')
    .option(
      '--delimiter <character>',
      'between two columns: a character, tab or blank (runs of blanks and tabs)',
    )
    .option('--skip <lines>', 'leave out this many lines at the start of each file')
    .option('--comment <character>', 'leave out lines that begin with this')
    .option('--no-comment', 'no line is a comment')
    .option('--trim', 'blanks around a field are not part of it')
    .option('--null <text>', 'an id that is none, beside \\N; may be given several times', append);
}

export function loadOptions(command: Command): Command {
  return readingOptions(command)
    .option('--id <key>', 'name this load, so that the same load repeated within two minutes changes nothing')
    .option('--strict', 'exit 1 if a row was refused')
    .option('--json', 'print the summary as one JSON object');
}

/** Throws a usage error for a value that is none. */
export function parseLoadFlags(flags: LoadFlags): LoadOptions {
  const { timeUnit, skip, comment } = flags;
  if (timeUnit !== undefined && !isTimeUnit(timeUnit)) {
    throw usage(`--time-unit ${quoted(timeUnit)} is none of s, ms, us, ns`);
  }
  if (skip !== undefined && !/^\d{1,15}$/.test(skip))
    throw usage(`--skip ${quoted(skip)} is no number of lines`);
  // It becomes part of a header of NATS.
  if (flags.id !== undefined && !/^[\x21-\x7e]{1,200}$/.test(flags.id)) {
    throw usage(`--id ${quoted(flags.id)} is not 1 to 200 printable ASCII characters without blanks`);
  }
  return {
    source: flags.source,
    target: flags.target,
    time: flags.time,
    weight: flags.weight,
    timeUnit,
    hasHeader: flags.header,
    delimiter: flags.delimiter === undefined ? undefined : delimiterOf(flags.delimiter),
    skipLines: Number(skip ?? 0),
    comment: typeof comment === 'string' ? byteOf('--comment', comment) : comment,
    trim: flags.trim === true,
    nulls: flags.null ?? [],
  };
}

function append(text: string, texts: readonly string[] | undefined): string[] {
  return [...(texts ?? []), text];
}

function delimiterOf(text: string): number | 'blanks' {
  if (text === 'blank' || text === 'blanks' || text === ' ') return 'blanks';
  if (text === 'tab' || text === '\\t') return 9;
  return byteOf('--delimiter', text);
}

function byteOf(option: string, text: string): number {
  const code = text.charCodeAt(0);
  if (text.length !== 1 || code > 127 || code === 10 || code === 13) {
    throw usage(`${option} ${quoted(text)} is no single ASCII character`);
  }
  return code;
}

function usage(message: string): CliError {
  return new CliError(EXIT.usage, message);
}

function quoted(text: string): string {
  return JSON.stringify(text);
}
