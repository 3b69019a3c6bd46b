/**
 * `watershed load`: files into a graph. All files are looked at before anything is sent, so that one that cannot
 * be decided leaves no half of a load behind.
 */

import type { Readable, Writable } from 'node:stream';
import type { LogName } from '../../../libs/dataflow/names.ts';
import type { Bus, Clock } from '../../../libs/stage/ports.ts';
import { CliError, EXIT } from '../exit.ts';
import { showNumber } from '../output.ts';
import { Progress } from '../progress.ts';
import { InputFile } from './input-file.ts';
import { type LoadFlags, parseLoadFlags } from './load-options.ts';
import { LoadReader } from './load-reader.ts';
import { EdgeSender } from './send.ts';

export interface LoadDeps {
  readonly bus: Bus;
  /** The log of edges, which is there. */
  readonly log: LogName;
  readonly clock: Clock;
  readonly stdin: Readable;
  readonly stdout: Writable;
  readonly stderr: Writable;
  /** Whether a person watches stderr. */
  readonly isTTY: boolean;
  /** Another one for each run; names its messages if --id does not. */
  readonly runId: string;
}

/** What `--json` prints. */
export interface LoadSummary {
  readonly files: readonly { readonly file: string; readonly readAs: string; readonly rows: number }[];
  readonly rows: number;
  readonly edges: number;
  /** Of the edges, those that were there already under the same --id. */
  readonly duplicates: number;
  readonly refused: number;
  /** The first of each file. */
  readonly reasons: readonly { readonly file: string; readonly place: string; readonly reason: string }[];
  readonly sequence: { readonly first: number; readonly last: number } | null;
  /** What ended the load early. */
  readonly error: string | null;
}

export interface LoadResult {
  readonly status: number;
  readonly summary: LoadSummary;
}

/**
 * Loads the files in order; prints what becomes of them. What is wrong with the files or the log is part of the
 * result; options that are none are thrown.
 */
export async function runLoad(
  paths: readonly string[],
  flags: LoadFlags,
  deps: LoadDeps,
): Promise<LoadResult> {
  const readers: LoadReader[] = [];
  const errors: CliError[] = [];
  const options = parseLoadFlags(flags);
  if (paths.indexOf('-') !== paths.lastIndexOf('-')) {
    throw new CliError(EXIT.usage, 'standard input (-) can be read once only');
  }
  for (const path of paths) {
    try {
      const file = await InputFile.at(path, deps.stdin, options.skipLines);
      readers.push(await LoadReader.open(file, options));
    } catch (error) {
      if (!(error instanceof CliError)) throw error;
      errors.push(error);
    }
  }
  for (const reader of readers) deps.stderr.write(`${reader.file.name}: ${reader.description}\n`);
  const progress = new Progress(deps.stderr, deps.isTTY && errors.length === 0, bytesTotal(readers));
  const key = flags.id ?? deps.runId;
  const sender = new EdgeSender(deps.bus, deps.log, key, deps.clock, (message) => progress.note(message));
  try {
    if (errors.length === 0) await sendAll(readers, sender, progress, deps.clock);
  } catch (error) {
    if (!(error instanceof CliError)) throw error;
    errors.push(error);
  } finally {
    progress.stop();
    for (const { file } of readers) await file.close();
  }
  const summary = summaryOf(readers, sender, errors);
  print(summary, readers, errors, flags, deps);
  return { status: statusOf(summary, errors, flags), summary };
}

function bytesTotal(readers: readonly LoadReader[]): number | undefined {
  let total = 0;
  for (const { file } of readers) {
    if (file.bytesTotal === undefined) return undefined;
    total += file.bytesTotal;
  }
  return total;
}

async function sendAll(
  readers: readonly LoadReader[],
  sender: EdgeSender,
  progress: Progress,
  clock: Clock,
): Promise<void> {
  const startedAt = clock.now();
  let bytesBefore = 0;
  for (const reader of readers) {
    let failure: unknown;
    try {
      for await (const payload of reader.payloads()) {
        await sender.send(payload);
        const { edges } = sender.sent;
        const seconds = Math.max(0.001, (clock.now() - startedAt) / 1000);
        const rate = showNumber(Math.round(edges / seconds));
        progress.update(bytesBefore + reader.bytesRead, `${showNumber(edges)} edges, ${rate} edges/s`);
      }
    } catch (error) {
      failure = error;
    }
    bytesBefore += reader.bytesRead;
    if (failure === undefined) continue;
    // What the file gave before it ended too early is part of the graph; what the sender could not send is not.
    if (failure instanceof CliError && failure.status !== EXIT.unavailable) await sender.finish();
    throw failure;
  }
  await sender.finish();
}

function summaryOf(
  readers: readonly LoadReader[],
  sender: EdgeSender,
  errors: readonly CliError[],
): LoadSummary {
  const { edges, duplicates, firstSequence, lastSequence } = sender.sent;
  return {
    files: readers.map((reader) => ({
      file: reader.file.name,
      readAs: reader.description,
      rows: reader.rows,
    })),
    rows: readers.reduce((sum, reader) => sum + reader.rows, 0),
    edges,
    duplicates,
    refused: readers.reduce((sum, reader) => sum + reader.refused.count, 0),
    reasons: readers.flatMap(({ file, refused }) =>
      refused.first.map(({ place, reason }) => ({ file: file.name, place, reason })),
    ),
    sequence:
      firstSequence === undefined || lastSequence === undefined
        ? null
        : { first: firstSequence, last: lastSequence },
    error: errors.length === 0 ? null : errors.map(({ message }) => message).join('\n'),
  };
}

function print(
  summary: LoadSummary,
  readers: readonly LoadReader[],
  errors: readonly CliError[],
  flags: LoadFlags,
  { stdout, stderr }: LoadDeps,
): void {
  for (const { file, refused, hint } of readers) {
    if (refused.count > 0) {
      const rows = refused.count === 1 ? '1 row was' : `${refused.count} rows were`;
      stderr.write(`warning: ${file.name}: ${rows} refused\n`);
      for (const { place, reason } of refused.first) stderr.write(`  ${place}: ${reason}\n`);
      if (refused.count > refused.first.length) stderr.write('  …\n');
    }
    if (hint !== undefined) stderr.write(`hint: ${file.name}: ${hint}\n`);
  }
  for (const { message } of errors) stderr.write(`error: ${message}\n`);
  if (errors.length === 0 && summary.edges === 0) stderr.write('error: no row was accepted\n');
  if (flags.json === true) stdout.write(`${JSON.stringify(summary)}\n`);
  else if (summary.rows > 0) {
    const { rows, edges, duplicates, refused, sequence } = summary;
    stdout.write(`rows read     ${rows}\nedges sent    ${edges}\n`);
    if (duplicates > 0) stdout.write(`  of which    ${duplicates} were there already\n`);
    stdout.write(`rows refused  ${refused}\n`);
    if (sequence !== null) stdout.write(`sequence      ${sequence.first} to ${sequence.last}\n`);
  }
}

function statusOf(summary: LoadSummary, errors: readonly CliError[], flags: LoadFlags): number {
  if (errors.length > 0) return errors[0]!.status;
  if (summary.edges === 0 || (flags.strict === true && summary.refused > 0)) return EXIT.failed;
  return EXIT.done;
}
