/**
 * What the tests of snapshots have in common: random messages, the contents that a view of a prefix must have, and
 * snapshots that are asked for, waited for and read back.
 */
import { expect } from 'vitest';
import { partBlocks } from '../../../libs/snapshot/part-chunks.ts';
import { type Manifest, VIEW_PART } from '../../../libs/snapshot/records.ts';
import { readBlocks } from '../../../libs/stage/block-chain.ts';
import type { Log } from '../../../libs/stage/ports.ts';
import { View } from '../../../services/gateway/view.ts';
import { contents } from '../../support/contents.ts';
import { Feed } from '../../support/feed.ts';
import { type MemoryPipeline, realClock } from '../../support/memory-pipeline.ts';
import { seeded } from '../../support/seeded.ts';

/** A message of up to four edges between few vertices, now and then one that is no edge. */
function randomMessages(seed: number): () => string {
  const random = seeded(seed);
  const below = (limit: number): number => Math.floor(random() * limit);
  let known = 4;
  return () => {
    if (below(20) === 0) return 'no edge';
    const edges = Array.from({ length: below(5) }, () => {
      if (below(3) === 0) known += 1;
      const target = below(30) === 0 ? '' : `v${below(known)}`;
      return { source: `v${below(known)}`, target };
    });
    return JSON.stringify(edges);
  };
}

/** Publishes random messages, and knows what a view of each prefix of them holds. */
export class Publisher {
  readonly payloads: string[] = [];
  private readonly pipeline: MemoryPipeline;
  private readonly next: () => string;

  constructor(pipeline: MemoryPipeline, seed = 1) {
    this.pipeline = pipeline;
    this.next = randomMessages(seed);
  }

  get last(): number {
    return this.payloads.length;
  }

  async publish(count: number, pauseMs = 0): Promise<number> {
    for (let n = 0; n < count; n++) {
      const payload = this.next();
      this.payloads.push(payload);
      const sequence = await this.pipeline.publish(payload);
      expect(sequence).toBe(this.payloads.length);
      if (pauseMs > 0) await realClock.sleep(pauseMs);
    }
    return this.last;
  }

  /** What a view holds of messages 1 to `sequence`. */
  expected(sequence = this.last): object {
    const feed = new Feed({ partitions: 1 });
    for (const payload of this.payloads.slice(0, sequence)) feed.publish(payload);
    return contents(feed.view);
  }

  /** The view is at the last message, and holds what it should. */
  async expectExact(timeoutMs?: number): Promise<void> {
    const view = await this.pipeline.visible(this.last, timeoutMs);
    expect(contents(view)).toEqual(this.expected());
  }
}

export async function until<T>(
  what: string,
  ask: () => Promise<T | undefined | false> | T | undefined | false,
  pipeline?: MemoryPipeline,
  timeoutMs = 15_000,
): Promise<T> {
  const end = performance.now() + timeoutMs;
  for (;;) {
    const answer = await ask();
    if (answer !== undefined && answer !== false) return answer;
    if (performance.now() > end) {
      const state = JSON.stringify(await pipeline?.records.read(), (_, value: unknown) =>
        value instanceof Set ? [...value] : value,
      );
      throw new Error(`${what} did not happen; ${pipeline?.problems}; ${state}`);
    }
    await realClock.sleep(5);
  }
}

let requests = 0;

/** Asks for a snapshot; waits until it is there and was read back. */
export async function takeSnapshot(pipeline: MemoryPipeline, name?: string): Promise<Manifest> {
  requests += 1;
  const request = `r${requests}`;
  await pipeline.records.create('request', request, name === undefined ? {} : { name });
  return await until(
    `snapshot ${request}`,
    async () => {
      const { manifests, verified } = await pipeline.records.read();
      return manifests.find((manifest) => manifest.request === request && verified.has(manifest.barrier));
    },
    pipeline,
  );
}

/** Restores a view from the snapshot alone: it is at exactly the snapshot's message. */
export async function expectRestores(
  pipeline: MemoryPipeline,
  publisher: Publisher,
  manifest: Manifest,
): Promise<void> {
  const { id, origin } = pipeline.config;
  const view = new View({ graphId: id, origin }, { visible() {}, advanced() {} });
  const { index, digest } = manifest.parts.find(({ task }) => task === VIEW_PART)!;
  const position = await readBlocks(partBlocks(pipeline.chunks, index), (payload) => view.restore(payload));
  expect(contents(view)).toEqual(publisher.expected(manifest.sequence));
  expect(position.barrier).toBe(manifest.barrier);
  expect([digest, manifest.digest]).toEqual([view.digest, view.digest]);
}

export async function expectAllRestore(pipeline: MemoryPipeline, publisher: Publisher): Promise<void> {
  const { manifests } = await pipeline.records.read();
  for (const manifest of manifests) await expectRestores(pipeline, publisher, manifest);
}

/** All tasks are stopped, and have nothing on disk. */
export async function loseAllDisks(pipeline: MemoryPipeline): Promise<void> {
  await pipeline.stop();
  for (const stage of pipeline.stages) pipeline.disk(stage).lose();
}

export class LoggedLines implements Log {
  readonly lines: { readonly level: string; readonly fields: object; readonly message: string }[] = [];

  info(fields: object, message: string): void {
    this.lines.push({ level: 'info', fields, message });
  }

  warn(fields: object, message: string): void {
    this.lines.push({ level: 'warn', fields, message });
  }

  error(fields: object, message: string): void {
    this.lines.push({ level: 'error', fields, message });
  }

  /** The last lines, as text. */
  tail(count = 30): string {
    return this.lines
      .slice(-count)
      .map(({ fields, message }) => `${JSON.stringify(fields)} ${message}`)
      .join('\n');
  }

  /** How many lines say so. */
  count(text: RegExp): number {
    return this.lines.filter(({ fields, message }) => text.test(`${JSON.stringify(fields)} ${message}`))
      .length;
  }
}
