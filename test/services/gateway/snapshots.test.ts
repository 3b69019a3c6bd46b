import { afterEach, beforeEach, expect, test } from 'vitest';
import { Graph } from '../../../libs/api/graph.ts';
import { Snapshot, SnapshotList } from '../../../libs/api/snapshot.ts';
import { edgesLog, forestLog, partsLog, SNAPSHOTS_BUCKET } from '../../../libs/dataflow/names.ts';
import { type Manifest, SnapshotRecords } from '../../../libs/snapshot/records.ts';
import { expectSchema, TestGateway } from '../../support/gateway.ts';
import { manifest } from '../../support/manifest.ts';

let gateway: TestGateway;
let records: SnapshotRecords;
let id: string;
beforeEach(async () => {
  gateway = await TestGateway.start();
  id = (await gateway.graph('g')).config.id;
  records = new SnapshotRecords(gateway.kv, id);
});
afterEach(async () => await gateway.close());

const ON_G = '/v1/graphs/g/snapshots';

/** What the partitioner and the keeper leave behind. */
async function store(snapshot: Manifest, isVerified = true): Promise<void> {
  const at = String(snapshot.barrier);
  const { barrier, sequence, generation, partitions, name, request } = snapshot;
  const record = { barrier, sequence, generation, partitions };
  await records.put('barrier', at, { ...record, ...(name && { name }), ...(request && { request }) });
  await records.put('manifest', at, snapshot);
  if (isVerified) await records.put('verified', at, { chunks: 1 });
}

