/**
 * Keeps a graph's snapshots: says when one is due, makes it valid when all parts are in, reads it back, drops old
 * ones, and gives up the logs and generations that no kept one needs. It runs beside the graph's partitioner, and two of
 * them do no harm: each step is a record that is created once, or removes only what the records say nobody needs.
 */
import { type GraphConfig, newestGeneration, wantsGeneration } from '../dataflow/graph-config.ts';
import { edgesLog, forestLog, partsLog, SNAPSHOTS_BUCKET } from '../dataflow/names.ts';
import { DamagedBlocks } from '../stage/block-chain.ts';
import { removeGenerations } from '../stage/generation-logs.ts';
import { pause } from '../stage/input.ts';
import type { Bus } from '../stage/ports.ts';
import type { GraphMarks, Wish } from './graph-marks.ts';
import type { GraphSource } from './graph-source.ts';
import { chunkNames } from './part-chunks.ts';
import {
  allParts,
  type BarrierRecord,
  type Found,
  type Manifest,
  PARTITIONER_PART,
  type PartRecord,
  type RequestRecord,
  SnapshotRecords,
  type SnapshotState,
  tasksOf,
  VIEW_PART,
  workerPart,
} from './records.ts';
import type { SnapshotHost } from './task-snapshots.ts';

const TICK_MS = 500;
/** PARTS and FOREST are looked at this often. */
const FILL_CHECK_MS = 5_000;
/** A snapshot is due when one of these logs has grown so much since the last barrier. */
const FILL_BYTES = 256 * 1024 * 1024;
/** A barrier whose parts are not in after so long is overtaken by the next. */
const UNDER_WAY_MS = 10_000;
/** A restore that has not said for so long that it goes on is over. */
const HOLD_MS = 30_000;
const OPEN_BARRIERS_MAX = 8;
const RETIRE_TRY_MS = 5_000;
const RETIRE_MS = 20_000;
const COLLECTOR_KEY = 'collector';
const COLLECT_MS = 10 * 60_000;
/** Chunks may be named by a part that is not recorded yet. */
const CHUNK_AGE_MS = 60 * 60_000;
const PROBLEM_MS = 60_000;

export interface KeeperHost extends SnapshotHost {
  readonly bus: Bus;
}

export class SnapshotKeeper {
  private readonly graph: GraphSource;
  private readonly host: KeeperHost;
  private readonly records: SnapshotRecords;
  /** Of the partitioner that runs here now. */
  private marks: GraphMarks | undefined;
  private stopping = false;
  private running: Promise<void> = Promise.resolve();
  private lastBarrierAt: number;
  private lastBytes = 0;
  private fillCheckedAt: number;
  private collectedAt: number;
  private saidAt = Number.NEGATIVE_INFINITY;
  /** Revision of the collector's record, as last seen; unchanged for a whole term, nobody has collected. */
  private collectorTurn = -1;
  private readonly readBack = new Set<string>();
  /** The generations whose logs are being removed. */
  private retired: { readonly which: string; readonly since: number; triedAt: number } | undefined;
  /** The kept snapshots that the logs were purged behind last. */
  private purged = '';
  /** Holds by key: their revision, and since when it is that. */
  private readonly holds = new Map<string, { revision: number; since: number }>();

  constructor(graph: GraphSource, host: KeeperHost) {
    this.graph = graph;
    this.host = host;
    this.records = new SnapshotRecords(host.kv, graph.config.id);
    const now = host.clock.now();
    this.lastBarrierAt = now;
    this.fillCheckedAt = now;
    this.collectedAt = now;
  }

  /** The partitioner goes on in another generation. */
  mark(marks: GraphMarks): void {
    this.marks = marks;
    marks.placed = () => this.placed();
  }

  start(): void {
    this.running = this.run();
  }

  async stop(): Promise<void> {
    this.stopping = true;
    await this.running;
  }

