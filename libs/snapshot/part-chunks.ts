/**
 * A part's bytes: a state's blocks, in chunks that are named by their contents.
 *
 * Chunks are cut from the first block on by size alone, so those of an earlier barrier of the same chain are the same
 * ones, but for the last: what is stored already is named and not stored again.
 *
 *   chunk   blocks × (u32 length · bytes)
 *   index   JSON: the names of the chunks in order
 */
import { ByteReader, ByteWriter } from '../dataflow/bytes.ts';
import { type Lanes, NO_LANES } from '../dataflow/checksum.ts';
import { type BarrierState, blockChecksum, DamagedBlocks } from '../stage/block-chain.ts';
import type { Chunks } from '../stage/ports.ts';
import type { ReadBlock } from '../stage/stage-plan.ts';

const CHUNK_BYTES = 256 * 1024;

export interface StoredPart {
  readonly index: string;
  readonly chunks: number;
  readonly bytes: number;
  readonly newBytes: number;
}

/** A chunk that no later block changes. */
interface FullChunk {
  readonly name: string;
  readonly bytes: number;
  /** The number of blocks through it, and what their checksums came to. */
  readonly blocks: number;
  readonly lanes: Lanes;
}

/** Stores the parts of one task, one barrier after the other. */
export class PartWriter {
  private readonly chunks: Chunks;
  private chain = -1;
  private full: FullChunk[] = [];

  constructor(chunks: Chunks) {
    this.chunks = chunks;
  }

  /** Undefined: the blocks are gone or damaged, or `isOver` says so. */
  async store(
    state: BarrierState,
    read: ReadBlock,
    isOver: () => boolean,
    breathe: () => Promise<void>,
  ): Promise<StoredPart | undefined> {
    if (this.chain !== state.chain || (this.full.at(-1)?.blocks ?? 0) > state.blocks) this.full = [];
    this.chain = state.chain;
    const known = this.full.length;
    let { blocks, lanes } = this.full.at(-1) ?? { blocks: 0, lanes: NO_LANES };
    const writer = new ByteWriter();
    let last: FullChunk | undefined;
    while (blocks < state.blocks) {
      const bytes = await read(state.chain, blocks);
      const next = bytes === undefined ? undefined : blockChecksum(bytes, lanes);
      if (bytes === undefined || next === undefined || isOver()) return undefined;
      lanes = next;
      blocks += 1;
      writer.u32(bytes.length);
      writer.bytes(bytes);
      if (writer.length < CHUNK_BYTES && blocks < state.blocks) continue;
      const chunk = { name: await this.chunks.put(writer.written()), bytes: writer.length, blocks, lanes };
      if (writer.length < CHUNK_BYTES) last = chunk;
      else this.full.push(chunk);
      writer.clear();
      await breathe();
    }
    const all = last === undefined ? this.full : [...this.full, last];
    const index = new TextEncoder().encode(JSON.stringify(all.map(({ name }) => name)));
    return {
      index: await this.chunks.put(index),
      chunks: all.length,
      bytes: sum(all) + index.length,
      newBytes: sum(all.slice(known)) + index.length,
    };
  }

  /** What was stored may be gone: it is stored again. */
  forget(): void {
    this.full = [];
  }
}

/** The names of a part's chunks; throws DamagedBlocks where the index is not there as it was stored. */
export async function chunkNames(chunks: Chunks, index: string): Promise<string[]> {
  return JSON.parse(new TextDecoder().decode(await chunkOf(chunks, index))) as string[];
}

/** The blocks of a part, in order. */
export async function* partBlocks(chunks: Chunks, index: string): AsyncGenerator<Uint8Array> {
  for (const name of await chunkNames(chunks, index)) {
    const reader = new ByteReader(await chunkOf(chunks, name));
    while (reader.offset < reader.end) yield reader.take(reader.u32());
  }
}

async function chunkOf(chunks: Chunks, name: string): Promise<Uint8Array> {
  const bytes = await chunks.get(name);
  if (typeof bytes === 'string') throw new DamagedBlocks(`chunk ${name} is ${bytes}`);
  return bytes;
}

function sum(chunks: readonly FullChunk[]): number {
  return chunks.reduce((bytes, chunk) => bytes + chunk.bytes, 0);
}
