/**
 * What a stage's task runs, and what it needs besides logs and store: where marks come from, where snapshots are.
 */
import type { Mark } from '../dataflow/frame.ts';
import type { LogName } from '../dataflow/names.ts';
import type { BarrierState, BlockPosition } from './block-chain.ts';
import type { LogOptions } from './ports.ts';
import type { StageCore } from './stage-core.ts';

/** One layout of a task: from here to the end of a generation, or for ever. */
export interface StagePlan<Core extends StageCore> {
  /** Names the state among those of its graph on this instance. */
  readonly folder: string;
  readonly createCore: () => Core;
  /** The logs to read, once the core's state is there. */
  readonly inputs: (core: Core) => readonly LogName[];
  readonly outputs: readonly { readonly log: LogName; readonly options: LogOptions }[];
  readonly snapshots: StageSnapshots | undefined;
  /** State to begin with where neither disk nor snapshots have any; gives what it is the state of. */
  readonly seed?: ((core: Core) => Promise<BlockPosition>) | undefined;
  /** The state is there: gives the position to go on from, or throws a LogError that says why that cannot be. */
  readonly prepare?: (core: Core, position: BlockPosition | undefined) => BlockPosition | undefined;
  /** Where the stream is marked; of the partitioner alone. */
  readonly marks?: MarkSource;
  /** The message through which the inputs go, where their generation has ended. */
  readonly endsAt?: (core: Core) => number | undefined;
  /** Whether the logs that the core reads were given up: then the state needs a newer snapshot. */
  readonly isGivenUp?: (core: Core) => boolean;
  /**
   * The generation's inputs are read to their end: goes on with the next one's, if it is known yet. Without this the
   * task has ended, or begins anew by another plan.
   */
  readonly next?: (core: Core) => boolean;
}

/** A mark, and the EDGES message behind which it stands. */
export interface PlacedMark extends Mark {
  readonly sequence: number;
}

export interface MarkSource {
  /** The marks of this generation that are recorded at or behind message `sequence`, in order. */
  recorded(sequence: number): Promise<readonly PlacedMark[]>;
  /** The one that should be recorded now. */
  readonly due: 'barrier' | 'end-of-generation' | undefined;
  /**
   * Records the mark that is due, behind message `sequence`, the last that was applied; `barrier` is the newest that the
   * state has had. Recorded first and marked then: so the next owner of the task, after a crash between two channels,
   * marks the others at the same place.
   */
  record(sequence: number, barrier: number): Promise<PlacedMark | undefined>;
}

/** A task's part of a whole snapshot. */
export interface RestorablePart {
  readonly barrier: number;
  /** The snapshot's EDGES message. */
  readonly sequence: number;
  /** The state's blocks in order; throws where they are not what was stored. */
  blocks(): AsyncIterable<Uint8Array>;
}

/** The bytes of a block of the chain; undefined: it is not there any more. */
export type ReadBlock = (chain: number, block: number) => Promise<Uint8Array | undefined>;

/** The blocks of a state that are kept while they are stored elsewhere. */
export interface PinnedBlocks {
  readonly read: ReadBlock;
  /** They are not what was written: the state must be read again, as far as it is whole. */
  readonly damaged: () => void;
  /** They are needed no more. */
  readonly release: () => Promise<void>;
}

/** What a stage needs of snapshots. */
export interface StageSnapshots {
  /** This task's parts, newest first. */
  parts(): Promise<readonly RestorablePart[]>;
  /** The restoring of a part begins: it and the logs behind it are kept until the given function is called. */
  hold(part: RestorablePart): () => void;
  /** The state at a barrier is on disk: stores its blocks in the background. */
  reached(state: BarrierState, digest: string | undefined, blocks: PinnedBlocks): void;
  /** Ends what runs in the background: the store is about to close. */
  settle(): Promise<void>;
}
