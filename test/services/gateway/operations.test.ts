import { afterEach, beforeEach, expect, test } from 'vitest';
import { Cluster, Health, Readiness } from '../../../libs/api/cluster.ts';
import { CHANNEL_START } from '../../../libs/dataflow/channel.ts';
import { NO_MARK } from '../../../libs/dataflow/frame.ts';
import { edgesLog, partsLog } from '../../../libs/dataflow/names.ts';
import { SnapshotRecords } from '../../../libs/snapshot/records.ts';
import { Partitioner } from '../../../services/partitioner/partitioner.ts';
import { FEED_START_MS } from '../../support/feed.ts';
import { TestGateway } from '../../support/gateway.ts';
import { manifest } from '../../support/manifest.ts';

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
  const fields = {
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
  const status = { name: 'w1', roles: ['worker'], live: true, leaving: false, lastSeenMs: 400, fields };
  gateway.cluster = { instances: [status], tasks: [] };
  const cluster = await gateway.get<Cluster>('/v1/cluster', Cluster);
  expect(cluster).toEqual({ instances: [{ name: 'w1', live: true, leaving: false, ...fields }], tasks: [] });
});

test('/v1/cluster says of each task who runs it, how far it is, and what is wrong with it', async () => {
  const { id } = (await gateway.graph('g', 1)).config;
  await gateway.publish('g', { source: 'a', target: 'b' }, { source: 'b', target: 'c' });
  const instance = (name: string, live: boolean, tasks: object[]) => ({
    name,
    roles: [],
    live,
    leaving: false,
    lastSeenMs: 0,
    fields: { tasks },
  });
  const worker = 'worker 0 of g, generation 1';
  const problem = { code: 'retrying', message: 'no answer' };
  const report = (task: string, position: number) => ({ graph: 'g', task, state: 'running', position });
  const lease = { turn: 2, attempts: 0, parked: false };
  gateway.cluster = {
    instances: [
      instance('a', true, [report('partitioner of g', 2), report('view of g', 1)]),
      instance('b', false, [report(worker, 1)]),
      // Of another version, which says nothing of itself.
      { ...instance('c', true, []), fields: {} },
      instance('d', true, [{ ...report(worker, 1), problem }]),
    ],
    tasks: [
      { key: `${id}.partitioner.1`, name: 'partitioner of g', role: 'partitioner', owner: 'a', ...lease },
      { key: `${id}.view.1`, name: 'snapshots of the view of g', role: 'gateway', owner: 'a', ...lease },
      {
        key: `${id}.worker.1.0`,
        name: worker,
        role: 'worker',
        owner: 'b',
        ...lease,
        attempts: 5,
        parked: true,
      },
      { key: `${id}.worker.1.1`, name: worker, role: 'worker', owner: 'd', ...lease },
      { key: `${id}.worker.1.2`, name: worker, role: 'worker', owner: null, ...lease },
      { key: 'another.worker.1.0', name: 'of a graph that is gone', role: 'worker', owner: null, ...lease },
    ],
  };
  const { tasks } = await gateway.get<Cluster>('/v1/cluster', Cluster);
  expect(tasks).toEqual([
    { ...taskOf('partitioner of g', 'partitioner', 'a'), state: 'running', position: 2, lag: 0 },
    { ...taskOf('snapshots of the view of g', 'gateway', 'a'), state: 'running', position: 1, lag: 1 },
    // What a dead instance reported says nothing of now.
    { ...taskOf(worker, 'worker', 'b'), attempts: 5, parked: true },
    { ...taskOf(worker, 'worker', 'd'), state: 'running', position: 1, lag: 1, problem },
    taskOf(worker, 'worker', null),
  ]);

  function taskOf(task: string, role: string, owner: string | null): object {
    return { graph: 'g', task, role, owner, ...lease };
  }
});

test('/metrics tells the newest verified snapshot, and how many instances live', async () => {
  const { id } = (await gateway.graph('g', 1)).config;
  const records = new SnapshotRecords(gateway.kv, id);
  expect(await scrape()).not.toContain('watershed_snapshot_sequence{');
  for (const [barrier, sequence] of [
    [1, 10],
    [2, 20],
    [3, 30],
  ] as const) {
    await records.create('manifest', String(barrier), manifest(barrier, sequence));
  }
  await records.create('verified', '2', { chunks: 3 });
  const status = { roles: [], leaving: false, lastSeenMs: 0, fields: {} };
  gateway.cluster = {
    instances: [
      { ...status, name: 'a', live: true },
      { ...status, name: 'b', live: false },
    ],
    tasks: [],
  };
  const metrics = await scrape();
  expect(metrics).toContain('watershed_snapshot_sequence{graph="g"} 20');
  expect(metrics).toContain('watershed_snapshot_bytes{graph="g"} 2000');
  expect(metrics).toContain('watershed_cluster_instances 1');
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
  const partitioner = new Partitioner({ graphId: id, generation: 1, partitions, after: 0 });
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
  for (const [partition, frames] of partitioner.cut(NO_MARK).payloads.slice(0, partitions).entries()) {
    const log = partsLog('g', 1, partition);
    await gateway.bus.create(log.stream, { subjects: [log.subject], discard: 'new', denyDelete: false });
    for (const frame of frames) await gateway.bus.append(log, frame, {});
  }
}
