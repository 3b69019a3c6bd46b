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
import type { Figures } from '../../libs/partitioning/quality.ts';
import { qualityOf } from '../../libs/partitioning/quality.ts';
import type { Manifest } from '../../libs/snapshot/records.ts';
import type { EdgesEnds } from './edges-ends.ts';
import type { GraphDirectory } from './graph-directory.ts';
import { reportedPlacing, withVertices } from './partitions.ts';
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
  /** Of the newest layout, as far as they are known. */
  readonly figures: Figures | undefined;
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
  private readonly partitionEdges: Gauge<'graph' | 'partition'>;
  private readonly partitionVertices: Gauge<'graph' | 'partition'>;
  private readonly replicationFactor: Gauge<'graph'>;
  private readonly edgeBalance: Gauge<'graph'>;
  private readonly forced: Counter<'graph'>;
  private readonly capHits: Counter<'graph'>;
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
    const ofPartition = { labelNames: ['graph', 'partition'] as const, registers };
    this.partitionEdges = new Gauge({
      name: 'watershed_partition_edges',
      help: 'Edges that were placed in the partition since the layout began.',
      ...ofPartition,
    });
    this.partitionVertices = new Gauge({
      name: 'watershed_partition_vertices',
      help: 'Vertices with an edge in the partition.',
      ...ofPartition,
    });
    this.replicationFactor = new Gauge({
      name: 'watershed_replication_factor',
      help: 'In how many partitions a vertex is, on average.',
      ...ofGraph,
    });
    this.edgeBalance = new Gauge({
      name: 'watershed_edge_balance',
      help: 'The most edges of a partition by their mean; 1 is even.',
      ...ofGraph,
    });
    this.forced = new Counter({
      name: 'watershed_forced_placements_total',
      help: 'Decisions for the least loaded partition because none had room.',
      ...ofGraph,
    });
    this.capHits = new Counter({
      name: 'watershed_cap_hits_total',
      help: 'Decisions in which the best partition was full.',
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
      this.partitionEdges,
      this.partitionVertices,
      this.replicationFactor,
      this.edgeBalance,
      this.forced,
      this.capHits,
    ]) {
      metric.reset();
    }
    for (const sample of samples) this.set(sample);
    this.instances.set(this.deps.cluster().instances.filter(({ live }) => live).length);
    return await this.deps.metrics.registry.metrics();
  }

  private set({ graph, view, positions, edgesLast, figures, snapshot }: Sample): void {
    if (figures !== undefined) this.setFigures(graph, figures);
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

  private setFigures(graph: string, figures: Figures): void {
    const { replicationFactor, edgeBalance } = qualityOf(figures);
    for (const [partition, edges] of figures.edges.entries())
      this.partitionEdges.set({ graph, partition: String(partition) }, edges);
    for (const [partition, vertices] of figures.vertices.entries())
      this.partitionVertices.set({ graph, partition: String(partition) }, vertices);
    if (replicationFactor !== undefined) this.replicationFactor.set({ graph }, replicationFactor);
    if (edgeBalance !== undefined) this.edgeBalance.set({ graph }, edgeBalance);
    this.forced.inc({ graph }, figures.forced);
    this.capHits.inc({ graph }, figures.capHits);
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
    const placing = reportedPlacing(this.deps, graph)?.placing;
    const figures = placing === undefined || view === undefined ? undefined : withVertices(placing, view);
    return { graph, view, positions, edgesLast, figures, snapshot };
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
