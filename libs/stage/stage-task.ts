/**
 * Hosts a stage's core: reads its inputs in order, appends what it hands on, keeps its state.
 *
 * State never runs ahead of output. One step: apply an epoch in memory; append its frames; when every output
 * has acknowledged, write the block. So at a restart the outputs hold at least what the state holds, the
 * input is replayed from the state's position, and what the outputs hold already is not appended again but must
 * reproduce their running hash. An output that holds *less* (a log lost its tail) cuts the state back first.
 * No outbox, no acknowledged consumers: the log is the outbox, the position lives in the block.
 *
 * What passes by itself (no answer, a reader that was reset) is retried in place and shown as a problem.
 * What means that this state and the logs do not belong together ends the session: the state is read
 * again from disk, and checked again.
 */
import { LogError, type LogErrorCode } from '../dataflow/errors.ts';
import type { LogName } from '../dataflow/names.ts';
import { comparePositions, type MessageIdentity } from '../dataflow/position.ts';
import { BlockChain, type BlockPosition } from './block-chain.ts';
import { Flush } from './flush.ts';
import { ForeignMessage, OutputLog, OutputLost } from './output.ts';
import type { Bus, Clock, Log, LogMessage, LogOptions, LogReader, Store } from './ports.ts';
import { checkPosition, LOG_START } from './position-check.ts';
import { Signal } from './signal.ts';
import type { Cut, StageCore } from './stage-core.ts';

/** An epoch closes at this size at the latest. */
const EPOCH_BYTES = 256 * 1024;
/** Reading goes on while an epoch is appended, up to this much for the next one. */
const PENDING_BYTES_MAX = 4 * EPOCH_BYTES;
const RETRY_MS_MIN = 250;
const RETRY_MS_MAX = 5_000;
const WAIT_MS = 1_000;
const FENCE_ATTEMPTS_MAX = 100;
/** How often a stage looks at its outputs, and one behind the partitioner at EDGES, while nothing else makes it. */
const LOGS_CHECK_MS = 5_000;

export interface StageTaskOptions {
  /** For people: "worker 2 of social". */
  readonly name: string;
  readonly inputs: readonly LogName[];
  readonly outputs: readonly { readonly log: LogName; readonly options: LogOptions }[];
  /**
   * The EDGES stream, where the inputs are functions of it: then an input that was replaced heals, as long as
   * EDGES still holds the message that the state was read through.
   */
  readonly edgesStream: string | undefined;
  /** Closes an epoch as soon as the input is idle; otherwise after `epochMs`. */
  readonly closeWhenIdle: boolean;
  readonly epochMs: number;
  /** No slice of work holds the event loop for longer. */
  readonly sliceMs: number;
  /** Told when the state is read and the core can be asked. */
  readonly running?: () => void;
}

/** What a task gets from the process it runs in. */
export interface StageHost {
  readonly bus: Bus;
  readonly openStore: (folder: string) => Promise<Store>;
  readonly clock: Clock;
  readonly log: Log;
  /** Whether the graph is still there: the outputs of one that was removed must not be made again. */
  readonly isCurrent: () => Promise<boolean>;
}

export interface Problem {
  readonly code: LogErrorCode | 'retrying' | 'failed';
  readonly message: string;
}

export type TaskState = 'starting' | 'running' | 'stopped';

interface Input {
  readonly log: LogName;
  position: MessageIdentity;
  ready: LogMessage[];
  taken: number;
  reader: LogReader | undefined;
  /** Raised when the loop has taken all that was ready. */
  readonly emptied: Signal;
}

export class StageTask<Core extends StageCore> {
  readonly options: StageTaskOptions;
  /** The core of the running session; undefined while the state is read. */
  core: Core | undefined;
  state: TaskState = 'starting';
  /** How often a replaced input log was found again by its watermark. */
  healed = 0;

  private readonly createCore: () => Core;
  private readonly openStore: () => Promise<Store>;
  private readonly bus: Bus;
  private readonly clock: Clock;
  private readonly log: Log;
  private readonly isCurrent: () => Promise<boolean>;
  private stopRequested = false;
  private term = 0;
  /** What is wrong now, by what it is wrong with. */
  private readonly problems = new Map<string, Problem>();
  private readonly wake = new Signal();
  private finished: Promise<void> | undefined;

