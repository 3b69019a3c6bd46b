/**
 * The partition of an edge by hash alone.
 *
 * FNV-1a, 32 bits (Fowler, Noll, Vo; RFC 9923) of the two ids' bytes of the canonical edge, one after the
 * other without a separator, modulo the number of partitions: the hash that NATS' subject mapping
 * `partition(n, …)` uses, so that any client can compute the partition. Canonical: the smaller id (by bytes)
 * first, so that both orientations of an edge meet in one partition.
 *
 *   h ← 2166136261; for each byte x: h ← (h xor x) · 16777619 mod 2^32
 */
export const FNV_OFFSET = 0x811c9dc5 | 0;
const FNV_PRIME = 0x01000193;

/** Goes on with FNV-1a from `hash` over bytes [start, end); signed, `>>> 0` gives the published value. */
export function fnv1a(hash: number, bytes: Uint8Array, start: number, end: number): number {
  let value = hash;
  for (let at = start; at < end; at++) value = Math.imul(value ^ bytes[at]!, FNV_PRIME);
  return value;
}

export function hashPartition(hash: number, partitions: number): number {
  return (hash >>> 0) % partitions;
}
