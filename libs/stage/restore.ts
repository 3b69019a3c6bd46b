/**
 * How a stage comes by its state: from its own disk as far as the outputs bear it out; else from the newest snapshot
 * that is whole; else from what its plan begins with; else from nothing.
 */
import { LogError } from '../dataflow/errors.ts';
import { comparePositions } from '../dataflow/position.ts';
import { type BlockChain, type BlockPosition, DamagedBlocks, type Found } from './block-chain.ts';
import type { Bus, Clock, Log } from './ports.ts';
import { checkPosition } from './position-check.ts';
import type { OutputEnd, StageCore } from './stage-core.ts';
import type { StagePlan } from './stage-plan.ts';

/** State on disk that is so far behind the newest snapshot is not gone on from. */
const STALE_MESSAGES = 10_000;

export interface RestoreHost {
  /** For people: the task. */
  readonly name: string;
  readonly bus: Bus;
  readonly clock: Clock;
  readonly log: Log;
  /** Undefined: the input is EDGES itself. */
  readonly edgesStream: string | undefined;
}

export interface RestoredState<Core> {
  readonly core: Core;
  /** Undefined: the state is empty. */
  readonly position: BlockPosition | undefined;
}

interface DiskState<Core> extends RestoredState<Core> {
  readonly found: Found;
}

export class StateRestore<Core extends StageCore> {
  private readonly host: RestoreHost;
  private readonly plan: StagePlan<Core>;
  private readonly chain: BlockChain;
  private readonly ends: readonly OutputEnd[];
  /** The newest message of the first input that a state, cut back since, had handed on. */
  handedOn = 0;

  /** `ends`: of the outputs, as their logs have them. */
  constructor(host: RestoreHost, plan: StagePlan<Core>, chain: BlockChain, ends: readonly OutputEnd[]) {
    this.host = host;
    this.plan = plan;
    this.chain = chain;
    this.ends = ends;
  }

  /** `isGapped`: the logs do not continue the state on disk, so only a newer one helps. */
  async restore(isGapped: boolean): Promise<RestoredState<Core>> {
    const local = await this.fromDisk();
    const isWhole = local.position !== undefined && local.found.kind !== 'damaged';
    const isUsable = isWhole && !isGapped && !(await this.isBehind(local));
    if (isUsable && !(await this.isStale(local))) return local;
    const state = await this.fromSnapshots(local);
    if (state.position !== undefined) return state;
    if (this.plan.seed === undefined) {
      await this.assertFromFirst(state.core);
      return state;
    }
    const core = this.plan.createCore();
    const position = await this.plan.seed(core);
    await this.chain.copy(position, core.copy());
    return { core, position };
  }

  /** A state that begins empty needs its inputs whole. What EDGES has lost, its reader says. */
  private async assertFromFirst(core: Core): Promise<void> {
    const { bus, edgesStream, name } = this.host;
    if (edgesStream === undefined) return;
    for (const { stream } of this.plan.inputs(core)) {
      const first = (await bus.describe(stream))?.first ?? 1;
      if (first === 1) continue;
      throw new LogError(
        'state-missing',
        `the ${name} has neither state nor a snapshot that is whole, and stream ${stream} begins at message ${first}: ` +
          'rebuild the graph (watershed graph rebuild)',
      );
    }
  }

  private async fromDisk(): Promise<DiskState<Core>> {
    const { clock } = this.host;
    const core = this.plan.createCore();
    const began = clock.now();
    const { found, position, blocks, cutBack } = await this.chain.restore(
      (block) =>
        block.outputs.every(
          ({ through }, at) =>
            !core.bindsState(at) || comparePositions(through, this.ends[at]!.end.through) <= 0,
        ),
      (payload) => core.restore(payload),
      async (newest) => {
        await this.assertInputsKept(core, newest);
        this.handedOn = Math.max(this.handedOn, newest.inputs[0]?.sequence ?? 0);
      },
      () => clock.yield(),
      () => core.digest,
    );
    this.tell(found, { blocks, cutBack, ms: Math.round(clock.now() - began) });
    return { core, position, found };
  }

  /** Whether the logs have been purged beyond the state. */
  private async isBehind({ core, position }: RestoredState<Core>): Promise<boolean> {
    for (const [at, { stream }] of this.plan.inputs(core).entries()) {
      const read = position?.inputs[at];
      const log = await this.host.bus.describe(stream);
      if (log === undefined || read === undefined) continue;
      if (log.created === read.created && log.first > read.sequence + 1) return true;
    }
    return false;
  }

  /** Whether a snapshot saves replaying a great many messages: a task may come back to an instance it left long ago. */
  private async isStale({ core, position }: RestoredState<Core>): Promise<boolean> {
    const { edgesStream } = this.host;
    const own = edgesStream === undefined ? position?.inputs[0]?.sequence : core.edgesRead?.sequence;
    const [newest] = (await this.plan.snapshots?.parts()) ?? [];
    return newest !== undefined && newest.sequence - (own ?? 0) > STALE_MESSAGES;
  }

  /** The state of the newest snapshot that is newer than what is on disk, and whole; else what is on disk. */
  private async fromSnapshots(local: DiskState<Core>): Promise<RestoredState<Core>> {
    const { snapshots } = this.plan;
    const { log, name } = this.host;
    let state = local;
    for (const part of (await snapshots?.parts()) ?? []) {
      const fields = { task: name, barrier: part.barrier, sequence: part.sequence };
      if (local.position !== undefined && part.barrier <= local.position.barrier) break;
      const release = snapshots!.hold(part);
      try {
        await this.chain.install(part.blocks());
        state = await this.fromDisk();
        if (state.position !== undefined) {
          log.warn(fields, 'the state was restored from a snapshot');
          return state;
        }
        log.warn(fields, 'the outputs hold less than the snapshot: trying the one before it');
      } catch (error) {
        if (!(error instanceof DamagedBlocks)) throw error;
        const { message } = error;
        log.error({ ...fields, error: message }, 'a snapshot is damaged: trying the one before it');
        state = await this.fromDisk();
      } finally {
        release();
      }
    }
    return state;
  }

  /**
   * Outputs that hold less than the state may be made again from the input, but only from the one the state was made of:
   * where EDGES lost its tail together with them, going back would pass for health.
   */
  private async assertInputsKept(core: Core, newest: BlockPosition): Promise<void> {
    if (this.host.edgesStream !== undefined) return;
    for (const [at, { stream }] of this.plan.inputs(core).entries())
      await checkPosition(this.host.bus, stream, newest.inputs[at]!);
  }

  private tell(found: Found, { blocks, cutBack, ms }: { blocks: number; cutBack: number; ms: number }): void {
    const { log, name } = this.host;
    const fields = { task: name, blocks, found: found.kind, ms };
    if (found.kind === 'damaged') {
      log.warn(
        { ...fields, at: found.block },
        'the stored state is damaged; what is before the damage is kept, the rest replayed',
      );
    } else if (found.kind === 'foreign') {
      log.warn(
        { ...fields, identity: found.identity },
        'the stored state belongs to another graph or version and is discarded',
      );
    } else if (cutBack > 0) {
      log.warn(
        { ...fields, cutBack },
        'an output log holds less than the state: the state is cut back to it and replayed',
      );
    } else log.info(fields, 'state restored');
  }
}
