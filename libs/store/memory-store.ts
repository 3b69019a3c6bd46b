/**
 * The store's in-memory twin, with LevelDB's hazards: a power cut that takes any unsynced writes, a handle
 * that is dead after a failed write. The "disk" outlives the handles opened on it.
 */
import type { Store } from '../stage/ports.ts';

interface Write {
  readonly puts: readonly (readonly [string, Uint8Array])[];
  readonly deletes: readonly string[];
}

export class MemoryDisk {
  private readonly durable = new Map<string, Uint8Array>();
  private unsynced: Write[] = [];
  private open = false;
  /** Called before each write; throwing makes the write fail and the handle dead. */
  beforeWrite: () => void = () => {};

  /** What a process sees: a crash of the process alone loses none of it. */
  openStore(): Store {
    if (this.open) throw new Error('the disk is in use by another handle');
    this.open = true;
    return new MemoryStore(this);
  }

  /** The process that held the handle is gone. */
  release(): void {
    this.open = false;
  }

  /** Takes those unsynced writes for which `survives` is false: holes, not only a lost tail. */
  powerCut(survives: (write: number) => boolean): void {
    const writes = this.unsynced;
    this.unsynced = [];
    for (const [number, write] of writes.entries()) if (survives(number)) this.settle(write);
    this.open = false;
  }

  /** All is gone. */
  lose(): void {
    this.durable.clear();
    this.unsynced = [];
    this.open = false;
  }

  /** Flips a bit of the value number `value` in key order. */
  flip(value: number, bit: number): void {
    this.sync();
    const keys = [...this.durable.keys()].sort();
    const key = keys[value % keys.length];
    if (key === undefined) return;
    const bytes = this.durable.get(key)!.slice();
    const at = bit % (bytes.length * 8);
    bytes[at >> 3]! ^= 1 << (at & 7);
    this.durable.set(key, bytes);
  }

  get(key: string): Uint8Array | undefined {
    for (let at = this.unsynced.length - 1; at >= 0; at--) {
      const write = this.unsynced[at]!;
      if (write.deletes.includes(key)) return undefined;
      const put = write.puts.findLast(([name]) => name === key);
      if (put !== undefined) return put[1];
    }
    return this.durable.get(key);
  }

  range(from: string, to: string): [string, Uint8Array][] {
    const seen = new Map(this.durable);
    for (const write of this.unsynced) apply(seen, write);
    return [...seen].filter(([key]) => key >= from && key < to).sort(([a], [b]) => (a < b ? -1 : 1));
  }

  write(write: Write, sync: boolean): void {
    this.beforeWrite();
    this.unsynced.push(write);
    if (sync) this.sync();
  }

  private sync(): void {
    for (const write of this.unsynced) this.settle(write);
    this.unsynced = [];
  }

  private settle(write: Write): void {
    apply(this.durable, write);
  }
}

class MemoryStore implements Store {
  private readonly disk: MemoryDisk;
  private dead = false;

  constructor(disk: MemoryDisk) {
    this.disk = disk;
  }

  async get(key: Uint8Array): Promise<Uint8Array | undefined> {
    this.mustLive();
    return this.disk.get(hex(key));
  }

  async *entries(from: Uint8Array, to: Uint8Array): AsyncIterable<readonly [Uint8Array, Uint8Array]> {
    this.mustLive();
    for (const [key, value] of this.disk.range(hex(from), hex(to))) yield [unhex(key), value];
  }

  async write(
    puts: readonly (readonly [Uint8Array, Uint8Array])[],
    deletes: readonly Uint8Array[],
    sync: boolean,
  ): Promise<void> {
    this.mustLive();
    try {
      this.disk.write(
        { puts: puts.map(([key, value]) => [hex(key), value.slice()] as const), deletes: deletes.map(hex) },
        sync,
      );
    } catch (error) {
      this.dead = true;
      throw error;
    }
  }

  async close(): Promise<void> {
    this.disk.release();
  }

  private mustLive(): void {
    if (this.dead) throw new Error('a write failed before: the store must be opened anew');
  }
}

function apply(values: Map<string, Uint8Array>, write: Write): void {
  for (const [key, value] of write.puts) values.set(key, value);
  for (const key of write.deletes) values.delete(key);
}

function hex(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('hex');
}

function unhex(text: string): Uint8Array {
  return new Uint8Array(Buffer.from(text, 'hex'));
}
