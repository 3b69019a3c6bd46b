/** Rows of one file that are no edges: how many exactly, and of the first ones where and why. */

const REASONS_MAX = 10;

export interface RefusedRow {
  /** As a person finds it: `line 7`, `element 7`, `row 7`. */
  readonly place: string;
  readonly reason: string;
}

export class RefusedRows {
  count = 0;
  readonly first: RefusedRow[] = [];

  /** Whether the next one is among the first, of which a reason is kept: making its text costs something. */
  get isKept(): boolean {
    return this.first.length < REASONS_MAX;
  }

  add(place: string, reason: string): void {
    this.count += 1;
    if (this.isKept) this.first.push({ place, reason });
  }
}
