/**
 * How many bytes of request bodies are held at once. A body is kept whole until its edges are stored, so without
 * a bound, publishers that come all at once would fill the memory.
 */
export class InFlightBytes {
  private readonly max: number;
  private held = 0;

  constructor(max: number) {
    this.max = max;
  }

  /** Undefined: there is no room now. Otherwise a function that gives the room back. */
  take(bytes: number): (() => void) | undefined {
    if (this.held + bytes > this.max) return undefined;
    this.held += bytes;
    let taken = bytes;
    return () => {
      this.held -= taken;
      taken = 0;
    };
  }
}
