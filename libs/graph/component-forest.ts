/**
 * Connected components with their whole history: the state of a view.
 *
 * A union-find *without path compression*, by size, so that no path is longer than log2 n and every link, once
 * made, stays. Links are numbered in the order they were made (`link`), and that number is all a
 * question about the past needs: a link counts at a sequence if and only if its number is below the number of
 * links made through that sequence. From the bottom of a path upward link numbers rise, because a row gets
 * its parent only after it was a root, so the components "as of" an earlier sequence are found by stopping at
 * the first link that is too new.
 *
 * Ties: equal sizes, the older root wins. So the answers are a function of the edges' order alone.
 */
import {
  AscendingColumn,
  CHUNK_BITS,
  CHUNK_MASK,
  NONE,
  SparseFloat64Column,
  Uint32Column,
} from './columns.ts';
import { finish } from './id-hash.ts';
import { SizeOrder } from './size-order.ts';
import { VertexTable } from './vertex-table.ts';

/** A prefix of the stream as the forest knows it: its rows and links are those numbered below these counts. */
export interface Cut {
  readonly rows: number;
  readonly links: number;
}

/** One link: at (sequence, index) the edge source–target joined the component of `child` to that of `parent`. */
export interface Link {
  readonly child: number;
  readonly parent: number;
  readonly sequence: number;
  readonly index: number;
  /** Rows of the edge that caused it, as its publisher oriented it. */
  readonly source: number;
  readonly target: number;
  /** The edge's own time, ms since 1970; NaN if it has none. */
  readonly time: number;
  /** Vertices of the joined component and its oldest one. */
  readonly size: number;
  readonly oldest: number;
}

/** What connects two rows: nothing, that they are one row, or the link that made them one component. */
export type Connection =
  | { readonly kind: 'apart' }
  | { readonly kind: 'same' }
  | { readonly kind: 'joined'; readonly link: number };

export class ComponentForest {
  readonly vertices = new VertexTable();
  /** Present components, largest first. */
  readonly order = new SizeOrder((oldest) => this.size(this.root(oldest, NONE), NONE));

  /** Keeps the reads of `touch` from being optimised away. */
  touched = 0;

  // Per row.
  private readonly arrivalSequences = new AscendingColumn();
  private readonly arrivalIndexes = new Uint32Column();
  /** The link that made the row a child, and the parent it gave it; NONE in a root. */
  private readonly linkOf = new Uint32Column();
  private readonly parentOf = new Uint32Column();
  /**
   * A row nearer to the present root, itself in a root: the same components with path halving, for `join` alone.
   * The links must not be compressed, since they are the history; without this, every join walks them.
   */
  private readonly nearer = new Uint32Column();
  /** The newest link with this row as its parent, or NONE. */
  private readonly lastLink = new Uint32Column();

  // Per link.
  private readonly child = new Uint32Column();
  private readonly sequences = new AscendingColumn();
  private readonly indexes = new Uint32Column();
  private readonly sources = new Uint32Column();
  private readonly targets = new Uint32Column();
  private readonly times = new SparseFloat64Column();
  private readonly sizes = new Uint32Column();
  private readonly oldests = new Uint32Column();
  /** The parent's link before this one, or NONE. */
  private readonly previous = new Uint32Column();
  /** An older link of the same parent, further back (see `skipFrom`), or NONE. */
  private readonly skip = new Uint32Column();

  get rows(): number {
    return this.linkOf.length;
  }

  get links(): number {
    return this.child.length;
  }

  /** Bytes of all arrays of the state, the vertex table's included. */
  get byteLength(): number {
    let bytes = this.vertices.byteLength + this.order.byteLength;
    for (const column of [
      this.arrivalSequences,
      this.arrivalIndexes,
      this.linkOf,
      this.parentOf,
      this.nearer,
      this.lastLink,
      this.child,
      this.sequences,
      this.indexes,
      this.sources,
      this.targets,
      this.times,
      this.sizes,
      this.oldests,
      this.previous,
      this.skip,
    ]) {
      bytes += column.byteLength;
    }
    return bytes;
  }

  /**
   * A row that the vertex table has just given out arrives at (sequence, index). Rows arrive in the order of
   * their numbers.
   */
  arrive(sequence: number, index: number): void {
    const row = this.linkOf.length;
    this.arrivalSequences.push(sequence);
    this.arrivalIndexes.push(index);
    this.linkOf.push(NONE);
    this.parentOf.push(NONE);
    this.nearer.push(row);
    this.lastLink.push(NONE);
    this.order.add(row, 1);
  }

  /** The edge source–target at (sequence, index); both rows have arrived. True if it joined two components. */
  join(source: number, target: number, sequence: number, index: number, time: number): boolean {
    const a = this.presentRoot(source);
    const b = this.presentRoot(target);
    if (a === b) return false;
    const lastA = this.lastLink.get(a);
    const lastB = this.lastLink.get(b);
    const sizeA = lastA === NONE ? 1 : this.sizes.get(lastA);
    const sizeB = lastB === NONE ? 1 : this.sizes.get(lastB);
    const oldestA = lastA === NONE ? a : this.oldests.get(lastA);
    const oldestB = lastB === NONE ? b : this.oldests.get(lastB);
    const aWins = sizeA > sizeB || (sizeA === sizeB && a < b);
    const winner = aWins ? a : b;
    const loser = aWins ? b : a;
    const link = this.child.length;
    const before = aWins ? lastA : lastB;
    const oldest = Math.min(oldestA, oldestB);
    this.child.push(loser);
    this.sequences.push(sequence);
    this.indexes.push(index);
    this.sources.push(source);
    this.targets.push(target);
    this.times.set(link, time);
    this.sizes.push(sizeA + sizeB);
    this.oldests.push(oldest);
    this.previous.push(before);
    this.skip.push(this.skipFrom(link, before));
    this.linkOf.set(loser, link);
    this.parentOf.set(loser, winner);
    this.nearer.set(loser, winner);
    this.lastLink.set(winner, link);
    if (oldest === oldestA) this.order.merge(oldestA, sizeA, oldestB, sizeB);
    else this.order.merge(oldestB, sizeB, oldestA, sizeA);
    return true;
  }

