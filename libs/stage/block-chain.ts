/**
 * A stage's state on disk: a chain of blocks, each written once, and a small head.
 *
 * Why not a record per vertex: LevelDB takes 50,000 to 400,000 puts a second and notices neither a flipped
 * bit nor a hole that a power cut leaves behind a synced write. A block is what one commit added, in a few
 * values of a page each, with a checksum that covers the block before it: damage shows as a broken chain, and
 * what is before the damage is still good. What it takes away, the log behind it replays.
 *
 * A block says what it is the state *of*: for each input the last message it holds, for each output how far it is
 * complete. So a chain can be cut back to any block, also where an output log has lost its tail.
 *
 * A copied state comes in several blocks of which only the last is `whole`, i.e. a place to cut back to.
 *
 *   head    'H'                                    → identity · chain · block · checksum of that block · own checksum
 *   block   'B' · u32 chain · u32 block · u16 page → bytes (big-endian keys, so that order is the chain's)
 *   bytes   u8 version · u8 kind (0: a piece of a copy, 1: whole, 2: whole, and the state at its barrier)
 *           varint newest barrier that the state has had
 *           varint inputs  × (u64 created · varint sequence · u64 time)
 *           varint outputs × (varint through.sequence · through.index · count · u32 u32 hash)
 *           payload, up to the last 8 bytes: u32 u32 checksum
 */
import { ByteReader, ByteWriter } from '../dataflow/bytes.ts';
import type { ChannelEnd } from '../dataflow/channel.ts';
import { checksum, type Lanes, NO_LANES, sameLanes } from '../dataflow/checksum.ts';
import type { MessageIdentity } from '../dataflow/position.ts';
import type { Store } from './ports.ts';

const BLOCK_VERSION = 2;
const PAGE_BYTES = 4096;
/** What a commit costs besides its payload: keys, header, checksum. */
const BLOCK_OVERHEAD_BYTES = 256;
/** A copy is made once the overhead of small commits is worth this much more than the state itself. */
const COPY_SLACK_BYTES = 4 * 1024 * 1024;
const DELETES_PER_WRITE = 1000;

/** What a block's state holds of the stage's logs. */
export interface BlockPosition {
  readonly inputs: readonly MessageIdentity[];
  readonly outputs: readonly ChannelEnd[];
  /** The newest barrier that the state has had; 0: none. */
  readonly barrier: number;
}

/** The blocks of a chain through one that is the state at a barrier. */
export interface BarrierState {
  readonly barrier: number;
  readonly chain: number;
  /** So many blocks, from the first. */
  readonly blocks: number;
  readonly position: BlockPosition;
  /** The core's digest there, if it has one. */
  readonly digest: string | undefined;
}

/** What was found on opening; `damaged` says where the chain breaks. */
export type Found =
  | { readonly kind: 'nothing' }
  | { readonly kind: 'foreign'; readonly identity: string }
  | { readonly kind: 'whole' }
  | { readonly kind: 'damaged'; readonly block: number };

export interface Restored {
  readonly found: Found;
  /** Undefined: nothing could be kept, the state starts empty. */
  readonly position: BlockPosition | undefined;
  readonly blocks: number;
  /** Blocks given up because they lie beyond what the outputs hold. */
  readonly cutBack: number;
}

export class BlockChain {
  private readonly store: Store;
  private readonly identity: string;
  private chain = 0;
  /** Number of the next block. */
  private next = 0;
  private last: Lanes = NO_LANES;
  private payloadBytes = 0;
  /** The smallest payload since the chain began, and what a block takes besides. */
  private leastPayload = 0;
  private overheadBytes = BLOCK_OVERHEAD_BYTES;
  private readonly writer = new ByteWriter();
  /** Chains whose blocks somebody reads; they are deleted when nobody does any more. */
  private readonly pins = new Map<number, number>();
  /** The newest state at a barrier that is still in the chain. */
  atBarrier: BarrierState | undefined;

  /** `identity`: what the state is bound to (graph, generation, core version, task). */
  constructor(store: Store, identity: string) {
    this.store = store;
    this.identity = identity;
  }

