/**
 * How a graph's edges are spread: what its partitioner reported in the record of its instance, and what this gateway counts
 * itself. A partitioner that knows nothing of vertices counts edges alone; the view knows which vertices are where.
 */
import type { PartitionFigures, Partitions, Placement, Quality } from '../../libs/api/partitioner.ts';
import type { InstanceReport, PlacementReport, PlacingReport } from '../../libs/bus/report.ts';
import { newestGeneration } from '../../libs/dataflow/graph-config.ts';
import { placementSubject } from '../../libs/dataflow/names.ts';
import { type Figures, figuresSince, qualityOf } from '../../libs/partitioning/quality.ts';
import type { GatewayDeps, HostedGraph } from './ports.ts';
import type { HostedReading } from './reading.ts';
import type { View } from './view.ts';

const PLACEMENT_TIMEOUT_MS = 500;

/** What a partitioner reported, and when. */
interface Placing {
  readonly placing: PlacingReport;
  readonly reported: string;
}

/** The newest report of the graph's partitioner; one that was replaced may still be in a record. */
export function reportedPlacing({ cluster }: GatewayDeps, graph: string): Placing | undefined {
  let newest: Placing | undefined;
  for (const { live, fields } of cluster().instances) {
    // The record of another version may say less.
    const { tasks = [], reported = '' } = fields as unknown as Partial<InstanceReport>;
    for (const { graph: its, placing } of live ? tasks : []) {
      if (its !== graph || placing === undefined) continue;
      if (newest === undefined || isNewer(placing, newest.placing)) newest = { placing, reported };
    }
  }
  return newest;
}

function isNewer(a: PlacingReport, b: PlacingReport): boolean {
  return a.generation !== b.generation ? a.generation > b.generation : a.position > b.position;
}

export function partitionsAnswer(deps: GatewayDeps, { host, reading }: HostedReading): Partitions {
  const { view, asOf } = reading;
  const newest = reportedPlacing(deps, host.config.name);
  if (newest === undefined) return { ...unreported(host, view), asOf };
  const { placing, reported } = newest;
  const { generation, partitioner, position, before } = placing;
  const figures = withVertices(placing, view);
  const knowsVertices = placing.knowsVertices || figures.vertices.length > 0;
  return {
    generation,
    partitioner,
    partitions: partitionsOf(figures),
    quality: qualityAnswer(figures, knowsVertices),
    ...(before === undefined
      ? {}
      : { lastMinute: { seconds: before.seconds, ...recent(placing, before.figures) } }),
    position,
    reported,
    asOf,
  };
}

/** With the view's vertices where the partitioner has none, if both are in one generation. */
export function withVertices({ generation, knowsVertices, figures }: PlacingReport, view: View): Figures {
  if (knowsVertices) return figures;
  if (view.generation?.generation !== generation) return { ...figures, vertices: [], distinctVertices: 0 };
  const { counts, distinct } = view.parts;
  return { ...figures, vertices: [...counts], distinctVertices: distinct };
}

function recent(
  { knowsVertices, figures }: PlacingReport,
  before: Figures,
): { partitions: PartitionFigures[]; quality: Quality } {
  const added = figuresSince(figures, before);
  const known = knowsVertices ? added : { ...added, vertices: [] };
  return { partitions: partitionsOf(known), quality: qualityAnswer(known, knowsVertices) };
}

/** What this gateway knows by itself. */
function unreported({ config }: HostedGraph, view: View): Omit<Partitions, 'asOf'> {
  const { generation, partitioner } =
    config.generations.find((known) => known.generation === view.generation?.generation) ??
    newestGeneration(config);
  const { counts, distinct, parts } = view.parts;
  const { vertices, replicationFactor, vertexBalance } = qualityAnswer(
    {
      edges: [],
      vertices: [...counts],
      distinctVertices: distinct,
      owned: undefined,
      ownedEdges: 0,
      cutEdges: 0,
      forced: 0,
      capHits: 0,
    },
    true,
  );
  return {
    generation,
    partitioner,
    partitions: Array.from({ length: parts }, (_, partition) => ({
      partition,
      vertices: counts[partition]!,
    })),
    quality: {
      vertices: vertices!,
      ...(replicationFactor === undefined ? {} : { replicationFactor }),
      ...(vertexBalance === undefined ? {} : { vertexBalance }),
    },
    problem: {
      code: 'not-reported',
      message:
        'no live instance reports of the partitioner of this graph: it is not running, or was just started',
    },
  };
}

function partitionsOf({ edges, vertices, owned }: Figures): PartitionFigures[] {
  return edges.map((count, partition) => ({
    partition,
    edges: count,
    ...(vertices[partition] === undefined ? {} : { vertices: vertices[partition] }),
    ...(owned?.[partition] === undefined ? {} : { owned: owned[partition] }),
  }));
}

function qualityAnswer(figures: Figures, knowsVertices: boolean): Quality {
  const { edges, vertices, forced, capHits, ...ratios } = qualityOf(figures);
  return {
    edges,
    ...(knowsVertices ? { vertices } : {}),
    ...Object.fromEntries(
      Object.entries(ratios).flatMap(([name, ratio]) =>
        ratio === undefined ? [] : [[name, Number(ratio.toFixed(6))]],
      ),
    ),
    forced,
    capHits,
  };
}

/** What the partitioner remembers of a vertex: asks it, wherever it runs. */
export async function placementAnswer(
  { questions }: GatewayDeps,
  { config }: HostedGraph,
  id: string,
): Promise<Placement> {
  const subject = placementSubject(config.id);
  const answer = await questions.ask(subject, new TextEncoder().encode(id), PLACEMENT_TIMEOUT_MS);
  const report = answer === undefined ? undefined : readReport(answer);
  if (report === undefined) {
    return fault('no-answer', 'no partitioner of this graph answered: it is not running, or busy; ask again');
  }
  const { generation, position, degree, owner, partitions, knowsVertices } = report;
  if (!knowsVertices) {
    const { algorithm } = newestGeneration(config).partitioner;
    return fault(
      'not-kept',
      `the partitioner (${algorithm}) needs to remember nothing of vertices, and does not`,
    );
  }
  return {
    ...(degree === undefined ? { degree: 0, partitions: [] } : { degree }),
    ...(owner === undefined ? {} : { owner }),
    ...(partitions === undefined ? {} : { partitions: [...partitions] }),
    generation,
    position,
  };
}

function fault(code: string, message: string): Placement {
  return { problem: { code, message } };
}

/** Undefined: it is no answer of a partitioner, whoever gave it. */
function readReport(answer: Uint8Array): PlacementReport | undefined {
  try {
    const report = JSON.parse(new TextDecoder().decode(answer)) as PlacementReport;
    return Number.isInteger(report.generation) && Number.isInteger(report.position) ? report : undefined;
  } catch {
    return undefined;
  }
}
