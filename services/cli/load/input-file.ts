/**
 * The bytes of one file or of standard input: decompressed, without byte order mark, without the lines that
 * --skip leaves out.
 *
 * A format is decided from the first bytes, before anything of any file is sent. Standard input cannot be read
 * twice, so what was looked at is kept; a file is opened again, so that many files do not stay open.
 */

import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import type { Readable } from 'node:stream';
import { CliError, EXIT } from '../exit.ts';
import { gunzip, isGzip } from './gunzip.ts';
import { joinedBytes } from './joined-bytes.ts';
import { LineSkipper } from './line-skipper.ts';

/** A format is decided from this much of the content. */
export const SAMPLE_BYTES = 256 * 1024;
const CHUNK_BYTES = 128 * 1024;

/** The beginning of a content, or all of it. */
export interface Sample {
  readonly bytes: Uint8Array;
  readonly isWhole: boolean;
}

export class InputFile {
  /** As messages name it. */
  readonly name: string;
  /** Undefined if it is known only at the end. */
  readonly bytesTotal: number | undefined;
  private readonly open: () => Readable;
  private readonly isRepeatable: boolean;
  private readonly skipLines: number;
  private kept: Content | undefined;

  private constructor(
    name: string,
    bytesTotal: number | undefined,
    open: () => Readable,
    isRepeatable: boolean,
    skipLines: number,
  ) {
    this.name = name;
    this.bytesTotal = bytesTotal;
    this.open = open;
    this.isRepeatable = isRepeatable;
    this.skipLines = skipLines;
  }

  /** `path` is `-` for standard input. */
  static async at(path: string, stdin: Readable, skipLines: number): Promise<InputFile> {
    if (path === '-') return new InputFile('standard input', undefined, () => stdin, false, skipLines);
    try {
      const status = await stat(path);
      if (status.isDirectory()) throw new Error('it is a directory');
      const isFile = status.isFile();
      const open = (): Readable => createReadStream(path, { highWaterMark: CHUNK_BYTES });
      return new InputFile(path, isFile ? status.size : undefined, open, isFile, skipLines);
    } catch (error) {
      throw unreadable(path, error);
    }
  }

  /** At least the first bytes. What is wrong with the file behind them shows when it is read. */
  async sample(bytesMin: number): Promise<Sample> {
    const content = this.content();
    const sample = await content.sample(bytesMin);
    if (this.isRepeatable) await content.close();
    else this.kept = content;
    return sample;
  }

  /** All of the content, from its start. */
  content(): Content {
    if (this.kept !== undefined) return this.kept;
    return new Content(this.name, this.open(), this.skipLines);
  }

  /** Lets go of what was looked at and will not be read. */
  async close(): Promise<void> {
    await this.kept?.close();
  }
}

class Content {
  private readonly name: string;
  private readonly raw: Readable;
  private readonly decoded: AsyncGenerator<Uint8Array>;
  /** Chunks that were looked at already. */
  private head: Uint8Array[] = [];
  private isHeadWhole = false;
  private failure: unknown;
  private rawBytes = 0;

  constructor(name: string, raw: Readable, skipLines: number) {
    this.name = name;
    this.raw = raw;
    this.decoded = withoutLines(decode(this.counted(), name), skipLines);
  }

  /** Bytes read of the file as it is on disk. */
  get bytesRead(): number {
    return this.rawBytes;
  }

  async sample(bytesMin: number): Promise<Sample> {
    let size = this.head.reduce((sum, chunk) => sum + chunk.length, 0);
    try {
      while (size < bytesMin && !this.isHeadWhole && this.failure === undefined) {
        const { value, done } = await this.decoded.next();
        if (done === true) this.isHeadWhole = true;
        else {
          this.head.push(value);
          size += value.length;
        }
      }
    } catch (error) {
      if (size === 0) throw unreadable(this.name, error);
      this.failure = error;
    }
    return { bytes: joinedBytes(this.head), isWhole: this.isHeadWhole };
  }

  /** All chunks; throws behind the last one that could be read if that is not the end of the file. */
  async *chunks(): AsyncGenerator<Uint8Array> {
    const { head } = this;
    this.head = [];
    yield* head;
    if (this.isHeadWhole) return;
    try {
      if (this.failure !== undefined) throw this.failure;
      yield* this.decoded;
    } catch (error) {
      throw unreadable(this.name, error);
    }
  }

  async close(): Promise<void> {
    await this.decoded.return(undefined);
    this.raw.destroy();
  }

  private async *counted(): AsyncGenerator<Uint8Array> {
    for await (const chunk of this.raw as AsyncIterable<Uint8Array>) {
      this.rawBytes += chunk.length;
      // A Buffer's `slice` would not copy.
      yield new Uint8Array(chunk.buffer, chunk.byteOffset, chunk.byteLength);
    }
  }
}

/** Finds gzip and byte order marks by the first bytes. */
async function* decode(raw: AsyncGenerator<Uint8Array>, name: string): AsyncGenerator<Uint8Array> {
  const [first, all] = await beginning(raw, 2);
  if (!isGzip(first)) yield* withoutMark(all, name);
  else yield* withoutMark(gunzip(all), name);
}

async function* withoutMark(chunks: AsyncGenerator<Uint8Array>, name: string): AsyncGenerator<Uint8Array> {
  const [first, all] = await beginning(chunks, 3);
  if ((first[0] === 0xff && first[1] === 0xfe) || (first[0] === 0xfe && first[1] === 0xff)) {
    throw new CliError(
      EXIT.failed,
      `${name} is UTF-16 text; convert it first: iconv -f UTF-16 -t UTF-8 FILE | watershed load -`,
    );
  }
  let markBytes = first[0] === 0xef && first[1] === 0xbb && first[2] === 0xbf ? 3 : 0;
  for await (const chunk of all) {
    if (markBytes === 0) yield chunk;
    else yield chunk.subarray(markBytes);
    markBytes = 0;
  }
}

async function* withoutLines(chunks: AsyncGenerator<Uint8Array>, lines: number): AsyncGenerator<Uint8Array> {
  const skipper = new LineSkipper(lines);
  for await (const chunk of chunks) {
    const rest = skipper.rest(chunk);
    if (rest.length > 0) yield rest;
  }
}

/** At least the first `count` bytes in one chunk, if there are as many; and all chunks, that one included. */
async function beginning(
  chunks: AsyncGenerator<Uint8Array>,
  count: number,
): Promise<[Uint8Array, AsyncGenerator<Uint8Array>]> {
  const parts: Uint8Array[] = [];
  let size = 0;
  while (size < count) {
    const { value, done } = await chunks.next();
    if (done === true) break;
    parts.push(value);
    size += value.length;
  }
  const first = joinedBytes(parts);
  return [
    first,
    (async function* () {
      if (size > 0) yield first;
      yield* chunks;
    })(),
  ];
}

function unreadable(name: string, error: unknown): CliError {
  if (error instanceof CliError) return error;
  const { code, message } = error as NodeJS.ErrnoException;
  let problem = message;
  if (code === 'Z_BUF_ERROR') problem = 'the gzip file is cut short';
  else if (code?.startsWith('Z_')) problem = `the gzip file is damaged (${message})`;
  else if (code === 'ENOENT') problem = 'there is no such file';
  else if (code === 'EACCES') problem = 'permission denied';
  return new CliError(EXIT.failed, `${name} cannot be read: ${problem}`, { cause: error });
}
