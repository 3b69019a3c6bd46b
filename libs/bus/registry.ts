/**
 * What is known of graphs and instances beside the logs, in NATS KV: which graphs there are, and what each
 * instance says of its tasks.
 */
import { type KV, Kvm } from '@nats-io/kv';
import type { NatsConnection } from 'nats';
import { GRAPHS_BUCKET, INSTANCES_BUCKET } from '../dataflow/names.ts';
import type { InstanceReport } from './report.ts';

/** A graph as it was created. */
export interface GraphConfig {
  readonly name: string;
  /** 32 hexadecimal digits, new for every creation: a graph created again under one name inherits nothing. */
  readonly id: string;
  readonly generation: number;
  readonly partitions: number;
  /** ISO 8601. */
  readonly created: string;
}

export interface GraphRecord {
  readonly config: GraphConfig;
  readonly revision: number;
}

export class Registry {
  private readonly connection: NatsConnection;
  private readonly buckets = new Map<string, KV>();
  /** The graphs as of the bucket's last sequence: listing keys takes a consumer, asking for the sequence does not. */
  private known: { readonly last: number; readonly graphs: GraphRecord[] } | undefined;

  constructor(connection: NatsConnection) {
    this.connection = connection;
  }

  async graphs(): Promise<GraphRecord[]> {
    const bucket = await this.bucket(GRAPHS_BUCKET);
    const last = (await bucket.status()).streamInfo.state.last_seq;
    if (this.known?.last === last) return this.known.graphs;
    const records: GraphRecord[] = [];
    for (const name of await keysOf(bucket)) {
      const record = await this.graph(name);
      if (record !== undefined) records.push(record);
    }
    records.sort((a, b) => (a.config.name < b.config.name ? -1 : 1));
    this.known = { last, graphs: records };
    return records;
  }

  async graph(name: string): Promise<GraphRecord | undefined> {
    const entry = await (await this.bucket(GRAPHS_BUCKET)).get(name);
    if (entry === null || entry.operation !== 'PUT') return undefined;
    return { config: entry.json<GraphConfig>(), revision: entry.revision };
  }

  /** Whether the graph was removed by somebody; a record that is merely not there may be lost. */
  async isRemoved(name: string): Promise<boolean> {
    const entry = await (await this.bucket(GRAPHS_BUCKET)).get(name);
    return entry !== null && entry.operation !== 'PUT';
  }

  /** False if there is a graph of that name. */
  async createGraph(config: GraphConfig): Promise<boolean> {
    const bucket = await this.bucket(GRAPHS_BUCKET);
    try {
      await bucket.create(config.name, JSON.stringify(config));
      return true;
    } catch (error) {
      if ((await this.graph(config.name)) !== undefined) return false;
      throw error;
    }
  }

  async removeGraph(name: string): Promise<void> {
    await (await this.bucket(GRAPHS_BUCKET)).purge(name);
  }

  /** What an instance says of itself; JSON. */
  async announce(instance: string, report: InstanceReport): Promise<void> {
    await (await this.bucket(INSTANCES_BUCKET)).put(instance, JSON.stringify(report));
  }

  async withdraw(instance: string): Promise<void> {
    await (await this.bucket(INSTANCES_BUCKET)).purge(instance);
  }

  async instances(): Promise<{ name: string; report: InstanceReport }[]> {
    const bucket = await this.bucket(INSTANCES_BUCKET);
    const reports: { name: string; report: InstanceReport }[] = [];
    for (const name of await keysOf(bucket)) {
      const entry = await bucket.get(name);
      if (entry === null || entry.operation !== 'PUT') continue;
      reports.push({ name, report: entry.json<InstanceReport>() });
    }
    return reports.sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  private async bucket(name: string): Promise<KV> {
    let bucket = this.buckets.get(name);
    if (bucket === undefined) {
      bucket = await new Kvm(this.connection).create(name, { history: 1 });
      this.buckets.set(name, bucket);
    }
    return bucket;
  }
}

async function keysOf(bucket: KV): Promise<string[]> {
  const keys: string[] = [];
  for await (const key of await bucket.keys()) keys.push(key);
  return keys;
}
