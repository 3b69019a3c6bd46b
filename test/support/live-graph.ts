/**
 * A graph of a running cluster as its users see it: published to by any NATS client, asked over HTTP in every way
 * there is. Ids are compared as they are, byte for byte.
 */
import { jetstream, jetstreamManager } from '@nats-io/jetstream';
import { headers, type NatsConnection } from 'nats';
import { expect } from 'vitest';
import type { ComponentAnswer, ComponentsPage, MembersPage } from '../../libs/api/component.ts';
import type { Component } from '../../libs/api/fields.ts';
import type { GraphStatus } from '../../libs/api/graph.ts';
import type { Problem, ProblemCode } from '../../libs/api/problem.ts';
import type { Connection, ExportRow, LookupAnswer, Vertex } from '../../libs/api/vertex.ts';
import type { Reject } from '../../services/partitioner/reject-log.ts';
import type { Cluster } from '../e2e/harness/cluster.ts';

export interface Members {
  readonly id: string;
  /** Sorted, so that they can be compared whatever the order of arrival. */
  readonly members: readonly string[];
}

export class LiveGraph {
  readonly cluster: Cluster;
  readonly name: string;
  /** The last message that answers must hold. */
  last = 0;
  private readonly connection: NatsConnection;

  private constructor(cluster: Cluster, connection: NatsConnection, name: string) {
    this.cluster = cluster;
    this.connection = connection;
    this.name = name;
  }