  /** `folder` names the task's state among those of its graph on this instance. */
  constructor(options: StageTaskOptions, createCore: () => Core, folder: string, host: StageHost) {
    this.options = options;
    this.createCore = createCore;
    this.openStore = () => host.openStore(folder);
    this.bus = host.bus;
    this.clock = host.clock;
    this.log = host.log;
    this.isCurrent = host.isCurrent;
  }

  get problem(): Problem | undefined {
    const problems = [...this.problems.values()];
    // What a log says weighs more than what may pass.
    return problems.find(({ code }) => code !== 'retrying' && code !== 'failed') ?? problems[0];
  }

  start(): void {
    this.finished = this.run();
  }

  async stop(): Promise<void> {
    this.stopRequested = true;
    this.wake.raise();
    await this.finished;
  }

  private async run(): Promise<void> {
    let retryMs = RETRY_MS_MIN;
    while (!this.stopRequested) {
      const before = this.clock.now();
      try {
        await this.session();
      } catch (error) {
        this.core = undefined;
        if (this.stopRequested) break;
        const problem = problemOf(error);
        this.setProblem('session', problem);
        if (problem.code === 'fenced') break;
        // A session that ran well for a while begins with short waits again.
        if (this.clock.now() - before > RETRY_MS_MAX * 2) retryMs = RETRY_MS_MIN;
        this.state = 'starting';
        await this.pause(retryMs);
        retryMs = Math.min(retryMs * 2, RETRY_MS_MAX);
      }
    }
    this.core = undefined;
    this.state = 'stopped';
  }

  private async session(): Promise<void> {
    const { options, bus } = this;
    if (!(await this.isCurrent())) throw new LogError('log-missing', 'the graph was removed');
    const core = this.createCore();
    for (const { log, options: logOptions } of options.outputs) await bus.create(log.stream, logOptions);
    const store = await this.openStore();
    try {
      const outputs = options.outputs.map(
        ({ log }, at) =>
          new OutputLog(
            log,
            bus,
            this.clock,
            () => this.stopRequested,
            (message) =>
              this.setProblem(log.stream, message === undefined ? undefined : { code: 'retrying', message }),
            {
              isOwn: (payload) => core.isOwn(at, payload),
              passOver: (sequence) => this.passOver(log, sequence),
            },
          ),
      );
      const chain = new BlockChain(store, core.identity);
      const position = await this.restore(core, chain, outputs);
      const inputs = options.inputs.map((log, at) => ({
        log,
        position: position?.inputs[at] ?? LOG_START,
        ready: [],
        taken: 0,
        reader: undefined,
        emptied: new Signal(),
      }));
      await this.process(core, chain, outputs, inputs);
    } finally {
      await store.close();
    }
  }

  /** Reads the state as far as the outputs bear it out, and becomes the outputs' one writer. */
  private async restore(
    core: Core,
    chain: BlockChain,
    outputs: OutputLog[],
  ): Promise<BlockPosition | undefined> {
    const ends = await this.openOutputs(core, outputs);
    const began = this.clock.now();
    const { found, position, blocks, cutBack } = await chain.restore(
      (block) =>
        block.outputs.every(
          ({ through }, at) => !core.bindsState(at) || comparePositions(through, ends[at]!.end.through) <= 0,
        ),
      (payload) => core.restore(payload),
      (newest) => this.assertInputsKept(newest),
      () => this.clock.yield(),
    );
    const fields = {
      task: this.options.name,
      blocks,
      found: found.kind,
      ms: Math.round(this.clock.now() - began),
    };
    if (found.kind === 'damaged') {
      this.log.warn(
        { ...fields, at: found.block },
        'the stored state is damaged; what is before the damage is kept, the rest replayed',
      );
    } else if (found.kind === 'foreign') {
      this.log.warn(
        { ...fields, identity: found.identity },
        'the stored state belongs to another graph or version and is discarded',
      );
    } else if (cutBack > 0) {
      this.log.warn(
        { ...fields, cutBack },
        'an output log holds less than the state: the state is cut back to it and replayed',
      );
    } else this.log.info(fields, 'state restored');
    let newest = ends;
    for (let attempt = 1; ; attempt++) {
      core.resume(
        position?.outputs,
        newest.map(({ end }) => end),
        position?.inputs,
      );
      if (await this.fence(core, outputs, newest)) break;
      // Another owner writes on until it is fenced off: read the ends again, and at once, or it is always ahead.
      if (attempt === FENCE_ATTEMPTS_MAX || this.stopRequested) {
        throw new Error(`the outputs of ${this.options.name} moved while they were being fenced`);
      }
      newest = await this.openOutputs(core, outputs);
    }
    return position;
  }

