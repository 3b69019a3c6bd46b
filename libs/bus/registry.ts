/** Which graphs there are, as records in KV. */
import { type GraphConfig, graphConfig } from '../dataflow/graph-config.ts';
import { GRAPHS_BUCKET } from '../dataflow/names.ts';
import type { Kv, KvEntry } from '../stage/ports.ts';

export interface GraphRecord {
  readonly config: GraphConfig;
  readonly revision: number;
}

export class Registry {
  private readonly kv: Kv;
  /** The graphs as of a revision of their bucket, so that they are listed only after a change. */
  private known: { readonly revision: number; readonly graphs: GraphRecord[] } | undefined;

  constructor(kv: Kv) {
    this.kv = kv;
  }

  /** By name. */
  async graphs(): Promise<GraphRecord[]> {
    // Asked before the list: what changes between the two is listed again the next time.
    const revision = await this.kv.revision(GRAPHS_BUCKET);
    if (this.known?.revision === revision) return this.known.graphs;
    const graphs = (await this.kv.list(GRAPHS_BUCKET, '')).map(recordOf);
    this.known = { revision, graphs };
    return graphs;
  }

  async graph(name: string): Promise<GraphRecord | undefined> {
    const entry = await this.kv.get(GRAPHS_BUCKET, name);
    return entry === undefined ? undefined : recordOf(entry);
  }

  /** Whether the graph was removed by somebody; a record that is merely not there may be lost. */
  async isRemoved(name: string): Promise<boolean> {
    return await this.kv.isRemoved(GRAPHS_BUCKET, name);
  }

  /** False if there is a graph of that name. */
  async createGraph(config: GraphConfig): Promise<boolean> {
    return (await this.kv.create(GRAPHS_BUCKET, config.name, JSON.stringify(config))) !== undefined;
  }

  /** False if the record is not of `revision` any more. */
  async updateGraph(config: GraphConfig, revision: number): Promise<boolean> {
    const value = JSON.stringify(config);
    return (await this.kv.update(GRAPHS_BUCKET, config.name, value, revision)) !== undefined;
  }

  async removeGraph(name: string): Promise<void> {
    await this.kv.remove(GRAPHS_BUCKET, name);
  }
}

function recordOf({ value, revision }: KvEntry): GraphRecord {
  return { config: graphConfig(JSON.parse(value) as GraphConfig), revision };
}
