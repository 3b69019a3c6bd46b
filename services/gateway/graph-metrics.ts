/**
 * What the metrics say of graphs: read from the views, and from the logs where the view does not know it, at
 * each scrape. A stage's position is the last EDGES message that it has handed on whole, its lag how many
 * messages of EDGES come after that.
 */
import { Counter, Gauge } from 'prom-client';
import { readFrameHeader } from '../../libs/dataflow/frame.ts';
import { newestGeneration } from '../../libs/dataflow/graph-config.ts';
import { partsLog } from '../../libs/dataflow/names.ts';
import { wholeMessagesBelow } from '../../libs/dataflow/position.ts';
import type { Manifest } from '../../libs/snapshot/records.ts';
import type { EdgesEnds } from './edges-ends.ts';
import type { GraphDirectory } from './graph-directory.ts';
import type { GatewayDeps, HostedGraph } from './ports.ts';
import type { Snapshots } from './snapshots.ts';
import type { View } from './view.ts';

interface StagePosition {
  readonly stage: 'partitioner' | 'worker' | 'view';
  /** Empty for the view, which has all. */
  readonly partition: string;
  readonly position: number;
}

interface Sample {
  readonly graph: string;
  readonly view: View | undefined;
  readonly positions: readonly StagePosition[];
  /** Undefined: NATS cannot be asked. */
  readonly edgesLast: number | undefined;
  /** The newest verified one; undefined: there is none, or NATS cannot be asked. */
  readonly snapshot: Manifest | undefined;
}

export class GraphMetrics {
  private readonly deps: GatewayDeps;
  private readonly directory: GraphDirectory;
  private readonly ends: EdgesEnds;
  private readonly snapshots: Snapshots;
  private readonly edges: Counter<'graph'>;
  private readonly rejected: Counter<'graph'>;
  private readonly vertices: Gauge<'graph'>;
  private readonly components: Gauge<'graph'>;
  private readonly position: Gauge<'graph' | 'stage' | 'partition'>;
  private readonly lag: Gauge<'graph' | 'stage' | 'partition'>;
  private readonly snapshotSequence: Gauge<'graph'>;
  private readonly snapshotBytes: Gauge<'graph'>;
  private readonly instances: Gauge;

  constructor(deps: GatewayDeps, directory: GraphDirectory, ends: EdgesEnds, snapshots: Snapshots) {
    this.deps = deps;
    this.directory = directory;
    this.ends = ends;
    this.snapshots = snapshots;
    const registers = [deps.metrics.registry];
    const ofGraph = { labelNames: ['graph'] as const, registers };
    const ofStage = { labelNames: ['graph', 'stage', 'partition'] as const, registers };
    this.edges = new Counter({
      name: 'watershed_edges_total',
      help: "Edges in this gateway's answers, each as often as it was published.",
      ...ofGraph,
    });
    this.rejected = new Counter({ name: 'watershed_rejected_total', help: 'Rejected edges.', ...ofGraph });
    this.vertices = new Gauge({ name: 'watershed_vertices', help: 'Vertices of the graph.', ...ofGraph });
    this.components = new Gauge({
      name: 'watershed_components',
      help: 'Components of the graph.',
      ...ofGraph,
    });
    this.position = new Gauge({
      name: 'watershed_stage_position',
      help: 'The last EDGES message that the stage has handed on whole; of the view: that its answers hold.',
      ...ofStage,
    });
    this.lag = new Gauge({
      name: 'watershed_stage_lag',
      help: 'Messages of EDGES behind the position of the stage.',
      ...ofStage,
    });
    this.snapshotSequence = new Gauge({
      name: 'watershed_snapshot_sequence',
      help: 'The last EDGES message that the newest verified snapshot holds.',
      ...ofGraph,
    });
    this.snapshotBytes = new Gauge({
      name: 'watershed_snapshot_bytes',
      help: 'Size of the newest verified snapshot.',
      ...ofGraph,
    });
    this.instances = new Gauge({
      name: 'watershed_cluster_instances',
      help: 'Instances that are alive, as this gateway sees them.',
      registers,
    });
  }

  /** All metrics as text. */
  async render(): Promise<string> {
    const samples = await Promise.all(this.directory.hosted.map((host) => this.sample(host)));
    for (const metric of [
      this.edges,
      this.rejected,
      this.vertices,
      this.components,
      this.position,
      this.lag,
      this.snapshotSequence,
      this.snapshotBytes,
    ]) {
      metric.reset();
    }
    for (const sample of samples) this.set(sample);
    this.instances.set(this.deps.cluster().instances.filter(({ live }) => live).length);
    return await this.deps.metrics.registry.metrics();
  }

  private set({ graph, view, positions, edgesLast, snapshot }: Sample): void {
    if (view !== undefined) {
      const { forest, messages } = view;
      this.edges.inc({ graph }, messages.totals.edges);
      this.rejected.inc({ graph }, messages.totals.rejected);
      this.vertices.set({ graph }, forest.rows);
      this.components.set({ graph }, forest.rows - forest.links);
    }
    for (const { stage, partition, position } of positions) {
      this.position.set({ graph, stage, partition }, position);
      if (edgesLast !== undefined)
        this.lag.set({ graph, stage, partition }, Math.max(0, edgesLast - position));
    }
    if (snapshot !== undefined) {
      this.snapshotSequence.set({ graph }, snapshot.sequence);
      this.snapshotBytes.set({ graph }, snapshot.bytes);
    }
  }

  private async sample({ config, view }: HostedGraph): Promise<Sample> {
    const { name: graph } = config;
    const { generation, partitions } = newestGeneration(config);
    const positions: StagePosition[] = [];
    let edgesLast: number | undefined;
    let snapshot: Manifest | undefined;
    if (this.deps.nats().connected) {
      const indexes = Array.from({ length: partitions }, (_, partition) => partition);
      const [end, newest, ...parts] = await Promise.all([
        this.ends.of(graph).catch(() => undefined),
        this.snapshots.newest(config).catch(() => undefined),
        ...indexes.map((partition) => this.partsPosition(partsLog(graph, generation, partition).stream)),
      ]);
      edgesLast = end?.last;
      snapshot = newest;
      for (const [partition, position] of parts.entries()) {
        if (position !== undefined)
          positions.push({ stage: 'partitioner', partition: String(partition), position });
      }
    }
    if (view !== undefined) {
      for (const [partition, position] of view.watermarks.entries()) {
        positions.push({ stage: 'worker', partition: String(partition), position });
      }
      positions.push({ stage: 'view', partition: '', position: view.sequence });
    }
    return { graph, view, positions, edgesLast, snapshot };
  }

  /** What the last frame of a partition says; undefined: there is none, or it cannot be read now. */
  private async partsPosition(stream: string): Promise<number | undefined> {
    const { bus } = this.deps;
    try {
      const state = await bus.describe(stream);
      const last = state === undefined ? undefined : await bus.message(stream, state.last);
      return last === undefined ? undefined : wholeMessagesBelow(readFrameHeader(last.payload).through);
    } catch {
      return undefined;
    }
  }
}
