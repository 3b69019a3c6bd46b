/**
 * Arrow IPC, the stream format and the file format (which is the stream between two magic words): a row per row
 * of a record batch.
 *
 * A payload decoder exists, for messages that are whole in memory and have the columns of edges. So the file is
 * cut into its messages, each record batch goes alone to that decoder behind the schema and the dictionaries,
 * and the columns chosen are given the names that the decoder knows.
 *
 * The JavaScript library writes the schema of a file in its footer only; such a file is read as a whole.
 */

import {
  type DataType,
  TimestampMicrosecond,
  TimestampMillisecond,
  TimestampNanosecond,
  TimestampSecond,
  DataType as Types,
} from 'apache-arrow';
import { arrowProblem } from '../../../libs/dataflow/arrow-bounds.ts';
import { type ArrowColumns, type Column, readArrowColumns } from '../../../libs/dataflow/arrow-columns.ts';
import { fillFromArrow } from '../../../libs/dataflow/arrow-edges.ts';
import { isText, nullsOf, numbersOf } from '../../../libs/dataflow/arrow-text.ts';
import { EdgeColumns, OP_ADD } from '../../../libs/dataflow/edge-columns.ts';
import { CliError, EXIT } from '../exit.ts';
import type { EdgeBatches } from './edge-batches.ts';
import type { EdgeFields } from './edge-fields.ts';
import type { IdRule } from './id-rule.ts';
import type { Sample } from './input-file.ts';
import { joinedBytes } from './joined-bytes.ts';
import type { RowReader } from './row-reader.ts';
import type { TimeUnit } from './time-value.ts';

/** What must be held as a whole: a record batch, the dictionaries, a file with its schema in the footer only. */
export const ARROW_BYTES_MAX = 256 * 1024 * 1024;

const MAGIC = new TextEncoder().encode('ARROW1');
/** The magic word and its padding. */
const FILE_HEAD_BYTES = 8;

const SCHEMA = 1;
const DICTIONARY_BATCH = 2;
const RECORD_BATCH = 3;

const TIME_TYPES: Readonly<Record<TimeUnit, DataType>> = {
  s: new TimestampSecond(),
  ms: new TimestampMillisecond(),
  us: new TimestampMicrosecond(),
  ns: new TimestampNanosecond(),
};

/** The container that begins with these bytes; undefined if none does. */
export function arrowContainer(bytes: Uint8Array): ArrowContainer | undefined {
  if (MAGIC.every((byte, i) => bytes[i] === byte)) return 'file';
  return [0, 1, 2, 3].every((i) => bytes[i] === 0xff) ? 'stream' : undefined;
}

export type ArrowContainer = 'stream' | 'file';

/** Whether the bytes begin an Arrow file without a schema at its start. */
export function isFooterOnly(bytes: Uint8Array): boolean {
  if (arrowContainer(bytes) !== 'file' || bytes.length < FILE_HEAD_BYTES + 8) return false;
  const view = new DataView(bytes.buffer, bytes.byteOffset + FILE_HEAD_BYTES, 8);
  const prefixBytes = view.getInt32(0, true) === -1 ? 8 : 4;
  const metadataStart = FILE_HEAD_BYTES + prefixBytes;
  const metadata = bytes.subarray(metadataStart, metadataStart + view.getInt32(prefixBytes - 4, true));
  try {
    return messageHead(metadata).kind !== SCHEMA;
  } catch {
    return false;
  }
}

type ColumnKinds = readonly {
  readonly name: string;
  readonly isTime: boolean;
  readonly isNumber: boolean;
}[];