  /**
   * Outputs that hold less than the state may be made again from the input, but only from the one the state was made of:
   * where EDGES lost its tail together with them, going back would pass for health.
   */
  private async assertInputsKept(newest: BlockPosition): Promise<void> {
    const { inputs, edgesStream } = this.options;
    if (edgesStream !== undefined) return;
    for (const [at, { stream }] of inputs.entries())
      await checkPosition(this.bus, stream, newest.inputs[at]!);
  }

  private async openOutputs(core: Core, outputs: OutputLog[]): Promise<ReturnType<StageCore['readEnd']>[]> {
    const ends = [];
    for (const [at, output] of outputs.entries()) ends.push(core.readEnd(at, await output.open()));
    return ends;
  }

  /** Appends a fence to every output; false if one has grown since it was opened. */
  private async fence(
    core: Core,
    outputs: OutputLog[],
    ends: readonly { readonly term: number }[],
  ): Promise<boolean> {
    this.term = 1 + Math.max(0, ...ends.map((end) => end.term));
    for (const [at, output] of outputs.entries()) {
      const frame = core.fence(at, this.term);
      if (frame !== undefined && !(await output.tryAppend(frame))) return false;
    }
    return true;
  }

  private async process(core: Core, chain: BlockChain, outputs: OutputLog[], inputs: Input[]): Promise<void> {
    // Before anybody asks: what was counted from another EDGES must never seem to be well.
    await this.checkEdges(core);
    const session: Session = { ended: false, failure: undefined };
    const flush = new Flush(this.wake);
    const reading = inputs.map((input, at) => this.readInput(core, input, at, session));
    const checking = this.watchLogs(core, outputs, session);
    try {
      this.core = core;
      this.options.running?.();
      // What is wrong between state and logs is over only when an epoch went through.
      if (this.problems.get('session')?.code === 'failed') this.setProblem('session', undefined);
      let dirtySince = 0;
      while (!this.stopRequested) {
        flush.throwIfFailed();
        if (session.failure !== undefined) throw session.failure;
        const wasDirty = core.dirty;
        const worked = await this.applyReady(core, inputs);
        if (core.dirty && !wasDirty) dirtySince = this.clock.now();
        const age = this.clock.now() - dirtySince;
        const due =
          core.dirty &&
          (core.pendingBytes >= EPOCH_BYTES ||
            age >= this.options.epochMs ||
            (this.options.closeWhenIdle && !worked));
        if (due && !flush.running) {
          if (chain.wantsCopy) await this.flushWithCopy(core, chain, outputs, inputs);
          else flush.start(this.flush(core, core.cut(), chain, outputs, inputs));
          dirtySince = this.clock.now();
        } else if (flush.running && core.pendingBytes >= PENDING_BYTES_MAX) await flush.settled();
        else if (!worked) {
          const isWaitingToClose = core.dirty && !flush.running;
          await this.wake.wait(isWaitingToClose ? Math.max(1, this.options.epochMs - age) : WAIT_MS);
        }
      }
      await flush.settled();
      flush.throwIfFailed();
      if (core.dirty) await this.flush(core, core.cut(), chain, outputs, inputs);
    } finally {
      // Before anything is waited for: a core that failed in the middle of its work must not answer.
      this.core = undefined;
      session.ended = true;
      for (const input of inputs) input.emptied.raise();
      await flush.settled();
      await Promise.all([...reading, checking, ...inputs.map((input) => input.reader?.close())]);
    }
  }

  /** Applies what is ready, in slices; false if there was nothing. */
  private async applyReady(core: Core, inputs: Input[]): Promise<boolean> {
    let worked = false;
    let sliceStart = this.clock.now();
    const breathe = async (): Promise<void> => {
      if (this.clock.now() - sliceStart < this.options.sliceMs) return;
      await this.clock.yield();
      sliceStart = this.clock.now();
    };
    for (const [at, input] of inputs.entries()) {
      while (input.taken < input.ready.length && core.wants(at) && core.pendingBytes < PENDING_BYTES_MAX) {
        const message = input.ready[input.taken++]!;
        if (core.accepts(at, message)) core.apply(at, message);
        else this.passOver(input.log, message.sequence);
        worked = true;
        this.state = 'running';
        await breathe();
      }
      if (input.taken === input.ready.length && input.taken > 0) {
        input.ready = [];
        input.taken = 0;
        input.emptied.raise();
      }
    }
    while (core.pendingBytes < PENDING_BYTES_MAX && core.advance()) {
      worked = true;
      await breathe();
    }
    return worked;
  }

