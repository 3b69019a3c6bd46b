/**
 * State never runs ahead of output: what a block says its outputs hold was in them before the block was written. And
 * barriers rise: a state has each of them once, in order.
 */
import { ByteReader } from '../../../../libs/dataflow/bytes.ts';
import { readFrameHeader } from '../../../../libs/dataflow/frame.ts';
import { behindMessage, comparePositions, type Position } from '../../../../libs/dataflow/position.ts';
import type { LogMessage } from '../../../../libs/stage/ports.ts';
import type { Breach, Checker } from './checker.ts';
import { channelOf } from './logs.ts';
import type { Records } from './records.ts';

export class PositionsChecker implements Checker {
  private readonly records: Records;
  private readonly breach: Breach;
  /** The last block of each task on each instance: its key, and the newest barrier that the state has had. */
  private readonly blocks = new Map<string, { readonly key: string; readonly barrier: number }>();
  /** How far each log was ever complete. */
  private readonly ends = new Map<string, Position>();

  constructor(records: Records, breach: Breach) {
    this.records = records;
    this.breach = breach;
  }

  stored(stream: string, { payload }: LogMessage): void {
    const channel = channelOf(stream);
    if (channel === undefined) return;
    const { through } = readFrameHeader(payload);
    const key = `${channel.stage} ${channel.generation} ${channel.partition}`;
    const end = this.ends.get(key);
    if (end === undefined || comparePositions(through, end) > 0) this.ends.set(key, through);
  }

  commits(task: string, puts: readonly (readonly [key: string, value: Uint8Array])[], by: string): void {
    this.checkBarriers(task, puts, by);
    const match = /^(partitioner|worker)-(\d+)(?:-(\d+))?$/.exec(task);
    if (match === null) return;
    const [, stage, generation, partition] = match;
    for (const [key, value] of puts) {
      if (!isFirstPage(key)) continue;
      const outputs = outputsOf(value);
      for (const [at, through] of outputs.entries()) {
        const log =
          stage === 'partitioner' ? `PARTS ${generation} ${at}` : `FOREST ${generation} ${partition}`;
        // The last output of a partitioner is the log of rejects.
        if (stage === 'partitioner' && at === outputs.length - 1) continue;
        const start = behindMessage(this.records.generation(Number(generation))?.after ?? 0);
        if (comparePositions(through, this.ends.get(log) ?? start) > 0) {
          this.breach(
            `${task} commits a state through ${through.sequence}.${through.index} of ${log}, which ends before`,
          );
        }
      }
    }
  }

  private checkBarriers(
    task: string,
    puts: readonly (readonly [key: string, value: Uint8Array])[],
    by: string,
  ): void {
    const at = `${by} ${task}`;
    for (const [key, value] of puts) {
      if (!isFirstPage(key)) continue;
      const before = this.blocks.get(at);
      const [kind, barrier] = [value[1], new ByteReader(value, 2).varint()];
      this.blocks.set(at, { key, barrier });
      // Of another chain, or written anew after the state was cut back.
      if (before === undefined || key.slice(0, 9) !== nextBlock(before.key)) continue;
      const isRight = kind === AT_BARRIER ? barrier > before.barrier : barrier === before.barrier;
      if (!isRight) this.breach(`${task} of ${by} has barrier ${barrier} after barrier ${before.barrier}`);
    }
  }
}

const AT_BARRIER = 2;

/** The key of the block after one, without its page. */
function nextBlock(key: string): string {
  const bytes = Buffer.from(key.slice(0, 9), 'latin1');
  bytes.writeUInt32BE(bytes.readUInt32BE(5) + 1, 5);
  return bytes.toString('latin1');
}

/** The first page of a block. */
function isFirstPage(key: string): boolean {
  return key.charCodeAt(0) === 0x42 && key.endsWith('\0\0');
}

/** How far each output is complete, as a block says; of a piece of a copy too. */
function outputsOf(block: Uint8Array): Position[] {
  const reader = new ByteReader(block);
  reader.skip(2);
  reader.varint();
  for (let inputs = reader.varint(); inputs > 0; inputs--) {
    reader.u64();
    reader.varint();
    reader.u64();
  }
  return Array.from({ length: reader.varint() }, () => {
    const through = { sequence: reader.varint(), index: reader.varint() };
    reader.varint();
    reader.skip(8);
    return through;
  });
}
