import type { Clock } from './ports.ts';

/** Wakes one waiter; a raise that nobody waits for is kept for the next wait. */
export class Signal {
  private readonly clock: Clock;
  private raised = false;
  private waiter: (() => void) | undefined;

  constructor(clock: Clock) {
    this.clock = clock;
  }

  raise(): void {
    this.raised = true;
    this.waiter?.();
  }

  /** Ends when raised, or after `ms` (undefined: never). */
  async wait(ms: number | undefined): Promise<void> {
    if (!this.raised) {
      await new Promise<void>((resolve) => {
        const cancel = ms === undefined ? undefined : this.clock.after(ms, resolve);
        this.waiter = () => {
          cancel?.();
          resolve();
        };
      });
      this.waiter = undefined;
    }
    this.raised = false;
  }
}
