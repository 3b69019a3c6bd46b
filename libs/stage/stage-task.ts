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
import { LogError } from '../dataflow/errors.ts';
import { type Mark, NO_MARK } from '../dataflow/frame.ts';
import type { LogName } from '../dataflow/names.ts';
import { comparePositions, wholeMessagesBelow } from '../dataflow/position.ts';
import { BlockChain, type BlockPosition, DamagedBlocks } from './block-chain.ts';
import { Flush } from './flush.ts';
import { Input, type InputHost, type Problem, pause, problemOf } from './input.ts';
import { ForeignMessage, OutputLog, OutputLost } from './output.ts';
import type { Bus, Clock, Log, Store } from './ports.ts';
import { checkPosition, LOG_START } from './position-check.ts';
import { StateRestore } from './restore.ts';
import { Signal } from './signal.ts';
import type { Cut, OutputEnd, StageCore } from './stage-core.ts';
import type { PlacedMark, StagePlan } from './stage-plan.ts';

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
/** After so many of these looks a generation that does not end is said to be short. */
const SHORT_CHECKS = 3;
/** How often a stage looks for the generation after one that has ended. */
const NEXT_GENERATION_MS = 100;
/** After a mark could not be recorded. */
const MARK_RETRY_MS = 1_000;

export interface StageTaskOptions {
  /** For people: "worker 2 of social". */
  readonly name: string;
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

export type TaskState = 'starting' | 'running' | 'stopped';

/** How a session or a generation's part of it ended. */
type Outcome = 'stopped' | 'ended';

/** `ended`: the core whose generation has ended, undefined at first. Gives undefined when there is nothing left to do. */
export type MakePlan<Core extends StageCore> = (
  ended: Core | undefined,
) => Promise<StagePlan<Core> | undefined> | StagePlan<Core> | undefined;

/** One session's things. */
interface Session<Core extends StageCore> {
  readonly plan: StagePlan<Core>;
  readonly core: Core;
  readonly chain: BlockChain;
  readonly outputs: readonly OutputLog[];
  /** Through which message some output is complete already. */
  readonly replayedThrough: number;
  /** What ends it, found beside the work. */
  failure: unknown;
}

/** A generation's part of a session. */
interface Run {
  ended: boolean;
  /** What ends it. */
  failure: unknown;
}

export class StageTask<Core extends StageCore> {
  readonly options: StageTaskOptions;
  /** The core of the running session; undefined while the state is read. */
  core: Core | undefined;
  state: TaskState = 'starting';
  /** How often a replaced input log was found again by its watermark. */
  healed = 0;
  /** Another owner has taken over. */
  fenced = false;

  private readonly makePlan: MakePlan<Core>;
  private readonly host: StageHost;
  private readonly bus: Bus;
  private readonly clock: Clock;
  private readonly log: Log;
  private stopRequested = false;
  private term = 0;
  /** The newest barrier that the state has had. */
  private barrier = 0;
  private markRetryAt = Number.NEGATIVE_INFINITY;
  /** The inputs do not continue the state that the last session had. */
  private gapped = false;
  /** What is wrong now, by what it is wrong with. */
  private readonly problems = new Map<string, Problem>();
  private readonly wake: Signal;
  private finished: Promise<void> | undefined;

  constructor(options: StageTaskOptions, makePlan: MakePlan<Core>, host: StageHost) {
    this.options = options;
    this.makePlan = makePlan;
    this.host = host;
    this.bus = host.bus;
    this.clock = host.clock;
    this.wake = new Signal(host.clock);
    this.log = host.log;
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
    let ended: Core | undefined;
    while (!this.stopRequested) {
      const before = this.clock.now();
      try {
        const plan = await this.makePlan(ended);
        if (plan === undefined) break;
        const core = await this.session(plan);
        if (core !== undefined) ended = core;
      } catch (error) {
        this.core = undefined;
        if (this.stopRequested) break;
        const problem = problemOf(error);
        this.setProblem('session', problem);
        this.gapped = problem.code === 'log-gap';
        this.fenced = problem.code === 'fenced';
        if (this.fenced) break;
        // A session that ran well for a while begins with short waits again.
        if (this.clock.now() - before > RETRY_MS_MAX * 2) retryMs = RETRY_MS_MIN;
        this.state = 'starting';
        await pause(this.clock, retryMs, () => this.stopRequested);
        retryMs = Math.min(retryMs * 2, RETRY_MS_MAX);
      }
    }
    this.core = undefined;
    this.state = 'stopped';
  }