  /**
   * Reads the chain: `apply` gets each block's payload in order. Stops before the first block that `keeps`
   * refuses or that is damaged, and deletes what lies beyond, synced. Before blocks that `keeps` refuses are
   * deleted, `beforeCut` is told what the newest of them stood for; if it throws, all stays. `breathe` lets other work
   * run between blocks.
   */
  async restore(
    keeps: (position: BlockPosition) => boolean,
    apply: (payload: ByteReader) => void,
    beforeCut: (newest: BlockPosition) => Promise<void> = async () => {},
    breathe: () => Promise<void> = async () => {},
    digest: () => string | undefined = () => undefined,
  ): Promise<Restored> {
    const head = await this.store.get(HEAD_KEY);
    if (head === undefined) {
      await this.removeChains(0, 0xffffffff);
      return { found: { kind: 'nothing' }, position: undefined, blocks: 0, cutBack: 0 };
    }
    const reader = this.headReader(head);
    if (reader === undefined) {
      await this.forget();
      return { found: { kind: 'damaged', block: 0 }, position: undefined, blocks: 0, cutBack: 0 };
    }
    const identity = new TextDecoder().decode(reader.take(reader.varint()));
    if (identity !== this.identity) {
      await this.forget();
      return { found: { kind: 'foreign', identity }, position: undefined, blocks: 0, cutBack: 0 };
    }
    this.chain = reader.u32();
    const expected = reader.u32() + 1;
    const last = { a: reader.u32(), b: reader.u32() };
    return await this.scan(expected, last, keeps, apply, beforeCut, breathe, digest);
  }

  /** Adds a block; with the head, in one atomic write. */
  async append(position: BlockPosition, payload: Uint8Array): Promise<void> {
    await this.store.write(this.block(position, WHOLE, payload), [], false);
  }

  /** Likewise one that is the state at its barrier. */
  async appendAtBarrier(
    position: BlockPosition,
    payload: Uint8Array,
    digest: string | undefined,
  ): Promise<void> {
    await this.store.write(this.block(position, AT_BARRIER, payload), [], false);
    this.setBarrier(position, digest);
  }

  /** Whether there is a state in the store at all, of whatever identity. */
  static async isIn(store: Store): Promise<boolean> {
    return (await store.get(HEAD_KEY)) !== undefined;
  }

  /**
   * Keeps the chain's blocks until the function that it gives is called. They are deleted by the next copy or at the next
   * start, not then: it would be while others write.
   */
  pin(chain: number): () => Promise<void> {
    this.pins.set(chain, (this.pins.get(chain) ?? 0) + 1);
    return async () => {
      const left = this.pins.get(chain)! - 1;
      if (left > 0) this.pins.set(chain, left);
      else this.pins.delete(chain);
    };
  }

  /** The bytes of a block; undefined: it is not there. Read by key, since iterators are not held while writing. */
  async blockBytes(chain: number, block: number): Promise<Uint8Array | undefined> {
    const pages: Uint8Array[] = [];
    for (let page = 0; ; page++) {
      const bytes = await this.store.get(blockKey(chain, block, page));
      if (bytes === undefined) break;
      pages.push(bytes);
      if (bytes.length < PAGE_BYTES) break;
    }
    return pages.length === 0 ? undefined : concatenate(pages);
  }

  /** Begins a new chain of blocks that were stored elsewhere, and deletes what was there; `restore` reads it then. */
  async install(blocks: AsyncIterable<Uint8Array>): Promise<void> {
    const old = this.chain;
    this.startChain(old + 1);
    let before = NO_LANES;
    for await (const bytes of blocks) {
      const block = parseBlock([bytes], before);
      if (block === undefined) throw new DamagedBlocks(`block ${this.next} is not what was stored`);
      before = block.checksum;
      this.last = block.checksum;
      await this.store.write(this.pagesOf(bytes), [], false);
      this.next += 1;
    }
    if (this.next === 0) throw new DamagedBlocks('there are no blocks');
    this.next -= 1;
    const head = this.head();
    this.next += 1;
    await this.store.write([[HEAD_KEY, head]], [], true);
    await this.removeChains(0, this.chain);
  }

