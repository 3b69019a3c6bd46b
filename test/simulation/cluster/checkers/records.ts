/**
 * The graph's record and those of its snapshots, as they were ever written; and what must hold of them: generations are
 * numbered without a gap, each goes on behind the one before, and what was decided once stays so.
 */
import type { Generation } from '../../../../libs/dataflow/generation.ts';
import type { GraphConfig } from '../../../../libs/dataflow/graph-config.ts';
import { GRAPHS_BUCKET, SNAPSHOTS_BUCKET } from '../../../../libs/dataflow/names.ts';
import type { BarrierRecord, Manifest } from '../../../../libs/snapshot/records.ts';
import type { Breach, Checker } from './checker.ts';

export class Records implements Checker {
  config: GraphConfig | undefined;
  /** All that were ever recorded. */
  readonly barriers = new Map<number, BarrierRecord>();
  /** Those that are there now. */
  readonly manifests = new Map<number, Manifest>();
  readonly verified = new Set<number>();
  private readonly generations = new Map<number, Generation>();
  private readonly breach: Breach;

  constructor(breach: Breach) {
    this.breach = breach;
  }

  /** As it was ever recorded. */
  generation(generation: number): Generation | undefined {
    return this.generations.get(generation);
  }

  recorded(bucket: string, key: string, value: string | undefined): void {
    if (bucket === GRAPHS_BUCKET && value !== undefined) this.takeConfig(JSON.parse(value) as GraphConfig);
    if (bucket !== SNAPSHOTS_BUCKET) return;
    const [, kind, at] = key.split('.');
    const number = Number(at);
    if (kind === 'barrier' && value !== undefined) this.takeBarrier(JSON.parse(value) as BarrierRecord);
    else if (kind === 'manifest') {
      if (value === undefined) this.manifests.delete(number);
      else this.manifests.set(number, JSON.parse(value) as Manifest);
    } else if (kind === 'verified') {
      if (value === undefined) this.verified.delete(number);
      else this.verified.add(number);
    }
  }

  private takeConfig(config: GraphConfig): void {
    const { generations } = config;
    if (generations.length === 0) this.breach('the graph has no generation');
    for (const [at, generation] of generations.entries()) {
      const before = generations[at - 1];
      if (
        before !== undefined &&
        (generation.generation !== before.generation + 1 || generation.after < before.after)
      ) {
        this.breach(`generation ${generation.generation} does not follow ${before.generation}`);
      }
      const known = this.generations.get(generation.generation);
      if (known === undefined) this.generations.set(generation.generation, generation);
      else if (known.after !== generation.after || known.partitions !== generation.partitions) {
        this.breach(`generation ${generation.generation} is another one than it was`);
      }
    }
    this.config = config;
  }

  private takeBarrier(barrier: BarrierRecord): void {
    const known = this.barriers.get(barrier.barrier);
    if (known !== undefined) this.breach(`barrier ${barrier.barrier} was decided twice`);
    this.barriers.set(barrier.barrier, barrier);
  }
}
