/** The record of a snapshot, for tests of those that read records. */
import type { Manifest } from '../../libs/snapshot/records.ts';

export function manifest(barrier: number, sequence: number, changes: Partial<Manifest> = {}): Manifest {
  return {
    barrier,
    sequence,
    generation: 1,
    partitions: 2,
    time: '1767225600123456789',
    digest: 'd',
    bytes: barrier * 1000,
    newBytes: barrier,
    parts: [],
    ...changes,
  };
}
