/**
 * Which rows are in one set, under unions only: a worker's half of connected components.
 *
 * Union by size with path halving (Tarjan and van Leeuwen: Worst-case Analysis of Set Union Algorithms, JACM
 * 31(2), 1984). One word per row: a parent, or in a root the size as a negative number.
 */
import { Uint32Column } from './columns.ts';

export class DisjointSets {
  /** Parent row; in a root, 2^32 - size. A row is below 2^31, so the two cannot be mistaken. */
  private readonly parent = new Uint32Column();

  get count(): number {
    return this.parent.length;
  }

  get byteLength(): number {
    return this.parent.byteLength;
  }

  /** A new set with the next row alone in it. */
  add(): void {
    if (this.parent.length === ROOT_BIT) throw new RangeError('a worker holds at most 2^31 vertices');
    this.parent.push(ONE);
  }

  root(row: number): number {
    const parent = this.parent;
    let at = row;
    let up = parent.get(at);
    while (up < ROOT_BIT) {
      const upper = parent.get(up);
      if (upper >= ROOT_BIT) return up;
      parent.set(at, upper);
      at = upper;
      up = parent.get(at);
    }
    return at;
  }

  /** Joins the sets of two rows; false if they were one already. */
  union(a: number, b: number): boolean {
    const rootA = this.root(a);
    const rootB = this.root(b);
    if (rootA === rootB) return false;
    const sizeA = 2 ** 32 - this.parent.get(rootA);
    const sizeB = 2 ** 32 - this.parent.get(rootB);
    const [winner, loser] = sizeA >= sizeB ? [rootA, rootB] : [rootB, rootA];
    this.parent.set(winner, 2 ** 32 - (sizeA + sizeB));
    this.parent.set(loser, winner);
    return true;
  }
}

const ROOT_BIT = 0x80000000;
const ONE = 0xffffffff;
