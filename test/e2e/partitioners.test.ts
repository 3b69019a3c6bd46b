/**
 * Streaming partitioners in real processes: a graph that is divided by one, then by another and by more partitions while
 * edges stream in, with its figures, and with answers that stay exact.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Graph, GraphStatus } from '../../libs/api/graph.ts';
import type { Partitions, PartitionVertices } from '../../libs/api/partitioner.ts';
import type { Vertex } from '../../libs/api/vertex.ts';
import { Cluster, until } from './harness/cluster.ts';
import { expectOracle, Publisher } from './harness/publisher.ts';

const GRAPH = 'divided';
/** A task whose owner was killed has a new one well before. */
const TAKEOVER_MS = 90_000;

describe('a graph with a streaming partitioner', () => {
  let cluster: Cluster;

  beforeAll(async () => {
    cluster = await Cluster.create();
    cluster.start('one', ['--roles', 'partitioner,worker']);
    cluster.start('two', ['--roles', 'partitioner,worker']);
    cluster.start('gateway', ['--roles', 'gateway']);
    await cluster.ready();
  });

  afterAll(() => cluster?.stop());

  const get = async <Answer>(path = ''): Promise<Answer> =>
    await cluster.get<Answer>(`/v1/graphs/${GRAPH}${path}`);

  /** The figures, once the partitioner has reported that it is in this generation and at that message. */
  async function figures(generation: number, position: number): Promise<Partitions> {
    let answer: Partitions | undefined;
    await until(async () => {
      answer = await get<Partitions>(`/partitions?atLeast=${position}&timeout=30`);
      return answer.generation === generation && (answer.position ?? 0) >= position;
    }, `a report of generation ${generation} at message ${position}`);
    return answer!;
  }

  async function inForce(generation: number): Promise<void> {
    await until(
      async () => (await get<GraphStatus>()).generation === generation,
      `generation ${generation} to be in force`,
      TAKEOVER_MS,
    );
  }

  it('counts what it does, and answers exactly while its partitioner changes and dies', {
    timeout: 240_000,
  }, async () => {
    const create = ['graph', 'create', GRAPH, '--partitions', '4', '--partitioner', 'hdrf'];
    const created = await cluster.watershed([...create, '--partitioner-option', 'lambda=1.2', '--json']);
    expect(created.status, created.stderr).toBe(0);
    expect((JSON.parse(created.stdout) as Graph).partitioner).toMatchObject({
      algorithm: 'hdrf',
      lambda: 1.2,
    });
    const publisher = await Publisher.connect(cluster.nats.url, GRAPH, 25);
    await publisher.messages(60);

    const first = await figures(1, publisher.last);
    const { totals } = await get<GraphStatus>();
    expect(first.quality).toMatchObject({ edges: totals.edges, vertices: totals.vertices });
    expect(first.quality.edgeBalance).toBeLessThanOrEqual(1.11);
    const sum = first.partitions.reduce((all, { edges }) => all + edges!, 0);
    expect(sum).toBe(totals.edges);

    // Who is in a partition by the view is who is in it by the partitioner.
    const listed = await get<PartitionVertices>('/partitions/0/vertices?limit=1000');
    expect(listed.vertices.length).toBe(Math.min(1000, first.partitions[0]!.vertices!));
    const vertex = await get<Vertex>(`/vertices/${listed.vertices[0]}?placement=true`);
    expect(vertex.placement?.problem).toBeUndefined();
    expect(vertex.placement?.partitions).toEqual(vertex.partitions);
    expect(vertex.partitions).toContain(0);

    // Another one while edges stream in, with a kill -9 of whoever runs it.
    publisher.start();
    const changed = await cluster.watershed([
      'graph',
      'set',
      GRAPH,
      '--partitioner',
      'dbh',
      '--partitions',
      '6',
    ]);
    expect(changed.status, changed.stderr).toBe(0);
    await inForce(2);
    await cluster.kill9('one');
    await cluster.restart('one');
    expect((await cluster.watershed(['graph', 'set', GRAPH, '--partitioner', 'fennel'])).status).toBe(0);
    await inForce(3);
    await publisher.stop();
    await publisher.messages(20);

    const last = await figures(3, publisher.last);
    expect(last.partitioner.algorithm).toBe('fennel');
    expect(last.partitions).toHaveLength(6);
    expect(last.quality.cutFraction).toBeGreaterThan(0);
    expect(last.quality.edges).toBeLessThan((await get<GraphStatus>()).totals.edges);
    await expectOracle(cluster, GRAPH, publisher);
    const shown = await cluster.watershed(['partitions', '--graph', GRAPH]);
    expect(shown.stdout).toMatch(/generation 3, by fennel 1 \(penalty derivative/);
    expect(shown.stdout).toMatch(/^replication factor +\d\.\d{3}$/m);
    await publisher.disconnect();
  });

  it('refuses what is no partitioner, and says what is wrong', async () => {
    const refused = await cluster.watershed(['graph', 'create', 'x', '--partitioner', 'metis']);
    expect(refused.status).toBe(2);
    expect(refused.stderr).toContain('"metis" is none of hash, grid, dbh');
    const grid = await cluster.watershed([
      'graph',
      'create',
      'x',
      '--partitioner',
      'grid',
      '--partitions',
      '7',
    ]);
    expect(grid.status).toBe(2);
    expect(grid.stderr).toContain('7 do not, 6 and 8 do');
  });
});
