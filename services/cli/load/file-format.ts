/**
 * What a file is, decided by its first bytes and never by its name. The answer holds all that is needed to read
 * the rest, and says in words what was decided.
 */

import type { DelimitedFormat } from '../../../libs/dataflow/delimited.ts';
import { JsonScanner } from '../../../libs/dataflow/json-scanner.ts';
import { CliError, EXIT } from '../exit.ts';
import { type ArrowContainer, arrowContainer, arrowSchema, isFooterOnly } from './arrow-rows.ts';
import type { FirstRecord } from './delimited-rows.ts';
import { delimiterName, shapeOf } from './delimiter.ts';
import { type ColumnSample, type EdgeFields, edgeFields, UNEVEN_ROWS_MIN } from './edge-fields.ts';
import { foreignFormat } from './foreign-format.ts';
import { isHeaderLine } from './header-line.ts';
import type { Sample } from './input-file.ts';
import type { EdgeKeys } from './json-edge.ts';
import type { LoadOptions } from './load-options.ts';
import { linesOf, recordsOf } from './sample-records.ts';

export type FileFormat =
  | { readonly kind: 'empty'; readonly description: string }
  | {
      readonly kind: 'delimited';
      readonly description: string;
      readonly format: DelimitedFormat;
      readonly first: FirstRecord;
      /** Fields of a row, if a header line makes us expect a number. */
      readonly fieldCount: number | undefined;
      readonly fields: EdgeFields;
    }
  | { readonly kind: 'ndjson'; readonly description: string; readonly keys: EdgeKeys }
  | {
      readonly kind: 'json';
      readonly description: string;
      readonly keys: EdgeKeys;
      readonly isArray: boolean;
    }
  | {
      readonly kind: 'arrow';
      readonly description: string;
      readonly container: ArrowContainer;
      readonly isFooterOnly: boolean;
      readonly fields: EdgeFields;
    };

/** Enough to judge columns by; a sample rarely has more. */
const ROWS_MAX = 50_000;
const OBJECTS_MAX = 1000;
const LINE_SHOWN_MAX = 60;

const OPEN_BRACKET = 91;
const OPEN_BRACE = 123;
const LINE_FEED = 10;

/** Throws a usage error that says what cannot be decided, and how to say it. */
export function fileFormat(sample: Sample, options: LoadOptions): FileFormat {
  const { bytes } = sample;
  const container = arrowContainer(bytes);
  if (container !== undefined) return arrowFormat(sample, container, options);
  // Who gives a delimiter has looked at the file.
  if (options.delimiter === undefined) {
    const foreign = foreignFormat(bytes);
    if (foreign !== undefined) {
      throw undecided(`it looks like ${foreign.name}, which is no list of edges: ${foreign.remedy}`);
    }
    const at = new JsonScanner(bytes).blank(0);
    if (bytes[at] === OPEN_BRACE) return objectFormat(sample, at, options);
    if (bytes[at] === OPEN_BRACKET) return arrayFormat(sample, at, options);
  }
  return delimitedFormat(sample, options);
}

