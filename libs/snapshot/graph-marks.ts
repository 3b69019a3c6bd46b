/**
 * Where a graph's stream is marked: barriers of snapshots, and the ends of generations. Each is recorded before
 * anything is marked, so that every owner of the partitioner marks the same places.
 */
import { compareMarks, type Mark } from '../dataflow/frame.ts';
import type { Generation } from '../dataflow/generation.ts';
import { type GraphConfig, newestGeneration, wantsGeneration } from '../dataflow/graph-config.ts';
import type { MarkSource, PlacedMark } from '../stage/stage-plan.ts';
import type { GraphSource } from './graph-source.ts';
import type { BarrierRecord, SnapshotRecords } from './records.ts';

const ATTEMPTS = 16;

/** A mark that somebody wants, not placed yet. */
export type Wish =
  | {
      readonly kind: 'barrier';
      /** The newest barrier known: this one's number is behind it. */
      readonly newest: number;
      readonly name?: string;
      readonly request?: string;
    }
  | { readonly kind: 'end-of-generation' };

export class GraphMarks implements MarkSource {
  /** What is due now; the keeper sets it. */
  wish: Wish | undefined;
  /** Told of each barrier that was recorded. */
  placed: () => void = () => {};
  /** The record's, as this owner wrote it. */
  private turn: number | undefined;
  private readonly generation: Generation;
  private readonly graph: GraphSource;
  private readonly records: SnapshotRecords;

  constructor(generation: Generation, graph: GraphSource, records: SnapshotRecords) {
    this.generation = generation;
    this.graph = graph;
    this.records = records;
  }

  get due(): Wish['kind'] | undefined {
    return this.wish?.kind;
  }

  async recorded(sequence: number): Promise<readonly PlacedMark[]> {
    const { generation } = this.generation;
    const config = await this.takeTurn();
    const { barriers } = await this.records.read();
    const marks: PlacedMark[] = barriers
      .filter((barrier) => barrier.generation === generation && barrier.sequence >= sequence)
      .map((barrier) => ({ kind: 'barrier', number: barrier.barrier, sequence: barrier.sequence }));
    const next = config.generations.find((later) => later.generation === generation + 1);
    if (next !== undefined && next.after >= sequence)
      marks.push({ ...endOf(generation), sequence: next.after });
    return marks.sort((a, b) => a.sequence - b.sequence || compareMarks(a, b));
  }

  async record(sequence: number, newest: number): Promise<PlacedMark | undefined> {
    const { wish } = this;
    if (wish === undefined) return undefined;
    const mark =
      wish.kind === 'barrier'
        ? await this.recordBarrier(sequence, newest, wish)
        : await this.recordEnd(sequence);
    if (this.wish === wish) this.wish = undefined;
    return mark === undefined ? undefined : { ...mark, sequence };
  }

  /** From here on no earlier owner ends a generation; what one has recorded before is in the record. */
  private async takeTurn(): Promise<GraphConfig> {
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const known = await this.graph.read();
      const turn = known.turn + 1;
      const config = { ...known, turn };
      if (!(await this.graph.update(known, config))) continue;
      this.turn = turn;
      return config;
    }
    throw new Error('the record of the graph changes again and again');
  }

  private async recordBarrier(
    sequence: number,
    newestHad: number,
    { newest, name, request }: Extract<Wish, { kind: 'barrier' }>,
  ): Promise<Mark | undefined> {
    const { generation, partitions } = this.generation;
    // Nothing is applied meanwhile, so nothing is read first. A number that was had is never used again: its mark would
    // be taken for a repeated one.
    let barrier = Math.max(newest, newestHad) + 1;
    for (let attempt = 0; attempt < ATTEMPTS; attempt++, barrier++) {
      const record: BarrierRecord = {
        barrier,
        sequence,
        generation,
        partitions,
        turn: this.turn ?? 0,
        ...(name === undefined ? {} : { name }),
        ...(request === undefined ? {} : { request }),
      };
      if (!(await this.records.create('barrier', String(barrier), record))) continue;
      this.placed();
      return { kind: 'barrier', number: barrier };
    }
    return undefined;
  }

  private async recordEnd(sequence: number): Promise<Mark | undefined> {
    const { generation } = this.generation;
    const config = await this.graph.read();
    const newest = newestGeneration(config);
    if (config.turn !== this.turn || newest.generation !== generation) return undefined;
    if (!wantsGeneration(config)) return undefined;
    const { partitions, partitioner } = config;
    const next = { generation: generation + 1, partitions, after: sequence, partitioner };
    const isUpdated = await this.graph.update(config, {
      ...config,
      generations: [...config.generations, next],
    });
    return isUpdated ? endOf(generation) : undefined;
  }
}

function endOf(generation: number): Mark {
  return { kind: 'end-of-generation', number: generation };
}
