/**
 * The store's in-memory twin, with LevelDB's hazards: a power cut that takes any unsynced writes, also some that lie
 * before a synced one; a handle that is dead after a failed write. The "disk" outlives the handles opened on it.
 */
import type { Store } from '../stage/ports.ts';

interface Write {
  readonly puts: readonly (readonly [string, Uint8Array])[];
  readonly deletes: readonly string[];
}

interface PendingWrite extends Write {
  /** The number of the write-ahead log that it went to. */
  readonly log: number;
  isDurable: boolean;
}

/** What happens to a write: it fails, or it fails but is there all the same. */
export type WriteFault = 'none' | 'lost' | 'kept';

export class MemoryDisk {
  /** What a process sees: a crash of the process alone loses none of it. */
  private current = new Map<string, Uint8Array>();
  /** What no power cut takes. */
  private durable = new Map<string, Uint8Array>();
  /** What came after, in order. */
  private pending: PendingWrite[] = [];
  private log = 0;
  private open = false;
  /** Called before each write; throwing makes the write fail and the handle dead. */
  beforeWrite: (write: Write) => void = () => {};
  /** Asked at each write. */
  onWrite: () => WriteFault = () => 'none';

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
    let number = 0;
    for (const write of this.pending) {
      if (write.isDurable || survives(number++)) apply(this.durable, write);
    }
    this.pending = [];
    this.current = new Map(this.durable);
    this.open = false;
  }

  /**
   * A new write-ahead log begins, and the old one is closed without a sync: what is not synced there is not made so by
   * a sync of later writes, but only when the next log begins.
   */
  switchLog(): void {
    this.log += 1;
    for (const write of this.pending) if (write.log < this.log - 1) write.isDurable = true;
    this.settle();
  }

  /** All is gone. */
  lose(): void {
    this.current.clear();
    this.durable.clear();
    this.pending = [];
    this.open = false;
  }

  get isEmpty(): boolean {
    return this.current.size === 0;
  }

  /** Flips a bit of the value number `value` in key order. */
  flip(value: number, bit: number): void {
    const keys = [...this.current.keys()].sort();
    const key = keys[value % keys.length];
    if (key === undefined) return;
    const bytes = this.current.get(key)!.slice();
    const at = bit % (bytes.length * 8);
    bytes[at >> 3]! ^= 1 << (at & 7);
    this.current.set(key, bytes);
    this.durable = new Map(this.current);
    this.pending = [];
  }

  get(key: string): Uint8Array | undefined {
    return this.current.get(key);
  }

  range(from: string, to: string): [string, Uint8Array][] {
    return [...this.current].filter(([key]) => key >= from && key < to).sort(([a], [b]) => (a < b ? -1 : 1));
  }

  write(write: Write, sync: boolean): void {
    this.beforeWrite(write);
    const fault = this.onWrite();
    if (fault !== 'lost') {
      apply(this.current, write);
      this.pending.push({ ...write, log: this.log, isDurable: false });
    }
    if (fault !== 'none') throw new Error('the write failed');
    if (!sync) return;
    for (const pending of this.pending) if (pending.log === this.log) pending.isDurable = true;
    this.settle();
  }

  private settle(): void {
    let settled = 0;
    while (this.pending[settled]?.isDurable) apply(this.durable, this.pending[settled++]!);
    this.pending.splice(0, settled);
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
    return this.disk.get(textOf(key));
  }

  async *entries(from: Uint8Array, to: Uint8Array): AsyncIterable<readonly [Uint8Array, Uint8Array]> {
    this.mustLive();
    for (const [key, value] of this.disk.range(textOf(from), textOf(to))) yield [bytesOf(key), value];
  }

  async write(
    puts: readonly (readonly [Uint8Array, Uint8Array])[],
    deletes: readonly Uint8Array[],
    sync: boolean,
  ): Promise<void> {
    this.mustLive();
    try {
      this.disk.write(
        {
          puts: puts.map(([key, value]) => [textOf(key), value.slice()] as const),
          deletes: deletes.map(textOf),
        },
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

/** One character per byte, so that the order is the bytes'. */
function textOf(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('latin1');
}

function bytesOf(text: string): Uint8Array {
  return Buffer.from(text, 'latin1');
}
