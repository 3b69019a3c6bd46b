import type { Signal } from './signal.ts';

/** The one epoch that is being appended and recorded. */
export class Flush {
  private readonly wake: Signal;
  private current: Promise<void> | undefined;
  private failure: { readonly error: unknown } | undefined;

  constructor(wake: Signal) {
    this.wake = wake;
  }

  get running(): boolean {
    return this.current !== undefined;
  }

  start(work: Promise<void>): void {
    this.current = work
      .catch((error: unknown) => {
        this.failure = { error };
      })
      .finally(() => {
        this.current = undefined;
        this.wake.raise();
      });
  }

  async settled(): Promise<void> {
    await this.current;
  }

  throwIfFailed(): void {
    if (this.failure !== undefined) throw this.failure.error;
  }
}
