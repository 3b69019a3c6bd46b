/**
 * The pipeline's cores under a schedule: which stage reads how many messages, where epochs are cut, where a
 * process dies between two appends or between append and commit. No time, no I/O, so thousands of schedules
 * run in seconds. It keeps logs and blocks as the runtime does (libs/stage/stage-task.ts), in arrays.
 */
import { ByteReader } from '../../libs/dataflow/bytes.ts';
import { NO_MARK } from '../../libs/dataflow/frame.ts';
import { comparePositions } from '../../libs/dataflow/position.ts';
import { DEFAULT_PARTITIONER, type PartitionerConfig } from '../../libs/partitioning/partitioner-config.ts';
import type { LogMessage } from '../../libs/stage/ports.ts';
import type { Cut, StageCore } from '../../libs/stage/stage-core.ts';
import { View } from '../../services/gateway/view.ts';
import { Partitioner } from '../../services/partitioner/partitioner.ts';
import { Worker } from '../../services/worker/worker.ts';

export const GRAPH_ID = '00112233445566778899aabbccddeeff';
const CREATED = 5n;

class ArrayLog {
  readonly messages: LogMessage[] = [];
  private forgotten = 0;

  /** Empties the payloads of all messages so far. */
  forget(): void {
    for (; this.forgotten < this.messages.length; this.forgotten++) {
      this.messages[this.forgotten] = { ...this.messages[this.forgotten]!, payload: new Uint8Array(0) };
    }
  }

  append(payload: Uint8Array, contentType?: string): number {
    const sequence = this.messages.length + 1;
    // A millisecond apart, so that times are the same in every run.
    const time = (1_700_000_000_000n + BigInt(sequence)) * 1_000_000n;
    this.messages.push({ sequence, time, payload: payload.slice(), contentType });
    return sequence;
  }

  get last(): Uint8Array | undefined {
    return this.messages.at(-1)?.payload;
  }
}

/** One stage: a core, its inputs and outputs, its blocks. */
class CoreStage<Core extends StageCore> {
  core: Core;
  private readonly create: () => Core;
  private readonly inputs: readonly ArrayLog[];
  private readonly outputs: readonly ArrayLog[];
  private blocks: { cut: Cut }[] = [];
  private readonly taken: number[];
  private term = 0;

  constructor(create: () => Core, inputs: readonly ArrayLog[], outputs: readonly ArrayLog[]) {
    this.create = create;
    this.inputs = inputs;
    this.outputs = outputs;
    this.taken = inputs.map(() => 0);
    this.core = create();
    this.restart();
  }

  /** Applies up to `count` messages of an input; how many there were. */
  read(input: number, count: number): number {
    const messages = this.inputs[input]!.messages;
    let done = 0;
    while (done < count && this.taken[input]! < messages.length && this.core.wants(input)) {
      this.core.apply(input, messages[this.taken[input]!]!);
      this.taken[input]! += 1;
      done += 1;
    }
    return done;
  }

  advance(): boolean {
    return this.core.advance();
  }

  /** Cuts an epoch and commits it; dies instead after `appends` of its appends, if given. */
  cut(appends = Number.POSITIVE_INFINITY): void {
    if (!this.core.dirty) return;
    const cut = this.core.cut(NO_MARK);
    let done = 0;
    for (const [at, output] of this.outputs.entries()) {
      for (const payload of cut.payloads[at]!) {
        if (done === appends) {
          this.restart();
          return;
        }
        output.append(payload);
        done += 1;
      }
    }
    if (appends !== Number.POSITIVE_INFINITY) this.restart();
    else this.blocks.push({ cut });
  }

