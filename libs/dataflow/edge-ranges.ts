/** Where each edge of a text payload stands in it: what cutting the payload needs beyond its columns. */

export class EdgeRanges {
  count = 0;
  start = new Uint32Array(64);
  end = new Uint32Array(64);
  /** CSV: the payload begins with this many bytes that belong to no edge and that every part needs. */
  headerBytes = 0;

  add(start: number, end: number): void {
    if (this.count === this.start.length) {
      const wideStart = new Uint32Array(this.count * 2);
      wideStart.set(this.start);
      this.start = wideStart;
      const wideEnd = new Uint32Array(this.count * 2);
      wideEnd.set(this.end);
      this.end = wideEnd;
    }
    this.start[this.count] = start;
    this.end[this.count] = end;
    this.count += 1;
  }
}