/** Name and kind of each column; or why the schema cannot be read. */
export function arrowSchema(sample: Sample, container: ArrowContainer): ColumnKinds | string {
  if (isFooterOnly(sample.bytes)) {
    if (sample.isWhole) return columnsOf(sample.bytes);
    return `its schema is at its end, so it can have ${ARROW_BYTES_MAX} bytes; the stream format has no limit`;
  }
  const queue = new ByteQueue();
  queue.add(container === 'file' ? sample.bytes.subarray(FILE_HEAD_BYTES) : sample.bytes);
  const message = orProblem(() => nextMessage(queue));
  if (typeof message === 'string' && message !== 'incomplete' && message !== 'end') return message;
  if (message === 'incomplete')
    return sample.isWhole ? 'it ends inside of its schema' : 'its schema is too large';
  if (message === 'end') return 'it has no schema';
  return columnsOf(message.bytes);
}

function columnsOf(payload: Uint8Array): ColumnKinds | string {
  const problem = arrowProblem(payload);
  if (problem !== undefined) return problem;
  return orProblem(() =>
    readArrowColumns(payload).columns.map(({ name, type }) => ({
      name,
      isTime: Types.isTimestamp(type) || Types.isDate(type) || Types.isInt(type) || isText(type),
      isNumber: isWeight(type),
    })),
  );
}

/** What the library makes of damaged bytes is some Error. */
function orProblem<T>(read: () => T): T | string {
  try {
    return read();
  } catch (error) {
    if (error instanceof RangeError) return 'damaged metadata';
    return error instanceof Error ? error.message : String(error);
  }
}

export class ArrowRows implements RowReader {
  private readonly name: string;
  private readonly container: ArrowContainer;
  private readonly fields: EdgeFields;
  private readonly rule: IdRule;
  private readonly batches: EdgeBatches;
  private readonly queue = new ByteQueue();
  /** The schema, and the dictionaries so far. */
  private head: Uint8Array[] = [];
  private headBytes = 0;
  private isHeadSkipped: boolean;
  private isEnded = false;
  /** A file with its schema in the footer is read when all of it is there. */
  private readonly isFooterOnly: boolean;
  /** The last bytes, which in a file are the magic word. */
  private tail: Uint8Array = new Uint8Array(0);
  private readonly columns = new EdgeColumns();

  constructor(
    name: string,
    container: ArrowContainer,
    footerOnly: boolean,
    fields: EdgeFields,
    rule: IdRule,
    batches: EdgeBatches,
  ) {
    this.name = name;
    this.container = container;
    this.fields = fields;
    this.rule = rule;
    this.batches = batches;
    this.isHeadSkipped = container === 'stream';
    this.isFooterOnly = footerOnly;
  }

  push(chunk: Uint8Array, isLast: boolean): void {
    this.tail = joinedBytes([this.tail.slice(-MAGIC.length), chunk]).slice(-MAGIC.length);
    if (!this.isEnded) this.queue.add(chunk);
    if (this.isFooterOnly) {
      if (!isLast) return;
      this.checkEnd();
      this.readBatch(this.queue.take(this.queue.size));
      return;
    }
    if (!this.isHeadSkipped && this.queue.size >= FILE_HEAD_BYTES) {
      this.queue.take(FILE_HEAD_BYTES);
      this.isHeadSkipped = true;
    }
    while (!this.isEnded && this.isHeadSkipped) {
      const message = this.message();
      if (message === 'incomplete') break;
      if (message === 'end') this.isEnded = true;
      else this.take(message);
    }
    if (isLast) this.checkEnd();
  }

  private message(): ArrowMessage | 'incomplete' | 'end' {
    const message = orProblem(() => nextMessage(this.queue));
    if (typeof message !== 'string' || message === 'incomplete' || message === 'end') return message;
    throw this.fault(message);
  }

  private checkEnd(): void {
    // A stream may end without its end mark; a file ends with the magic word.
    const isCut =
      this.container === 'file'
        ? !MAGIC.every((byte, i) => this.tail[i] === byte)
        : !this.isEnded && this.queue.size > 0;
    if (isCut)
      throw new CliError(EXIT.failed, `${this.name} is cut short: its last Arrow message is not whole`);
    if (this.container === 'stream' && this.queue.size > 0) {
      throw this.fault(`${this.queue.size} bytes follow the end of the stream`);
    }
  }