  /** Runs until told to stop; gives the core if its generation has ended. */
  private async session(plan: StagePlan<Core>): Promise<Core | undefined> {
    if (!(await this.host.isCurrent())) throw new LogError('log-missing', 'the graph was removed');
    for (const { log, options } of plan.outputs) await this.bus.create(log.stream, options);
    const store = await this.host.openStore(plan.folder);
    try {
      // What a core makes of its outputs' messages needs no state.
      const reader = plan.createCore();
      const outputs = plan.outputs.map(({ log }, at) => this.output(reader, log, at));
      const chain = new BlockChain(store, reader.identity);
      const ends = await this.openOutputs(reader, outputs);
      const restore = new StateRestore({ ...this.host, ...this.options }, plan, chain, ends);
      const { core, position: restored } = await restore.restore(this.gapped);
      this.gapped = false;
      const position = plan.prepare === undefined ? restored : plan.prepare(core, restored);
      const fenced = await this.becomeOwner(core, outputs, ends, position);
      this.barrier = position?.barrier ?? 0;
      // Others may have read what an output has lost since: nothing is marked before it is there again.
      const replayedThrough = Math.max(
        restore.handedOn,
        ...fenced.map(({ end }, at) => (core.bindsState(at) ? wholeMessagesBelow(end.through) : 0)),
      );
      const session = { plan, core, chain, outputs, replayedThrough, failure: undefined };
      this.storeBarrier(session);
      return (await this.runGenerations(session, position)) === 'ended' ? core : undefined;
    } finally {
      await plan.snapshots?.settle();
      await store.close();
    }
  }

  private async runGenerations(
    session: Session<Core>,
    restored: BlockPosition | undefined,
  ): Promise<Outcome> {
    const { plan, core } = session;
    let position = restored;
    for (;;) {
      const outcome = await this.process(session, position);
      const { next } = plan;
      if (outcome === 'stopped' || next === undefined) return outcome;
      let checkedAt = this.clock.now();
      while (!next(core)) {
        if (this.stopRequested) return 'stopped';
        await pause(this.clock, NEXT_GENERATION_MS, () => this.stopRequested);
        // Others may have to read what was written, until the generation is given up.
        if (this.clock.now() - checkedAt < LOGS_CHECK_MS) continue;
        checkedAt = this.clock.now();
        const failure = await this.checkOutputs(core, session.outputs);
        if (failure !== undefined) throw failure;
      }
      position = undefined;
    }
  }

  private output(core: Core, log: LogName, at: number): OutputLog {
    return new OutputLog(
      log,
      this.bus,
      this.clock,
      () => this.stopRequested,
      (message) =>
        this.setProblem(log.stream, message === undefined ? undefined : { code: 'retrying', message }),
      {
        isOwn: (payload) => core.isOwn(at, payload),
        passOver: (sequence) => this.passOver(log, sequence),
      },
    );
  }

  /** Fences off all earlier owners; gives the outputs' ends as they were then. */
  private async becomeOwner(
    core: Core,
    outputs: readonly OutputLog[],
    ends: readonly OutputEnd[],
    position: BlockPosition | undefined,
  ): Promise<readonly OutputEnd[]> {
    let newest = ends;
    for (let attempt = 1; ; attempt++) {
      core.resume(
        position?.outputs,
        newest.map(({ end }) => end),
        position?.inputs,
        position?.barrier ?? 0,
      );
      if (await this.fence(core, outputs, newest)) return newest;
      // Another owner writes on until it is fenced off: read the ends again, and at once, or it is always ahead.
      if (attempt === FENCE_ATTEMPTS_MAX || this.stopRequested) {
        throw new Error(`the outputs of ${this.options.name} moved while they were being fenced`);
      }
      newest = await this.openOutputs(core, outputs);
      for (const [at, { end }] of newest.entries()) {
        const state = position?.outputs[at];
        const isAhead = state !== undefined && comparePositions(state.through, end.through) > 0;
        if (isAhead && core.bindsState(at)) {
          throw new OutputLost(`stream ${outputs[at]!.log.stream} has lost what the state was made with`);
        }
      }
    }
  }