  private async run(): Promise<void> {
    const { clock, log } = this.host;
    while (!this.stopping) {
      await pause(clock, TICK_MS, () => this.stopping);
      if (this.stopping) return;
      try {
        await this.tick();
      } catch (error) {
        if (this.stopping || clock.now() - this.saidAt < PROBLEM_MS) continue;
        this.saidAt = clock.now();
        log.warn(
          { graph: this.graph.config.name, error: String(error) },
          'snapshots cannot be kept now: retrying',
        );
      }
    }
  }

  /** One look at everything. */
  async tick(): Promise<void> {
    const config = await this.graph.read();
    const state = await this.records.read();
    await this.wish(config, state);
    await this.removeRetired(config);
    if (await this.verify(state)) return;
    if (await this.complete(state)) return;
    await this.sweep(state);
    const kept = this.kept(config, state);
    if (kept === undefined) return;
    await this.retain(config, state, kept);
    await this.purge(config, kept);
    await this.dropGenerations(config, kept);
    await this.collect();
  }

  private placed(): void {
    this.lastBarrierAt = this.host.clock.now();
    this.lastBytes = 0;
  }

  private async wish(config: GraphConfig, state: SnapshotState): Promise<void> {
    const { marks } = this;
    if (marks === undefined || marks.due !== undefined) return;
    if (wantsGeneration(config)) {
      marks.wish = { kind: 'end-of-generation' };
      return;
    }
    const newest = Math.max(0, ...[...state.barriers, ...state.manifests].map(({ barrier }) => barrier));
    if (this.isUnderWay(state)) return;
    const request = await this.openRequest(config, state);
    if (request !== undefined) {
      marks.wish = { kind: 'barrier', newest, request: request.at[0]!, ...request.value } satisfies Wish;
      return;
    }
    if (await this.isDue(config, state)) marks.wish = { kind: 'barrier', newest };
  }

  /**
   * The oldest request that has no snapshot, nor a barrier that may become one: one that was recorded by an owner who was
   * replaced in that moment may never be marked.
   */
  private async openRequest(
    { turn }: GraphConfig,
    { requests, barriers, manifests, verified }: SnapshotState,
  ): Promise<Found<RequestRecord> | undefined> {
    const newest = manifests[0]?.barrier ?? 0;
    for (const request of requests) {
      const id = request.at[0]!;
      const answers = manifests.filter((manifest) => manifest.request === id);
      const isUnderWay =
        answers.length > 0 ||
        barriers.some((known) => known.request === id && known.turn === turn && known.barrier > newest);
      if (answers.some(({ barrier }) => verified.has(barrier))) await this.records.remove('request', id);
      else if (!isUnderWay) return request;
    }
    return undefined;
  }

  /** The newest barrier may still become a snapshot: another one would overtake it. */
  private isUnderWay({ barriers, manifests }: SnapshotState): boolean {
    const newest = barriers.at(-1);
    if (newest === undefined || newest.barrier <= (manifests[0]?.barrier ?? 0)) return false;
    return this.host.clock.now() - this.lastBarrierAt < UNDER_WAY_MS;
  }

  private async isDue(config: GraphConfig, state: SnapshotState): Promise<boolean> {
    const { interval } = config.snapshots;
    if (interval === 0) return false;
    const now = this.host.clock.now();
    // Soon after a new generation began, so that the one before can go.
    const isNewGeneration =
      config.generations.length > 1 &&
      !state.barriers.some(({ generation }) => generation === newestGeneration(config).generation);
    if (!isNewGeneration && now - this.lastBarrierAt < interval * 1000 && !(await this.isFull(config)))
      return false;
    this.lastBarrierAt = now;
    const last = (await this.host.bus.describe(edgesLog(config.name).stream))?.last ?? 0;
    // An idle graph gets as many at its end as are kept, and then no more: so what lies before can go.
    const { generation } = newestGeneration(config);
    const atEnd = state.manifests.filter((one) => one.generation === generation && one.sequence >= last);
    return (last > 0 || isNewGeneration) && atEnd.length < config.snapshots.keep;
  }

