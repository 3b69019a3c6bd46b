/**
 * A gateway's HTTP interface in memory: the real app and cores, on the in-memory bus, with graphs that hold what
 * was published as soon as `settle` says so.
 */

import type { InjectOptions } from 'fastify';
import type { TSchema } from 'typebox';
import { Value } from 'typebox/value';
import { expect } from 'vitest';
import { Problem, type Problem as ProblemAnswer, type ProblemCode } from '../../libs/api/problem.ts';
import { SCHEMAS } from '../../libs/api/schemas.ts';
import { createGraph } from '../../libs/bus/graphs.ts';
import { MemoryBus } from '../../libs/bus/memory-bus.ts';
import { MemoryKv } from '../../libs/bus/memory-kv.ts';
import { MemoryQuestions } from '../../libs/bus/memory-questions.ts';
import type { GraphRecord } from '../../libs/bus/registry.ts';
import type { ClusterStatus } from '../../libs/cluster/member.ts';
import type { GraphConfig } from '../../libs/dataflow/graph-config.ts';
import { edgesLog } from '../../libs/dataflow/names.ts';
import type { PartitionerConfig } from '../../libs/partitioning/partitioner-config.ts';
import { buildApp } from '../../services/gateway/app.ts';
import { GatewayMetrics } from '../../services/gateway/metrics.ts';
import type { GatewayDeps, GraphRegistry, HostedGraph, HostedGraphs } from '../../services/gateway/ports.ts';
import type { App } from '../../services/gateway/routes/context.ts';
import type { View } from '../../services/gateway/view.ts';
import { FEED_START_MS, Feed, type FeedPayload } from './feed.ts';
import { realClock } from './memory-pipeline.ts';

class MemoryRegistry implements GraphRegistry {
  readonly records = new Map<string, GraphConfig>();
  private readonly revisions = new Map<string, number>();
  private revision = 0;

  async graphs(): Promise<GraphRecord[]> {
    return [...this.records.values()].map((config) => this.record(config));
  }

  async graph(name: string): Promise<GraphRecord | undefined> {
    const config = this.records.get(name);
    return config === undefined ? undefined : this.record(config);
  }

  async createGraph(config: GraphConfig): Promise<boolean> {
    if (this.records.has(config.name)) return false;
    this.write(config);
    return true;
  }

  async updateGraph(config: GraphConfig, revision: number): Promise<boolean> {
    if (this.revisions.get(config.name) !== revision) return false;
    this.write(config);
    return true;
  }

  async removeGraph(name: string): Promise<void> {
    this.records.delete(name);
    this.revisions.delete(name);
  }

  private record(config: GraphConfig): GraphRecord {
    return { config, revision: this.revisions.get(config.name)! };
  }

  private write(config: GraphConfig): void {
    this.revision += 1;
    this.records.set(config.name, config);
    this.revisions.set(config.name, this.revision);
  }
}

/** A hosted graph that reads its EDGES from the bus when told to. */
export class MemoryHost implements HostedGraph {
  readonly feed: Feed;
  config: GraphConfig;
  problem: HostedGraph['problem'];
  isRestoring = false;
  private readonly waiters = new Set<{ sequence: number; resolve: () => void }>();

  constructor(config: GraphConfig) {
    this.config = config;
    const { partitions, partitioner, id } = config;
    this.feed = new Feed({ partitions, partitioner, graphId: id });
  }

  get view(): View | undefined {
    return this.isRestoring ? undefined : this.feed.view;
  }

  async waitFor(sequence: number, timeoutMs: number): Promise<boolean> {
    if (this.view !== undefined && this.view.sequence >= sequence) return true;
    return await new Promise((resolve) => {
      const waiter = {
        sequence,
        resolve: () => {
          clearTimeout(timer);
          this.waiters.delete(waiter);
          resolve(true);
        },
      };
      const timer = setTimeout(() => {
        this.waiters.delete(waiter);
        resolve(false);
      }, timeoutMs);
      this.waiters.add(waiter);
    });
  }

  wake(): void {
    for (const waiter of [...this.waiters]) {
      if (this.view !== undefined && this.view.sequence >= waiter.sequence) waiter.resolve();
    }
  }
}

export class TestGateway implements HostedGraphs {
  readonly bus: MemoryBus;
  readonly registry = new MemoryRegistry();
  readonly hosts = new Map<string, MemoryHost>();
  readonly kv = new MemoryKv();
  readonly questions = new MemoryQuestions();
  cluster: ClusterStatus = { instances: [], tasks: [] };
  readonly metrics = new GatewayMetrics(() => FEED_START_MS);
  nats = { connected: true, since: new Date(FEED_START_MS) };
  app!: App;
  private messages = 0;

