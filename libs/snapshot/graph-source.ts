import type { GraphConfig } from '../dataflow/graph-config.ts';

/** The record of one graph. */
export interface GraphSource {
  /** As it was last read. */
  readonly config: GraphConfig;
  /** As it is now; throws if the graph was removed. */
  read(): Promise<GraphConfig>;
  /** Replaces `known`, which `read` gave; false if the record has changed since. */
  update(known: GraphConfig, config: GraphConfig): Promise<boolean>;
}
