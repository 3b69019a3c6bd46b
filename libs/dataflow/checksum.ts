import { finish } from '../graph/id-hash.ts';

/**
 * Two 32-bit lanes that are fed words in order: running hashes of channels, checksums of blocks. Equal
 * states mean equal histories but for chance (2^-64); nothing here resists an adversary.
 */
export interface Lanes {
  readonly a: number;
  readonly b: number;
}

export const NO_LANES: Lanes = { a: 0, b: 0 };

export class RunningHash {
  private a = 0;
  private b = 0;

  get lanes(): Lanes {
    return { a: this.a >>> 0, b: this.b >>> 0 };
  }

  restore(lanes: Lanes): void {
    this.a = lanes.a | 0;
    this.b = lanes.b | 0;
  }

  /** Takes one 32-bit word. */
  add(word: number): void {
    const a = Math.imul(this.a ^ word, 0x9e3779b1);
    this.a = (a << 13) | (a >>> 19);
    const b = Math.imul(this.b + word, 0x85ebca6b) ^ this.a;
    this.b = (b << 17) | (b >>> 15);
  }
}

/** Checksum of bytes that follow what `before` stands for. */
export function checksum(before: Lanes, bytes: Uint8Array): Lanes {
  const hash = new RunningHash();
  hash.restore(before);
  const wholeEnd = bytes.length & ~3;
  for (let at = 0; at < wholeEnd; at += 4) {
    hash.add(bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24));
  }
  for (let at = wholeEnd; at < bytes.length; at++) hash.add(bytes[at]!);
  hash.add(bytes.length);
  const { a, b } = hash.lanes;
  return { a: finish(a ^ b) >>> 0, b: finish(b) >>> 0 };
}

export function sameLanes(a: Lanes, b: Lanes): boolean {
  return a.a === b.a && a.b === b.b;
}
