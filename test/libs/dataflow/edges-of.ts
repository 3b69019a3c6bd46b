import { type EdgeColumns, type IdColumn, OP_REMOVE } from '../../../libs/dataflow/edge-columns.ts';

/** An edge of the columns in a form that tests can compare; `rejected` is the reason. */
export interface EdgeSeen {
  readonly source?: string;
  readonly target?: string;
  readonly time?: number;
  readonly op?: 'remove';
  readonly rejected?: string;
}

/** All edges of a message. Ids are decoded strictly, so a test fails if an accepted one is not UTF-8. */
export function edgesOf(columns: EdgeColumns): EdgeSeen[] {
  const reasons = new Map(columns.reasons.map(({ index, reason }) => [index, reason]));
  const edges: EdgeSeen[] = [];
  for (let i = 0; i < columns.count; i++) {
    if (columns.rejected[i] === 1) edges.push({ rejected: reasons.get(i) ?? 'beyond the reasons kept' });
    else {
      const time = columns.time[i]!;
      edges.push({
        source: idAt(columns.source, i),
        target: idAt(columns.target, i),
        ...(Number.isNaN(time) ? {} : { time }),
        ...(columns.op[i] === OP_REMOVE ? { op: 'remove' } : {}),
      });
    }
  }
  return edges;
}

function idAt(column: IdColumn, index: number): string {
  const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
  return decoder.decode(column.bytes.subarray(column.start[index], column.end[index]));
}
