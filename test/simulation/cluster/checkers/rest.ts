/** When all has come to rest: what was acknowledged is in EDGES, and REJECTED names each message with rejects once. */
import type { LogMessage } from '../../../../libs/stage/ports.ts';
import type { Oracle } from '../oracle.ts';
import type { Acknowledged } from '../publisher.ts';
import type { Breach, Checker } from './checker.ts';

export interface RestOptions {
  readonly oracle: Oracle;
  readonly acknowledged: readonly Acknowledged[];
  readonly edges: () => Promise<readonly LogMessage[]>;
  readonly rejected: () => Promise<readonly LogMessage[]>;
}

export class RestChecker implements Checker {
  private readonly options: RestOptions;
  private readonly breach: Breach;

  constructor(options: RestOptions, breach: Breach) {
    this.options = options;
    this.breach = breach;
  }

  async rested(): Promise<void> {
    const { oracle, acknowledged } = this.options;
    const edges = new Map((await this.options.edges()).map((message) => [message.sequence, message.payload]));
    const first = Math.min(...edges.keys());
    for (const { sequence, payload } of acknowledged) {
      const there = edges.get(sequence);
      if (sequence >= first && (there === undefined || !Buffer.from(there).equals(payload))) {
        this.breach(`message ${sequence} was acknowledged and is not in EDGES`);
      }
    }
    const rejected = (await this.options.rejected()).map(({ payload }) => {
      const { sequence, count } = JSON.parse(Buffer.from(payload).toString()) as {
        sequence: number;
        count: number;
      };
      return `${sequence}:${count}`;
    });
    const wanted = oracle.rejects(oracle.sequence).map(([sequence, count]) => `${sequence}:${count}`);
    if (String(rejected) !== String(wanted)) this.breach(`REJECTED has ${rejected} instead of ${wanted}`);
  }
}
