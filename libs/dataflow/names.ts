/**
 * The only place that forms names of graphs, streams, subjects and buckets.
 */
export const GRAPH_NAME = /^[a-z0-9][a-z0-9-]{0,62}$/;

/** Shares of a graph's work. */
export const PARTITIONS_DEFAULT = 4;
export const PARTITIONS_MAX = 64;

export const GRAPHS_BUCKET = 'watershed_graphs';
export const INSTANCES_BUCKET = 'watershed_instances';
export const LEASES_BUCKET = 'watershed_leases';
/** Records of snapshots in KV, and their chunks in the object store. */
export const SNAPSHOTS_BUCKET = 'watershed_snapshots';

/** One log: a stream and the one subject that its own writer publishes to. */
export interface LogName {
  readonly stream: string;
  readonly subject: string;
}

export function edgesLog(graph: string): LogName {
  return { stream: `GRAPH_${graph}_EDGES`, subject: `graph.${graph}.edges` };
}

/** All subjects that EDGES takes: publishers may add tokens of their own. */
export function edgesSubjects(graph: string): string[] {
  const { subject } = edgesLog(graph);
  return [subject, `${subject}.>`];
}

export function rejectedLog(graph: string): LogName {
  return { stream: `GRAPH_${graph}_REJECTED`, subject: `graph.${graph}.rejected` };
}

export function partsLog(graph: string, generation: number, partition: number): LogName {
  return {
    stream: `GRAPH_${graph}_PARTS_${generation}_${partition}`,
    subject: `graph.${graph}.parts.${generation}.${partition}`,
  };
}

export function forestLog(graph: string, generation: number, partition: number): LogName {
  return {
    stream: `GRAPH_${graph}_FOREST_${generation}_${partition}`,
    subject: `graph.${graph}.forest.${generation}.${partition}`,
  };
}

/** Where the partitioner of a graph answers what it remembers of a vertex. */
export function placementSubject(graphId: string): string {
  return `watershed.placement.${graphId}`;
}