  private async isFull(config: GraphConfig): Promise<boolean> {
    const { bus, clock } = this.host;
    if (clock.now() - this.fillCheckedAt < FILL_CHECK_MS) return false;
    this.fillCheckedAt = clock.now();
    const { generation, partitions } = newestGeneration(config);
    let most = 0;
    for (let partition = 0; partition < partitions; partition++) {
      for (const name of [partsLog, forestLog]) {
        const log = await bus.describe(name(config.name, generation, partition).stream);
        most = Math.max(most, log?.bytes ?? 0);
      }
    }
    if (this.lastBytes === 0) this.lastBytes = most;
    return most - this.lastBytes > FILL_BYTES;
  }

  /** Makes the newest barrier a snapshot if all of its parts are in. */
  private async complete({ barriers, parts, manifests, digests }: SnapshotState): Promise<boolean> {
    const newest = manifests[0]?.barrier ?? 0;
    for (const barrier of barriers.toReversed()) {
      if (barrier.barrier <= newest) return false;
      const found = tasksOf(barrier.partitions).flatMap((task) =>
        parts.filter(({ value }) => isPartOf(value, barrier, task)).map(({ value }) => value),
      );
      if (found.length !== barrier.partitions + 2) continue;
      const view = found.find(({ task }) => task === VIEW_PART)!;
      // Of two views that differ one is wrong, and nobody knows which.
      if (digests.some(({ at, value }) => Number(at[0]) === barrier.barrier && value !== view.digest))
        continue;
      const edges = found.find(({ task }) => task === PARTITIONER_PART)!.inputs[0];
      const manifest: Manifest = {
        ...barrier,
        time: edges?.time ?? '0',
        digest: view.digest ?? '',
        bytes: sum(found, 'bytes'),
        newBytes: sum(found, 'newBytes'),
        parts: found,
      };
      await this.records.create('manifest', String(barrier.barrier), manifest);
      return true;
    }
    return false;
  }

  /** Reads a snapshot back that was not yet; chunks that were read back before are not read again. */
  private async verify({ manifests, verified }: SnapshotState): Promise<boolean> {
    const { log } = this.host;
    const manifest = manifests.findLast(({ barrier }) => !verified.has(barrier));
    if (manifest === undefined) return false;
    const fields = { graph: this.graph.config.name, barrier: manifest.barrier, sequence: manifest.sequence };
    const damage = await damageOf(this.host, manifest, this.readBack);
    if (damage === undefined) {
      const chunks = manifest.parts.reduce((count, part) => count + part.chunks, 0);
      await this.records.create('verified', String(manifest.barrier), { chunks });
      log.info({ ...fields, bytes: manifest.bytes, newBytes: manifest.newBytes }, 'a snapshot is complete');
      return true;
    }
    log.error({ ...fields, damage }, 'a snapshot cannot be read back: it is dropped');
    this.readBack.clear();
    await this.dropSnapshot(manifest.barrier, tasksOf(manifest.partitions));
    return true;
  }

  /** The snapshots that bound what may go: the newest verified ones; undefined while there are too few. */
  private kept({ snapshots }: GraphConfig, { manifests, verified }: SnapshotState): Manifest[] | undefined {
    const kept = manifests.filter(({ barrier }) => verified.has(barrier)).slice(0, snapshots.keep);
    return kept.length < snapshots.keep ? undefined : kept;
  }

  /** Drops barriers that became no snapshot, but for the newest: without a gateway none does, and they would pile up. */
  private async sweep({ barriers, manifests }: SnapshotState): Promise<void> {
    const open = barriers.filter(
      ({ barrier }) => !manifests.some((manifest) => manifest.barrier === barrier),
    );
    for (const { barrier, partitions } of open.slice(0, -OPEN_BARRIERS_MAX)) {
      await this.dropSnapshot(barrier, tasksOf(partitions));
      await this.records.remove('barrier', String(barrier));
    }
  }

