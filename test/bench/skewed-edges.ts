/** Generated edges for benchmarks: the same on every machine. */
import { seeded } from '../support/seeded.ts';

/** Vertex numbers of `count` edges, two each; low numbers are in many edges (u^power), high ones in few. */
export function skewedEdges(count: number, vertices: number, power: number, seed = 1): Uint32Array {
  const random = seeded(seed);
  const pairs = new Uint32Array(count * 2);
  for (let at = 0; at < pairs.length; at++) pairs[at] = Math.floor(random() ** power * vertices);
  return pairs;
}

/** A stream whose vertices grow with it: about one new vertex in two edges, the others skewed to old ones. */
export function growingEdges(count: number, seed = 1): Uint32Array {
  const random = seeded(seed);
  const pairs = new Uint32Array(count * 2);
  let vertices = 2;
  for (let edge = 0; edge < count; edge++) {
    pairs[edge * 2] = edge % 2 === 0 ? vertices++ : Math.floor(random() ** 2 * vertices);
    pairs[edge * 2 + 1] = Math.floor(random() * vertices);
  }
  return pairs;
}

/** Writes the 12-byte id of a vertex ("v" and eleven digits, scrambled so that neighbours look different). */
export function writeId(vertex: number, bytes: Uint8Array, at: number): void {
  let rest = (Math.imul(vertex, 2654435761) >>> 0) + vertex * 4294967296;
  bytes[at] = 118;
  for (let digit = 11; digit >= 1; digit--) {
    bytes[at + digit] = 48 + (rest % 10);
    rest = Math.floor(rest / 10);
  }
}

export const ID_BYTES = 12;

/** Ids of all vertices of `pairs`, one after the other. */
export function idsOf(pairs: Uint32Array): Uint8Array {
  const bytes = new Uint8Array(pairs.length * ID_BYTES);
  for (let at = 0; at < pairs.length; at++) writeId(pairs[at]!, bytes, at * ID_BYTES);
  return bytes;
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[sorted.length >> 1]!;
}

export function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))]!;
}

export function million(value: number): string {
  return `${(value / 1e6).toFixed(2)}M`;
}