  private passOver({ stream }: LogName, sequence: number): void {
    this.log.warn(
      { task: this.options.name, stream, sequence },
      'a message that is not of the writer of the stream is passed over: somebody publishes on its subject',
    );
  }

  private async flush(
    core: Core,
    cut: Cut,
    chain: BlockChain,
    outputs: OutputLog[],
    inputs: Input[],
  ): Promise<void> {
    const position = this.position(cut, inputs);
    await this.append(core, cut, outputs);
    await chain.append(position, cut.increment);
    this.setProblem('session', undefined);
  }

  /** As flush, but the state goes to disk whole: the many small blocks have outgrown it. */
  private async flushWithCopy(
    core: Core,
    chain: BlockChain,
    outputs: OutputLog[],
    inputs: Input[],
  ): Promise<void> {
    const cut = core.cut();
    await this.append(core, cut, outputs);
    await chain.copy(this.position(cut, inputs), core.copy());
  }

  private async append(core: Core, cut: Cut, outputs: OutputLog[]): Promise<void> {
    // All must have ended: one left behind would write on into the next session.
    const results = await Promise.allSettled(
      outputs.map((output, at) => this.appendOne(core, output, at, cut.payloads[at]!)),
    );
    const errors = results.flatMap((result) =>
      result.status === 'rejected' ? [result.reason as unknown] : [],
    );
    if (errors.length === 0) return;
    // The log of rejects carries no term, so it alone cannot tell who is the later owner.
    throw errors.find((error) => error instanceof LogError && error.code === 'fenced') ?? errors[0];
  }

  private async appendOne(
    core: Core,
    output: OutputLog,
    at: number,
    payloads: readonly Uint8Array[],
  ): Promise<void> {
    try {
      await output.appendAll(payloads);
    } catch (error) {
      throw this.fencedBy(core, at, error) ?? error;
    }
  }

  /** Why a session must end, as an output shows it; undefined: it need not. */
  private outputFailure(core: Core, at: number, error: unknown): unknown {
    if (error instanceof OutputLost) return error;
    try {
      return this.fencedBy(core, at, error);
    } catch (unreadable) {
      return unreadable;
    }
  }

  /** If the error is that a later owner of the task writes its output: that, in words. */
  private fencedBy(core: Core, at: number, error: unknown): LogError | undefined {
    if (!(error instanceof ForeignMessage) || core.readEnd(at, error.payload).term <= this.term)
      return undefined;
    return new LogError(
      'fenced',
      `${this.options.name}: another process has taken over (it writes ${error.log.stream}): stop one of the two`,
      { cause: error },
    );
  }

  private position(cut: Cut, inputs: Input[]): BlockPosition {
    return {
      inputs: cut.read.map((mark, at) => ({ ...mark, created: inputs[at]!.position.created })),
      outputs: cut.ends,
    };
  }

  /** Keeps one input's messages coming until the session ends, over any number of readers. */
  private async readInput(core: Core, input: Input, at: number, session: Session): Promise<void> {
    let retryMs = RETRY_MS_MIN;
    while (!session.ended && !this.stopRequested) {
      try {
        input.reader = await this.openInput(core, input, at);
        this.setProblem(input.log.stream, undefined);
        this.state = 'running';
        retryMs = RETRY_MS_MIN;
        while (!session.ended && !this.stopRequested) {
          const messages = await input.reader.next(WAIT_MS);
          if (messages.length === 0) continue;
          input.ready = [...messages];
          input.taken = 0;
          const { sequence, time } = messages[messages.length - 1]!;
          this.wake.raise();
          await input.emptied.wait(undefined);
          if (session.ended) break;
          input.position = { ...input.position, sequence, time };
        }
      } catch (error) {
        if (session.ended || this.stopRequested) break;
        this.setProblem(input.log.stream, readProblem(input.log.stream, error));
        await this.pause(retryMs, () => session.ended);
        retryMs = Math.min(retryMs * 2, RETRY_MS_MAX);
      }
      await input.reader?.close().catch(() => {});
      input.reader = undefined;
    }
  }

