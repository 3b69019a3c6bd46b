/** Delimited text: a row per record. */

import { type DelimitedFormat, DelimitedReader } from '../../../libs/dataflow/delimited.ts';
import { OP_ADD } from '../../../libs/dataflow/edge-columns.ts';
import { opIn } from '../../../libs/dataflow/edge-op.ts';
import { quotedExcerpt } from '../../../libs/dataflow/value-excerpt.ts';
import { CliError, EXIT } from '../exit.ts';
import { isNumber } from './delimiter.ts';
import type { EdgeBatches } from './edge-batches.ts';
import type { EdgeFields } from './edge-fields.ts';
import type { IdRule } from './id-rule.ts';
import type { RowReader } from './row-reader.ts';
import { timeMsIn } from './time-value.ts';

/** What the first record is: an edge, the names of the columns, or the three sizes of a Matrix Market file. */
export type FirstRecord = 'edge' | 'header' | 'sizes';

const NOT_ADD = 'is not "add"';

export class DelimitedRows implements RowReader {
  /** Two whole numbers in the first row, of which the second is the number of rows behind it: it is no edge. */
  firstRowCounts: string | undefined;
  private readonly name: string;
  private readonly fields: EdgeFields;
  private readonly rule: IdRule;
  private readonly batches: EdgeBatches;
  private readonly linesBefore: number;
  private readonly reader: DelimitedReader;
  /** Of a row: exact below a header line. */
  private readonly fieldCountMin: number;
  private readonly fieldCountMax: number;
  private first: FirstRecord;
  /** Rows that a Matrix Market file promises. */
  private rowsPromised = 0;
  private firstRowPair: string | undefined;

  /** `linesBefore` were left out at the start of the file. */
  constructor(
    name: string,
    format: DelimitedFormat,
    first: FirstRecord,
    fieldCount: number | undefined,
    fields: EdgeFields,
    rule: IdRule,
    batches: EdgeBatches,
    linesBefore: number,
  ) {
    this.name = name;
    this.fields = fields;
    this.rule = rule;
    this.batches = batches;
    this.linesBefore = linesBefore;
    this.reader = new DelimitedReader(format);
    this.first = first;
    const { source, target, time = 0, op = 0 } = fields;
    // Rows may lack a weight, which says nothing about the edge.
    this.fieldCountMin = fieldCount ?? Math.max(source, target, time, op) + 1;
    this.fieldCountMax = fieldCount ?? Number.POSITIVE_INFINITY;
  }

  push(chunk: Uint8Array, isLast: boolean): void {
    const { reader, batches } = this;
    reader.push(chunk, isLast);
    if (this.first !== 'edge') {
      if (!reader.next()) return;
      this.readFirst();
    } else if (batches.rows === 0 && this.firstRowPair === undefined) {
      if (!reader.next()) return;
      this.firstRowPair = this.countPair();
      this.readRow();
    }
    while (reader.next()) this.readRow();
    if (!isLast) return;
    if (batches.rows < this.rowsPromised) {
      throw new CliError(
        EXIT.failed,
        `${this.name} is cut short: its size line promises ${this.rowsPromised} entries and ${batches.rows} are there`,
      );
    }
    const counted = this.firstRowPair?.split(' ')[1];
    if (counted !== undefined && Number(counted) === batches.rows - 1)
      this.firstRowCounts = this.firstRowPair;
  }

  private readFirst(): void {
    const { reader } = this;
    if (this.first === 'sizes') {
      const { bytes, start, end } = reader;
      this.rowsPromised = Number(Buffer.from(bytes.subarray(start[2], end[2])).toString('latin1')) || 0;
    }
    this.first = 'edge';
    this.firstRowPair = '';
  }

  /** The first row, if it is two whole numbers and nothing else. */
  private countPair(): string {
    const { bytes, start, end, fieldCount } = this.reader;
    if (fieldCount !== 2) return '';
    const texts = [0, 1].map((i) => Buffer.from(bytes.subarray(start[i], end[i])).toString('latin1'));
    return texts.every((text) => /^[1-9]\d{0,14}$/.test(text)) ? texts.join(' ') : '';
  }

  private readRow(): void {
    const { reader, fields, rule } = this;
    if (reader.broken !== undefined) {
      this.refuse(reader.broken.replace(/^line \d+: /, ''));
      return;
    }
    const { fieldCount } = reader;
    if (fieldCount < this.fieldCountMin || fieldCount > this.fieldCountMax) {
      this.refuse(this.countProblem());
      return;
    }
    const { bytes, start, end } = reader;
    const { source, target, time, weight, op } = fields;
    if (!rule.accepts(bytes, start[source]!, end[source]!)) {
      this.refuse(`source ${rule.problem(bytes)}`);
      return;
    }
    const sourceStart = rule.start;
    const sourceEnd = rule.end;
    if (!rule.accepts(bytes, start[target]!, end[target]!)) {
      this.refuse(`target ${rule.problem(bytes)}`);
      return;
    }
    const targetStart = rule.start;
    const targetEnd = rule.end;
    let timeMs: number | undefined;
    if (time !== undefined) {
      timeMs = timeMsIn(bytes, start[time]!, end[time]!, fields.timeUnit);
      if (Number.isNaN(timeMs)) {
        this.refuseValue('time', time, start[time] === end[time] ? 'is empty' : 'is no time');
        return;
      }
    }
    let weightValue: number | undefined;
    if (weight !== undefined && weight < fieldCount && start[weight] !== end[weight]) {
      const text = Buffer.from(
        bytes.buffer,
        bytes.byteOffset + start[weight]!,
        end[weight]! - start[weight]!,
      );
      weightValue = weightOf(text.toString('latin1'));
      if (Number.isNaN(weightValue)) {
        this.refuseValue('weight', weight, 'is not a finite number');
        return;
      }
    }
    if (op !== undefined && start[op] !== end[op] && opIn(bytes, start[op]!, end[op]!) !== OP_ADD) {
      this.refuseValue('op', op, NOT_ADD);
      return;
    }
    this.batches.add(bytes, sourceStart, sourceEnd, bytes, targetStart, targetEnd, timeMs, weightValue);
  }

  private countProblem(): string {
    const { fieldCount } = this.reader;
    const fields = fieldCount === 1 ? '1 field' : `${fieldCount} fields`;
    if (this.fieldCountMax === this.fieldCountMin) return `${fields} in place of ${this.fieldCountMin}`;
    return `${fields}, and ${this.fieldCountMin} are needed`;
  }

  private refuseValue(name: string, field: number, problem: string): void {
    const { bytes, start, end } = this.reader;
    const { isKept } = this.batches.refused;
    this.refuse(isKept ? `${name} ${quotedExcerpt(bytes, start[field]!, end[field]!)} ${problem}` : '');
  }

  private refuse(reason: string): void {
    this.batches.refuse(`line ${this.reader.line + this.linesBefore}`, reason);
  }
}

/** Blanks around a number say nothing, unlike those around an id. */
function weightOf(text: string): number {
  const trimmed = text.trim();
  const weight = isNumber(trimmed) ? Number(trimmed) : Number.NaN;
  return Number.isFinite(weight) ? weight : Number.NaN;
}