  private constructor() {
    this.bus = new MemoryBus(() => BigInt(FEED_START_MS + ++this.messages * 1000) * 1_000_000n, realClock);
  }

  static async start(changes: Partial<GatewayDeps> = {}): Promise<TestGateway> {
    const gateway = new TestGateway();
    gateway.app = await buildApp({ ...gateway.deps(), ...changes });
    await gateway.app.ready();
    return gateway;
  }

  deps(): GatewayDeps {
    return {
      graphs: this,
      registry: this.registry,
      bus: this.bus,
      clock: realClock,
      logLevel: 'silent',
      limits: { ingestMaxLagBytes: 1024 * 1024, bodyMaxBytes: 4 * 1024 * 1024 },
      instance: { name: 'test', version: '0.0.0', started: new Date(FEED_START_MS) },
      nats: () => this.nats,
      cluster: () => this.cluster,
      kv: this.kv,
      questions: this.questions,
      replicas: 1,
      metrics: this.metrics,
    };
  }

  list(): HostedGraph[] {
    return [...this.hosts.values()];
  }

  known(): boolean {
    return true;
  }

  find(name: string): HostedGraph | undefined {
    return this.hosts.get(name);
  }

  async close(): Promise<void> {
    await this.app.close();
  }

  /** What the process does a moment after a graph was created, changed or removed. */
  adopt(): void {
    for (const [name, host] of this.hosts) {
      if (this.registry.records.get(name)?.id !== host.config.id) this.hosts.delete(name);
    }
    for (const [name, config] of this.registry.records) {
      const host = this.hosts.get(name);
      if (host === undefined) this.hosts.set(name, new MemoryHost(config));
      else host.config = config;
    }
  }

  async graph(name: string, partitions = 2, partitioner?: PartitionerConfig): Promise<MemoryHost> {
    await createGraph(this.bus, this.registry, name, { partitions, partitioner });
    this.adopt();
    return this.hosts.get(name)!;
  }

  /** Messages past HTTP: an edge or a list of edges each. */
  async publish(graph: string, ...payloads: FeedPayload[]): Promise<void> {
    for (const payload of payloads) {
      const bytes = typeof payload === 'string' ? payload : JSON.stringify(payload);
      await this.bus.append(edgesLog(graph), new TextEncoder().encode(bytes), {});
    }
    await this.settle(graph);
  }

  /** The graph's view takes all that is in its EDGES. */
  async settle(graph: string): Promise<void> {
    const host = this.hosts.get(graph)!;
    const { stream } = edgesLog(graph);
    const last = (await this.bus.describe(stream))!.last;
    for (let sequence = host.feed.sequence + 1; sequence <= last; sequence++) {
      host.feed.take([(await this.bus.message(stream, sequence))!]);
    }
    host.wake();
  }

  /** GET that must succeed with an answer of the schema. */
  async get<Answer>(url: string, schema: TSchema): Promise<Answer> {
    const response = await this.app.inject({ method: 'GET', url });
    expect(response.statusCode, response.body).toBe(200);
    const answer = response.json<Answer>();
    expectSchema(schema, answer);
    return answer;
  }

  /** A request that must end with this problem. */
  async problem(
    request: string | InjectOptions,
    code: ProblemCode,
  ): Promise<ProblemAnswer & { headers: Record<string, unknown> }> {
    const response = await this.app.inject(
      typeof request === 'string' ? { method: 'GET', url: request } : request,
    );
    const problem = expectProblem(response.statusCode, response.headers['content-type'], response.body);
    expect(problem.code, response.body).toBe(code);
    return { ...problem, headers: response.headers };
  }
}

export function expectProblem(status: number, contentType: unknown, body: string): ProblemAnswer {
  expect(contentType, body).toBe('application/problem+json');
  const problem = JSON.parse(body) as ProblemAnswer;
  expectSchema(Problem, problem);
  expect(problem.status).toBe(status);
  return problem;
}

export function expectSchema(schema: TSchema, value: unknown): void {
  const whole = expanded(schema) as TSchema;
  expect(Value.Check(whole, value), JSON.stringify([...Value.Errors(whole, value)]).slice(0, 500)).toBe(true);
}

/** A schema with the named ones in the places where it refers to them. */
function expanded(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(expanded);
  if (typeof schema !== 'object' || schema === null) return schema;
  const { $ref, $id: _, ...rest } = schema as { $ref?: string; $id?: string };
  if ($ref !== undefined) {
    const name = $ref.replace(/^#\/components\/schemas\/|#$/g, '');
    return expanded(SCHEMAS.find(({ $id }: { $id?: string }) => $id === name)!);
  }
  return Object.fromEntries(Object.entries(rest).map(([key, value]) => [key, expanded(value)]));
}
