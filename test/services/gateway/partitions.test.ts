import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { Graph } from '../../../libs/api/graph.ts';
import { Partitions, PartitionVertices } from '../../../libs/api/partitioner.ts';
import { Vertex } from '../../../libs/api/vertex.ts';
import type { InstanceReport } from '../../../libs/bus/report.ts';
import { placementSubject } from '../../../libs/dataflow/names.ts';
import {
  type PartitionerConfig,
  readPartitionerConfig,
} from '../../../libs/partitioning/partitioner-config.ts';
import { answerPlacement } from '../../../services/partitioner/placement-answer.ts';
import { PlacingHistory } from '../../../services/partitioner/placing-history.ts';
import { expectSchema, type MemoryHost, TestGateway } from '../../support/gateway.ts';

const EDGES = Array.from({ length: 40 }, (_, n) => ({ source: `v${n % 7}`, target: `v${(n * 5 + 3) % 11}` }));

let gateway: TestGateway;
beforeEach(async () => {
  gateway = await TestGateway.start();
});
afterEach(async () => await gateway.close());

const put = async (payload: object, name = 'g') =>
  await gateway.app.inject({ method: 'PUT', url: `/v1/graphs/${name}`, payload });

function configOf(algorithm: string): PartitionerConfig {
  const reading = readPartitionerConfig({ algorithm });
  if (reading.kind === 'invalid') throw new Error(reading.problem);
  return reading.config;
}

/** As if the graph's partitioner ran in an instance that reports. */
function reporting({ feed, config }: MemoryHost): { at: (now: number) => void } {
  const history = new PlacingHistory();
  gateway.questions.answer(placementSubject(config.id), (question) =>
    answerPlacement(feed.partitioner, question),
  );
  return {
    at: (now) => {
      const fields: InstanceReport = {
        version: '0.0.0',
        pid: 1,
        started: '2026-01-01T00:00:00.000Z',
        reported: '2026-01-01T00:00:01.000Z',
        tasks: [
          {
            graph: config.name,
            task: `partitioner of ${config.name}`,
            state: 'running',
            position: feed.sequence,
            placing: history.report(feed.partitioner, now),
          },
        ],
      };
      const instance = { name: 'a', roles: [], live: true, leaving: false, lastSeenMs: 0 };
      gateway.cluster = { instances: [{ ...instance, fields: { ...fields } }], tasks: [] };
    },
  };
}

describe('the partitioner of a graph', () => {
  test('is the hash unless told otherwise, and is shown with all its parameters', async () => {
    expect((await put({})).json()).toMatchObject({ partitioner: { algorithm: 'hash' } });
    const response = await put({ partitioner: { algorithm: 'hdrf', lambda: 3 } }, 'h');
    expect(response.statusCode).toBe(201);
    const graph = response.json<Graph>();
    expectSchema(Graph, graph);
    expect(graph.partitioner).toEqual({ algorithm: 'hdrf', lambda: 3, epsilon: 1, slack: 1.1, capMin: 2 });
  });

  test('may be changed, which waits for the next generation; what is absent stays', async () => {
    await put({});
    expect((await put({ partitioner: { algorithm: 'dbh' } })).json()).toMatchObject({ generation: 1 });
    const { partitioner, generations } = gateway.registry.records.get('g')!;
    expect(partitioner).toEqual({ algorithm: 'dbh' });
    expect(generations[0]).toMatchObject({ partitioner: { algorithm: 'hash' } });
    expect((await put({ partitions: 8 })).json()).toMatchObject({ partitioner: { algorithm: 'dbh' } });
  });

  test.each([
    [{ partitioner: 'hdrf' }, '/body/partitioner', /must be an object/],
    [{ partitioner: { algorithm: 'metis' } }, '/body/partitioner', /"metis" is none of hash, grid/],
    [
      { partitioner: { algorithm: 'hash', lambda: 1 } },
      '/body/partitioner',
      /hash has no parameter "lambda"/,
    ],
    [{ partitioner: { algorithm: 'hdrf', lambda: -1 } }, '/body/partitioner', /lambda must be a number/],
    [{ partitioner: { algorithm: 'grid' }, partitions: 7 }, '/body/partitioner', /7 do not, 6 and 8 do/],
  ])('%j is refused', async (payload, pointer, detail) => {
    const problem = await gateway.problem({ method: 'PUT', url: '/v1/graphs/g', payload }, 'bad-request');
    expect(problem.errors).toMatchObject([{ pointer }]);
    expect(problem.detail).toMatch(detail);
    expect(gateway.registry.records.size).toBe(0);
  });

  test('of a graph that is there, partitions that it cannot have are refused', async () => {
    await put({ partitioner: { algorithm: 'grid' } });
    const request = { method: 'PUT' as const, url: '/v1/graphs/g', payload: { partitions: 7 } };
    const problem = await gateway.problem(request, 'bad-request');
    expect(problem.errors).toMatchObject([{ pointer: '/body/partitions' }]);
    expect(gateway.registry.records.get('g')!.partitions).toBe(4);
  });
});