/** Answers each request as it comes, in the way of the keeper; gives how to stop. */
function keeper(answer: (request: string, name: string | undefined) => Promise<void>): () => Promise<void> {
  let isOver = false;
  const running = (async () => {
    while (!isOver) {
      for (const { at, value } of (await records.read()).requests) {
        await answer(at[0]!, value.name);
        await records.remove('request', at[0]!);
      }
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  })();
  return async () => {
    isOver = true;
    await running;
  };
}

async function post(url: string, payload?: object) {
  return await gateway.app.inject({ method: 'POST', url, ...(payload === undefined ? {} : { payload }) });
}

test('GET lists the snapshots that have a manifest, newest first', async () => {
  expect(await gateway.get(ON_G, SnapshotList)).toEqual({ snapshots: [] });
  await store(manifest(9, 90));
  await store(manifest(10, 100, { name: 'ten', time: '0' }), false);
  await records.put('barrier', '11', { barrier: 11, sequence: 110, generation: 1, partitions: 2 });
  expect(await gateway.get(ON_G, SnapshotList)).toEqual({
    snapshots: [
      {
        snapshot: 10,
        sequence: 100,
        time: null,
        generation: 1,
        partitions: 2,
        name: 'ten',
        digest: 'd',
        bytes: 10_000,
        newBytes: 10,
        verified: false,
      },
      {
        snapshot: 9,
        sequence: 90,
        time: '2026-01-01T00:00:00.123Z',
        generation: 1,
        partitions: 2,
        digest: 'd',
        bytes: 9000,
        newBytes: 9,
        verified: true,
      },
    ],
  });
});

test('GET shows one by its number or its name', async () => {
  await store(manifest(3, 30, { name: 'three' }));
  const byNumber = await gateway.get<Snapshot>(`${ON_G}/3`, Snapshot);
  expect(byNumber).toMatchObject({ snapshot: 3, name: 'three' });
  expect(await gateway.get(`${ON_G}/three`, Snapshot)).toEqual(byNumber);
  for (const which of ['4', '03', 'four'])
    expect((await gateway.problem(`${ON_G}/${which}`, 'unknown-snapshot')).detail).toContain(`"${which}"`);
  await gateway.problem(`${ON_G}/Three`, 'bad-request');
  await gateway.problem('/v1/graphs/nope/snapshots', 'unknown-graph');
});

test('POST waits for the snapshot that answers it, until all of it was read back', async () => {
  await store(manifest(1, 5));
  const stop = keeper(async (request, name) => {
    await store(manifest(2, 7, { request, ...(name && { name }) }), false);
    setTimeout(() => void records.put('verified', '2', { chunks: 1 }), 100);
  });
  const response = await post(ON_G, { name: 'kept' });
  await stop();
  expect(response.statusCode, response.body).toBe(201);
  expectSchema(Snapshot, response.json());
  expect(response.json()).toMatchObject({ snapshot: 2, sequence: 7, name: 'kept', verified: true });
});

test('POST without a body takes one without a name', async () => {
  const stop = keeper((request) => store(manifest(1, 5, { request })));
  const response = await post(ON_G);
  await stop();
  expect(response.statusCode).toBe(201);
  expect(response.json()).not.toHaveProperty('name');
});

test('POST says that it goes on where the snapshot is not there in time', async () => {
  const url = `${ON_G}?timeout=0`;
  const problem = await gateway.problem({ method: 'POST', url }, 'not-yet');
  expect(problem.detail).toContain('it was asked for, and goes on');
  expect(problem.headers['retry-after']).toBe('1');
  expect((await records.read()).requests).toHaveLength(1);
  const stop = keeper(async (request) => {
    await records.put('barrier', '4', { barrier: 4, sequence: 1, generation: 1, partitions: 2, request });
  });
  const begun = await gateway.problem({ method: 'POST', url: `${ON_G}?timeout=0.3` }, 'not-yet');
  await stop();
  expect(begun.detail).toContain('begun as snapshot 4');
});

test('POST refuses a name that a snapshot has, or that was asked for, and asks for nothing', async () => {
  await store(manifest(1, 5, { name: 'taken' }));
  await records.put('barrier', '2', { barrier: 2, sequence: 1, generation: 1, partitions: 2, name: 'begun' });
  await records.put('request', 'r', { name: 'wanted' });
  for (const name of ['taken', 'begun', 'wanted']) {
    const problem = await gateway.problem({ method: 'POST', url: ON_G, payload: { name } }, 'name-taken');
    expect(problem.detail).toContain(`"${name}"`);
  }
  expect((await records.read()).requests).toHaveLength(1);
});

test('of two requests for one name at the same time one is refused', async () => {
  const both = [0, 1].map(() => post(`${ON_G}?timeout=0`, { name: 'twice' }));
  const codes = (await Promise.all(both)).map((response) => response.json<{ code: string }>().code);
  expect(codes.sort()).toEqual(['name-taken', 'not-yet']);
  expect((await records.read()).requests).toHaveLength(1);
});

test.each(['12', 'A', '-a', '', 'a'.repeat(64)])('a snapshot cannot be named "%s"', async (name) => {
  const problem = await gateway.problem({ method: 'POST', url: ON_G, payload: { name } }, 'bad-request');
  expect(problem.errors?.[0]?.pointer).toBe('/body/name');
});

test.each(['61', '-1', 'x'])('POST cannot wait for %s s', async (timeout) => {
  await gateway.problem({ method: 'POST', url: `${ON_G}?timeout=${timeout}` }, 'bad-request');
});

test('DELETE takes a name away, so that the snapshot goes in its turn', async () => {
  await store(manifest(1, 5, { name: 'old' }));
  await store(manifest(2, 6));
  const response = await gateway.app.inject({ method: 'DELETE', url: `${ON_G}/old` });
  expect(response.statusCode).toBe(204);
  const { barriers, manifests } = await records.read();
  expect(barriers.map(({ name }) => name)).toEqual([undefined, undefined]);
  expect(manifests).toEqual([manifest(2, 6), manifest(1, 5)]);
  const problem = await gateway.problem({ method: 'DELETE', url: `${ON_G}/2` }, 'bad-request');
  expect(problem.detail).toContain('goes by itself');
  await gateway.problem({ method: 'DELETE', url: `${ON_G}/old` }, 'unknown-snapshot');
});

test('what needs NATS says that NATS is away', async () => {
  gateway.kv.onCall = () => 'lost-before';
  await gateway.problem(ON_G, 'nats-unavailable');
  await gateway.problem({ method: 'POST', url: ON_G }, 'nats-unavailable');
});

test('DELETE of a graph removes its snapshots, and the one that it began with', async () => {
  await store(manifest(1, 5));
  const base = new SnapshotRecords(gateway.kv, 'base');
  await base.put('manifest', '7', manifest(7, 70));
  const other = new SnapshotRecords(gateway.kv, 'other');
  await other.put('manifest', '1', manifest(1, 5));
  beginWith('base', 7);
  expect((await gateway.app.inject({ method: 'DELETE', url: '/v1/graphs/g' })).statusCode).toBe(204);
  const left = await gateway.kv.list(SNAPSHOTS_BUCKET, '');
  expect(left.map(({ key }) => key)).toEqual(['other.manifest.1']);
});

/** The graph's record says that it began with this snapshot. */
function beginWith(graphId: string, barrier: number): void {
  const config = gateway.registry.records.get('g')!;
  gateway.registry.records.set('g', { ...config, base: { graphId, barrier } });
}

const REBUILD = '/v1/graphs/g/rebuild';

/** EDGES holds messages `first` to `last`. */
async function fill(first: number, last: number): Promise<void> {
  const { stream, subject } = edgesLog('g');
  await gateway.bus.remove(stream);
  await gateway.bus.create(stream, {
    subjects: [subject],
    discard: 'new',
    denyDelete: true,
    firstSequence: first,
  });
  for (let sequence = first; sequence <= last; sequence++)
    await gateway.bus.append(edgesLog('g'), new Uint8Array(1), {});
}

test('POST rebuild begins a new generation with the newest snapshot that was read back, and removes the old logs', async () => {
  await fill(1, 9);
  await store(manifest(1, 5));
  await store(manifest(2, 7));
  await store(manifest(3, 8), false);
  const old = [partsLog('g', 1, 1), forestLog('g', 1, 0)];
  for (const { stream, subject } of old)
    await gateway.bus.create(stream, { subjects: [subject], discard: 'new', denyDelete: false });
  const response = await post(REBUILD);
  expect(response.statusCode, response.body).toBe(200);
  expectSchema(Graph, response.json());
  expect(response.json()).toMatchObject({ generation: 2 });
  expect(gateway.registry.records.get('g')).toMatchObject({
    generations: [{ generation: 2, partitions: 2, after: 7 }],
    origin: 2,
    base: { graphId: id, barrier: 2 },
  });
  for (const { stream } of old) expect(await gateway.bus.describe(stream)).toBeUndefined();
});

test('POST rebuild goes on from the snapshot that is named, or from the start', async () => {
  await fill(1, 9);
  await store(manifest(1, 5));
  await store(manifest(2, 7));
  expect((await post(REBUILD, { snapshot: 1 })).statusCode).toBe(200);
  expect(gateway.registry.records.get('g')).toMatchObject({
    generations: [{ generation: 2, after: 5 }],
    base: { barrier: 1 },
  });
  expect((await post(REBUILD, { from: 'start' })).statusCode).toBe(200);
  const { base, generations } = gateway.registry.records.get('g')!;
  expect(base).toBeUndefined();
  expect(generations).toEqual([
    { generation: 3, partitions: 2, after: 0, partitioner: { algorithm: 'hash' } },
  ]);
});

test('POST rebuild without any snapshot begins with the first message', async () => {
  expect((await post(REBUILD, {})).statusCode).toBe(200);
  expect(gateway.registry.records.get('g')!.generations).toEqual([
    { generation: 2, partitions: 2, after: 0, partitioner: { algorithm: 'hash' } },
  ]);
  const problem = await gateway.problem(
    { method: 'POST', url: REBUILD, payload: { from: 'snapshot' } },
    'cannot-rebuild',
  );
  expect(problem.detail).toContain('no snapshot that was read back');
});

test('POST rebuild refuses what EDGES does not go on from', async () => {
  await store(manifest(1, 5));
  await store(manifest(2, 9));
  await fill(7, 8);
  const refusal = async (payload: object) =>
    (await gateway.problem({ method: 'POST', url: REBUILD, payload }, 'cannot-rebuild')).detail;
  expect(await refusal({ from: 'start' })).toMatch(/begins with message 7.*choose a snapshot/);
  expect(await refusal({ snapshot: 1 })).toMatch(/begins with message 7.*snapshot 1, at message 5.*newer/);
  expect(await refusal({ snapshot: 2 })).toMatch(/ends with message 8, before snapshot 2, at message 9/);
  await gateway.bus.remove(edgesLog('g').stream);
  expect(await refusal({ from: 'start' })).toContain('there is no stream');
  await gateway.problem({ method: 'POST', url: REBUILD, payload: { snapshot: 3 } }, 'unknown-snapshot');
  await gateway.problem(
    { method: 'POST', url: REBUILD, payload: { from: 'start', snapshot: 1 } },
    'bad-request',
  );
  await gateway.problem({ method: 'POST', url: '/v1/graphs/nope/rebuild' }, 'unknown-graph');
});

test('POST rebuild of a graph that began with another one: its start is that snapshot', async () => {
  const base = new SnapshotRecords(gateway.kv, 'base');
  await base.put('manifest', '7', manifest(7, 70));
  beginWith('base', 7);
  await fill(71, 75);
  expect((await post(REBUILD, { from: 'start' })).statusCode).toBe(200);
  expect(gateway.registry.records.get('g')).toMatchObject({
    generations: [{ generation: 2, after: 70 }],
    origin: 2,
    base: { graphId: 'base', barrier: 7 },
  });
  // With a snapshot of its own it needs the other one no longer.
  await store(manifest(1, 72));
  expect((await post(REBUILD)).statusCode).toBe(200);
  expect(gateway.registry.records.get('g')).toMatchObject({ base: { graphId: id, barrier: 1 } });
  expect((await base.read()).manifests).toEqual([]);
});
