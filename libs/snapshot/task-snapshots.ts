/**
 * A task's side of snapshots: stores its state at each barrier in the background, and finds its parts again.
 *
 * A part that could not be stored is tried again, its blocks kept, until a newer barrier comes.
 */
import type { ByteReader } from '../dataflow/bytes.ts';
import { LogError } from '../dataflow/errors.ts';
import type { SnapshotName } from '../dataflow/graph-config.ts';
import { type BarrierState, type BlockPosition, DamagedBlocks, readBlocks } from '../stage/block-chain.ts';
import { pause } from '../stage/input.ts';
import type { Chunks, Clock, Kv, Log } from '../stage/ports.ts';
import type { PinnedBlocks, RestorablePart, StageSnapshots } from '../stage/stage-plan.ts';
import { PartWriter, partBlocks } from './part-chunks.ts';
import { type BarrierRecord, type Manifest, type PartRecord, SnapshotRecords } from './records.ts';

const RETRY_MS = 2_000;
const HOLD_BEAT_MS = 5_000;

export interface SnapshotHost {
  readonly kv: Kv;
  readonly chunks: Chunks;
  readonly clock: Clock;
  readonly log: Log;
  /** The name of this process in the cluster. */
  readonly instance: string;
}

export interface TaskSnapshotsOptions {
  readonly graphId: string;
  /** As in the part's record. */
  readonly task: string;
  /** Which snapshots' parts can be gone on from. */
  readonly accepts: (manifest: Manifest) => boolean;
  /** Whether this process is to store the part; a view is in every gateway, and one of them stores it. */
  readonly stores: () => boolean;
  /** Told at each barrier of another gateway's view that differs there, or that none does. */
  readonly diverged?: (message: string | undefined) => void;
}

interface Job {
  readonly state: BarrierState;
  readonly digest: string | undefined;
  readonly blocks: PinnedBlocks;
}

export class TaskSnapshots implements StageSnapshots {
  private readonly options: TaskSnapshotsOptions;
  private readonly host: SnapshotHost;
  private readonly records: SnapshotRecords;
  private readonly writer: PartWriter;
  private job: Job | undefined;
  private running: Promise<void> = Promise.resolve();
  private beat = 0;
  /** The key of the part stored last. */
  private lastPart: string | undefined;

  constructor(options: TaskSnapshotsOptions, host: SnapshotHost) {
    this.options = options;
    this.host = host;
    this.records = new SnapshotRecords(host.kv, options.graphId);
    this.writer = new PartWriter(host.chunks);
  }

  async parts(): Promise<readonly RestorablePart[]> {
    const { manifests } = await this.records.read();
    return manifests
      .filter(this.options.accepts)
      .flatMap((manifest) => restorable(this.host.chunks, manifest, this.options.task));
  }

  hold({ barrier }: RestorablePart): () => void {
    const { clock, instance } = this.host;
    const at = `${instance}.${this.options.task}`;
    let isOver = false;
    void (async () => {
      while (!isOver) {
        this.beat += 1;
        await this.records.put('hold', at, { barrier, beat: this.beat }).catch(() => {});
        await clock.sleep(HOLD_BEAT_MS);
      }
      // Left behind, it is over when it has not changed for a while.
      await this.records.remove('hold', at).catch(() => {});
    })();
    return () => {
      isOver = true;
    };
  }

  reached(state: BarrierState, digest: string | undefined, blocks: PinnedBlocks): void {
    const job = { state, digest, blocks };
    this.job = job;
    const previous = this.running;
    this.running = (async () => {
      await previous;
      try {
        await this.run(job);
      } finally {
        await blocks.release().catch(() => {});
      }
    })();
  }

  async settle(): Promise<void> {
    this.job = undefined;
    await this.running;
  }

