/** Wakes one waiter; a raise that nobody waits for is kept for the next wait. */
export class Signal {
  private raised = false;
  private waiter: (() => void) | undefined;

  raise(): void {
    this.raised = true;
    this.waiter?.();
  }

  async wait(ms: number | undefined): Promise<void> {
    if (!this.raised) {
      await new Promise<void>((resolve) => {
        const timer = ms === undefined ? undefined : setTimeout(resolve, ms);
        this.waiter = () => {
          clearTimeout(timer);
          resolve();
        };
      });
      this.waiter = undefined;
    }
    this.raised = false;
  }
}
