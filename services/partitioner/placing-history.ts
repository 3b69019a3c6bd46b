/** What a partitioner reports of its figures: as they are, and as they were a minute ago. */
import type { PlacingReport } from '../../libs/bus/report.ts';
import type { Figures } from '../../libs/partitioning/quality.ts';
import type { Partitioner } from './partitioner.ts';

const SAMPLE_MS = 5_000;
const SPAN_MS = 60_000;

interface Sample {
  /** Monotonic, ms. */
  readonly at: number;
  readonly figures: Figures;
}

export class PlacingHistory {
  private core: Partitioner | undefined;
  /** Oldest first: the newest that is a minute old, and those after it. */
  private samples: Sample[] = [];

  /** To be called now and then: samples are taken here. */
  report(core: Partitioner, now: number): PlacingReport {
    // Another generation begins with nothing; another owner, or the same anew, may replay.
    if (core !== this.core) this.samples = [];
    this.core = core;
    const { figures } = core;
    const newest = this.samples.at(-1);
    if (newest === undefined || now - newest.at >= SAMPLE_MS) this.samples.push({ at: now, figures });
    while (this.samples[1] !== undefined && now - this.samples[1].at >= SPAN_MS) this.samples.shift();
    const before = this.samples[0]!;
    return {
      generation: core.generation,
      partitioner: core.algorithm,
      knowsVertices: core.knowsVertices,
      position: core.edgesRead?.sequence ?? 0,
      figures,
      ...(before.at === now
        ? {}
        : { before: { seconds: Math.round(now - before.at) / 1000, figures: before.figures } }),
    };
  }
}
