import { afterEach, beforeEach, expect, test } from 'vitest';
import { Graph, GraphList, GraphStatus } from '../../../libs/api/graph.ts';
import { edgesLog, forestLog, partsLog, rejectedLog } from '../../../libs/dataflow/names.ts';
import { expectSchema, TestGateway } from '../../support/gateway.ts';

let gateway: TestGateway;
beforeEach(async () => {
  gateway = await TestGateway.start();
});
afterEach(async () => await gateway.close());

async function put(name: string, payload?: object) {
  return await gateway.app.inject({
    method: 'PUT',
    url: `/v1/graphs/${name}`,
    ...(payload === undefined ? {} : { payload }),
  });
}

test('PUT creates a graph and its logs, with 4 partitions unless told otherwise', async () => {
  const response = await put('social');
  expect(response.statusCode).toBe(201);
  const graph = response.json<Graph>();
  expectSchema(Graph, graph);
  expect(graph).toMatchObject({ name: 'social', partitions: 4, generation: 1 });
  expect(graph.id).toMatch(/^[0-9a-f]{32}$/);
  expect(await gateway.bus.describe(edgesLog('social').stream)).toMatchObject({ last: 0 });
  expect(await gateway.bus.describe(rejectedLog('social').stream)).toMatchObject({ last: 0 });
  expect((await put('other', { partitions: 7 })).json()).toMatchObject({ partitions: 7 });
});

test('PUT of a graph that is there keeps it, whether or not its partitions are named', async () => {
  const created = (await put('g', { partitions: 3 })).json<Graph>();
  for (const again of [await put('g'), await put('g', {}), await put('g', { partitions: 3 })]) {
    expect(again.statusCode).toBe(200);
    expect(again.json()).toEqual(created);
  }
});

test('PUT changes what is named and keeps what is absent; other partitions wait for the next generation', async () => {
  const created = (await put('g', { partitions: 3 })).json<Graph>();
  expect(created).toMatchObject({ replicas: 1, snapshots: { interval: 60, keep: 3 }, purgeEdges: false });
  const changes = [
    { partitions: 4 },
    { snapshots: { interval: 0 } },
    { snapshots: { keep: 5 }, purgeEdges: true },
    {},
  ];
  for (const change of changes) {
    const response = await put('g', change);
    expect(response.statusCode).toBe(200);
    expectSchema(Graph, response.json());
  }
  expect((await put('g')).json()).toEqual({
    ...created,
    partitions: 4,
    snapshots: { interval: 0, keep: 5 },
    purgeEdges: true,
  });
  const { partitions, generations } = gateway.registry.records.get('g')!;
  expect(partitions).toBe(4);
  expect(generations).toEqual([
    { generation: 1, partitions: 3, after: 0, partitioner: { algorithm: 'hash' } },
  ]);
  // The answers still come from the generation in force.
  gateway.adopt();
  expect((await gateway.get<GraphStatus>('/v1/graphs/g', GraphStatus)).config.generation).toBe(1);
});

test('PUT creates a graph with all of its settings', async () => {
  const settings = { partitions: 2, replicas: 3, snapshots: { interval: 5, keep: 2 }, purgeEdges: true };
  const response = await put('g', settings);
  expect(response.statusCode).toBe(201);
  expect(response.json()).toMatchObject(settings);
});

test('PUT with other replicas is refused, and the others of its settings are not taken', async () => {
  await put('g', { replicas: 3 });
  expect((await put('g', { replicas: 3 })).statusCode).toBe(200);
  const problem = await gateway.problem(
    { method: 'PUT', url: '/v1/graphs/g', payload: { replicas: 5, partitions: 9 } },
    'replicas-fixed',
  );
  expect(problem.detail).toMatch(/3 replicas.*snapshot restore/);
  expect(gateway.registry.records.get('g')).toMatchObject({ partitions: 4, replicas: 3 });
});

test('PUT with more replicas than there are NATS servers says so', async () => {
  gateway.bus.create = async () => {
    throw new Error('replicas > 1 not supported in non-clustered mode');
  };
  const problem = await gateway.problem(
    { method: 'PUT', url: '/v1/graphs/g', payload: { replicas: 3 } },
    'bad-request',
  );
  expect(problem.errors?.[0]?.pointer).toBe('/body/replicas');
});

test('PUT takes an EDGES log that is there already, with what is in it', async () => {
  const { stream, subject } = edgesLog('g');
  await gateway.bus.create(stream, { subjects: [subject], discard: 'new', denyDelete: true });
  await gateway.bus.append(edgesLog('g'), new TextEncoder().encode('{"source":"a","target":"b"}'), {});
  expect((await put('g')).statusCode).toBe(201);
  gateway.adopt();
  await gateway.settle('g');
  const status = await gateway.get<GraphStatus>('/v1/graphs/g', GraphStatus);
  expect(status.totals).toEqual({ vertices: 2, components: 1, edges: 1, rejected: 0, sequence: 1 });
});