  /** What was there through `sequence`. */
  cutAt(sequence: number): Cut {
    return {
      rows: this.arrivalSequences.countThrough(sequence),
      links: this.sequences.countThrough(sequence),
    };
  }

  /** The root of a row's component over the links numbered below `links` (NONE: all). */
  root(row: number, links: number): number {
    let at = row;
    for (;;) {
      const link = this.linkOf.get(at);
      if (link >= links) return at;
      at = this.parentOf.get(at);
    }
  }

  /** Reads what `join` will need of these rows (NONE: of none), so that their cache misses overlap. */
  touch(rows: Uint32Array, from: number, to: number): void {
    const { chunks } = this.nearer;
    let touched = 0;
    for (let i = from; i < to; i++) {
      const row = rows[i]!;
      if (row !== NONE) touched ^= chunks[row >>> CHUNK_BITS]![row & CHUNK_MASK]!;
    }
    this.touched = touched;
  }

  isRoot(row: number, links: number): boolean {
    return this.linkOf.get(row) >= links;
  }

  /** Vertices of a root's component. */
  size(root: number, links: number): number {
    const link = this.newestLinkInto(root, links);
    return link === NONE ? 1 : this.sizes.get(link);
  }

  /** The oldest vertex (lowest row) of a root's component: the component's id. */
  oldest(root: number, links: number): number {
    const link = this.newestLinkInto(root, links);
    return link === NONE ? root : this.oldests.get(link);
  }

  /**
   * What made two rows one component: the newest link on their paths to where these meet. Since link numbers
   * rise along a path, climbing over the older of the two next links reaches the meeting point.
   */
  connection(a: number, b: number, links: number): Connection {
    if (a === b) return { kind: 'same' };
    let x = a;
    let y = b;
    let newest = NONE;
    while (x !== y) {
      const linkX = this.linkOf.get(x);
      const linkY = this.linkOf.get(y);
      if (linkX >= links && linkY >= links) return { kind: 'apart' };
      if (linkX < linkY) {
        newest = linkX;
        x = this.parentOf.get(x);
      } else {
        newest = linkY;
        y = this.parentOf.get(y);
      }
    }
    return { kind: 'joined', link: newest };
  }

  link(link: number): Link {
    const child = this.child.get(link);
    return {
      child,
      parent: this.parentOf.get(child),
      sequence: this.sequences.get(link),
      index: this.indexes.get(link),
      source: this.sources.get(link),
      target: this.targets.get(link),
      time: this.times.get(link),
      size: this.sizes.get(link),
      oldest: this.oldests.get(link),
    };
  }

  arrivalSequence(row: number): number {
    return this.arrivalSequences.get(row);
  }

  arrivalIndex(row: number): number {
    return this.arrivalIndexes.get(row);
  }

  /**
   * The member after `row` in its component's order over the links numbered below `links`, or NONE after the
   * last: the tree of links in preorder, from the root, newest child first. It needs no memory between calls,
   * so (cut, row) is a whole cursor, on any gateway.
   */
  nextMember(row: number, links: number): number {
    const into = this.newestLinkInto(row, links);
    if (into !== NONE) return this.child.get(into);
    for (let at = row; ; ) {
      const link = this.linkOf.get(at);
      if (link >= links) return NONE;
      const sibling = this.previous.get(link);
      if (sibling !== NONE) return this.child.get(sibling);
      at = this.parentOf.get(at);
    }
  }

  private presentRoot(row: number): number {
    const { chunks } = this.nearer;
    let at = row;
    let up = chunks[at >>> CHUNK_BITS]![at & CHUNK_MASK]!;
    while (up !== at) {
      const upper = chunks[up >>> CHUNK_BITS]![up & CHUNK_MASK]!;
      chunks[at >>> CHUNK_BITS]![at & CHUNK_MASK] = upper;
      at = upper;
      up = chunks[at >>> CHUNK_BITS]![at & CHUNK_MASK]!;
    }
    return at;
  }

  /** The newest link into `row` numbered below `links`, or NONE. */
  private newestLinkInto(row: number, links: number): number {
    let link = this.lastLink.get(row);
    while (link >= links && link !== NONE) {
      const far = this.skip.get(link);
      link = far >= links && far !== NONE ? far : this.previous.get(link);
    }
    return link;
  }

  /**
   * The skip link: the nearest older link of the same parent whose height is greater. Heights are those of a
   * skip list (Pugh: Skip Lists, CACM 33(6), 1990), taken from a hash of the link's number instead of from a
   * random source; the chain of skip links is then climbed in expected O(log n) steps.
   */
  private skipFrom(link: number, previous: number): number {
    const height = heightOf(link);
    let at = previous;
    while (at !== NONE && heightOf(at) <= height) at = this.skip.get(at);
    return at;
  }
}

function heightOf(link: number): number {
  const hash = finish(link);
  return Math.clz32(hash & -hash) ^ 31;
}
