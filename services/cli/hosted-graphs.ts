/** The graphs of this process: as their records come, change and go, so do their tasks, views and state. */
import type { Registry } from '../../libs/bus/registry.ts';
import type { TaskReport } from '../../libs/bus/report.ts';
import type { GraphConfig } from '../../libs/dataflow/graph-config.ts';
import { LEASES_BUCKET } from '../../libs/dataflow/names.ts';
import { SnapshotRecords } from '../../libs/snapshot/records.ts';
import type { GraphHost } from '../gateway/graph-host.ts';
import { HostedGraph, type HostedGraphOptions, type StateFolders } from './hosted-graph.ts';
import { LiveGraph } from './live-graph.ts';

export interface HostedGraphsOptions
  extends Pick<HostedGraphOptions, 'isGateway' | 'stage' | 'snapshots' | 'questions'> {
  readonly registry: Registry;
  readonly folders: (config: GraphConfig) => StateFolders;
  /** Told of each EDGES message of a graph (arrival, ms since 1970) when it shows in this gateway's answers. */
  readonly visible: (graph: string, time: number) => void;
}

export class HostedGraphs {
  private readonly options: HostedGraphsOptions;
  private readonly running = new Map<string, HostedGraph>();
  /** Graphs that are gone, whose tasks may still be stopping; their state is removed after. */
  private readonly gone = new Set<HostedGraph>();

  constructor(options: HostedGraphsOptions) {
    this.options = options;
  }

  /** The graphs that this gateway holds. */
  get hosts(): readonly GraphHost[] {
    return [...this.running.values()].flatMap(({ host }) => (host === undefined ? [] : [host]));
  }

  host(graph: string): GraphHost | undefined {
    return this.running.get(graph)?.host;
  }

  get specs(): HostedGraph['specs'] {
    return [...this.running.values()].flatMap(({ specs }) => specs);
  }

  get reports(): TaskReport[] {
    return [...this.running.values()].flatMap(({ reports }) => reports);
  }

  /** Starts what is new, stops what is gone or was created or rebuilt anew, and removes the state of what is gone. */
  async follow(): Promise<void> {
    const records = await this.options.registry.graphs();
    const configs = new Map(records.map(({ config }) => [config.name, config]));
    for (const [name, hosted] of [...this.running]) await this.adopt(name, hosted, configs.get(name));
    for (const hosted of this.gone) {
      if (!hosted.isIdle) continue;
      this.gone.delete(hosted);
      await hosted.folders.removeAll();
      await this.eraseRecords(hosted.graph.config.id);
    }
    for (const [name, config] of configs) if (!this.running.has(name)) this.start(config);
  }

  /** Stops the views; the cluster stops the tasks. */
  async stop(): Promise<void> {
    await Promise.all([...this.running.values()].map((graph) => graph.stop()));
    this.running.clear();
  }

  private async adopt(name: string, hosted: HostedGraph, config: GraphConfig | undefined): Promise<void> {
    const { log } = this.options.stage;
    const { graph, origin } = hosted;
    if (config?.id === graph.config.id) {
      graph.config = config;
      if (config.origin === origin) {
        await hosted.removeOldState();
        return;
      }
      log.info({ graph: name, origin: config.origin }, 'the graph is rebuilt');
      this.running.delete(name);
      await hosted.stop();
      return;
    }
    // A record lost with its server is no order to delete what was counted.
    if (config === undefined && !(await this.options.registry.isRemoved(name))) return;
    this.running.delete(name);
    this.gone.add(hosted);
    await hosted.stop();
    log.info({ graph: name }, 'the graph was removed');
  }

  /** What tasks that were still stopping, or have died, left behind the removal of their graph. */
  private async eraseRecords(graphId: string): Promise<void> {
    const { kv } = this.options.snapshots;
    await new SnapshotRecords(kv, graphId).removeAll();
    for (const { key } of await kv.list(LEASES_BUCKET, `${graphId}.`)) await kv.erase(LEASES_BUCKET, key);
  }

  private start(config: GraphConfig): void {
    const { registry, folders, visible, stage } = this.options;
    const hosted = new HostedGraph({
      ...this.options,
      graph: new LiveGraph(config, registry),
      folders: folders(config),
      visible: (time) => visible(config.name, time),
    });
    this.running.set(config.name, hosted);
    stage.log.info({ graph: config.name }, 'graph started');
  }
}