  /**
   * Whether a full copy would be much smaller than what the chain has become: by what a copy takes, if the core knows; else
   * by what blocks take that add nothing.
   */
  wantsCopy(copyBytes: number | undefined): boolean {
    const bytes = this.payloadBytes + this.next * this.overheadBytes;
    const least = this.next === 0 ? 0 : this.next * (this.overheadBytes + this.leastPayload);
    const state = copyBytes ?? bytes - least;
    return bytes - state > state + COPY_SLACK_BYTES;
  }

  /** Begins a new chain with a full copy, given in pieces, and deletes the old one. */
  async copy(position: BlockPosition, pieces: Iterable<Uint8Array>): Promise<void> {
    const oldChain = this.chain;
    const puts: (readonly [Uint8Array, Uint8Array])[] = [];
    this.startChain(oldChain + 1);
    let waiting: Uint8Array | undefined;
    for (const piece of pieces) {
      // The head follows with the last piece; until then the old chain is the state.
      if (waiting !== undefined)
        await this.store.write(this.block(position, PIECE, waiting).slice(0, -1), [], false);
      waiting = piece.slice();
    }
    puts.push(...this.block(position, WHOLE, waiting ?? new Uint8Array(0)));
    await this.store.write(puts, [], true);
    for (let chain = 0; chain <= oldChain; chain++) {
      if (!this.pins.has(chain)) await this.removeChains(chain, chain + 1);
    }
  }

  /** Removes all state. */
  private async forget(): Promise<void> {
    await this.store.write([], [HEAD_KEY], true);
    await this.removeChains(0, 0xffffffff);
    this.startChain(0);
  }

  private startChain(chain: number): void {
    this.chain = chain;
    this.next = 0;
    this.last = NO_LANES;
    this.payloadBytes = 0;
    this.leastPayload = 0;
    this.atBarrier = undefined;
  }

  private setBarrier(position: BlockPosition, digest: string | undefined): void {
    this.atBarrier = { barrier: position.barrier, chain: this.chain, blocks: this.next, position, digest };
  }

  /** The entries of the next block, the head last. */
  private block(position: BlockPosition, kind: number, payload: Uint8Array): [Uint8Array, Uint8Array][] {
    const { writer } = this;
    writer.clear();
    writer.u8(BLOCK_VERSION);
    writer.u8(kind);
    const before = writer.length;
    writePosition(writer, position);
    this.overheadBytes = BLOCK_OVERHEAD_BYTES + writer.length - before;
    writer.bytes(payload);
    this.last = checksum(this.last, writer.written());
    writer.u32(this.last.a);
    writer.u32(this.last.b);
    const puts = this.pagesOf(writer.copy());
    puts.push([HEAD_KEY, this.head()]);
    this.next += 1;
    this.countPayload(payload.length);
    return puts;
  }

  private countPayload(bytes: number): void {
    this.leastPayload = this.payloadBytes === 0 ? bytes : Math.min(this.leastPayload, bytes);
    this.payloadBytes += bytes;
  }

  private pagesOf(bytes: Uint8Array): [Uint8Array, Uint8Array][] {
    const puts: [Uint8Array, Uint8Array][] = [];
    for (let page = 0; page * PAGE_BYTES < bytes.length; page++) {
      puts.push([
        blockKey(this.chain, this.next, page),
        bytes.subarray(page * PAGE_BYTES, Math.min(bytes.length, (page + 1) * PAGE_BYTES)),
      ]);
    }
    return puts;
  }

  private head(): Uint8Array {
    const writer = new ByteWriter();
    const identity = new TextEncoder().encode(this.identity);
    writer.varint(identity.length);
    writer.bytes(identity);
    writer.u32(this.chain);
    writer.u32(this.next);
    writer.u32(this.last.a);
    writer.u32(this.last.b);
    const own = checksum(NO_LANES, writer.written());
    writer.u32(own.a);
    writer.u32(own.b);
    return writer.written();
  }

  /** Undefined where the head is not what was written. */
  private headReader(head: Uint8Array): ByteReader | undefined {
    if (head.length < 8) return undefined;
    const body = head.subarray(0, head.length - 8);
    const stored = new ByteReader(head, head.length - 8);
    return sameLanes(checksum(NO_LANES, body), { a: stored.u32(), b: stored.u32() })
      ? new ByteReader(body)
      : undefined;
  }

