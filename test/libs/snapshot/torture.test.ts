/**
 * A graph is rescaled again and again, with snapshots, while everything goes wrong that may: tasks die, with or without
 * their disks, or have another owner beside them; power is cut, bits flip; appends and records get no answer.
 */
import { describe, expect, it } from 'vitest';
import { MemoryPipeline, realClock, type StageName } from '../../support/memory-pipeline.ts';
import { seeded } from '../../support/seeded.ts';
import {
  expectAllRestore,
  LoggedLines,
  loseAllDisks,
  Publisher,
  takeSnapshot,
  until,
} from './snapshot-cases.ts';

const SEEDS = 12;
const AT_ONCE = 6;
const SIZES = [4, 3, 8, 1, 2, 5];

class Torture {
  private readonly seed: number;
  private readonly random: () => number;
  private readonly pipeline: MemoryPipeline;
  private readonly publisher: Publisher;
  private readonly log = new LoggedLines();
  private isOver = false;

  constructor(seed: number) {
    this.seed = seed;
    this.random = seeded(seed);
    this.pipeline = new MemoryPipeline(1 + (seed % 3), { haste: 20, log: this.log });
    this.publisher = new Publisher(this.pipeline, seed);
  }

  async run(): Promise<void> {
    const { pipeline, publisher } = this;
    await pipeline.createEdges();
    pipeline.start();
    // Every other graph has a bus that answers.
    if (this.seed % 2 === 0) this.loseAnswers();
    const killing = this.kill();
    try {
      for (const [at, partitions] of SIZES.slice(0, 3 + (this.seed % 4)).entries())
        await this.rescale(at, partitions);
      await this.end(killing);
      for (let n = 0; n < 3; n++) {
        await publisher.publish(10);
        await takeSnapshot(pipeline);
      }
      await publisher.expectExact();
      await until('one generation', () => pipeline.config.generations.length === 1, pipeline);
      await expectAllRestore(pipeline, publisher);
      await loseAllDisks(pipeline);
      pipeline.start();
      await publisher.expectExact();
    } catch (error) {
      throw new Error(`seed ${this.seed}: ${this.log.tail(60)}`, { cause: error });
    } finally {
      await this.end(killing);
      await pipeline.stop();
    }
  }

  private async rescale(at: number, partitions: number): Promise<void> {
    const { pipeline, publisher } = this;
    await this.insist(() => pipeline.change({ partitions }));
    for (let n = 0; n < 3; n++) {
      await this.insist(() => pipeline.records.create('request', `seed${this.seed}-${at}-${n}`, {}));
      await publisher.publish(20, 3);
    }
    const isReached = (): boolean => pipeline.view?.generation?.partitions === partitions;
    await until(`${partitions} partitions`, isReached, pipeline, 60_000);
    await publisher.expectExact(60_000);
  }

  private loseAnswers(): void {
    const fault = (): 'none' | 'lost-before' | 'lost-after' => {
      if (this.random() > 0.02) return 'none';
      return this.random() < 0.5 ? 'lost-before' : 'lost-after';
    };
    this.pipeline.kv.onCall = fault;
    this.pipeline.bus.onAppend = ({ stream }) => (stream === this.pipeline.edges.stream ? 'none' : fault());
  }

  private async kill(): Promise<void> {
    const { pipeline, random } = this;
    while (!this.isOver) {
      await realClock.sleep(random() * 60);
      const { stages } = pipeline;
      const stage = stages[Math.floor(random() * stages.length)]!;
      if (pipeline.isDead(stage)) continue;
      if (stage !== 'view' && random() < 0.1) {
        // The process runs on, and another one takes its task.
        pipeline.disks.delete(stage);
        pipeline.start(stage);
        continue;
      }
      pipeline.kill(stage);
      this.spoil(stage);
      await realClock.sleep(random() * 20);
      if (pipeline.stages.includes(stage)) pipeline.start(stage);
    }
  }

  private spoil(stage: StageName): void {
    const { random } = this;
    const disk = this.pipeline.disk(stage);
    const what = random();
    if (what < 0.1) disk.lose();
    else if (what < 0.3) disk.powerCut(() => random() < 0.5);
    else if (what < 0.35) disk.flip(Math.floor(random() * 1000), Math.floor(random() * 1_000_000));
  }

  /** From here on all is well. */
  private async end(killing: Promise<void>): Promise<void> {
    const { pipeline } = this;
    if (this.isOver) return;
    this.isOver = true;
    pipeline.kv.onCall = undefined;
    pipeline.bus.onAppend = () => 'none';
    await killing;
    for (const stage of pipeline.stages) {
      if (pipeline.isDead(stage) || pipeline.task(stage).fenced) pipeline.start(stage);
    }
  }

  private async insist(act: () => Promise<unknown>): Promise<void> {
    for (let attempt = 1; ; attempt++) {
      try {
        await act();
        return;
      } catch (error) {
        if (attempt === 20) throw error;
        await realClock.sleep(5);
      }
    }
  }
}

describe('a graph that everything happens to', () => {
  it('answers exactly, and its snapshots are what they say', { timeout: 600_000 }, async () => {
    const failures: string[] = [];
    for (let from = 1; from <= SEEDS; from += AT_ONCE) {
      const runs = Array.from({ length: AT_ONCE }, (_, n) => new Torture(from + n).run());
      for (const result of await Promise.allSettled(runs)) {
        if (result.status === 'fulfilled') continue;
        const { message, cause } = result.reason as Error;
        failures.push(`${message}\n${String(cause)}`);
      }
    }
    expect(failures.join('\n\n')).toBe('');
  });
});