  private async openOutputs(core: Core, outputs: readonly OutputLog[]): Promise<OutputEnd[]> {
    const ends = [];
    for (const [at, output] of outputs.entries()) ends.push(core.readEnd(at, await output.open()));
    return ends;
  }

  /** Appends a fence to every output; false if one has grown since it was opened. */
  private async fence(
    core: Core,
    outputs: readonly OutputLog[],
    ends: readonly { readonly term: number }[],
  ): Promise<boolean> {
    this.term = 1 + Math.max(0, ...ends.map((end) => end.term));
    for (const [at, output] of outputs.entries()) {
      const frame = core.fence(at, this.term);
      if (frame !== undefined && !(await output.tryAppend(frame))) return false;
    }
    return true;
  }

  /** Reads and applies, until told to stop or to the end of the generation. */
  private async process(session: Session<Core>, position: BlockPosition | undefined): Promise<Outcome> {
    const { core, chain, plan } = session;
    // Before anybody asks: what was counted from another EDGES must never seem to be well.
    await this.checkEdges(core);
    const run: Run = { ended: false, failure: undefined };
    const inputs = plan
      .inputs(core)
      .map(
        (log, at) =>
          new Input(log, at, position?.inputs[at] ?? LOG_START, core, this.inputHost(session, run)),
      );
    const marks = await this.recordedMarks(plan, inputs);
    const flush = new Flush(this.wake);
    for (const input of inputs) input.start();
    const checking = this.watchLogs(session, inputs, run);
    let outcome: Outcome = 'stopped';
    try {
      this.core = core;
      this.options.running?.();
      // What is wrong between state and logs is over only when an epoch went through.
      if (this.problems.get('session')?.code === 'failed') this.setProblem('session', undefined);
      let dirtySince = 0;
      while (!this.stopRequested && outcome !== 'ended') {
        flush.throwIfFailed();
        const failure = run.failure ?? session.failure;
        if (failure !== undefined) throw failure;
        const wasDirty = core.dirty;
        const worked = await this.applyReady(core, inputs, marks[0]?.sequence);
        await this.recordMark(session, inputs, marks);
        const mark = core.dueMark ?? reachedMark(marks, through(inputs, core));
        if (mark !== undefined) {
          await flush.settled();
          flush.throwIfFailed();
          await this.flush(session, core.cut(mark), inputs, mark);
          if (mark === marks[0]) marks.shift();
          if (mark.kind === 'end-of-generation') outcome = 'ended';
          continue;
        }
        if (core.dirty && !wasDirty) dirtySince = this.clock.now();
        const age = this.clock.now() - dirtySince;
        const due =
          core.dirty &&
          (core.pendingBytes >= EPOCH_BYTES ||
            age >= this.options.epochMs ||
            (this.options.closeWhenIdle && !worked));
        if (due && !flush.running) {
          if (chain.wantsCopy(core.copyBytes)) await this.flushWithCopy(session, inputs);
          else flush.start(this.flush(session, core.cut(NO_MARK), inputs, NO_MARK));
          dirtySince = this.clock.now();
        } else if (flush.running && core.pendingBytes >= PENDING_BYTES_MAX) await flush.settled();
        else if (!worked) {
          const isWaitingToClose = core.dirty && !flush.running;
          await this.wake.wait(isWaitingToClose ? Math.max(1, this.options.epochMs - age) : WAIT_MS);
        }
      }
      await flush.settled();
      flush.throwIfFailed();
      // A mark that was reached must not be passed without being handed on.
      const mark = core.dueMark ?? NO_MARK;
      if (outcome === 'stopped' && (core.dirty || mark !== NO_MARK))
        await this.flush(session, core.cut(mark), inputs, mark);
      return outcome;
    } finally {
      // Before anything is waited for: a core that failed in the middle of its work must not answer.
      if (outcome !== 'ended') this.core = undefined;
      run.ended = true;
      await flush.settled();
      await Promise.all([checking, ...inputs.map((input) => input.stop())]);
    }
  }

