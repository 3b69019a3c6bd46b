/**
 * A clock whose time passes only when nothing is left to do: every promise that can go on has, then the next timer is
 * due. An hour takes as long as what happens in it. Timers that are due at one time fire in the order they were
 * set, or, given a random source, in one that it draws: each seed is another schedule, and the same one every time.
 *
 * What runs on it must wait for nothing but this clock and promises: no real timers, no I/O.
 */
import type { Clock } from '../../libs/stage/ports.ts';

/** The process itself gets a turn after so many timers, so that a test that hangs can be timed out. */
const STEPS_PER_TURN = 1024;

interface Timer {
  readonly at: number;
  readonly tie: number;
  readonly order: number;
  readonly then: () => void;
  isCancelled: boolean;
}

export class VirtualClock implements Clock {
  private time = 0;
  private readonly random: (() => number) | undefined;
  /** A binary heap: the first one is due next. */
  private readonly timers: Timer[] = [];
  private order = 0;
  private steps = 0;
  private isRunning = false;

  constructor(random?: () => number) {
    this.random = random;
  }

  now(): number {
    return this.time;
  }

  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => {
      this.after(ms, resolve);
    });
  }

  after(ms: number, then: () => void): () => void {
    const at = this.time + Math.max(0, ms);
    const timer = { at, tie: this.random?.() ?? 0, order: this.order++, then, isCancelled: false };
    this.push(timer);
    return () => {
      timer.isCancelled = true;
    };
  }

  yield(): Promise<void> {
    return this.sleep(0);
  }

  /** Lets `ms` pass. */
  async run(ms: number): Promise<void> {
    const until = this.time + ms;
    await this.runUntil(() => false, ms);
    this.time = until;
  }

  /** Lets time pass until `isDone`, asked after each timer, but no more than `msMax`; whether it was done. */
  async runUntil(isDone: () => boolean, msMax: number): Promise<boolean> {
    if (this.isRunning) throw new Error('the clock runs already');
    this.isRunning = true;
    const until = this.time + msMax;
    try {
      await this.settle();
      while (!isDone()) {
        while (this.timers[0]?.isCancelled) this.pop();
        const next = this.timers[0];
        if (next === undefined || next.at > until) return false;
        this.pop();
        this.time = next.at;
        next.then();
        await this.settle();
      }
      return true;
    } finally {
      this.isRunning = false;
    }
  }

  /** Ends when no promise can go on any more: a tick comes after all of them, what they lead to included. */
  private async settle(): Promise<void> {
    this.steps += 1;
    if (this.steps % STEPS_PER_TURN === 0) await new Promise((resolve) => setImmediate(resolve));
    await null;
    await new Promise<void>((resolve) => process.nextTick(resolve));
  }

  private push(timer: Timer): void {
    const { timers } = this;
    let at = timers.push(timer) - 1;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (!isBefore(timer, timers[parent]!)) break;
      timers[at] = timers[parent]!;
      at = parent;
    }
    timers[at] = timer;
  }

  private pop(): void {
    const { timers } = this;
    const last = timers.pop()!;
    if (timers.length === 0) return;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= timers.length) break;
      if (child + 1 < timers.length && isBefore(timers[child + 1]!, timers[child]!)) child += 1;
      if (!isBefore(timers[child]!, last)) break;
      timers[at] = timers[child]!;
      at = child;
    }
    timers[at] = last;
  }
}

function isBefore(one: Timer, other: Timer): boolean {
  if (one.at !== other.at) return one.at < other.at;
  return one.tie !== other.tie ? one.tie < other.tie : one.order < other.order;
}