  static async create(
    cluster: Cluster,
    connection: NatsConnection,
    name: string,
    partitions: number,
  ): Promise<LiveGraph> {
    const response = await fetch(`${cluster.url}/v1/graphs/${name}`, {
      method: 'PUT',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ partitions }),
    });
    if (response.status !== 201) throw new Error(`${response.status} ${await response.text()}`);
    return new LiveGraph(cluster, connection, name);
  }

  get url(): string {
    return `/v1/graphs/${this.name}`;
  }

  /** Publishes as `nats pub --jetstream` does. */
  async publish(payload: string | Uint8Array, contentType?: string): Promise<number> {
    const head = headers();
    if (contentType !== undefined) head.set('Content-Type', contentType);
    const { seq } = await jetstream(this.connection).publish(`graph.${this.name}.edges`, payload, {
      ...(contentType === undefined ? {} : { headers: head }),
    });
    this.last = Math.max(this.last, seq);
    return seq;
  }

  async status(): Promise<GraphStatus> {
    return await this.cluster.graph(this.name, this.last);
  }

  /** The messages of REJECTED. */
  async rejects(): Promise<Reject[]> {
    const { streams } = await jetstreamManager(this.connection);
    const stream = `GRAPH_${this.name}_REJECTED`;
    const { state } = await streams.info(stream);
    const rejects: Reject[] = [];
    for (let seq = 1; seq <= state.last_seq; seq++) {
      rejects.push((await streams.getMessage(stream, { seq }))!.json<Reject>());
    }
    return rejects;
  }

  /** How the consumers of EDGES acknowledge. */
  async ackPolicies(): Promise<Set<string>> {
    const { consumers } = await jetstreamManager(this.connection);
    const policies = new Set<string>();
    for await (const { config } of consumers.list(`GRAPH_${this.name}_EDGES`)) {
      policies.add(config.ack_policy ?? 'explicit');
    }
    return policies;
  }

  async export(): Promise<ExportRow[]> {
    const response = await fetch(`${this.cluster.url}${this.url}/export?atLeast=${this.last}&timeout=30`);
    const text = await response.text();
    if (!response.ok) throw new Error(`${response.status} ${text}`);
    // A line feed ends a row; inside of ids it is escaped.
    return text.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line) as ExportRow]));
  }

  /** As it was at `sequence`, or now. */
  async vertex(id: string, sequence?: number): Promise<Vertex> {
    const asOf = sequence === undefined ? '' : `asOf=${sequence}&`;
    const byQuery = await this.get<Vertex>(`/vertices?${asOf}id=${encodeURIComponent(id)}`);
    const byForm = await this.get<Vertex>(`/vertices?${asOf}${new URLSearchParams({ id }).toString()}`);
    expect(byForm).toEqual(byQuery);
    // They vanish from paths: DESIGN.md section 9.
    if (id !== '.' && id !== '..') {
      expect(await this.get<Vertex>(`/vertices/${encodeURIComponent(id)}?${asOf}`)).toEqual(byQuery);
    }
    expect(byQuery.id).toBe(id);
    return byQuery;
  }

  /** The vertex is unknown, by path and by query. */
  async expectUnknown(id: string): Promise<void> {
    for (const path of [`/vertices/${encodeURIComponent(id)}`, `/vertices?id=${encodeURIComponent(id)}`]) {
      await this.expectProblem(path, 404, 'unknown-vertex');
    }
  }

  async expectProblem(path: string, status: number, code: ProblemCode): Promise<void> {
    const response = await fetch(`${this.cluster.url}${this.url}${path}`);
    const text = await response.text();
    expect(`${response.status} ${text}`).toMatch(new RegExp(`^${status} \\{`));
    expect((JSON.parse(text) as Problem).code).toBe(code);
  }

  async connected(source: string, target: string): Promise<Connection> {
    return await this.get<Connection>(`/connected?${new URLSearchParams({ source, target }).toString()}`);
  }

  /** All members of a component, page by page. */
  async members(id: string, limit = 1000): Promise<string[]> {
    const members: string[] = [];
    let cursor = '';
    do {
      const page = await this.get<MembersPage>(
        `/components/vertices?id=${encodeURIComponent(id)}&limit=${limit}${cursor}`,
      );
      members.push(...page.vertices);
      expect(page.vertices.length === limit || page.nextCursor === undefined).toBe(true);
      cursor = page.nextCursor === undefined ? '' : `&cursor=${page.nextCursor}`;
    } while (cursor !== '');
    return members;
  }

  /**
   * All components, largest first, of a small graph. Asks for everything in every way there is, and fails unless all
   * answers say the same.
   */
  async components(): Promise<Members[]> {
    const { totals, problem } = await this.status();
    expect(problem).toBeUndefined();
    const rows = await this.export();
    const members = new Map<string, string[]>();
    for (const { vertex, component } of rows) {
      members.set(component, [...(members.get(component) ?? []), vertex].sort());
    }
    const listed = await this.listed();
    expect(listed).toEqual(
      listed.map(({ id }) => ({ id, size: members.get(id)?.length })).sort((a, b) => b.size! - a.size!),
    );
    expect(totals).toMatchObject({ vertices: rows.length, components: members.size });
    expect(listed).toHaveLength(members.size);
    expect(new Set(rows.map(({ vertex }) => vertex)).size).toBe(rows.length);
    for (const component of listed) await this.expectComponent(component, members.get(component.id)!);
    for (const { vertex, component } of rows) {
      expect((await this.vertex(vertex)).component).toEqual(listed.find(({ id }) => id === component));
      expect((await this.connected(vertex, component)).connected).toBe(true);
    }
    const [first, second] = listed;
    if (first !== undefined && second !== undefined) {
      expect(await this.connected(first.id, second.id)).toMatchObject({
        source: first.id,
        target: second.id,
        connected: false,
      });
    }
    const ids = rows.map(({ vertex }) => vertex);
    if (ids.length > 0) {
      expect(await this.lookup(ids)).toEqual(
        rows.map(({ vertex, component }) => ({
          id: vertex,
          component: listed.find(({ id }) => id === component),
        })),
      );
    }
    return listed.map(({ id }) => ({ id, members: members.get(id)! }));
  }

  async remove(): Promise<void> {
    await fetch(`${this.cluster.url}${this.url}`, { method: 'DELETE' });
  }

  async get<Answer>(path: string): Promise<Answer> {
    return await this.cluster.get<Answer>(`${this.url}${path}`);
  }

  private async listed(): Promise<Component[]> {
    const components: Component[] = [];
    let cursor = '';
    do {
      const page = await this.get<ComponentsPage>(`/components?limit=7${cursor}`);
      components.push(...page.components);
      cursor = page.nextCursor === undefined ? '' : `&cursor=${page.nextCursor}`;
    } while (cursor !== '');
    return components;
  }

  private async expectComponent({ id, size }: Component, members: readonly string[]): Promise<void> {
    const encoded = encodeURIComponent(id);
    const byQuery = await this.get<ComponentAnswer>(`/components?id=${encoded}`);
    expect(byQuery).toMatchObject({ id, size });
    expect((await this.members(id)).sort()).toEqual(members);
    if (id === '.' || id === '..') return;
    expect(
      (await this.get<MembersPage>(`/components/${encoded}/vertices?limit=1000`)).vertices.sort(),
    ).toEqual(members);
    // Else it is the query form of the members.
    if (id !== 'vertices') expect(await this.get<ComponentAnswer>(`/components/${encoded}`)).toEqual(byQuery);
  }

  private async lookup(ids: readonly string[]): Promise<LookupAnswer['vertices']> {
    const response = await fetch(`${this.cluster.url}${this.url}/vertices/lookup`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ ids }),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${response.status} ${text}`);
    return (JSON.parse(text) as LookupAnswer).vertices;
  }
}
