/**
 * Which rows are in one set, under unions only: a worker's half of connected components.
 *
 * Union by size with path halving (Tarjan and van Leeuwen: Worst-case Analysis of Set Union Algorithms, JACM
 * 31(2), 1984). One word per row. Unlike the other columns this one is a single array, since it is read more often than all
 * others together; growing by half costs a copy of a few milliseconds at ten million rows.
 */
export class DisjointSets {
  /** Parent row; in a root, minus the size. */
  private parent = new Int32Array(1024);
  count = 0;
  /** Keeps the reads of `touch` from being optimised away. */
  touched = 0;

  get byteLength(): number {
    return this.parent.byteLength;
  }

  /** A new set with the next row alone in it. */
  add(): void {
    if (this.count === this.parent.length) this.grow();
    this.parent[this.count] = -1;
    this.count += 1;
  }

  /** Reads what `union` will need of these rows, so that their cache misses overlap. */
  touch(rows: Uint32Array, from: number, to: number): void {
    const { parent } = this;
    let touched = 0;
    for (let i = from; i < to; i++) touched ^= parent[rows[i]!] ?? 0;
    this.touched = touched;
  }

  root(row: number): number {
    const { parent } = this;
    let at = row;
    let up = parent[at]!;
    while (up >= 0) {
      const upper = parent[up]!;
      if (upper < 0) return up;
      parent[at] = upper;
      at = upper;
      up = parent[at]!;
    }
    return at;
  }

  /** Joins the sets of two rows; false if they were one already. */
  union(a: number, b: number): boolean {
    const rootA = this.root(a);
    const rootB = this.root(b);
    if (rootA === rootB) return false;
    const { parent } = this;
    const aWins = parent[rootA]! <= parent[rootB]!;
    const winner = aWins ? rootA : rootB;
    const loser = aWins ? rootB : rootA;
    parent[winner]! += parent[loser]!;
    parent[loser] = winner;
    return true;
  }

  private grow(): void {
    if (this.count >= ROWS_MAX) throw new RangeError(`a worker holds at most ${ROWS_MAX} vertices`);
    const wide = new Int32Array(Math.min(ROWS_MAX, this.count + (this.count >>> 1)));
    wide.set(this.parent);
    this.parent = wide;
  }
}

/** A row must be told from a size: both have 31 bits. */
const ROWS_MAX = 2 ** 31 - 1;
