/**
 * What the HTTP interface needs of the process that it runs in. Tests give in-memory ones.
 */
import type { GraphRecords } from '../../libs/bus/graphs.ts';
import type { GraphRecord } from '../../libs/bus/registry.ts';
import type { ClusterStatus } from '../../libs/cluster/member.ts';
import type { GraphConfig } from '../../libs/dataflow/graph-config.ts';
import type { Bus, Clock, Kv, Questions } from '../../libs/stage/ports.ts';
import type { GatewayMetrics } from './metrics.ts';
import type { View } from './view.ts';

/** A graph that this gateway keeps a view of; GraphHost is one. */
export interface HostedGraph {
  readonly config: GraphConfig;
  /** Undefined while its state is read. */
  readonly view: View | undefined;
  /** What is wrong with it now. */
  readonly problem: { readonly code: string; readonly message: string } | undefined;
  /** Resolves when the view holds all edges through `sequence`: true; or after `timeoutMs`: false. */
  waitFor(sequence: number, timeoutMs: number): Promise<boolean>;
}

/** The graphs that this gateway holds; one that was just created comes a moment later. */
export interface HostedGraphs {
  list(): readonly HostedGraph[];
  find(name: string): HostedGraph | undefined;
  /** False until it was read which graphs there are. */
  known(): boolean;
}

/** The record of all graphs; Registry is one. */
export interface GraphRegistry extends GraphRecords {
  graphs(): Promise<readonly GraphRecord[]>;
}

export interface Limits {
  /** Edges are refused while more of the stream than this is not in the answers yet. */
  readonly ingestMaxLagBytes: number;
  readonly bodyMaxBytes: number;
}

export const LIMITS_DEFAULT: Limits = {
  ingestMaxLagBytes: 256 * 1024 * 1024,
  // Decoding holds the event loop, 25 ms a MiB: larger loads go over NATS.
  bodyMaxBytes: 8 * 1024 * 1024,
};

export interface InstanceInfo {
  readonly name: string;
  readonly version: string;
  readonly started: Date;
}

export interface NatsStatus {
  readonly connected: boolean;
  /** Since when it is so. */
  readonly since: Date;
}

export interface GatewayDeps {
  readonly graphs: HostedGraphs;
  readonly registry: GraphRegistry;
  readonly bus: Bus;
  readonly clock: Clock;
  readonly logLevel: string;
  readonly limits: Limits;
  readonly instance: InstanceInfo;
  readonly nats: () => NatsStatus;
  /** Who is in the cluster, and who runs what. */
  readonly cluster: () => ClusterStatus;
  /** The records of snapshots are in it. */
  readonly kv: Kv;
  /** To the partitioners, who answer what they remember of a vertex. */
  readonly questions: Questions;
  /** Of graphs that say nothing else. */
  readonly replicas: number;
  readonly metrics: GatewayMetrics;
}
