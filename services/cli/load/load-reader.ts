/**
 * One file as Arrow payloads. What is wrong with it shows in three ways: rows that are no edges are refused and
 * counted; a file that cannot be decided is refused as a whole before it is read; a file that ends too early
 * gives all that it has, and then the error.
 */

import { CliError } from '../exit.ts';
import { ARROW_BYTES_MAX, ArrowRows, isFooterOnly } from './arrow-rows.ts';
import { DelimitedRows } from './delimited-rows.ts';
import { EdgeBatches, type EdgePayload } from './edge-batches.ts';
import { type FileFormat, fileFormat } from './file-format.ts';
import { IdRule, NULL_MARK } from './id-rule.ts';
import { type InputFile, SAMPLE_BYTES } from './input-file.ts';
import { JsonRows } from './json-rows.ts';
import type { LoadOptions } from './load-options.ts';
import { NdjsonRows } from './ndjson-rows.ts';
import type { RefusedRows } from './refused-rows.ts';
import type { RowReader } from './row-reader.ts';

export class LoadReader {
  readonly file: InputFile;
  /** What was decided about the file, in words. */
  readonly description: string;
  /** Bytes of the file read so far. */
  bytesRead = 0;
  /** What a person might want to know when all is read. */
  hint: string | undefined;
  private readonly format: FileFormat;
  private readonly options: LoadOptions;
  private readonly batches = new EdgeBatches();

  private constructor(file: InputFile, format: FileFormat, options: LoadOptions) {
    this.file = file;
    this.description = format.description;
    this.format = format;
    this.options = options;
  }

  /** Decides how to read the file. Throws if that cannot be decided, or nothing of it can be read. */
  static async open(file: InputFile, options: LoadOptions): Promise<LoadReader> {
    try {
      let sample = await file.sample(SAMPLE_BYTES);
      if (isFooterOnly(sample.bytes)) sample = await file.sample(ARROW_BYTES_MAX);
      return new LoadReader(file, fileFormat(sample, options), options);
    } catch (error) {
      if (!(error instanceof CliError) || error.message.startsWith(file.name)) throw error;
      throw new CliError(error.status, `${file.name}: ${error.message}`, { cause: error });
    }
  }

  /** Rows read so far, refused ones too. */
  get rows(): number {
    return this.batches.rows;
  }

  get refused(): RefusedRows {
    return this.batches.refused;
  }

  /** The edges of the file. Throws behind the last one if the file ends too early. */
  async *payloads(): AsyncGenerator<EdgePayload> {
    const { batches } = this;
    const content = this.file.content();
    const rows = this.rowReader();
    let failure: unknown;
    try {
      for await (const chunk of content.chunks()) {
        this.bytesRead = content.bytesRead;
        rows.push(chunk, false);
        yield* batches.take();
      }
      rows.push(new Uint8Array(0), true);
    } catch (error) {
      failure = error;
    } finally {
      await content.close();
    }
    batches.close();
    yield* batches.take();
    this.bytesRead = content.bytesRead;
    if (failure !== undefined) throw failure;
    if (rows instanceof DelimitedRows && rows.firstRowCounts !== undefined) {
      this.hint =
        `the first row, "${rows.firstRowCounts}", was read as an edge, and looks like the numbers of vertices ` +
        'and edges; --skip 1 leaves it out';
    }
  }

  private rowReader(): RowReader {
    const { format, batches, options } = this;
    const { name } = this.file;
    const { trim, nulls, skipLines } = options;
    const rule = new IdRule({ trim, nulls });
    switch (format.kind) {
      case 'empty':
        return { push: () => {} };
      case 'delimited': {
        const textRule = new IdRule({ trim, nulls: [NULL_MARK, ...nulls] });
        const { format: text, first, fieldCount, fields } = format;
        return new DelimitedRows(name, text, first, fieldCount, fields, textRule, batches, skipLines);
      }
      case 'ndjson':
        return new NdjsonRows(format.keys, rule, batches, skipLines);
      case 'json':
        return new JsonRows(name, format.isArray, format.keys, rule, batches);
      case 'arrow':
        return new ArrowRows(name, format.container, format.isFooterOnly, format.fields, rule, batches);
    }
  }
}
