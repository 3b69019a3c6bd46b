/** Nothing is purged or removed that one of the kept snapshots needs to go on from. */
import type { Manifest } from '../../../../libs/snapshot/records.ts';
import { VIEW_PART, workerPart } from '../../../../libs/snapshot/records.ts';
import type { LogState } from '../../../../libs/stage/ports.ts';
import type { Breach, Checker } from './checker.ts';
import { channelOf } from './logs.ts';
import type { Records } from './records.ts';

export class PurgesChecker implements Checker {
  /** Purges so far. */
  count = 0;
  private readonly records: Records;
  private readonly describe: (stream: string) => Promise<LogState | undefined>;
  private readonly breach: Breach;

  constructor(records: Records, describe: (stream: string) => Promise<LogState | undefined>, breach: Breach) {
    this.records = records;
    this.describe = describe;
    this.breach = breach;
  }

  purged(stream: string, sequence: number): void {
    this.count += 1;
    const { kept } = this;
    if (kept.length < this.records.config!.snapshots.keep)
      this.breach(`${stream} is purged before there are snapshots`);
    void this.check(stream, sequence, kept);
  }

  removed(stream: string): void {
    const channel = channelOf(stream);
    if (channel === undefined) {
      this.breach(`${stream} is removed`);
      return;
    }
    const { origin, snapshots } = this.records.config!;
    if (channel.generation < origin) return;
    const { kept } = this;
    if (kept.length < snapshots.keep) this.breach(`${stream} is removed before there are snapshots`);
    for (const { barrier, generation } of kept) {
      if (generation <= channel.generation)
        this.breach(`${stream} is removed, which snapshot ${barrier} needs`);
    }
  }

  /** The newest that were read back, as many as the graph keeps. */
  private get kept(): Manifest[] {
    const { manifests, verified, config } = this.records;
    return [...manifests.values()]
      .filter(({ barrier }) => verified.has(barrier))
      .sort((a, b) => b.barrier - a.barrier)
      .slice(0, config!.snapshots.keep);
  }

  private async check(stream: string, sequence: number, kept: readonly Manifest[]): Promise<void> {
    const log = await this.describe(stream);
    const channel = channelOf(stream);
    for (const { barrier, generation, parts, sequence: through } of kept) {
      let read: number | undefined;
      if (channel === undefined) read = through;
      else if (channel.generation > generation) read = 0;
      else if (channel.generation === generation) {
        const [task, input] =
          channel.stage === 'PARTS' ? [workerPart(channel.partition), 0] : [VIEW_PART, channel.partition];
        const position = parts.find((part) => part.task === task)!.inputs[input]!;
        // Of a log that a fault has replaced it says nothing.
        if (position.sequence > 0 && position.created !== String(log?.created)) continue;
        read = position.sequence;
      }
      if (read !== undefined && sequence > Math.max(1, read)) {
        this.breach(`${stream} is purged below ${sequence}, and snapshot ${barrier} is at ${read} of it`);
      }
    }
  }
}