  private inputHost({ plan, core }: Session<Core>, run: Run): InputHost {
    return {
      name: this.options.name,
      bus: this.bus,
      clock: this.clock,
      log: this.log,
      edgesStream: this.options.edgesStream,
      isOver: () => run.ended || this.stopRequested,
      isGivenUp: () => plan.isGivenUp?.(core) === true,
      setProblem: (about, problem) => this.setProblem(about, problem),
      checkEdges: () => this.checkEdges(core),
      opened: () => {
        this.state = 'running';
      },
      healed: () => {
        this.healed += 1;
      },
      failed: (error) => {
        run.failure ??= error;
        this.wake.raise();
      },
      wake: () => this.wake.raise(),
    };
  }

  private async recordedMarks({ marks }: StagePlan<Core>, inputs: readonly Input[]): Promise<PlacedMark[]> {
    if (marks === undefined) return [];
    const recorded = await marks.recorded(inputs[0]!.position.sequence);
    return recorded.filter(({ kind, number }) => kind !== 'barrier' || number > this.barrier);
  }

  /** Where a mark is due: records it behind the last message applied, so nothing is applied meanwhile. */
  private async recordMark(
    { plan, core, replayedThrough }: Session<Core>,
    inputs: readonly Input[],
    coming: PlacedMark[],
  ): Promise<void> {
    const { marks } = plan;
    const kind = marks?.due;
    if (marks === undefined || kind === undefined || coming.length > 0) return;
    if (this.clock.now() < this.markRetryAt) return;
    const applied = through(inputs, core);
    // What the outputs have already cannot be marked any more.
    if (applied < replayedThrough) return;
    try {
      const mark = await marks.record(applied, this.barrier);
      if (mark !== undefined) coming.push(mark);
      this.setProblem('marks', undefined);
    } catch (error) {
      // It may be recorded all the same, and then the stream must not go on beyond it: a new session reads what is so.
      if (kind === 'end-of-generation') throw error;
      this.markRetryAt = this.clock.now() + MARK_RETRY_MS;
      this.setProblem('marks', {
        code: 'retrying',
        message: `a snapshot's barrier cannot be recorded (${String(error)}): retrying`,
      });
    }
  }

