/**
 * Making, changing and removing a graph: its logs that people write to or read, and its record. The logs between the
 * stages are made by the stages that write them.
 */
import { randomBytes } from 'node:crypto';
import {
  type GraphConfig,
  type GraphWish,
  newestGeneration,
  newGraphConfig,
} from '../dataflow/graph-config.ts';
import { edgesLog, edgesSubjects, rejectedLog } from '../dataflow/names.ts';
import { removeGenerations } from '../stage/generation-logs.ts';
import type { Bus } from '../stage/ports.ts';
import type { GraphRecord } from './registry.ts';

/** Rejects are kept for people to look at; the oldest go first. */
export const REJECTED_BYTES_MAX = 64 * 1024 * 1024;

const ATTEMPTS = 8;

/** The graphs' records; Registry keeps them in NATS KV. */
export interface GraphRecords {
  graph(name: string): Promise<GraphRecord | undefined>;
  createGraph(config: GraphConfig): Promise<boolean>;
  updateGraph(config: GraphConfig, revision: number): Promise<boolean>;
  removeGraph(name: string): Promise<void>;
}

export type GraphIdentity = Pick<GraphConfig, 'name' | 'id' | 'created'>;

/** The graph's config, and whether this call made it. An EDGES stream that is there already is taken as it is. */
export async function createGraph(
  bus: Bus,
  records: GraphRecords,
  name: string,
  wish: GraphWish & { readonly partitions: number },
): Promise<{ config: GraphConfig; created: boolean }> {
  const known = await records.graph(name);
  if (known !== undefined) return { config: known.config, created: false };
  const config = newGraphConfig(newIdentity(name), wish);
  await createLogs(bus, config);
  if (await records.createGraph(config)) return { config, created: true };
  // Somebody else was faster; theirs holds.
  const theirs = await records.graph(name);
  if (theirs === undefined) throw new Error(`graph ${name} was created and removed at the same time`);
  return { config: theirs.config, created: false };
}

export function newIdentity(name: string): GraphIdentity {
  return { name, id: randomBytes(16).toString('hex'), created: new Date().toISOString() };
}

/** Makes the logs that people write to or read; EDGES goes on behind message `after`. */
export async function createLogs(bus: Bus, { name, replicas }: GraphConfig, after = 0): Promise<void> {
  await bus.create(edgesLog(name).stream, {
    subjects: edgesSubjects(name),
    discard: 'new',
    denyDelete: true,
    replicas,
    firstSequence: after + 1,
  });
  const rejected = rejectedLog(name);
  await bus.create(rejected.stream, {
    subjects: [rejected.subject],
    maxBytes: REJECTED_BYTES_MAX,
    discard: 'old',
    denyDelete: false,
    replicas,
  });
}

/** Changes what people may change; undefined: there is no such graph. */
export async function changeGraph(
  records: GraphRecords,
  name: string,
  change: (config: GraphConfig) => GraphConfig,
): Promise<GraphConfig | undefined> {
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const record = await records.graph(name);
    if (record === undefined) return undefined;
    const config = change(record.config);
    if (JSON.stringify(config) === JSON.stringify(record.config)) return config;
    if (await records.updateGraph(config, record.revision)) return config;
  }
  throw new Error(`the record of graph ${name} changes again and again`);
}

/** A new generation, with the state of a snapshot, or from the first message of EDGES on. */
export function rebuilt(
  config: GraphConfig,
  snapshot: { readonly barrier: number; readonly sequence: number } | undefined,
): GraphConfig {
  const { base: _, ...rest } = config;
  const generation = newestGeneration(config).generation + 1;
  const { partitions, partitioner, id } = config;
  return {
    ...rest,
    generations: [{ generation, partitions, after: snapshot?.sequence ?? 0, partitioner }],
    retired: [...config.retired, ...config.generations],
    origin: generation,
    ...(snapshot === undefined ? {} : { base: { graphId: id, barrier: snapshot.barrier } }),
  };
}

/**
 * Removes all logs, the edges first, then the record: broken off, it can be asked for again, and no later graph of the name
 * finds the edges. Stages that still ran may have made logs of theirs again until they saw the record go.
 */
export async function removeGraph(bus: Bus, records: GraphRecords, config: GraphConfig): Promise<void> {
  const { name, generations, retired } = config;
  await bus.remove(edgesLog(name).stream);
  await bus.remove(rejectedLog(name).stream);
  await records.removeGraph(name);
  await removeGenerations(bus, name, [...generations, ...retired]);
  await bus.remove(rejectedLog(name).stream);
}
