/**
 * Which operations a graph takes. One that keeps components only, as all do so far, cannot take an edge away.
 * Shared by the partitioner, which decides, and the gateway, which tells a publisher beforehand.
 */
import { type EdgeColumns, OP_REMOVE } from './edge-columns.ts';
import { rejectInOrder } from './ids.ts';

const REMOVALS_REASON = 'op: "remove" needs a graph that keeps its edges; this one keeps components only';

/** Rejects every removal of a decoded message. */
export function rejectRemovals(columns: EdgeColumns): void {
  const { count, rejected, op } = columns;
  rejectInOrder(columns, () => {
    for (let index = 0; index < count; index++) {
      if (rejected[index] === 0 && op[index] === OP_REMOVE) columns.reject(index, REMOVALS_REASON);
    }
  });
}