  /** Applies what is ready, in slices and not beyond message `limit`; false if there was nothing. */
  private async applyReady(
    core: Core,
    inputs: readonly Input[],
    limit = Number.POSITIVE_INFINITY,
  ): Promise<boolean> {
    let worked = false;
    let sliceStart = this.clock.now();
    const breathe = async (): Promise<void> => {
      if (this.clock.now() - sliceStart < this.options.sliceMs) return;
      await this.clock.yield();
      sliceStart = this.clock.now();
    };
    for (const [at, input] of inputs.entries()) {
      while (core.dueMark === undefined && core.wants(at) && core.pendingBytes < PENDING_BYTES_MAX) {
        const message = input.next;
        if (message === undefined || message.sequence > limit) break;
        input.take();
        if (core.accepts(at, message)) core.apply(at, message);
        else this.passOver(input.log, message.sequence);
        worked = true;
        this.state = 'running';
        await breathe();
      }
      input.release();
    }
    while (core.dueMark === undefined && core.pendingBytes < PENDING_BYTES_MAX && core.advance()) {
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

  private async flush(session: Session<Core>, cut: Cut, inputs: readonly Input[], mark: Mark): Promise<void> {
    const { core, chain, outputs } = session;
    const isBarrier = mark.kind === 'barrier';
    const position = this.position(cut, inputs, isBarrier ? mark.number : this.barrier);
    const digest = isBarrier ? core.digest : undefined;
    await this.append(core, cut, outputs);
    if (isBarrier) await chain.appendAtBarrier(position, cut.increment, digest);
    else await chain.append(position, cut.increment);
    this.barrier = position.barrier;
    if (isBarrier) this.storeBarrier(session);
    this.setProblem('session', undefined);
  }

  /** As flush, but the state goes to disk whole: the many small blocks have outgrown it. */
  private async flushWithCopy(session: Session<Core>, inputs: readonly Input[]): Promise<void> {
    const { core, chain, outputs } = session;
    const cut = core.cut(NO_MARK);
    await this.append(core, cut, outputs);
    await chain.copy(this.position(cut, inputs, this.barrier), core.copy());
  }

  /** Hands the state at the newest barrier over to be stored. */
  private storeBarrier(session: Session<Core>): void {
    const { plan, chain } = session;
    const state = chain.atBarrier;
    if (plan.snapshots === undefined || state === undefined) return;
    plan.snapshots.reached(state, state.digest, {
      read: (at, block) => chain.blockBytes(at, block),
      damaged: () => {
        session.failure ??= new DamagedBlocks(
          `the state at barrier ${state.barrier} is damaged on disk: it is read again as far as it is whole`,
        );
        this.wake.raise();
      },
      release: chain.pin(state.chain),
    });
  }

  private async append(core: Core, cut: Cut, outputs: readonly OutputLog[]): Promise<void> {
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

  private position(cut: Cut, inputs: readonly Input[], barrier: number): BlockPosition {
    return {
      inputs: cut.read.map((read, at) => ({ ...read, created: inputs[at]!.position.created })),
      outputs: cut.ends,
      barrier,
    };
  }

  /**
   * Finds what no message tells: another EDGES behind the inputs; while nothing is appended, an output that is gone or
   * has another owner.
   */
  private async watchLogs(
    { plan, core, outputs }: Session<Core>,
    inputs: readonly Input[],
    run: Run,
  ): Promise<void> {
    let checksShort = 0;
    while (!run.ended && !this.stopRequested) {
      await pause(this.clock, LOGS_CHECK_MS, () => run.ended || this.stopRequested);
      if (run.ended) continue;
      await this.checkEdges(core);
      run.failure ??= await this.checkOutputs(core, outputs);
      checksShort = (await this.isShort(plan, core, inputs)) ? checksShort + 1 : 0;
      // Its last owner may be about to write them.
      this.setProblem('end', checksShort < SHORT_CHECKS ? undefined : shortProblem(inputs));
      if (run.failure !== undefined) this.wake.raise();
    }
  }

  /** Whether the inputs end before their generation does: nobody writes what was lost of them. */
  private async isShort(plan: StagePlan<Core>, core: Core, inputs: readonly Input[]): Promise<boolean> {
    const end = plan.endsAt?.(core);
    if (end === undefined || (core.edgesRead?.sequence ?? 0) >= end) return false;
    try {
      for (const { log, position } of inputs) {
        const state = await this.bus.describe(log.stream);
        if (state === undefined || state.last > position.sequence) return false;
      }
      return true;
    } catch {
      // A server that does not answer is the readers' to report.
      return false;
    }
  }

  /** Why a session must end, as its outputs show it; undefined: it need not. */
  private async checkOutputs(core: Core, outputs: readonly OutputLog[]): Promise<unknown> {
    let failure: unknown;
    for (const [at, output] of outputs.entries()) {
      try {
        await output.check();
      } catch (error) {
        // A server that does not answer is the readers' to report.
        failure ??= this.outputFailure(core, at, error);
      }
    }
    return failure;
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
}

function shortProblem(inputs: readonly Input[]): Problem {
  const streams = inputs.map(({ log }) => log.stream).join(', ');
  return {
    code: 'log-truncated',
    message:
      `${streams}: the end of the generation is missing, and nobody writes it any more: its tail is lost. Rebuild the graph ` +
      '(watershed graph rebuild)',
  };
}

/** The last message of the first input that is applied. */
function through(inputs: readonly Input[], core: StageCore): number {
  return core.edgesRead?.sequence ?? inputs[0]?.position.sequence ?? 0;
}

function reachedMark(marks: readonly PlacedMark[], sequence: number): PlacedMark | undefined {
  const mark = marks[0];
  return mark !== undefined && sequence >= mark.sequence ? mark : undefined;
}
