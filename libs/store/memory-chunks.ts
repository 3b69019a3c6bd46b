/** The chunks' in-memory twin, of which some get damaged or lost. */
import { createHash } from 'node:crypto';
import type { Chunks, Clock } from '../stage/ports.ts';

interface MemoryChunk {
  readonly bytes: Uint8Array;
  readonly storedAt: number;
}

export class MemoryChunks implements Chunks {
  private readonly clock: Clock;
  private readonly chunks = new Map<string, MemoryChunk>();

  constructor(clock: Clock) {
    this.clock = clock;
  }

  async put(bytes: Uint8Array): Promise<string> {
    const name = sha256(bytes);
    const there = this.chunks.get(name);
    if (there === undefined || sha256(there.bytes) !== name) {
      this.chunks.set(name, { bytes: bytes.slice(), storedAt: this.clock.now() });
    }
    return name;
  }

  async get(name: string): Promise<Uint8Array | 'missing' | 'damaged'> {
    const bytes = this.chunks.get(name)?.bytes;
    if (bytes === undefined) return 'missing';
    return sha256(bytes) === name ? bytes.slice() : 'damaged';
  }

  async list(): Promise<readonly { readonly name: string; readonly ageMs: number }[]> {
    const now = this.clock.now();
    return [...this.chunks].map(([name, { storedAt }]) => ({ name, ageMs: now - storedAt }));
  }

  async remove(name: string): Promise<void> {
    this.chunks.delete(name);
  }

  /** Flips a bit of the chunk number `chunk` in the order of names; an empty one loses its emptiness. */
  damage(chunk: number, bit: number): void {
    const name = this.nameAt(chunk);
    if (name === undefined) return;
    const { bytes, storedAt } = this.chunks.get(name)!;
    const damaged = bytes.length === 0 ? new Uint8Array(1) : bytes.slice();
    const at = bit % (damaged.length * 8);
    damaged[at >> 3]! ^= 1 << (at & 7);
    this.chunks.set(name, { bytes: damaged, storedAt });
  }

  /** The chunk number `chunk` in the order of names is gone. */
  lose(chunk: number): void {
    const name = this.nameAt(chunk);
    if (name !== undefined) this.chunks.delete(name);
  }

  private nameAt(chunk: number): string | undefined {
    const names = [...this.chunks.keys()].sort();
    return names[chunk % names.length];
  }
}

function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}