  private take(message: ArrowMessage): void {
    if (message.kind === RECORD_BATCH) this.readBatch(joinedBytes([...this.head, message.bytes]));
    else {
      if (message.kind !== SCHEMA && message.kind !== DICTIONARY_BATCH) {
        throw this.fault(`a message of kind ${message.kind}`);
      }
      this.headBytes += message.bytes.length;
      if (this.headBytes > ARROW_BYTES_MAX)
        throw this.fault(`dictionaries of more than ${ARROW_BYTES_MAX} bytes`);
      this.head.push(message.bytes);
    }
  }

  private readBatch(payload: Uint8Array): void {
    const problem = arrowProblem(payload);
    if (problem !== undefined) {
      const remedy = problem.startsWith('compressed') ? '; write it without compression' : '';
      throw this.fault(problem + remedy);
    }
    const { columns, batches, rule } = this;
    columns.reset();
    const weights = orProblem(() => {
      const chosen = this.chosen(readArrowColumns(payload));
      return fillFromArrow(columns, chosen) ?? weightsOf(chosen);
    });
    if (typeof weights === 'string') throw this.fault(weights);
    const reasons = new Map(columns.reasons.map(({ index, reason: why }) => [index, why]));
    const { source, target } = columns;
    for (let i = 0; i < columns.count; i++) {
      if (columns.rejected[i] === 1) {
        this.refuse(reasons.get(i) ?? '');
        continue;
      }
      if (columns.op[i] !== OP_ADD) {
        this.refuse('op is not "add"');
        continue;
      }
      if (!rule.accepts(source.bytes, source.start[i]!, source.end[i]!)) {
        this.refuse(`source ${rule.problem(source.bytes)}`);
        continue;
      }
      const sourceStart = rule.start;
      const sourceEnd = rule.end;
      if (!rule.accepts(target.bytes, target.start[i]!, target.end[i]!)) {
        this.refuse(`target ${rule.problem(target.bytes)}`);
        continue;
      }
      const time = columns.time[i]!;
      const weight = weights?.[i] ?? Number.NaN;
      batches.add(
        source.bytes,
        sourceStart,
        sourceEnd,
        target.bytes,
        rule.start,
        rule.end,
        Number.isNaN(time) ? undefined : time,
        Number.isNaN(weight) ? undefined : weight,
      );
    }
  }

  /** The chosen columns, under the names that the decoder knows. */
  private chosen(all: ArrowColumns): ArrowColumns {
    const { source, target, time, weight, op, timeUnit } = this.fields;
    const columns: Column[] = [];
    const choose = (name: string, index: number | undefined): void => {
      if (index === undefined) return;
      const column = all.columns[index]!;
      // Numbers have no unit; a timestamp of that unit is the same numbers.
      const type =
        name === 'time' && timeUnit !== undefined && Types.isInt(column.type)
          ? TIME_TYPES[timeUnit]
          : column.type;
      columns.push({ ...column, name, type });
    };
    choose('source', source);
    choose('target', target);
    choose('time', time);
    choose('weight', weight);
    choose('op', op);
    return { rows: all.rows, columns };
  }

  private refuse(reason: string): void {
    this.batches.refuse(`row ${this.batches.rows + 1}`, reason);
  }

  private fault(problem: string): CliError {
    return new CliError(EXIT.failed, `${this.name} cannot be read on: Arrow: ${problem}`);
  }
}

function isWeight(type: DataType): boolean {
  // Halves come as bits.
  return Types.isInt(type) || (Types.isFloat(type) && type.precision !== 0);
}

/** NaN where a row has none. */
function weightsOf(arrow: ArrowColumns): Float64Array | undefined {
  const column = arrow.columns.find(({ name }) => name === 'weight');
  if (column === undefined || !isWeight(column.type)) return undefined;
  const weights = new Float64Array(arrow.rows).fill(Number.NaN);
  for (const { data, first, rows } of column.chunks) {
    const values = numbersOf(data, rows);
    const isNull = nullsOf(data, rows);
    for (let row = 0; row < rows; row++) if (!isNull?.(row)) weights[first + row] = Number(values[row]);
  }
  return weights;
}

