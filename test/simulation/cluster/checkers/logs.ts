/**
 * PARTS and FOREST: at any time one writer. Terms never fall, each begins with a fence, and one process writes in a term;
 * every frame goes on where the one before ended; a mark stands exactly where it was recorded, recorded before.
 */
import { type FrameHeader, readFrameHeader } from '../../../../libs/dataflow/frame.ts';
import type { Generation } from '../../../../libs/dataflow/generation.ts';
import { behindMessage, comparePositions, type Position } from '../../../../libs/dataflow/position.ts';
import type { LogMessage } from '../../../../libs/stage/ports.ts';
import type { Breach, Checker } from './checker.ts';
import type { Records } from './records.ts';

interface Writing {
  term: number;
  through: Position;
  /** Undefined: not seen. */
  writer: string | undefined;
  hasEnded: boolean;
}

export class LogsChecker implements Checker {
  private readonly records: Records;
  private readonly breach: Breach;
  private readonly writings = new Map<string, Writing>();
  /** Logs that a fault has changed. */
  private readonly touched = new Set<string>();

  constructor(records: Records, breach: Breach) {
    this.records = records;
    this.breach = breach;
  }

  stored(stream: string, { payload }: LogMessage, by: string, before: Uint8Array | undefined): void {
    const channel = channelOf(stream);
    if (channel === undefined) return;
    const header = readFrameHeader(payload);
    const say = (what: string): void => this.breach(`${stream}: ${what} (${by}, term ${header.term})`);
    this.checkMark(header, say);
    if (this.touched.has(stream)) return;
    const writing = this.writings.get(stream) ?? this.begin(stream, channel.generation, before);
    const isFence = comparePositions(header.from, header.through) === 0 && header.mark.kind === 'none';
    if (header.term < writing.term) say(`term ${header.term} writes after term ${writing.term}`);
    else if (header.term > writing.term) {
      if (!isFence) say('a term begins without a fence');
      writing.writer = by;
    } else if (writing.writer !== undefined && writing.writer !== by) {
      say(`${writing.writer} writes in the same term`);
    }
    if (comparePositions(header.from, writing.through) !== 0)
      say(`a frame begins at ${text(header.from)} where the one before ended at ${text(writing.through)}`);
    // A mark is written once more by an owner that died before it knew.
    if (writing.hasEnded && comparePositions(header.from, header.through) !== 0)
      say('edges behind the end of the generation');
    writing.term = header.term;
    writing.through = header.through;
    if (header.mark.kind === 'end-of-generation') writing.hasEnded = true;
  }

  /** Two owners who know the log from before, and from after, may both write now; readers find out. */
  tampered(stream: string): void {
    this.touched.add(stream);
  }

  removed(stream: string): void {
    this.writings.delete(stream);
  }

  private begin(stream: string, generation: number, before: Uint8Array | undefined): Writing {
    const header = before === undefined ? undefined : readFrameHeader(before);
    const start = behindMessage(this.records.generation(generation)?.after ?? 0);
    const writing = {
      term: header?.term ?? 0,
      through: header?.through ?? start,
      writer: undefined,
      hasEnded: header?.mark.kind === 'end-of-generation',
    };
    this.writings.set(stream, writing);
    return writing;
  }

  private checkMark({ mark, through, generation }: FrameHeader, say: Breach): void {
    if (mark.kind === 'barrier') {
      const record = this.records.barriers.get(mark.number);
      if (record === undefined) say(`barrier ${mark.number} is marked and was not recorded`);
      else if (
        record.sequence + 1 !== through.sequence ||
        through.index !== 0 ||
        record.generation !== generation
      ) {
        say(`barrier ${mark.number} stands at ${text(through)} instead of behind message ${record.sequence}`);
      }
    } else if (mark.kind === 'end-of-generation') {
      const next = this.records.generation(generation + 1);
      if (next === undefined) say(`the end of generation ${generation} is marked and was not recorded`);
      else if (next.after + 1 !== through.sequence || through.index !== 0) {
        say(`generation ${generation} ends at ${text(through)} instead of behind message ${next.after}`);
      }
    }
  }
}

interface Channel extends Pick<Generation, 'generation'> {
  readonly stage: 'PARTS' | 'FOREST';
  readonly partition: number;
}

export function channelOf(stream: string): Channel | undefined {
  const match = /_(PARTS|FOREST)_(\d+)_(\d+)$/.exec(stream);
  if (match === null) return undefined;
  return { stage: match[1] as Channel['stage'], generation: Number(match[2]), partition: Number(match[3]) };
}

function text({ sequence, index }: Position): string {
  return `${sequence}.${index}`;
}