describe('GET partitions', () => {
  test.each(['hash', 'dbh', 'hdrf', 'fennel'])(
    'tells the figures, now and of the last minute, by %s',
    async (algorithm) => {
      const host = await gateway.graph('g', 4, configOf(algorithm));
      const report = reporting(host);
      report.at(0);
      await gateway.publish('g', EDGES.slice(0, 30));
      report.at(30_000);
      await gateway.publish('g', EDGES.slice(30));
      report.at(61_000);
      const answer = await gateway.get<Partitions>('/v1/graphs/g/partitions', Partitions);
      expect(answer).toMatchObject({ generation: 1, position: 2, asOf: { sequence: 2 } });
      expect(answer.problem).toBeUndefined();
      expect(answer.partitioner.algorithm).toBe(algorithm);
      const sum = (counts: (number | undefined)[]) => counts.reduce<number>((all, count) => all + count!, 0);
      expect(answer.quality).toMatchObject({ edges: 40, vertices: 11 });
      expect(sum(answer.partitions.map(({ edges }) => edges))).toBe(40);
      const { vertices } = answer.quality;
      const replicas = sum(answer.partitions.map((partition) => partition.vertices));
      expect(answer.quality.replicationFactor).toBeCloseTo(replicas / vertices!, 5);
      expect(host.view!.parts.distinct).toBe(11);
      expect(answer.partitions.map((partition) => partition.vertices)).toEqual([...host.view!.parts.counts]);
      expect(answer.lastMinute).toMatchObject({ seconds: 61, quality: { edges: 40 } });
      expect(answer.quality.cutFraction === undefined).toBe(algorithm !== 'fennel');
      report.at(91_000);
      const later = await gateway.get<Partitions>('/v1/graphs/g/partitions', Partitions);
      expect(later.lastMinute).toMatchObject({ seconds: 61, quality: { edges: 10 } });
    },
  );

  test('without a report tells what the gateway knows, and why it is not more', async () => {
    await gateway.graph('g', 2);
    await gateway.publish('g', EDGES);
    const answer = await gateway.get<Partitions>('/v1/graphs/g/partitions', Partitions);
    expect(answer.problem?.code).toBe('not-reported');
    expect(answer.quality).toMatchObject({ vertices: 11 });
    expect(answer.partitions.map(({ edges }) => edges)).toEqual([undefined, undefined]);
  });

  test('has no asOf', async () => {
    await gateway.graph('g');
    await gateway.problem('/v1/graphs/g/partitions?asOf=0', 'bad-request');
  });
});