interface ArrowMessage {
  readonly kind: number;
  /** With its prefix. */
  readonly bytes: Uint8Array;
}

/** Cuts the next message off the queue. Throws RangeError if its metadata point outside of themselves. */
function nextMessage(queue: ByteQueue): ArrowMessage | 'incomplete' | 'end' {
  const prefix = queue.peek(8);
  if (prefix.length < 4) return 'incomplete';
  const view = new DataView(prefix.buffer, prefix.byteOffset, prefix.length);
  // Before Arrow 0.15 there was no continuation mark.
  const prefixBytes = view.getInt32(0, true) === -1 ? 8 : 4;
  if (prefix.length < prefixBytes) return 'incomplete';
  const metadataBytes = view.getInt32(prefixBytes - 4, true);
  if (metadataBytes === 0) {
    queue.take(prefixBytes);
    return 'end';
  }
  if (metadataBytes < 0 || metadataBytes > ARROW_BYTES_MAX) throw new RangeError('metadata');
  if (queue.size < prefixBytes + metadataBytes) return 'incomplete';
  const { kind, bodyBytes } = messageHead(queue.peek(prefixBytes + metadataBytes).subarray(prefixBytes));
  const messageBytes = prefixBytes + metadataBytes + bodyBytes;
  if (messageBytes > ARROW_BYTES_MAX) {
    throw new Error(
      `a batch of ${messageBytes} bytes; at most ${ARROW_BYTES_MAX} can be read, write smaller ones`,
    );
  }
  if (queue.size < messageBytes) return 'incomplete';
  return { kind, bytes: queue.take(messageBytes) };
}

/** The two fields of a FlatBuffers `Message` that tell how to go on; all else is checked by `arrowProblem`. */
function messageHead(metadata: Uint8Array): { readonly kind: number; readonly bodyBytes: number } {
  const view = new DataView(metadata.buffer, metadata.byteOffset, metadata.length);
  const table = view.getUint32(0, true);
  const vtable = table - view.getInt32(table, true);
  const fieldAt = (index: number): number => {
    const entry = 4 + index * 2;
    const offset = entry < view.getUint16(vtable, true) ? view.getUint16(vtable + entry, true) : 0;
    return offset === 0 ? 0 : table + offset;
  };
  const kind = fieldAt(1);
  const body = fieldAt(3);
  const bodyBytes = body === 0 ? 0 : Number(view.getBigInt64(body, true));
  if (bodyBytes < 0) throw new RangeError('body');
  return { kind: kind === 0 ? 0 : view.getUint8(kind), bodyBytes };
}

/** Bytes that came in chunks, taken in other ones. */
class ByteQueue {
  size = 0;
  private parts: Uint8Array[] = [];

  add(part: Uint8Array): void {
    if (part.length === 0) return;
    this.parts.push(part);
    this.size += part.length;
  }

  /** The first `count` bytes, or all if there are fewer. */
  peek(count: number): Uint8Array {
    const wanted = Math.min(count, this.size);
    const first = this.parts[0];
    if (first === undefined || first.length >= wanted) return first?.subarray(0, wanted) ?? new Uint8Array(0);
    const parts: Uint8Array[] = [];
    let size = 0;
    for (const part of this.parts) {
      parts.push(part);
      size += part.length;
      if (size >= wanted) break;
    }
    return joinedBytes(parts).subarray(0, wanted);
  }

  take(count: number): Uint8Array {
    const taken = this.peek(count).slice();
    this.size -= taken.length;
    let left = taken.length;
    while (left > 0) {
      const first = this.parts[0]!;
      if (first.length > left) {
        this.parts[0] = first.subarray(left);
        break;
      }
      this.parts.shift();
      left -= first.length;
    }
    return taken;
  }
}