  private async openInput(core: Core, input: Input, at: number): Promise<LogReader> {
    const { stream } = input.log;
    if ((await this.bus.describe(stream)) === undefined) {
      const isDerived = this.options.edgesStream !== undefined;
      // Between stages this is how every start looks until the writer has made its log.
      if (isDerived) throw new Error('it is not there (yet): its writer is not running, or it was deleted');
      throw new LogError(
        'log-missing',
        `there is no stream ${stream}: restore it, or remove the graph and create it again`,
      );
    }
    let reader = await this.bus.read(stream, input.position.sequence + 1);
    try {
      const created = await this.checkInput(core, input);
      if (created !== input.position.created) {
        input.position = { ...input.position, created };
        // A healed position is behind the reader's: read what is there from its first message.
        await reader.close();
        reader = await this.bus.read(stream, input.position.sequence + 1);
      }
      await this.checkEdges(core);
      core.open(at, created);
      return reader;
    } catch (error) {
      await reader.close();
      throw error;
    }
  }

  /**
   * Checks the position. PARTS and FOREST are functions of EDGES: where such a log is not the one that was
   * read, but EDGES still is, its frames from the first one on are read again, what the state has of them
   * dropped, and the running hash compared. EDGES itself never heals silently.
   */
  private async checkInput(core: Core, input: Input): Promise<bigint> {
    const { stream } = input.log;
    try {
      return await checkPosition(this.bus, stream, input.position);
    } catch (error) {
      const { edgesStream } = this.options;
      if (!(error instanceof LogError) || error.code === 'log-missing' || edgesStream === undefined)
        throw error;
      await checkPosition(this.bus, edgesStream, core.edgesRead ?? LOG_START);
      const state = await this.bus.describe(stream);
      if (state === undefined) throw error;
      this.healed += 1;
      this.log.warn(
        { task: this.options.name, stream, code: error.code },
        `${error.message}; EDGES is unchanged, reading ${stream} again`,
      );
      input.position = { sequence: state.first - 1, time: 0n, created: 0n };
      return state.created;
    }
  }

  /**
   * Finds what no message tells: another EDGES behind the inputs; while nothing is appended, an output that is gone or
   * has another owner.
   */
  private async watchLogs(core: Core, outputs: readonly OutputLog[], session: Session): Promise<void> {
    while (!session.ended && !this.stopRequested) {
      await this.pause(LOGS_CHECK_MS, () => session.ended);
      if (session.ended) continue;
      await this.checkEdges(core);
      for (const [at, output] of outputs.entries()) {
        try {
          await output.check();
        } catch (error) {
          // A server that does not answer is the readers' to report.
          session.failure ??= this.outputFailure(core, at, error);
        }
      }
      if (session.failure !== undefined) this.wake.raise();
    }
  }

  /** A stage that reads no EDGES still notices when EDGES is not the log that its state was made from. */
  private async checkEdges(core: Core): Promise<void> {
    const { edgesStream } = this.options;
    if (edgesStream === undefined || core.edgesRead === undefined) return;
    try {
      await checkPosition(this.bus, edgesStream, core.edgesRead);
      this.setProblem(edgesStream, undefined);
    } catch (error) {
      // A server that does not answer is the readers' to report.
      if (error instanceof LogError) this.setProblem(edgesStream, problemOf(error));
    }
  }

  private setProblem(about: string, problem: Problem | undefined): void {
    const before = this.problems.get(about);
    if (problem?.message === before?.message) return;
    if (problem === undefined) this.problems.delete(about);
    else this.problems.set(about, problem);
    const fields = { task: this.options.name, code: problem?.code ?? before?.code };
    if (problem === undefined) this.log.info(fields, `over: ${before?.message}`);
    else if (problem.code === 'retrying') this.log.warn(fields, problem.message);
    else this.log.error(fields, problem.message);
  }

  private async pause(ms: number, ended: () => boolean = () => false): Promise<void> {
    const until = this.clock.now() + ms;
    while (!this.stopRequested && !ended() && this.clock.now() < until) {
      await this.clock.sleep(Math.min(100, until - this.clock.now()));
    }
  }
}

function problemOf(error: unknown): Problem {
  if (error instanceof LogError) return { code: error.code, message: error.message };
  return { code: 'failed', message: error instanceof Error ? error.message : String(error) };
}

function readProblem(stream: string, error: unknown): Problem {
  const problem = problemOf(error);
  if (problem.code !== 'failed') return problem;
  return { code: 'retrying', message: `stream ${stream} cannot be read (${problem.message}): retrying` };
}

interface Session {
  ended: boolean;
  /** What ends it. */
  failure: unknown;
}
