/** Drops the first lines of a content that comes in chunks. Lines end with LF, CRLF or CR. */

const LINE_FEED = 10;
const CARRIAGE_RETURN = 13;

export class LineSkipper {
  private linesLeft: number;
  /** The last byte dropped was a CR: a LF behind it belongs to the same line end. */
  private isAfterReturn = false;

  constructor(lines: number) {
    this.linesLeft = lines;
  }

  /** What is left of the next chunk. */
  rest(chunk: Uint8Array): Uint8Array {
    if (this.linesLeft === 0 && !this.isAfterReturn) return chunk;
    let p = 0;
    for (; p < chunk.length; p++) {
      const byte = chunk[p]!;
      const isSecond = this.isAfterReturn && byte === LINE_FEED;
      if (this.linesLeft === 0 && !isSecond) break;
      if (!isSecond && (byte === LINE_FEED || byte === CARRIAGE_RETURN)) this.linesLeft -= 1;
      this.isAfterReturn = byte === CARRIAGE_RETURN;
    }
    if (p < chunk.length) this.isAfterReturn = false;
    return chunk.subarray(p);
  }
}
