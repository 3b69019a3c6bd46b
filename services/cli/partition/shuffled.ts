/** A stream of edges in random order: all are held in memory, ids once, eight bytes an edge besides. */
import { ArrowBatchBuilder } from '../../../libs/dataflow/arrow-payload.ts';
import { EdgeColumns } from '../../../libs/dataflow/edge-columns.ts';
import { decodePayload } from '../../../libs/dataflow/payload.ts';
import { Uint32Column } from '../../../libs/graph/columns.ts';
import { viewOf } from '../../../libs/graph/id-hash.ts';
import { EdgeRows } from '../../partitioner/edge-rows.ts';

const PAYLOAD_BYTES = 64 * 1024;

export class ShuffledEdges {
  private readonly rows = new EdgeRows();
  private readonly columns = new EdgeColumns();
  private readonly ends = new Uint32Column();

  get edges(): number {
    return this.ends.length / 2;
  }

  add(payload: Uint8Array, contentType: string): void {
    const { columns, rows, ends } = this;
    decodePayload(payload, contentType, columns);
    rows.find(columns, viewOf(columns.source.bytes), viewOf(columns.target.bytes));
    for (let at = 0; at < rows.count; at++) {
      ends.push(rows.source.row[at]!);
      ends.push(rows.target.row[at]!);
    }
  }

  /** Arrow payloads of all edges; the same seed gives the same order. */
  *payloads(seed: number): Generator<{ readonly payload: Uint8Array; readonly edges: number }> {
    const { ends, rows } = this;
    const builder = new ArrowBatchBuilder();
    const random = new Random(seed);
    for (let left = this.edges; left > 0; left--) {
      // Fisher and Yates: the edge that is drawn changes places with the last one left.
      const drawn = random.below(left);
      const source = ends.get(drawn * 2);
      const target = ends.get(drawn * 2 + 1);
      ends.set(drawn * 2, ends.get(left * 2 - 2));
      ends.set(drawn * 2 + 1, ends.get(left * 2 - 1));
      ends.set(left * 2 - 2, source);
      ends.set(left * 2 - 1, target);
      const sourceId = rows.vertices.idOf(source);
      const targetId = rows.vertices.idOf(target);
      builder.append(sourceId, 0, sourceId.length, targetId, 0, targetId.length, undefined, undefined);
      if (builder.bytes < PAYLOAD_BYTES && left > 1) continue;
      const { count } = builder;
      yield { payload: builder.finish(), edges: count };
    }
  }
}

/** SplitMix32, two draws for 53 bits. */
class Random {
  private state: number;

  constructor(seed: number) {
    this.state = seed | 0;
  }

  below(limit: number): number {
    const high = this.draw() >>> 5;
    const low = this.draw() >>> 6;
    return Math.floor(((high * 2 ** 26 + low) / 2 ** 53) * limit);
  }

  private draw(): number {
    this.state = (this.state + 0x9e3779b9) | 0;
    let mixed = Math.imul(this.state ^ (this.state >>> 16), 0x21f0aaad);
    mixed = Math.imul(mixed ^ (mixed >>> 15), 0x735a2d97);
    return (mixed ^ (mixed >>> 15)) >>> 0;
  }
}
