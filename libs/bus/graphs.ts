/**
 * Making and removing a graph: its logs that people write to or read, and its record. The logs between the
 * stages are made by the stages that write them.
 */
import { randomBytes } from 'node:crypto';
import { edgesLog, edgesSubjects, forestLog, partsLog, rejectedLog } from '../dataflow/names.ts';
import type { Bus } from '../stage/ports.ts';
import type { GraphConfig, GraphRecord } from './registry.ts';

/** Rejects are kept for people to look at; the oldest go first. */
export const REJECTED_BYTES_MAX = 64 * 1024 * 1024;

/** The graphs' records; Registry keeps them in NATS KV. */
export interface GraphRecords {
  graph(name: string): Promise<GraphRecord | undefined>;
  createGraph(config: GraphConfig): Promise<boolean>;
  removeGraph(name: string): Promise<void>;
}

/** The graph's config, and whether this call made it. An EDGES stream that is there already is taken as it is. */
export async function createGraph(
  bus: Bus,
  records: GraphRecords,
  name: string,
  partitions: number,
): Promise<{ config: GraphConfig; created: boolean }> {
  const known = await records.graph(name);
  if (known !== undefined) return { config: known.config, created: false };
  const edges = edgesLog(name);
  await bus.create(edges.stream, { subjects: edgesSubjects(name), discard: 'new', denyDelete: true });
  const rejected = rejectedLog(name);
  await bus.create(rejected.stream, {
    subjects: [rejected.subject],
    maxBytes: REJECTED_BYTES_MAX,
    discard: 'old',
    denyDelete: false,
  });
  const config: GraphConfig = {
    name,
    id: randomBytes(16).toString('hex'),
    generation: 1,
    partitions,
    created: new Date().toISOString(),
  };
  if (await records.createGraph(config)) return { config, created: true };
  // Somebody else was faster; theirs holds.
  const theirs = await records.graph(name);
  if (theirs === undefined) throw new Error(`graph ${name} was created and removed at the same time`);
  return { config: theirs.config, created: false };
}

/** Removes the record first, so that the stages stop, then all logs, the edges included. */
export async function removeGraph(bus: Bus, records: GraphRecords, config: GraphConfig): Promise<void> {
  const { name, generation, partitions } = config;
  await records.removeGraph(name);
  for (let partition = 0; partition < partitions; partition++) {
    await bus.remove(partsLog(name, generation, partition).stream);
    await bus.remove(forestLog(name, generation, partition).stream);
  }
  await bus.remove(rejectedLog(name).stream);
  await bus.remove(edgesLog(name).stream);
}