  private async scan(
    expected: number,
    lastChecksum: Lanes,
    keeps: (position: BlockPosition) => boolean,
    apply: (payload: ByteReader) => void,
    beforeCut: (newest: BlockPosition) => Promise<void>,
    breathe: () => Promise<void>,
    digest: () => string | undefined,
  ): Promise<Restored> {
    const chain = this.chain;
    this.startChain(chain);
    const state: { position: BlockPosition | undefined; whole: number } = { position: undefined, whole: 0 };
    let stopped: 'damaged' | 'refused' | undefined;
    let newestRefused: BlockPosition | undefined;
    let before = NO_LANES;
    // A copied state counts only once its last piece is read, so its payloads wait for it.
    let waiting: Uint8Array[] = [];
    let pages: Uint8Array[] = [];
    const finishBlock = async (): Promise<void> => {
      if (stopped === 'damaged' || pages.length === 0) return;
      const block = parseBlock(pages, before);
      pages = [];
      if (block === undefined) {
        stopped ??= 'damaged';
        return;
      }
      before = block.checksum;
      if (stopped === 'refused' || (block.whole && !keeps(block.position))) {
        stopped = 'refused';
        newestRefused = block.position;
        return;
      }
      waiting.push(block.payload);
      this.last = block.checksum;
      this.next += 1;
      this.countPayload(block.payload.length);
      if (!block.whole) return;
      for (const payload of waiting) {
        apply(new ByteReader(payload));
        await breathe();
      }
      waiting = [];
      state.position = block.position;
      state.whole = this.next;
      if (block.isBarrier) this.setBarrier(block.position, digest());
    };
    let reading = 0;
    for await (const [key, value] of this.store.entries(
      blockKey(chain, 0, 0),
      blockKey(chain, expected, 0),
    )) {
      const { block, page } = parseKey(key);
      if (block !== reading) {
        await finishBlock();
        reading += 1;
      }
      if (stopped === 'damaged') break;
      if (block !== reading || page !== pages.length) {
        stopped ??= 'damaged';
        break;
      }
      pages.push(value);
    }
    await finishBlock();
    if (newestRefused !== undefined) await beforeCut(newestRefused);
    const complete = stopped === undefined && this.next === expected && sameLanes(this.last, lastChecksum);
    const found: Found =
      stopped === 'refused' || complete ? { kind: 'whole' } : { kind: 'damaged', block: this.next };
    const cutBack = complete ? 0 : expected - state.whole;
    if (!complete) await this.cutBackTo(state.whole, expected);
    // What a crash left of a copy, or of a cut that had set the head and not yet deleted the blocks behind it.
    await this.removeChains(0, chain);
    await this.removeRange(blockKey(chain, expected, 0), END_KEY);
    return {
      found,
      position: state.position,
      blocks: state.whole,
      cutBack: stopped === 'refused' ? cutBack : 0,
    };
  }

  /** Deletes all blocks from number `block` on, synced, and sets the head back. */
  private async cutBackTo(block: number, expected: number): Promise<void> {
    if (block === 0) {
      await this.forget();
      return;
    }
    // Pieces of a copy that lost its end were counted; the chain ends at its last whole block.
    if (block !== this.next) throw new Error(`the chain has ${this.next} blocks, ${block} of them whole`);
    this.next = block - 1;
    const head = this.head();
    this.next = block;
    await this.store.write([[HEAD_KEY, head]], [], true);
    await this.removeRange(blockKey(this.chain, block, 0), blockKey(this.chain, expected, 0));
  }

  private async removeChains(from: number, to: number): Promise<void> {
    if (from >= to) return;
    await this.removeRange(blockKey(from, 0, 0), to === 0xffffffff ? END_KEY : blockKey(to, 0, 0));
  }

  private async removeRange(from: Uint8Array, to: Uint8Array): Promise<void> {
    let keys: Uint8Array[] = [];
    for await (const [key] of this.store.entries(from, to)) keys.push(key);
    while (keys.length > 0) {
      await this.store.write([], keys.slice(0, DELETES_PER_WRITE), true);
      keys = keys.slice(DELETES_PER_WRITE);
    }
  }
}

const HEAD_KEY = Uint8Array.of(0x48);
/** Behind every block's key. */
const END_KEY = Uint8Array.of(0x43);