describe('a vertex', () => {
  test('is in the partitions of its edges; as of an earlier time that is not told', async () => {
    const host = await gateway.graph('g', 4);
    await gateway.publish('g', EDGES);
    const vertex = await gateway.get<Vertex>('/v1/graphs/g/vertices/v1', Vertex);
    expect(vertex.partitions!.length).toBeGreaterThan(1);
    for (const partition of vertex.partitions!) {
      const url = `/v1/graphs/g/partitions/${partition}/vertices`;
      expect((await gateway.get<PartitionVertices>(url, PartitionVertices)).vertices).toContain('v1');
    }
    expect(host.view!.parts.counts.length).toBe(4);
    expect((await gateway.get<Vertex>('/v1/graphs/g/vertices/v1?asOf=1', Vertex)).partitions).toBeUndefined();
  });

  test('has a degree and an owner that the partitioner remembers', async () => {
    reporting(await gateway.graph('g', 4, configOf('ldg')));
    await gateway.publish('g', [
      { source: 'a', target: '\ufeffb' },
      { source: 'a', target: 'a' },
    ]);
    const { placement } = await gateway.get<Vertex>('/v1/graphs/g/vertices/a?placement=true', Vertex);
    expect(placement).toEqual({ degree: 3, owner: 0, partitions: [0], generation: 1, position: 1 });
    const byQuery = await gateway.get<Vertex>(`/v1/graphs/g/vertices?id=%EF%BB%BFb&placement=true`, Vertex);
    expect(byQuery.placement).toMatchObject({ degree: 1, owner: 0 });
    expect((await gateway.get<Vertex>('/v1/graphs/g/vertices/a', Vertex)).placement).toBeUndefined();
    await gateway.problem('/v1/graphs/g/vertices/a?placement=maybe', 'bad-request');
  });

  test('has none where nobody answers or nothing is remembered, and is shown all the same', async () => {
    const host = await gateway.graph('g', 2);
    await gateway.publish('g', EDGES);
    const url = '/v1/graphs/g/vertices/v1?placement=true';
    expect((await gateway.get<Vertex>(url, Vertex)).placement?.problem?.code).toBe('no-answer');
    reporting(host);
    expect((await gateway.get<Vertex>(url, Vertex)).placement?.problem?.code).toBe('not-kept');
  });
});

describe('GET the vertices of a partition', () => {
  test('pages by arrival, each vertex once', async () => {
    const host = await gateway.graph('g', 3, configOf('hdrf'));
    await gateway.publish('g', EDGES);
    for (let partition = 0; partition < 3; partition++) {
      const pages: string[][] = [];
      let cursor: string | undefined;
      do {
        const url = `/v1/graphs/g/partitions/${partition}/vertices?limit=2${cursor === undefined ? '' : `&cursor=${cursor}`}`;
        const page = await gateway.get<PartitionVertices>(url, PartitionVertices);
        pages.push(page.vertices);
        cursor = page.nextCursor;
      } while (cursor !== undefined);
      expect(pages.flat().length).toBe(host.view!.parts.counts[partition]);
      expect(new Set(pages.flat()).size).toBe(pages.flat().length);
      expect(pages.at(-1)!.length).toBeGreaterThan(0);
    }
  });

  test('refuses a partition that there is not, and a cursor of another list', async () => {
    await gateway.graph('g', 3, configOf('hdrf'));
    await gateway.publish('g', EDGES);
    await gateway.problem('/v1/graphs/g/partitions/3/vertices', 'unknown-partition');
    await gateway.problem('/v1/graphs/g/partitions/x/vertices', 'bad-request');
    const page = await gateway.get<PartitionVertices>(
      '/v1/graphs/g/partitions/0/vertices?limit=1',
      PartitionVertices,
    );
    await gateway.problem(`/v1/graphs/g/partitions/1/vertices?cursor=${page.nextCursor}`, 'bad-cursor');
    await gateway.problem('/v1/graphs/g/partitions/0/vertices?cursor=abc', 'bad-cursor');
  });
});

test('the metrics tell the same', async () => {
  reporting(await gateway.graph('g', 2, configOf('hdrf'))).at(0);
  await gateway.publish('g', EDGES);
  reporting(gateway.hosts.get('g')!).at(0);
  const { body } = await gateway.app.inject('/metrics');
  for (const part of [0, 1]) {
    expect(body).toMatch(new RegExp(`watershed_partition_edges\\{graph="g",partition="${part}"\\} \\d+`));
    expect(body).toMatch(new RegExp(`watershed_partition_vertices\\{graph="g",partition="${part}"\\} \\d+`));
  }
  expect(body).toMatch(/watershed_replication_factor\{graph="g"\} 1\.\d+/);
  expect(body).toMatch(/watershed_edge_balance\{graph="g"\} 1/);
  expect(body).toMatch(/watershed_forced_placements_total\{graph="g"\} 0/);
  expect(body).toMatch(/watershed_cap_hits_total\{graph="g"\} \d+/);
});