  /** The process dies and starts again. */
  restart(): void {
    const core = this.create();
    const ends = this.outputs.map((output, at) => core.readEnd(at, output.last));
    const keeps = (cut: Cut): boolean =>
      cut.ends.every(
        ({ through }, at) => !core.bindsState(at) || comparePositions(through, ends[at]!.end.through) <= 0,
      );
    const kept = this.blocks.findIndex(({ cut }) => !keeps(cut));
    if (kept !== -1) this.blocks = this.blocks.slice(0, kept);
    for (const { cut } of this.blocks) core.restore(new ByteReader(cut.increment));
    const last = this.blocks.at(-1)?.cut;
    core.resume(
      last?.ends,
      ends.map(({ end }) => end),
      last?.read.map((read) => ({ ...read, created: CREATED })),
      0,
    );
    this.term = 1 + Math.max(this.term, 0, ...ends.map(({ term }) => term));
    for (const [at, output] of this.outputs.entries()) {
      const fence = core.fence(at, this.term);
      if (fence !== undefined) output.append(fence);
    }
    for (const input of this.inputs.keys()) {
      core.open(input, CREATED);
      this.taken[input] = last?.read[input]?.sequence ?? 0;
    }
    this.core = core;
  }

  forget(): void {
    this.blocks = [];
  }

  /** Writes the state whole, as the runtime does when blocks have become too many. */
  compact(): void {
    const last = this.blocks.at(-1)?.cut;
    if (last === undefined || this.core.dirty) return;
    const pieces = [...this.core.copy()];
    this.blocks = pieces.map((increment) => ({ cut: { ...last, increment } }));
  }
}

export class CorePipeline {
  readonly edges = new ArrayLog();
  readonly rejected = new ArrayLog();
  readonly partitioner: CoreStage<Partitioner>;
  readonly workers: CoreStage<Worker>[];
  readonly gateway: CoreStage<View>;
  readonly partitions: number;
  private readonly logs: ArrayLog[];
  /** PARTS, by partition. */
  readonly parts: readonly ArrayLog[];
  /** Called with each S that the view reaches. */
  onAdvance: (view: View, sequence: number) => void = () => {};

  constructor(partitions: number, partitioner: PartitionerConfig = DEFAULT_PARTITIONER) {
    this.partitions = partitions;
    const parts = Array.from({ length: partitions }, () => new ArrayLog());
    const forests = Array.from({ length: partitions }, () => new ArrayLog());
    this.parts = parts;
    this.logs = [...parts, ...forests, this.rejected];
    const generation = { generation: 1, partitions, after: 0 };
    const identity = { graphId: GRAPH_ID, ...generation };
    this.partitioner = new CoreStage(
      () => new Partitioner({ ...identity, partitioner }),
      [this.edges],
      [...parts, this.rejected],
    );
    this.workers = parts.map(
      (log, partition) =>
        new CoreStage(() => new Worker({ ...identity, partition }), [log], [forests[partition]!]),
    );
    const observer = {
      visible: () => {},
      advanced: (sequence: number) => {
        if (this.gateway !== undefined && sequence > 0) this.onAdvance(this.gateway.core, sequence);
      },
    };
    const createView = (): View => {
      const view = new View({ graphId: GRAPH_ID, origin: 1 }, observer);
      view.begin(generation);
      return view;
    };
    this.gateway = new CoreStage(createView, forests, []);
  }

  get view(): View {
    return this.gateway.core;
  }

  publish(payload: string | Uint8Array, contentType?: string): number {
    return this.edges.append(
      typeof payload === 'string' ? new TextEncoder().encode(payload) : payload,
      contentType,
    );
  }

  /** Drops what all stages have read and recorded, for runs too large to keep; no restart after it. */
  forget(): void {
    for (const log of [this.edges, ...this.logs]) log.forget();
    for (const stage of [this.partitioner, ...this.workers, this.gateway]) stage.forget();
  }

  /** Runs all stages until the view holds every message. */
  settle(): View {
    const all = Number.POSITIVE_INFINITY;
    for (let round = 0; this.view.sequence < this.edges.messages.length; round++) {
      if (round > 10_000)
        throw new Error(`the view stays at ${this.view.sequence} of ${this.edges.messages.length}`);
      this.partitioner.read(0, all);
      this.partitioner.cut();
      for (const worker of this.workers) {
        worker.read(0, all);
        worker.cut();
      }
      for (let input = 0; input < this.partitions; input++) this.gateway.read(input, all);
      while (this.gateway.advance());
    }
    return this.view;
  }
}