  private heldBarriers({ holds }: SnapshotState): number[] {
    const now = this.host.clock.now();
    for (const key of this.holds.keys()) if (!holds.some((hold) => hold.key === key)) this.holds.delete(key);
    return holds.flatMap(({ key, revision, value }) => {
      let known = this.holds.get(key);
      if (known?.revision !== revision) {
        known = { revision, since: now };
        this.holds.set(key, known);
      }
      return now - known.since < HOLD_MS ? [value.barrier] : [];
    });
  }

  /** Drops snapshots beyond those to keep, named ones and those that are being restored apart. */
  private async retain(config: GraphConfig, state: SnapshotState, kept: Manifest[]): Promise<void> {
    const oldest = kept.at(-1)!.barrier;
    const held = this.heldBarriers(state);
    if (held.length > 0) kept.push(...state.manifests.filter(({ barrier }) => held.includes(barrier)));
    const isBase = (barrier: number): boolean =>
      config.base?.graphId === config.id && config.base.barrier === barrier;
    for (const { barrier, partitions, name } of state.barriers) {
      if (barrier >= oldest || held.includes(barrier) || isBase(barrier)) continue;
      const isSnapshot = state.manifests.some((manifest) => manifest.barrier === barrier);
      if (isSnapshot && name !== undefined) continue;
      await this.dropSnapshot(barrier, tasksOf(partitions));
      await this.records.remove('barrier', String(barrier));
      for (const { at } of state.digests) {
        if (Number(at[0]) === barrier) await this.records.remove('digest', at.join('.'));
      }
    }
  }

  /** The manifest goes first: what has none does not exist. The barrier's record stays, so that its number does. */
  private async dropSnapshot(barrier: number, tasks: readonly string[]): Promise<void> {
    const at = String(barrier);
    await this.records.remove('manifest', at);
    await this.records.remove('verified', at);
    for (const task of tasks) await this.records.remove('part', `${at}.${task}`);
  }

  /**
   * Removes what all kept snapshots are past, but for the message that each has read last: so a log keeps its last one,
   * and a position can be checked.
   */
  private async purge(config: GraphConfig, kept: readonly Manifest[]): Promise<void> {
    const { bus } = this.host;
    const { generation, partitions } = newestGeneration(config);
    if (kept.some((manifest) => manifest.generation !== generation)) return;
    const what = [config.purgeEdges, ...kept.map(({ barrier }) => barrier)].join(' ');
    if (what === this.purged) return;
    const through = (task: string, input: number): number =>
      Math.min(
        ...kept.map(({ parts }) => parts.find((part) => part.task === task)!.inputs[input]?.sequence ?? 0),
      );
    for (let partition = 0; partition < partitions; partition++) {
      await purgeLog(
        bus,
        partsLog(config.name, generation, partition).stream,
        through(workerPart(partition), 0),
      );
      await purgeLog(
        bus,
        forestLog(config.name, generation, partition).stream,
        through(VIEW_PART, partition),
      );
    }
    if (config.purgeEdges) {
      await purgeLog(bus, edgesLog(config.name).stream, Math.min(...kept.map(({ sequence }) => sequence)));
    }
    this.purged = what;
  }

  /** Gives up generations that all kept snapshots are past. */
  private async dropGenerations(config: GraphConfig, kept: readonly Manifest[]): Promise<void> {
    const oldest = Math.min(...kept.map(({ generation }) => generation));
    const over = config.generations.filter(({ generation }) => generation < oldest);
    if (over.length === 0) return;
    const generations = config.generations.filter(({ generation }) => generation >= oldest);
    // The record first: who reads it afterwards does not look for the logs. It remembers them until they are gone.
    await this.graph.update(config, { ...config, generations, retired: [...config.retired, ...over] });
  }

