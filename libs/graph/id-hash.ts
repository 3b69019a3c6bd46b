/**
 * The 32-bit hash of an id's bytes that the vertex table probes with and that a channel's running hash is
 * made of.
 *
 * Four bytes a step, mixed as in MurmurHash3 (Austin Appleby, x86_32 variant, seed 0). Ids lie unaligned in a
 * frame; a DataView reads a word there in one instruction, where bytes would take four and three shifts. Not the hash that chooses a partition: that one is
 * published (libs/partitioning/hash.ts), this one is free to change with the core version.
 */
export function hashId(bytes: DataView, start: number, end: number): number {
  const length = end - start;
  const wholeEnd = end - (length & 3);
  let hash = 0;
  let at = start;
  for (; at < wholeEnd; at += 4) {
    hash ^= scramble(bytes.getInt32(at, true));
    hash = Math.imul((hash << 13) | (hash >>> 19), 5) + 0xe6546b64;
  }
  if (at < end) hash ^= scramble(lastWord(bytes, at, end));
  return finish(hash ^ length);
}

/** The one to three bytes from `at` to `end` as a word, little-endian, filled up with zeros. */
export function lastWord(bytes: DataView, at: number, end: number): number {
  let word = bytes.getUint8(at);
  if (at + 1 < end) word |= bytes.getUint8(at + 1) << 8;
  if (at + 2 < end) word |= bytes.getUint8(at + 2) << 16;
  return word;
}

export function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

function scramble(word: number): number {
  const mixed = Math.imul(word, 0xcc9e2d51);
  return Math.imul((mixed << 15) | (mixed >>> 17), 0x1b873593);
}

/** MurmurHash3's finaliser: every bit of the input reaches every bit of the output. */
export function finish(hash: number): number {
  let mixed = hash ^ (hash >>> 16);
  mixed = Math.imul(mixed, 0x85ebca6b);
  mixed ^= mixed >>> 13;
  mixed = Math.imul(mixed, 0xc2b2ae35);
  return mixed ^ (mixed >>> 16);
}
