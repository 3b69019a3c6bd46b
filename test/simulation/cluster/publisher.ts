/**
 * Who publishes edges: single ones and lists, some that are no edges; numbered as a producer does, or not. What got no
 * answer is sent again, under its number.
 */
import type { LogName } from '../../../libs/dataflow/names.ts';
import type { ProducerHeaders } from '../../../libs/stage/ports.ts';
import type { Process } from './process.ts';
import type { Random } from './random.ts';

export interface PublisherOptions {
  readonly edges: LogName;
  /** How many vertices there are to draw from. */
  readonly vertices: number;
  readonly messages: number;
  readonly pauseMs: number;
  /** How often a message, or an edge of one, is none. */
  readonly rejectRate: number;
  /** How often a message is sent once more although it was stored. */
  readonly repeatRate: number;
  /** How often messages come with a producer's number. */
  readonly numberedRate: number;
  /** Edges of one message that is larger than what a stage does at a time; 0: there is none. */
  readonly largest: number;
}

const RETRY_MS = 200;
const PRODUCERS = ['p-1', 'p-2'];
const encoder = new TextEncoder();

/** A message that the log has acknowledged. */
export interface Acknowledged {
  readonly sequence: number;
  readonly payload: Uint8Array;
}

export class Publisher {
  readonly acknowledged: Acknowledged[] = [];
  isDone = false;
  private readonly options: PublisherOptions;
  private readonly process: Process;
  private readonly random: Random;
  private readonly numbers = new Map<string, number>();

  constructor(options: PublisherOptions, process: Process, random: Random) {
    this.options = options;
    this.process = process;
    this.random = random;
  }

  async run(): Promise<void> {
    const { messages, pauseMs, numberedRate, repeatRate, largest } = this.options;
    const { random, process } = this;
    for (let message = 0; message < messages; message++) {
      // Some come at once, as a burst.
      if (random.chance(0.6)) await process.clock.sleep(random() * 3 * pauseMs);
      const isLargest = message === messages >> 1 && largest > 0;
      const payload = encoder.encode(isLargest ? pairsText(largest) : this.payload());
      const producer = random.chance(numberedRate) ? this.numbered() : undefined;
      await this.send(payload, producer);
      if (producer !== undefined && random.chance(repeatRate)) await this.send(payload, producer);
    }
    this.isDone = true;
  }

  private async send(payload: Uint8Array, producer: ProducerHeaders | undefined): Promise<void> {
    const options = producer === undefined ? {} : { producer };
    for (;;) {
      const appended = await this.process.bus.append(this.options.edges, payload, options);
      if (appended.kind === 'stored') {
        this.acknowledged.push({ sequence: appended.sequence, payload });
        return;
      }
      await this.process.clock.sleep(RETRY_MS);
    }
  }

  private numbered(): ProducerHeaders {
    const id = this.random.of(PRODUCERS);
    const number = (this.numbers.get(id) ?? 0) + 1;
    this.numbers.set(id, number);
    return { id, sequence: String(number) };
  }

  private payload(): string {
    const { random } = this;
    const { rejectRate } = this.options;
    if (random.chance(rejectRate)) return random.of(['{', 'hello', '[1']);
    if (random.chance(0.6)) return JSON.stringify(this.edge());
    return JSON.stringify(Array.from({ length: 1 + random.below(6) }, () => this.edge()));
  }

  private edge(): object {
    const { random } = this;
    const source = this.vertex();
    if (random.chance(this.options.rejectRate))
      return random.of([{ source }, { source, target: '' }, { source, target: null }]);
    return { source, target: random.chance(0.05) ? source : this.vertex() };
  }

  private vertex(): string {
    return `v${this.random.below(this.options.vertices)}`;
  }
}

/** Edges of vertices of their own, so that all of them matter to every stage. */
function pairsText(edges: number): string {
  return JSON.stringify(Array.from({ length: edges }, (_, at) => ({ source: `l${at}`, target: `r${at}` })));
}