  /**
   * Removes the logs of retired generations, several times: a worker that was just starting may have made one again. Then
   * forgets them.
   */
  private async removeRetired(config: GraphConfig): Promise<void> {
    const now = this.host.clock.now();
    const which = config.retired.map(({ generation }) => generation).join(' ');
    if (which === '') return;
    if (this.retired?.which !== which)
      this.retired = { which, since: now, triedAt: Number.NEGATIVE_INFINITY };
    if (now - this.retired.triedAt < RETIRE_TRY_MS) return;
    this.retired.triedAt = now;
    await removeGenerations(this.host.bus, config.name, config.retired);
    if (now - this.retired.since >= RETIRE_MS) await this.graph.update(config, { ...config, retired: [] });
  }

  /** Removes chunks that no part of any graph names. */
  private async collect(): Promise<void> {
    const { clock, chunks, kv, log } = this.host;
    if (clock.now() - this.collectedAt < COLLECT_MS) return;
    this.collectedAt = clock.now();
    // Chunks are everybody's: whoever changes the record first collects for all.
    const turn = await kv.get(SNAPSHOTS_BUCKET, COLLECTOR_KEY);
    const isMine = this.collectorTurn === (turn?.revision ?? 0);
    this.collectorTurn = turn?.revision ?? 0;
    if (!isMine) return;
    const value = JSON.stringify({ by: this.host.instance });
    const taken =
      turn === undefined
        ? await kv.create(SNAPSHOTS_BUCKET, COLLECTOR_KEY, value)
        : await kv.update(SNAPSHOTS_BUCKET, COLLECTOR_KEY, value, turn.revision);
    if (taken === undefined) return;
    this.collectorTurn = taken;
    // Listed before the parts are read: what is stored meanwhile is not in the list.
    const stored = await chunks.list();
    const named = new Set<string>();
    for (const { index } of await allParts(kv)) {
      named.add(index);
      try {
        for (const name of await chunkNames(chunks, index)) named.add(name);
      } catch (error) {
        // Without its index a part is worth nothing, whatever is left of it.
        if (!(error instanceof DamagedBlocks)) throw error;
      }
    }
    let removed = 0;
    for (const { name, ageMs } of stored) {
      if (named.has(name) || ageMs < CHUNK_AGE_MS) continue;
      await chunks.remove(name);
      this.readBack.delete(name);
      removed += 1;
    }
    if (removed > 0) log.info({ removed }, 'chunks that no snapshot names were removed');
  }
}

function isPartOf(part: PartRecord, { barrier, sequence, generation }: BarrierRecord, task: string): boolean {
  return (
    part.task === task &&
    part.barrier === barrier &&
    part.sequence === sequence &&
    part.generation === generation
  );
}

function sum(parts: readonly PartRecord[], field: 'bytes' | 'newBytes'): number {
  return parts.reduce((total, part) => total + part[field], 0);
}

async function purgeLog(bus: Bus, stream: string, sequence: number): Promise<void> {
  const log = await bus.describe(stream);
  if (log !== undefined && log.first < sequence && log.last >= sequence) await bus.purge(stream, sequence);
}

/**
 * What of a snapshot cannot be read back as it was stored; undefined: nothing. Damaged chunks are removed, so that they
 * are stored anew. `readBack` holds chunks that need not be read again.
 */
export async function damageOf(
  { chunks }: Pick<SnapshotHost, 'chunks'>,
  manifest: Manifest,
  readBack: Set<string> = new Set(),
): Promise<string | undefined> {
  for (const { task, index } of manifest.parts) {
    let names: string[];
    try {
      names = await chunkNames(chunks, index);
    } catch (error) {
      if (!(error instanceof DamagedBlocks)) throw error;
      await chunks.remove(index);
      return `part ${task}: the index ${error.message}`;
    }
    for (const name of names) {
      if (readBack.has(name)) continue;
      const bytes = await chunks.get(name);
      if (typeof bytes !== 'string') {
        readBack.add(name);
        continue;
      }
      if (bytes === 'damaged') await chunks.remove(name);
      return `part ${task}: chunk ${name} is ${bytes}`;
    }
  }
  return undefined;
}