function delimitedFormat(sample: Sample, options: LoadOptions): FileFormat {
  const matrix = /^%{1,2}MatrixMarket\s+matrix\s+(\w+)(.*)/i.exec(linesOf(sample)[0] ?? '');
  if (matrix !== null && matrix[1]!.toLowerCase() !== 'coordinate') {
    throw undecided(
      `it is a Matrix Market file of the ${matrix[1]} format; edges are read from "coordinate" ones`,
    );
  }
  const lines = linesOf(sample);
  const shape = shapeOf(
    sample,
    matrix === null ? options : { ...options, delimiter: options.delimiter ?? 'blanks' },
  );
  switch (shape.kind) {
    case 'ambiguous-comments':
      throw undecided(
        `${excerptOf(shape.example)} may be an edge or a comment; --comment '#' or --no-comment decides`,
      );
    case 'no-delimiter': {
      const comment = lines.every((line) => line.trim() === '' || /^[#%]/.test(line));
      if (comment && sample.isWhole) return { kind: 'empty', description: 'it has no rows' };
      const row = lines.find((line) => line.trim() !== '' && !line.startsWith('#')) ?? '';
      throw undecided(
        `what separates two columns in ${excerptOf(row)} cannot be decided; --delimiter says it`,
      );
    }
    case 'shape':
      break;
  }
  const { format } = shape;
  const records = recordsOf(sample, format, ROWS_MAX);
  if (records.rows.length === 0) {
    if (sample.isWhole && records.broken === 0) return { kind: 'empty', description: 'it has no rows' };
    throw undecided(`no row ends within the first ${sample.bytes.length} bytes`);
  }
  const first = firstRecord(records.rows, matrix !== null, options);
  const below = first === 'edge' ? 0 : 1;
  const rows = records.rows.slice(below);
  const names = first === 'header' ? records.rows[0]! : undefined;
  const fieldCount = names === undefined ? undefined : (evenCount(rows) ?? names.length);
  const columns: ColumnSample = {
    names,
    count: fieldCount ?? columnCount(rows),
    rows,
    lines: records.lines.slice(below).map((line) => line + options.skipLines),
    isOrdered: true,
  };
  const fields = edgeFields(columns, options);
  const facts = [
    matrix === null ? `${delimiterName(format.delimiter)}-separated` : 'Matrix Market',
    first === 'edge' ? 'no header line' : first === 'header' ? 'header line' : 'size line',
  ];
  if (shape.hasPlainQuotes) facts.push('quotes are text');
  if (options.comment === undefined && format.comment !== undefined && hasComments(lines, format.comment)) {
    facts.push(`lines of ${String.fromCharCode(format.comment)} are comments`);
  }
  facts.push(fields.description);
  if (names !== undefined && fieldCount !== names.length) {
    facts.push(`rows have ${fieldCount} fields and the header line ${names.length}`);
  }
  const padded = options.trim ? undefined : paddedColumn(columns, fields);
  if (padded !== undefined) facts.push(`blanks around ids in column ${padded + 1} are part of them (--trim)`);
  return { kind: 'delimited', description: facts.join(', '), format, first, fieldCount, fields };
}

function firstRecord(
  rows: readonly (readonly string[])[],
  isMatrix: boolean,
  options: LoadOptions,
): FirstRecord {
  if (isMatrix) return 'sizes';
  if (options.hasHeader !== undefined) return options.hasHeader ? 'header' : 'edge';
  // A column chosen by a name that the first line has.
  const cells = rows[0]!.map((cell) => cell.trim());
  const isNamed = [options.source, options.target, options.time, options.weight].some(
    (name) => typeof name === 'string' && !/^\d+$/.test(name) && cells.includes(name.trim()),
  );
  return isNamed || isHeaderLine(rows) ? 'header' : 'edge';
}

/** Of rows that differ, most have as many columns as this or more. */
function columnCount(rows: readonly (readonly string[])[]): number {
  const counts = rows.map((row) => row.length).sort((a, b) => b - a);
  return counts[Math.floor(counts.length / 20)] ?? 0;
}

/** The number of fields that nearly all rows have, if these are enough to be believed against the header line. */
function evenCount(rows: readonly (readonly string[])[]): number | undefined {
  const count = rows[0]?.length;
  const even = rows.filter((row) => row.length === count).length;
  return rows.length >= UNEVEN_ROWS_MIN && even >= rows.length * 0.9 ? count : undefined;
}

function hasComments(lines: readonly string[], comment: number): boolean {
  const mark = String.fromCharCode(comment);
  return lines.some((line) => line.startsWith(mark));
}

/** The column of ids, of the two, whose texts mostly begin or end with blanks: a delimiter wider than it seemed. */
function paddedColumn({ rows }: ColumnSample, { source, target }: EdgeFields): number | undefined {
  for (const column of [source, target]) {
    let padded = 0;
    for (const row of rows) if (row[column] !== row[column]?.trim()) padded += 1;
    if (padded * 2 > rows.length) return column;
  }
  return undefined;
}

function objectFormat(sample: Sample, at: number, options: LoadOptions): FileFormat {
  const { bytes } = sample;
  const end = new JsonScanner(bytes).value(at, 0);
  const lineEnd = bytes.indexOf(LINE_FEED, at);
  const isOnOneLine = lineEnd < 0 || (end >= 0 && end <= lineEnd);
  if (end < 0 || isOnOneLine) {
    // An object that ends on no line, and none that begins on the second: a document of another kind.
    const second = lineEnd < 0 ? undefined : bytes[new JsonScanner(bytes).blank(lineEnd)];
    if (isOnOneLine || second === OPEN_BRACE) {
      const objects = objectsOf(sample, at, true);
      return jsonFormat('NDJSON', objects, options, (keys, description) => ({
        kind: 'ndjson',
        keys,
        description,
      }));
    }
    throw undecided(documentProblem(bytes.subarray(at)));
  }
  const objects = objectsOf(sample, at, false);
  return jsonFormat('JSON objects', objects, options, (keys, description) => ({
    kind: 'json',
    keys,
    description,
    isArray: false,
  }));
}

function arrayFormat(sample: Sample, at: number, options: LoadOptions): FileFormat {
  const objects = objectsOf(sample, at + 1, false);
  if (objects.length === 0 && new JsonScanner(sample.bytes).value(at, 0) < 0 && sample.isWhole) {
    throw undecided(
      'it begins with [ and is neither a JSON array of edge objects nor separated text; --delimiter says how it is separated',
    );
  }
  return jsonFormat('JSON array', objects, options, (keys, description) => ({
    kind: 'json',
    keys,
    description,
    isArray: true,
  }));
}

function jsonFormat(
  name: string,
  objects: readonly Readonly<Record<string, string>>[],
  options: LoadOptions,
  format: (keys: EdgeKeys, description: string) => FileFormat,
): FileFormat {
  const names = [...new Set(objects.flatMap((object) => Object.keys(object)))];
  if (objects.length > 0) {
    const document = ['links', 'edges'].find(
      (key) => objects.length === 1 && objects[0]![key]?.startsWith('['),
    );
    if (document !== undefined) throw undecided(nodeLinkProblem(document));
  }
  // Without an object to look at, the keys of our own payloads; rows that lack them are refused one by one.
  const isBlind = objects.length === 0;
  const columns: ColumnSample = {
    names: isBlind ? ['source', 'target', 'time', 'weight', 'op'] : names,
    count: isBlind ? 5 : names.length,
    rows: isBlind ? [] : objects.map((object) => names.map((key) => object[key] ?? '')),
    lines: [],
    isOrdered: false,
    ...(isBlind ? { types: new Array(5).fill({ isTime: true, isNumber: true }) } : {}),
  };
  const fields = edgeFields(columns, options);
  const keyOf = (index: number | undefined): string | undefined =>
    index === undefined ? undefined : columns.names![index];
  const keys: EdgeKeys = {
    source: keyOf(fields.source)!,
    target: keyOf(fields.target)!,
    time: keyOf(fields.time),
    timeUnit: fields.timeUnit,
    weight: keyOf(fields.weight),
    op: keyOf(fields.op),
  };
  return format(keys, `${name}, ${fields.description}`);
}

/** The first objects, each as the texts of its values; strings lose their quotes. */
function objectsOf(sample: Sample, from: number, isByLine: boolean): Record<string, string>[] {
  const { bytes } = sample;
  const scanner = new JsonScanner(bytes);
  const objects: Record<string, string>[] = [];
  let at = from;
  while (objects.length < OBJECTS_MAX && at < bytes.length) {
    const lineEnd = bytes.indexOf(LINE_FEED, at);
    if (isByLine) scanner.end = lineEnd < 0 ? bytes.length : lineEnd;
    const start = scanner.blank(at);
    const end = scanner.value(start, 0);
    if (end >= 0 && bytes[start] === OPEN_BRACE) {
      try {
        objects.push(textsOf(JSON.parse(Buffer.from(bytes.subarray(start, end)).toString('utf8')) as object));
      } catch {
        // Not UTF-8, for instance: the reader will refuse it with its line.
      }
    }
    if (isByLine) {
      if (lineEnd < 0) break;
      at = lineEnd + 1;
    } else {
      if (end < 0) break;
      at = scanner.blank(end);
      if (bytes[at] === 44) at += 1;
    }
  }
  return objects;
}

function textsOf(object: object): Record<string, string> {
  const texts: Record<string, string> = Object.create(null) as Record<string, string>;
  for (const [key, value] of Object.entries(object)) {
    texts[key] = typeof value === 'string' ? value : value === null ? '' : JSON.stringify(value);
  }
  return texts;
}

function documentProblem(start: Uint8Array): string {
  const text = Buffer.from(start.subarray(0, 4096)).toString('utf8');
  const key = /"(links|edges)"\s*:\s*\[/.exec(text)?.[1];
  if (key !== undefined || /"nodes"\s*:/.test(text)) return nodeLinkProblem(key ?? 'links');
  return 'it is JSON, but neither an array of edge objects nor one per line; jq can make it one per line: jq -c';
}

function nodeLinkProblem(key: string): string {
  return `it looks like a JSON document that holds its edges under "${key}"; take them out first: jq -c '.${key}[]' FILE | watershed load -`;
}

function arrowFormat(sample: Sample, container: ArrowContainer, options: LoadOptions): FileFormat {
  const schema = arrowSchema(sample, container);
  if (typeof schema === 'string') throw new CliError(EXIT.failed, `Arrow: ${schema}`);
  const fields = edgeFields(
    {
      names: schema.map(({ name }) => name),
      count: schema.length,
      rows: [],
      lines: [],
      isOrdered: true,
      types: schema,
    },
    options,
  );
  return {
    kind: 'arrow',
    description: `Arrow ${container}, ${fields.description}`,
    container,
    isFooterOnly: isFooterOnly(sample.bytes),
    fields,
  };
}

function excerptOf(line: string): string {
  return JSON.stringify(line.length > LINE_SHOWN_MAX ? `${line.slice(0, LINE_SHOWN_MAX)}…` : line);
}

function undecided(message: string): CliError {
  return new CliError(EXIT.usage, message);
}
