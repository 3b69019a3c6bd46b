/**
 * A process of the simulated cluster: a clock and ports of its own, so that it can be killed, suspended or cut off at
 * any call it makes.
 *
 * What runs in it goes on only through a timer of its clock or the answer to a call. So a dead process is one whose
 * timers and answers never come, and a suspended one gets all of them when it wakes.
 */
import type { Appended, Bus, Chunks, Clock, Kv, LogReader, Store } from '../../../libs/stage/ports.ts';
import type { MemoryDisk } from '../../../libs/store/memory-store.ts';
import type { VirtualClock } from '../../support/virtual-clock.ts';
import type { Network, Server } from './network.ts';
import type { Random } from './random.ts';

/** What the processes share. */
export interface Surroundings {
  readonly clock: VirtualClock;
  readonly random: Random;
  readonly network: Network;
  readonly bus: Bus;
  readonly kv: Kv;
  readonly chunks: Chunks;
}

export class Process {
  readonly name: string;
  readonly clock: Clock;
  readonly bus: Bus;
  readonly kv: Kv;
  readonly chunks: Chunks;
  isDead = false;
  isSuspended = false;
  /** From which servers it is cut off, and which way. */
  readonly cutOff = new Map<Server, 'request lost' | 'answer lost'>();
  /** Readers are reset this often per call. */
  resetRate = 0;
  private readonly around: Surroundings;
  /** What was to happen while it was suspended. */
  private readonly late: (() => void)[] = [];
  private readonly disks = new Set<MemoryDisk>();
  /** Calls until it dies by itself. */
  private fuse = Number.POSITIVE_INFINITY;
  private onBurnt: () => void = () => {};

  /** `rate`: how fast its clock runs. */
  constructor(name: string, around: Surroundings, rate: number) {
    this.name = name;
    this.around = around;
    this.clock = new ProcessClock(this, around.clock, rate);
    this.bus = busOf(this, around);
    this.kv = kvOf(this, around);
    this.chunks = {
      put: (bytes) => this.call('chunks', () => around.chunks.put(bytes)),
      get: (name) => this.call('chunks', () => around.chunks.get(name)),
      list: () => this.call('chunks', () => around.chunks.list()),
      remove: (name) => this.call('chunks', () => around.chunks.remove(name)),
    };
  }

  call<T>(server: Server, effect: () => Promise<T>): Promise<T> {
    return this.around.network.call(this, server, effect);
  }

  /** Now, after the suspension, or never. */
  deliver(what: () => void): void {
    if (this.isDead) return;
    if (this.isSuspended) this.late.push(what);
    else what();
  }

  kill(): void {
    this.isDead = true;
    for (const disk of this.disks) disk.release();
    this.disks.clear();
  }

  /** Dies at the `calls`-th call from now on, before it has an effect. */
  killAtCall(calls: number, then: () => void): void {
    this.fuse = calls;
    this.onBurnt = then;
  }

  /** One call nearer to the end; whether this is it. */
  burns(): boolean {
    this.fuse -= 1;
    if (this.fuse > 0) return false;
    this.fuse = Number.POSITIVE_INFINITY;
    this.onBurnt();
    return true;
  }

  suspend(): void {
    this.isSuspended = true;
  }

  resume(): void {
    this.isSuspended = false;
    for (const what of this.late.splice(0)) this.deliver(what);
  }

  /** Local calls take no time to speak of, but the process can die or be suspended in each. */
  async open(disk: MemoryDisk): Promise<Store> {
    return await this.local(async () => {
      const store = disk.openStore();
      this.disks.add(disk);
      return {
        get: (key) => this.local(() => store.get(key)),
        entries: (from, to) => this.entries(() => store.entries(from, to)),
        write: (puts, deletes, sync) => this.local(() => store.write(puts, deletes, sync)),
        close: () =>
          this.local(async () => {
            this.disks.delete(disk);
            await store.close();
          }),
      } satisfies Store;
    });
  }

  private async *entries<T>(read: () => AsyncIterable<T>): AsyncGenerator<T> {
    yield* await this.local(async () => read());
  }

  private local<T>(effect: () => Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      if (this.isDead || this.burns()) return;
      this.deliver(() => {
        const result = effect();
        result.then(
          (value) => this.deliver(() => resolve(value)),
          (error: unknown) => this.deliver(() => reject(error)),
        );
      });
    });
  }
}

class ProcessClock implements Clock {
  private readonly process: Process;
  private readonly world: VirtualClock;
  private readonly rate: number;

  constructor(process: Process, world: VirtualClock, rate: number) {
    this.process = process;
    this.world = world;
    this.rate = rate;
  }

  now(): number {
    return this.world.now() * this.rate;
  }

  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => {
      this.world.after(ms / this.rate, () => this.process.deliver(resolve));
    });
  }

  after(ms: number, then: () => void): () => void {
    let isCancelled = false;
    const cancel = this.world.after(ms / this.rate, () =>
      this.process.deliver(() => {
        if (!isCancelled) then();
      }),
    );
    return () => {
      isCancelled = true;
      cancel();
    };
  }

  yield(): Promise<void> {
    return this.sleep(0);
  }
}

function busOf(process: Process, { bus, random }: Surroundings): Bus {
  const call = <T>(effect: () => Promise<T>): Promise<T> => process.call('bus', effect);
  return {
    describe: (stream) => call(() => bus.describe(stream)),
    message: (stream, sequence) => call(() => bus.message(stream, sequence)),
    append: (log, payload, options) =>
      call(() => bus.append(log, payload, options)).catch(
        (error: unknown): Appended => ({ kind: 'unknown', reason: String(error) }),
      ),
    create: (stream, options) => call(() => bus.create(stream, options)),
    remove: (stream) => call(() => bus.remove(stream)),
    purge: (stream, sequence) => call(() => bus.purge(stream, sequence)),
    read: async (stream, from) => {
      const reader = await call(() => bus.read(stream, from));
      return {
        next: async (waitMs) => {
          if (process.resetRate > 0 && random.chance(process.resetRate))
            throw new Error('the reader was reset');
          return await waitFor(process, reader, waitMs);
        },
        // Nobody waits for a consumer to be gone.
        close: () => reader.close(),
      };
    },
  };
}

/** Messages that are on their way when the process is cut off are lost, and with them the reader. */
function waitFor(process: Process, reader: LogReader, waitMs: number): ReturnType<LogReader['next']> {
  return new Promise((resolve, reject) => {
    if (process.isDead) return;
    reader.next(waitMs).then(
      (messages) =>
        process.deliver(() => {
          if (process.cutOff.has('bus')) reject(new Error('the connection is lost'));
          else resolve(messages);
        }),
      (error: unknown) => process.deliver(() => reject(error)),
    );
  });
}

function kvOf(process: Process, { kv }: Surroundings): Kv {
  const call = <T>(effect: () => Promise<T>): Promise<T> => process.call('kv', effect);
  return {
    get: (bucket, key) => call(() => kv.get(bucket, key)),
    list: (bucket, prefix) => call(() => kv.list(bucket, prefix)),
    revision: (bucket) => call(() => kv.revision(bucket)),
    put: (bucket, key, value) => call(() => kv.put(bucket, key, value)),
    create: (bucket, key, value) => call(() => kv.create(bucket, key, value)),
    update: (bucket, key, value, revision) => call(() => kv.update(bucket, key, value, revision)),
    remove: (bucket, key) => call(() => kv.remove(bucket, key)),
    erase: (bucket, key) => call(() => kv.erase(bucket, key)),
    isRemoved: (bucket, key) => call(() => kv.isRemoved(bucket, key)),
  };
}