  private async run(job: Job): Promise<void> {
    const { clock, log } = this.host;
    const { task } = this.options;
    const { barrier } = job.state;
    const isOver = (): boolean => this.job !== job;
    let isPublished = false;
    while (!isOver()) {
      try {
        if (!isPublished) await this.publishDigest(job);
        isPublished = true;
        if (await this.isSettled(barrier)) return;
        // Where another gateway is to store the part, it may yet fall to this one.
        if (this.options.stores()) return await this.store(job, isOver);
      } catch (error) {
        log.warn(
          { task, barrier, error: String(error) },
          'the part of a snapshot cannot be stored: retrying',
        );
      }
      await pause(clock, RETRY_MS, isOver);
    }
  }

  /** Whether the part is stored, or its barrier was given up. */
  private async isSettled(barrier: number): Promise<boolean> {
    const { parts, barriers } = await this.records.read();
    if (!barriers.some((known) => known.barrier === barrier)) return true;
    return parts.some(({ value }) => value.barrier === barrier && value.task === this.options.task);
  }

  private async store({ state, digest, blocks }: Job, isOver: () => boolean): Promise<void> {
    const { clock, log } = this.host;
    const { task } = this.options;
    const { barrier, position } = state;
    const at = `${barrier}.${task}`;
    const decided = await this.records.get<BarrierRecord>('barrier', String(barrier));
    if (decided === undefined) return;
    // A snapshot that could not be read back was dropped with its parts.
    if (this.lastPart !== undefined && (await this.records.get('part', this.lastPart)) === undefined)
      this.writer.forget();
    const stored = await this.writer.store(state, blocks.read, isOver, () => clock.yield());
    if (stored === undefined) {
      if (isOver()) return;
      log.error({ task, barrier }, 'the state at a barrier is damaged on disk: it is not stored');
      blocks.damaged();
      return;
    }
    const part: PartRecord = {
      task,
      barrier,
      sequence: decided.sequence,
      generation: decided.generation,
      ...stored,
      ...(digest === undefined ? {} : { digest }),
      inputs: position.inputs.map(({ sequence, time, created }) => ({
        sequence,
        time: String(time),
        created: String(created),
      })),
    };
    await this.records.create('part', at, part);
    this.lastPart = at;
  }

  /** Two views that differ at the same place are a fault that must be heard of. */
  private async publishDigest({ state: { barrier }, digest }: Job): Promise<void> {
    const { diverged } = this.options;
    if (digest === undefined || diverged === undefined) return;
    await this.records.put('digest', `${barrier}.${this.host.instance}`, digest);
    const { digests } = await this.records.read();
    const other = digests.find(({ at, value }) => Number(at[0]) === barrier && value !== digest);
    diverged(
      other === undefined
        ? undefined
        : `at barrier ${barrier} the view of instance ${other.at[1]} differs from that of ${this.host.instance} ` +
            `(${other.value} and ${digest}): one of them is wrong. Stop one, remove its folder of the view, start it again; ` +
            'the next barrier compares anew',
    );
  }
}

function restorable(chunks: Chunks, manifest: Manifest, task: string): RestorablePart[] {
  const part = manifest.parts.find((candidate) => candidate.task === task);
  if (part === undefined) return [];
  const { barrier, sequence } = manifest;
  return [{ barrier, sequence, blocks: () => partBlocks(chunks, part.index) }];
}

/** Reads a task's part of the snapshot that a graph began with, of whatever graph; gives what it is the state of. */
export async function readBase(
  { kv, chunks }: Pick<SnapshotHost, 'kv' | 'chunks'>,
  { graphId, barrier }: SnapshotName,
  task: string,
  apply: (payload: ByteReader) => void,
): Promise<BlockPosition> {
  const lost = (how: string): LogError =>
    new LogError(
      'state-missing',
      `the graph began with snapshot ${barrier} of graph id ${graphId}, ${how}: rebuild it (watershed graph rebuild)`,
    );
  const manifest = await new SnapshotRecords(kv, graphId).get<Manifest>('manifest', String(barrier));
  const part = manifest === undefined ? undefined : restorable(chunks, manifest, task)[0];
  if (part === undefined) throw lost('which is not there any more');
  try {
    return await readBlocks(part.blocks(), apply);
  } catch (error) {
    throw error instanceof DamagedBlocks ? lost(`which is damaged (${error.message})`) : error;
  }
}