function blockKey(chain: number, block: number, page: number): Uint8Array {
  const key = new Uint8Array(11);
  const view = new DataView(key.buffer);
  key[0] = 0x42;
  view.setUint32(1, chain);
  view.setUint32(5, block);
  view.setUint16(9, page);
  return key;
}

function parseKey(key: Uint8Array): { block: number; page: number } {
  const view = new DataView(key.buffer, key.byteOffset, key.byteLength);
  return { block: view.getUint32(5), page: view.getUint16(9) };
}

/** Blocks that are to be installed are not those that were stored. */
export class DamagedBlocks extends Error {
  constructor(what: string) {
    super(what);
    this.name = 'DamagedBlocks';
  }
}

/** Kinds of blocks. */
const PIECE = 0;
const WHOLE = 1;
const AT_BARRIER = 2;

interface Block {
  readonly whole: boolean;
  readonly isBarrier: boolean;
  readonly position: BlockPosition;
  readonly payload: Uint8Array;
  readonly checksum: Lanes;
}

/** Undefined where the bytes are not the block that followed `before`. */
function parseBlock(pages: readonly Uint8Array[], before: Lanes): Block | undefined {
  const bytes = pages.length === 1 ? pages[0]! : concatenate(pages);
  if (bytes.length < 10) return undefined;
  const body = bytes.subarray(0, bytes.length - 8);
  const stored = new ByteReader(bytes, bytes.length - 8);
  const recorded = { a: stored.u32(), b: stored.u32() };
  if (!sameLanes(checksum(before, body), recorded)) return undefined;
  const reader = new ByteReader(body);
  if (reader.u8() !== BLOCK_VERSION) return undefined;
  const kind = reader.u8();
  const position = readPosition(reader);
  return {
    whole: kind !== PIECE,
    isBarrier: kind === AT_BARRIER,
    position,
    payload: body.subarray(reader.offset),
    checksum: recorded,
  };
}

/** The checksum of a block that follows what `before` stands for; undefined: it is damaged. */
export function blockChecksum(bytes: Uint8Array, before: Lanes): Lanes | undefined {
  return parseBlock([bytes], before)?.checksum;
}

/** Reads blocks that were stored elsewhere without keeping them: `apply` gets each payload; gives the last position. */
export async function readBlocks(
  blocks: AsyncIterable<Uint8Array>,
  apply: (payload: ByteReader) => void,
): Promise<BlockPosition> {
  let before = NO_LANES;
  let position: BlockPosition | undefined;
  let count = 0;
  for await (const bytes of blocks) {
    const block = parseBlock([bytes], before);
    if (block === undefined) throw new DamagedBlocks(`block ${count} is not what was stored`);
    before = block.checksum;
    count += 1;
    apply(new ByteReader(block.payload));
    position = block.whole ? block.position : undefined;
  }
  if (position === undefined)
    throw new DamagedBlocks(`the last of ${count} blocks is only a piece of a state`);
  return position;
}

function concatenate(pages: readonly Uint8Array[]): Uint8Array {
  const bytes = new Uint8Array(pages.reduce((length, page) => length + page.length, 0));
  let at = 0;
  for (const page of pages) {
    bytes.set(page, at);
    at += page.length;
  }
  return bytes;
}

function writePosition(writer: ByteWriter, position: BlockPosition): void {
  writer.varint(position.barrier);
  writer.varint(position.inputs.length);
  for (const { created, sequence, time } of position.inputs) {
    writer.u64(created);
    writer.varint(sequence);
    writer.u64(time);
  }
  writer.varint(position.outputs.length);
  for (const { through, count, hash } of position.outputs) {
    writer.varint(through.sequence);
    writer.varint(through.index);
    writer.varint(count);
    writer.u32(hash.a);
    writer.u32(hash.b);
  }
}

function readPosition(reader: ByteReader): BlockPosition {
  const barrier = reader.varint();
  const inputs = Array.from({ length: reader.varint() }, () => ({
    created: reader.u64(),
    sequence: reader.varint(),
    time: reader.u64(),
  }));
  const outputs = Array.from({ length: reader.varint() }, () => ({
    through: { sequence: reader.varint(), index: reader.varint() },
    count: reader.varint(),
    hash: { a: reader.u32(), b: reader.u32() },
  }));
  return { inputs, outputs, barrier };
}
