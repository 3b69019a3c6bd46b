import type { Registry } from '../../libs/bus/registry.ts';
import { LogError } from '../../libs/dataflow/errors.ts';
import type { GraphConfig } from '../../libs/dataflow/graph-config.ts';
import type { GraphSource } from '../../libs/snapshot/graph-source.ts';

/** A graph's record, as this process last read it. */
export class LiveGraph implements GraphSource {
  config: GraphConfig;
  private readonly registry: Registry;
  private readonly revisions = new WeakMap<GraphConfig, number>();

  constructor(config: GraphConfig, registry: Registry) {
    this.config = config;
    this.registry = registry;
  }

  async read(): Promise<GraphConfig> {
    const { name, id } = this.config;
    const record = await this.registry.graph(name);
    if (record?.config.id !== id) throw new LogError('log-missing', `graph ${name} was removed`);
    this.config = record.config;
    this.revisions.set(record.config, record.revision);
    return record.config;
  }

  async update(known: GraphConfig, config: GraphConfig): Promise<boolean> {
    const revision = this.revisions.get(known);
    if (revision === undefined) throw new Error('only what was read can be replaced');
    if (!(await this.registry.updateGraph(config, revision))) return false;
    this.config = config;
    return true;
  }
}
