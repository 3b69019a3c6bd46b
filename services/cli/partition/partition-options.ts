/** The options of `watershed partition`. */
import type { Command } from 'commander';
import {
  ALGORITHMS,
  type PartitionerConfig,
  partsProblem,
  readPartitionerConfig,
} from '../../../libs/partitioning/partitioner-config.ts';
import { CliError, EXIT } from '../exit.ts';
import { type LoadFlags, readingOptions } from '../load/load-options.ts';
import { partitionerOf } from '../partitioner-flags.ts';

const PARTS_DEFAULT = '4';
const FORMATS = ['csv', 'ndjson'] as const;
const ORDERS = ['file', 'random'] as const;
const ALGORITHM_NAMES = Object.keys(ALGORITHMS);

export type AssignmentFormat = (typeof FORMATS)[number];

/** What commander collects. */
export interface PartitionFlags extends LoadFlags {
  readonly algorithm?: string;
  readonly option?: readonly string[];
  readonly compare?: string;
  readonly parts: string;
  readonly order: string;
  readonly seed: string;
  readonly output?: string;
  readonly format?: string;
}

export interface PartitionOptions {
  /** Those that are run side by side. */
  readonly partitioners: readonly PartitionerConfig[];
  /** Of those that were asked for, why they cannot be run. */
  readonly leftOut: readonly string[];
  readonly parts: number;
  /** Undefined: in the order of the files. */
  readonly seed: number | undefined;
  readonly output: { readonly path: string; readonly format: AssignmentFormat } | undefined;
}

export function partitionOptions(command: Command): Command {
  return readingOptions(command)
    .option('--parts <count>', 'how many, 1 to 1024', PARTS_DEFAULT)
    .option(
      '--algorithm <algorithm>',
      `what chooses the part of each edge: ${ALGORITHM_NAMES.join(', ')}; or JSON with its parameters`,
    )
    .option('--option <name=value>', 'a parameter of it, as lambda=1.2; may be given several times', append)
    .option('--compare <algorithms>', 'run several side by side: all, or a list with commas')
    .option('--order <order>', 'in which edges arrive: file, or random (all are held in memory)', 'file')
    .option('--seed <number>', 'of the random order', '1')
    .option('--output <file>', 'write source, target and part of every edge there; - is standard output')
    .option('--format <format>', 'of the output: csv or ndjson; by the name of the file if absent, else csv')
    .option('--json', 'print the figures as one JSON object');
}

/** Throws a usage error for what is none. */
export function parsePartitionFlags(flags: PartitionFlags): PartitionOptions {
  const { algorithm, compare, option = [], output } = flags;
  const parts = wholeNumber('--parts', flags.parts);
  const partsWrong = partsProblem({ algorithm: 'hash' }, parts);
  if (partsWrong !== undefined) throw usage(partsWrong);
  if (compare !== undefined && (algorithm !== undefined || option.length > 0))
    throw usage('--compare runs algorithms with their defaults: it goes without --algorithm and --option');
  if (compare !== undefined && output !== undefined)
    throw usage('--output takes the assignment of one algorithm: it goes without --compare');
  if (output === '-' && flags.json === true)
    throw usage('--json and --output - both are for standard output');
  if (!(ORDERS as readonly string[]).includes(flags.order))
    throw usage(`--order ${JSON.stringify(flags.order)} is none of ${ORDERS.join(', ')}`);
  const wanted = compare === undefined ? [partitionerOf(algorithm ?? 'hash', option)] : compared(compare);
  const leftOut: string[] = [];
  const partitioners = wanted.filter((config) => {
    const problem = partsProblem(config, parts);
    if (problem !== undefined) leftOut.push(problem);
    return problem === undefined;
  });
  if (partitioners.length === 0) throw usage(leftOut.join('; '));
  return {
    partitioners,
    leftOut,
    parts,
    seed: flags.order === 'random' ? wholeNumber('--seed', flags.seed) : undefined,
    output: output === undefined ? undefined : { path: output, format: formatOf(flags.format, output) },
  };
}

function compared(list: string): PartitionerConfig[] {
  const names = list === 'all' ? ALGORITHM_NAMES : list.split(',').map((name) => name.trim());
  return [...new Set(names)].map((algorithm) => {
    const reading = readPartitionerConfig({ algorithm });
    if (reading.kind === 'invalid') throw usage(`--compare: ${reading.problem}`);
    return reading.config;
  });
}

function formatOf(format: string | undefined, path: string): AssignmentFormat {
  if (format === undefined) return /\.(?:nd)?jsonl?$/i.test(path) ? 'ndjson' : 'csv';
  const known = FORMATS.find((name) => name === format);
  if (known === undefined) throw usage(`--format ${JSON.stringify(format)} is none of ${FORMATS.join(', ')}`);
  return known;
}

function wholeNumber(option: string, text: string): number {
  if (!/^\d{1,9}$/.test(text)) throw usage(`${option} ${JSON.stringify(text)} is no whole number`);
  return Number(text);
}

function append(text: string, texts: readonly string[] | undefined): string[] {
  return [...(texts ?? []), text];
}

function usage(message: string): CliError {
  return new CliError(EXIT.usage, message);
}
