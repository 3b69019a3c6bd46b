import { afterEach, beforeEach, expect, test } from 'vitest';
import { Cluster, Health, Readiness } from '../../../libs/api/cluster.ts';
import { CHANNEL_START } from '../../../libs/dataflow/channel.ts';
import { edgesLog, partsLog } from '../../../libs/dataflow/names.ts';
import { Partitioner } from '../../../services/partitioner/partitioner.ts';
import { FEED_START_MS } from '../../support/feed.ts';
import { TestGateway } from '../../support/gateway.ts';

let gateway: TestGateway;
beforeEach(async () => {
  gateway = await TestGateway.start();
});
afterEach(async () => await gateway.close());

async function notReady(): Promise<(string | undefined)[]> {
  const problem = await gateway.problem('/readyz', 'not-ready');
  expect(problem.headers['retry-after']).toBe('1');
  return problem.errors?.map(({ detail }) => detail) ?? [];
}

const edge = new TextEncoder().encode('{"source":"a","target":"b"}');

test('/healthz is well whatever else is not', async () => {
  gateway.nats = { connected: false, since: new Date() };
  const health = await gateway.get<Health>('/healthz', Health);
  expect(health).toEqual({
    status: 'ok',
    instance: 'test',
    version: '0.0.0',
    started: '2026-01-01T00:00:00.000Z',
  });
});

test('/readyz: a gateway without graphs is ready', async () => {
  expect(await gateway.get('/readyz', Readiness)).toEqual({ status: 'ready' });
});

test('/readyz names a graph that is restored or catches up, until it has reached the end seen at the start', async () => {
  const host = await gateway.graph('g');
  await gateway.graph('quiet');
  await gateway.bus.append(edgesLog('g'), edge, {});
  host.isRestoring = true;
  expect(await notReady()).toEqual(['graph g: its state is being read']);
  host.isRestoring = false;
  expect(await notReady()).toEqual(['graph g: catching up, at message 0 of 1']);
  await gateway.settle('g');
  await gateway.get('/readyz', Readiness);
  // Behind the end again, as a busy graph always is a little.
  await gateway.bus.append(edgesLog('g'), edge, {});
  await gateway.get('/readyz', Readiness);
});

test('/readyz names every problem of a view, and NATS being away', async () => {
  const host = await gateway.graph('g');
  const other = await gateway.graph('h');
  await gateway.get('/readyz', Readiness);
  host.problem = { code: 'log-truncated', message: 'stream ends at message 3' };
  other.problem = { code: 'retrying', message: 'no answer' };
  gateway.nats = { connected: false, since: new Date(FEED_START_MS) };
  expect(await notReady()).toEqual([
    'NATS is not connected since 2026-01-01T00:00:00.000Z',
    'graph g: stream ends at message 3 (log-truncated)',
    'graph h: no answer (retrying)',
  ]);
});

test('/v1/cluster gives what the instances report', async () => {
  const report = {
    roles: ['worker'],
    version: '0.1.0',
    pid: 1,
    started: '2026-01-01T00:00:00.000Z',
    reported: '2026-01-01T00:00:02.000Z',
    tasks: [
      {
        graph: 'g',
        task: 'worker 0 of g',
        state: 'running',
        position: 7,
        problem: { code: 'retrying', message: 'no answer' },
      },
    ],
  } as const;
  gateway.reports.push({ name: 'w1', report });
  const cluster = await gateway.get<Cluster>('/v1/cluster', Cluster);
  expect(cluster).toEqual({ instances: [{ name: 'w1', ...report }] });
});

test('/metrics tells totals, the position and lag of every stage, and how long requests took', async () => {
  await gateway.graph('g', 2);
  await gateway.publish(
    'g',
    [
      { source: 'a', target: 'b' },
      { source: '', target: 'b' },
    ],
    { source: 'c', target: 'd' },
  );
  await gateway.bus.append(edgesLog('g'), edge, {});
  await writeParts(2);
  await gateway.app.inject('/v1/graphs/g/vertices/a');
  const metrics = await scrape();
  for (const line of [
    'watershed_edges_total{graph="g"} 2',
    'watershed_rejected_total{graph="g"} 1',
    'watershed_vertices{graph="g"} 4',
    'watershed_components{graph="g"} 2',
    'watershed_stage_position{graph="g",stage="partitioner",partition="0"} 3',
    'watershed_stage_position{graph="g",stage="worker",partition="1"} 2',
    'watershed_stage_position{graph="g",stage="view",partition=""} 2',
    'watershed_stage_lag{graph="g",stage="partitioner",partition="1"} 0',
    'watershed_stage_lag{graph="g",stage="view",partition=""} 1',
    'watershed_http_request_duration_seconds_count{route="/v1/graphs/:graph/vertices/:vertex",method="GET",status="200"} 1',
  ]) {
    expect(metrics).toContain(line);
  }
});

test('/metrics answers without NATS, and forgets a graph that is removed', async () => {
  await gateway.graph('g', 2);
  await gateway.publish('g', { source: 'a', target: 'b' });
  gateway.nats = { connected: false, since: new Date() };
  const metrics = await scrape();
  expect(metrics).toContain('watershed_vertices{graph="g"} 2');
  expect(metrics).not.toContain('watershed_stage_lag{');
  gateway.nats = { connected: true, since: new Date() };
  gateway.metrics.visible('g', FEED_START_MS);
  await gateway.app.inject({ method: 'DELETE', url: '/v1/graphs/g' });
  expect(await scrape()).not.toContain('graph="g"');
});

test('the time from arrival to answer counts what arrived since the process began', async () => {
  gateway.metrics.visible('g', FEED_START_MS);
  gateway.metrics.visible('g', FEED_START_MS - 1);
  const metrics = await scrape();
  expect(metrics).toContain('watershed_edge_to_visible_seconds_count{graph="g"} 1');
  expect(metrics).toContain('watershed_edge_to_visible_seconds_bucket{le="0.04",graph="g"} 1');
});

test('/metrics follows the exposition format: help and type for each, names of base units', async () => {
  await gateway.graph('g', 2);
  for (const line of (await scrape()).split('\n')) {
    if (line === '') continue;
    expect(line).toMatch(
      /^(# HELP watershed_\w+ .+|# TYPE watershed_\w+ (counter|gauge|histogram)|watershed_\w+(\{.*\})? [\d.e+-]+)$/,
    );
  }
});

async function scrape(): Promise<string> {
  const response = await gateway.app.inject('/metrics');
  expect(response.statusCode).toBe(200);
  expect(response.headers['content-type']).toMatch(/^text\/plain; version=0\.0\.4/);
  return response.body;
}

/** Frames as the partitioner writes them, for all messages of EDGES. */
async function writeParts(partitions: number): Promise<void> {
  const { id } = gateway.hosts.get('g')!.config;
  const partitioner = new Partitioner({ graphId: id, generation: 1, partitions });
  partitioner.resume(
    undefined,
    Array.from({ length: partitions + 1 }, () => CHANNEL_START),
    undefined,
  );
  partitioner.open(0, 1n);
  const { stream } = edgesLog('g');
  const { last } = (await gateway.bus.describe(stream))!;
  for (let sequence = 1; sequence <= last; sequence++) {
    partitioner.apply(0, (await gateway.bus.message(stream, sequence))!);
  }
  for (const [partition, frames] of partitioner.cut().payloads.slice(0, partitions).entries()) {
    const log = partsLog('g', 1, partition);
    await gateway.bus.create(log.stream, { subjects: [log.subject], discard: 'new', denyDelete: false });
    for (const frame of frames) await gateway.bus.append(log, frame, {});
  }
}
