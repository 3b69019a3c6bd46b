/** From an EDGES that is not the log that was counted nothing is handed on. */
import { readFrameHeader } from '../../../../libs/dataflow/frame.ts';
import type { LogMessage } from '../../../../libs/stage/ports.ts';
import type { Oracle } from '../oracle.ts';
import type { Breach, Checker } from './checker.ts';
import { channelOf } from './logs.ts';

export class EdgesChecker implements Checker {
  private readonly oracle: Oracle;
  private readonly breach: Breach;

  /** `oracle` has the messages that count. */
  constructor(oracle: Oracle, breach: Breach) {
    this.oracle = oracle;
    this.breach = breach;
  }

  stored(stream: string, { payload }: LogMessage, by: string): void {
    if (channelOf(stream) === undefined) return;
    const { through } = readFrameHeader(payload);
    if (through.sequence > this.oracle.sequence + 1) {
      this.breach(
        `${by} hands on message ${through.sequence - 1} in ${stream}, and ${this.oracle.sequence} count`,
      );
    }
  }
}
