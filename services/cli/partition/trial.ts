/** One algorithm at work on a stream of edges: what it chose, how well, and what that took. */
import type { EdgeColumns } from '../../../libs/dataflow/edge-columns.ts';
import { type PartitionerConfig, partitionerText } from '../../../libs/partitioning/partitioner-config.ts';
import { Placements } from '../../../libs/partitioning/placements.ts';
import type { Figures } from '../../../libs/partitioning/quality.ts';
import { EdgePlacer } from '../../partitioner/edge-placer.ts';
import type { EdgeRows } from '../../partitioner/edge-rows.ts';

export class Trial {
  readonly config: PartitionerConfig;
  /** The part of each edge of the message that was placed last, by its index. */
  get parts(): Uint16Array {
    return this.placer.part;
  }
  private readonly placer: EdgePlacer;
  /** Which vertices are where, for one that need not know it to choose. */
  private readonly account: Placements | undefined;
  private spentMs = 0;
  private edges = 0;

  constructor(config: PartitionerConfig, parts: number) {
    this.config = config;
    this.placer = new EdgePlacer(config, parts);
    this.account = this.placer.rows === undefined ? new Placements(parts) : undefined;
  }

  /** `rowsMs`: what it took to find the rows, which only counts where they are needed to choose. */
  place(columns: EdgeColumns, rows: EdgeRows, rowsMs: number): void {
    const { account, placer } = this;
    const began = performance.now();
    if (account === undefined) placer.placeByRows(columns, rows);
    else placer.place(columns);
    this.spentMs += performance.now() - began + (account === undefined ? rowsMs : 0);
    this.edges += rows.count;
    if (account === undefined) placer.chooser.placements.markRecorded();
    else this.count(rows, account);
  }

  get name(): string {
    return partitionerText(this.config);
  }

  get figures(): Figures {
    return (this.account ?? this.placer.chooser.placements).figures();
  }

  /** To hash or look up the two ids, and to choose. */
  get microsPerEdge(): number {
    return this.edges === 0 ? 0 : (this.spentMs * 1000) / this.edges;
  }

  private count({ count, index, source, target }: EdgeRows, account: Placements): void {
    const { part } = this.placer;
    for (let at = 0; at < count; at++) account.record(source.row[at]!, target.row[at]!, part[index[at]!]!);
    account.markRecorded();
  }
}
