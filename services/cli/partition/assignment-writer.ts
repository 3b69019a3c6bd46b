/** The assignment as text: a line for each edge, as it was published, with its part. */
import { createWriteStream } from 'node:fs';
import type { Writable } from 'node:stream';
import { finished } from 'node:stream/promises';
import type { EdgeColumns, IdColumn } from '../../../libs/dataflow/edge-columns.ts';
import { csvField } from '../../gateway/export-rows.ts';
import { idText } from '../../gateway/vertex-ids.ts';
import { CliError, EXIT } from '../exit.ts';
import type { AssignmentFormat } from './partition-options.ts';

export class AssignmentWriter {
  private readonly stream: Writable;
  private readonly isFile: boolean;
  private readonly format: AssignmentFormat;
  private failure: Error | undefined;

  constructor(path: string, format: AssignmentFormat, stdout: Writable) {
    this.isFile = path !== '-';
    this.format = format;
    this.stream = this.isFile ? createWriteStream(path) : stdout;
    if (this.isFile) {
      this.stream.on('error', (error) => {
        this.failure = new CliError(EXIT.failed, `${path} cannot be written: ${error.message}`, {
          cause: error,
        });
      });
    }
    if (format === 'csv') this.stream.write('source,target,part\r\n');
  }

  async write(columns: EdgeColumns, parts: Uint16Array): Promise<void> {
    let text = '';
    for (let index = 0; index < columns.count; index++) {
      if (columns.rejected[index] === 1) continue;
      const source = textOf(columns.source, index);
      const target = textOf(columns.target, index);
      const part = parts[index]!;
      text +=
        this.format === 'csv'
          ? `${csvField(source)},${csvField(target)},${part}\r\n`
          : `${JSON.stringify({ source, target, part })}\n`;
    }
    if (this.failure !== undefined) throw this.failure;
    if (!this.stream.write(text)) await this.drained();
  }

  async close(): Promise<void> {
    if (!this.isFile) return;
    this.stream.end();
    await finished(this.stream).catch((error: unknown) => {
      throw this.failure ?? error;
    });
  }

  private async drained(): Promise<void> {
    await new Promise<void>((resolve) => {
      const done = (): void => {
        this.stream.off('drain', done).off('error', done).off('close', done);
        resolve();
      };
      this.stream.on('drain', done).on('error', done).on('close', done);
    });
    if (this.failure !== undefined) throw this.failure;
  }
}

function textOf({ bytes, start, end }: IdColumn, index: number): string {
  return idText(bytes.subarray(start[index]!, end[index]!));
}
