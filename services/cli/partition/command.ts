/**
 * `watershed partition`: divides the edges of files into parts, by the code that divides a graph's stream, and says how well;
 * without NATS. Several algorithms take the same stream side by side: that is how people choose.
 */
import type { Readable, Writable } from 'node:stream';
import { EdgeColumns } from '../../../libs/dataflow/edge-columns.ts';
import { decodePayload } from '../../../libs/dataflow/payload.ts';
import { viewOf } from '../../../libs/graph/id-hash.ts';
import { type Quality, qualityOf } from '../../../libs/partitioning/quality.ts';
import { EdgeRows } from '../../partitioner/edge-rows.ts';
import { CliError, EXIT } from '../exit.ts';
import { InputFile } from '../load/input-file.ts';
import { parseLoadFlags } from '../load/load-options.ts';
import { LoadReader } from '../load/load-reader.ts';
import { showNumber, tableLines } from '../output.ts';
import { Progress } from '../progress.ts';
import { AssignmentWriter } from './assignment-writer.ts';
import { type PartitionFlags, type PartitionOptions, parsePartitionFlags } from './partition-options.ts';
import { ShuffledEdges } from './shuffled.ts';
import { Trial } from './trial.ts';

const ARROW = 'application/vnd.apache.arrow.stream';

export interface PartitionDeps {
  readonly stdin: Readable;
  readonly stdout: Writable;
  readonly stderr: Writable;
  /** Whether a person watches stderr. */
  readonly isTTY: boolean;
}

/** Edges as they come, with what is done of the whole, from 0 to 1. */
interface Batch {
  readonly payload: Uint8Array;
  readonly done: number;
}

/** The exit status. */
export async function runPartition(
  paths: readonly string[],
  flags: PartitionFlags,
  deps: PartitionDeps,
): Promise<number> {
  const options = parsePartitionFlags(flags);
  const { output, parts, partitioners } = options;
  const readers = await openAll(paths, flags, deps);
  for (const { file, description } of readers) deps.stderr.write(`${file.name}: ${description}\n`);
  for (const problem of options.leftOut) deps.stderr.write(`left out: ${problem}\n`);
  const trials = partitioners.map((config) => new Trial(config, parts));
  const progress = new Progress(deps.stderr, deps.isTTY, 1000);
  const writer = output && new AssignmentWriter(output.path, output.format, deps.stdout);
  try {
    await placeAll(batches(readers, options.seed, progress), trials, writer, progress);
    await writer?.close();
  } finally {
    progress.stop();
    for (const { file } of readers) await file.close();
  }
  for (const { file, refused } of readers) {
    if (refused.count === 0) continue;
    deps.stderr.write(`warning: ${file.name}: ${showNumber(refused.count)} rows were refused\n`);
    for (const { place, reason } of refused.first) deps.stderr.write(`  ${place}: ${reason}\n`);
  }
  const { edges } = qualityOf(trials[0]!.figures);
  if (edges === 0) throw new CliError(EXIT.failed, 'no row was accepted');
  print(trials, options, flags.json === true, output?.path === '-' ? deps.stderr : deps.stdout);
  return flags.strict === true && readers.some(({ refused }) => refused.count > 0) ? EXIT.failed : EXIT.done;
}

async function openAll(
  paths: readonly string[],
  flags: PartitionFlags,
  { stdin }: PartitionDeps,
): Promise<LoadReader[]> {
  const options = parseLoadFlags(flags);
  if (paths.indexOf('-') !== paths.lastIndexOf('-'))
    throw new CliError(EXIT.usage, 'standard input (-) can be read once only');
  const readers: LoadReader[] = [];
  for (const path of paths)
    readers.push(await LoadReader.open(await InputFile.at(path, stdin, options.skipLines), options));
  return readers;
}

async function* batches(
  readers: readonly LoadReader[],
  seed: number | undefined,
  progress: Progress,
): AsyncGenerator<Batch> {
  if (seed === undefined) {
    yield* inFileOrder(readers);
    return;
  }
  const shuffled = new ShuffledEdges();
  for await (const { payload, done } of inFileOrder(readers)) {
    shuffled.add(payload, ARROW);
    progress.update((done / 2) * 1000, `${showNumber(shuffled.edges)} edges read`);
  }
  let given = 0;
  for (const { payload, edges } of shuffled.payloads(seed)) {
    given += edges;
    yield { payload, done: 0.5 + given / shuffled.edges / 2 };
  }
}

async function* inFileOrder(readers: readonly LoadReader[]): AsyncGenerator<Batch> {
  const total = readers.reduce((sum, { file }) => sum + (file.bytesTotal ?? 0), 0);
  let before = 0;
  for (const reader of readers) {
    for await (const { payload } of reader.payloads())
      yield { payload, done: total === 0 ? 0 : Math.min(1, (before + reader.bytesRead) / total) };
    before += reader.bytesRead;
  }
}

async function placeAll(
  stream: AsyncIterable<Batch>,
  trials: readonly Trial[],
  writer: AssignmentWriter | undefined,
  progress: Progress,
): Promise<void> {
  const columns = new EdgeColumns();
  const rows = new EdgeRows();
  let edges = 0;
  for await (const { payload, done } of stream) {
    const problem = decodePayload(payload, ARROW, columns);
    if (problem !== undefined) throw new Error(`a payload of our own cannot be decoded: ${problem}`);
    const began = performance.now();
    rows.find(columns, viewOf(columns.source.bytes), viewOf(columns.target.bytes));
    const rowsMs = performance.now() - began;
    for (const trial of trials) trial.place(columns, rows, rowsMs);
    await writer?.write(columns, trials[0]!.parts);
    edges += rows.count;
    progress.update(done * 1000, `${showNumber(edges)} edges`);
  }
}

function print(trials: readonly Trial[], options: PartitionOptions, json: boolean, out: Writable): void {
  const { parts, seed } = options;
  if (json) {
    const summary = {
      parts,
      order: seed === undefined ? 'file' : { random: seed },
      results: trials.map(({ config, figures, microsPerEdge }) => ({
        partitioner: config,
        quality: qualityOf(figures),
        edges: figures.edges,
        vertices: figures.vertices,
        ...(figures.owned === undefined ? {} : { owned: figures.owned }),
        microsPerEdge: Number(microsPerEdge.toFixed(3)),
      })),
    };
    out.write(`${JSON.stringify(summary)}\n`);
    return;
  }
  const qualities = trials.map(({ figures }) => qualityOf(figures));
  const { edges, vertices } = qualities[0]!;
  const order = seed === undefined ? 'in the order of the file' : `in random order, seed ${seed}`;
  out.write(`${showNumber(edges)} edges, ${showNumber(vertices)} vertices, ${parts} parts, ${order}\n`);
  const lines = tableLines(
    ['algorithm', 'replication', 'edge balance', 'vertex balance', 'cut', 'forced', 'cap hits', 'µs/edge'],
    trials.map((trial, at) => resultRow(trial, qualities[at]!)),
  );
  for (const line of lines) out.write(`${line}\n`);
}

function resultRow({ name, microsPerEdge }: Trial, quality: Quality): string[] {
  const { replicationFactor, edgeBalance, vertexBalance, cutFraction, forced, capHits } = quality;
  return [
    name,
    replicationFactor?.toFixed(3) ?? '-',
    edgeBalance?.toFixed(3) ?? '-',
    vertexBalance?.toFixed(3) ?? '-',
    cutFraction === undefined ? '-' : `${(cutFraction * 100).toFixed(1)} %`,
    showNumber(forced),
    showNumber(capHits),
    microsPerEdge.toFixed(2),
  ];
}
