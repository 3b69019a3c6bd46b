/** The columns of an Arrow payload over all its record batches. */

import { type Data, type DataType, RecordBatchReader } from 'apache-arrow';

/** The values of one column in one batch; its row 0 is edge `first` of the message. */
export interface Chunk {
  readonly data: Data;
  readonly first: number;
  readonly rows: number;
}

export interface Column {
  readonly name: string;
  readonly type: DataType;
  readonly chunks: readonly Chunk[];
}

export interface ArrowColumns {
  readonly rows: number;
  /** All columns in their order; names may repeat. */
  readonly columns: readonly Column[];
}

/** Columns that mean something in an edge; only source and target must be there. */
export const EDGE_COLUMNS = ['source', 'target', 'time', 'weight', 'id', 'op'] as const;

/** Reads a payload for which `arrowProblem` knows none. Throws if the library cannot read it nevertheless. */
export function readArrowColumns(payload: Uint8Array): ArrowColumns {
  const reader = RecordBatchReader.from(payload);
  const batches = [...reader];
  // After the last batch the reader has let go of its schema; even a stream without batches gives one, empty.
  const fields = batches[0]?.schema.fields ?? [];
  const columns = fields.map((field) => ({
    name: String(field.name),
    type: field.type,
    chunks: [] as Chunk[],
  }));
  let first = 0;
  for (const batch of batches) {
    const rows = batch.numRows;
    if (rows === 0) continue;
    for (let i = 0; i < columns.length; i++)
      columns[i]!.chunks.push({ data: batch.data.children[i]!, first, rows });
    first += rows;
  }
  return { rows: first, columns };
}