test.each([
  ['partitions of 0', { partitions: 0 }, '/body/partitions'],
  ['partitions of 65', { partitions: 65 }, '/body/partitions'],
  ['a fraction', { partitions: 1.5 }, '/body/partitions'],
  ['a number as text', { partitions: '4' }, '/body/partitions'],
  ['an unknown field', { partitons: 4 }, '/body/partitons'],
  ['two replicas', { replicas: 2 }, '/body/replicas'],
  ['one kept snapshot', { snapshots: { keep: 1 } }, '/body/snapshots/keep'],
  ['an interval below 0', { snapshots: { interval: -1 } }, '/body/snapshots/interval'],
  ['an unknown field of snapshots', { snapshots: { every: 5 } }, '/body/snapshots/every'],
])('PUT with %s names the field', async (_name, payload, pointer) => {
  const problem = await gateway.problem({ method: 'PUT', url: '/v1/graphs/g', payload }, 'bad-request');
  expect(problem.errors?.[0]?.pointer).toBe(pointer);
});

test.each(['-a', 'A', 'a_b', 'a.b', 'a'.repeat(64), '%20', '*', '%3E', 'g%2Fh'])(
  'a graph cannot be named %s',
  async (name) => {
    await gateway.problem({ method: 'PUT', url: `/v1/graphs/${name}` }, 'bad-request');
    expect(gateway.registry.records.size).toBe(0);
  },
);

test('GET lists all graphs', async () => {
  await gateway.graph('a');
  await gateway.graph('b');
  const { graphs } = await gateway.get<GraphList>('/v1/graphs', GraphList);
  expect(graphs.map(({ name }) => name)).toEqual(['a', 'b']);
});

test('GET shows totals, lag, the watermark of each partition, and what is wrong', async () => {
  const host = await gateway.graph('g', 3);
  await gateway.publish('g', [
    { source: 'a', target: 'b' },
    { source: 'c', target: '' },
  ]);
  await gateway.bus.append(edgesLog('g'), new TextEncoder().encode('{"source":"a","target":"c"}'), {});
  host.problem = { code: 'log-missing', message: 'there is no stream' };
  const status = await gateway.get<GraphStatus>('/v1/graphs/g', GraphStatus);
  expect(status).toMatchObject({
    config: { name: 'g', partitions: 3 },
    totals: { vertices: 2, components: 1, edges: 1, rejected: 1, sequence: 1 },
    asOf: { sequence: 1 },
    lag: { messages: 1, last: 2 },
    generation: 1,
    partitions: [0, 1, 2].map((partition) => ({ partition, watermark: 1 })),
    problem: { code: 'log-missing', message: 'there is no stream' },
  });
});

test('GET answers without the lag while NATS is away', async () => {
  await gateway.graph('g');
  gateway.bus.describe = async () => {
    throw new Error('timeout');
  };
  const status = await gateway.get<GraphStatus>('/v1/graphs/g', GraphStatus);
  expect(status.lag).toBeUndefined();
});

test('GET gives totals as of an earlier sequence', async () => {
  await gateway.graph('g');
  await gateway.publish('g', { source: 'a', target: 'b' }, { source: 'b', target: 'c' });
  const { totals } = await gateway.get<GraphStatus>('/v1/graphs/g?asOf=1', GraphStatus);
  expect(totals).toEqual({ vertices: 2, components: 1, edges: 1, rejected: 0, sequence: 1 });
});

test('a graph that was just created can be asked at once: the answer waits for its view', async () => {
  await put('g');
  setTimeout(() => gateway.adopt(), 50);
  const status = await gateway.get<GraphStatus>('/v1/graphs/g', GraphStatus);
  expect(status.totals.sequence).toBe(0);
});

test('DELETE removes the record and every log of the graph', async () => {
  await gateway.graph('g', 2);
  const streams = [edgesLog('g'), rejectedLog('g'), partsLog('g', 1, 1), forestLog('g', 1, 0)];
  for (const { stream, subject } of streams)
    await gateway.bus.create(stream, { subjects: [subject], discard: 'new', denyDelete: false });
  const response = await gateway.app.inject({ method: 'DELETE', url: '/v1/graphs/g' });
  expect(response.statusCode).toBe(204);
  expect(response.body).toBe('');
  expect(gateway.registry.records.size).toBe(0);
  for (const { stream } of streams) expect(await gateway.bus.describe(stream)).toBeUndefined();
  await gateway.problem({ method: 'DELETE', url: '/v1/graphs/g' }, 'unknown-graph');
});

test('a graph that was removed, or created anew, is not answered for from its old view', async () => {
  await gateway.graph('g');
  await gateway.publish('g', { source: 'a', target: 'b' });
  await gateway.app.inject({ method: 'DELETE', url: '/v1/graphs/g' });
  await gateway.problem('/v1/graphs/g/vertices/a', 'unknown-graph');
  await put('g');
  await gateway.problem('/v1/graphs/g/vertices/a?timeout=0', 'not-ready');
  gateway.adopt();
  await gateway.problem('/v1/graphs/g/vertices/a', 'unknown-vertex');
});

test.each([
  '/v1/graphs/nope',
  '/v1/graphs/nope/vertices/a',
  '/v1/graphs/nope/components',
  '/v1/graphs/nope/export',
])('GET %s: there is no such graph', async (url) => {
  await gateway.problem(url, 'unknown-graph');
});

test('what needs NATS says that NATS is away', async () => {
  gateway.registry.graphs = gateway.registry.graph = async () => {
    throw new Error('no responders');
  };
  for (const request of [
    { method: 'GET', url: '/v1/graphs' },
    { method: 'PUT', url: '/v1/graphs/g' },
    { method: 'DELETE', url: '/v1/graphs/g' },
  ] as const) {
    const problem = await gateway.problem(request, 'nats-unavailable');
    expect(problem.headers['retry-after']).toBe('1');
  }
});
