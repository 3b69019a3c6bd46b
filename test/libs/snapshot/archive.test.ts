import { beforeEach, expect, test } from 'vitest';
import { MemoryKv } from '../../../libs/bus/memory-kv.ts';
import { newGraphConfig } from '../../../libs/dataflow/graph-config.ts';
import {
  type Archive,
  archiveText,
  cloneConfig,
  copyChunks,
  damagesOf,
  findSnapshot,
  readArchive,
  recordBase,
} from '../../../libs/snapshot/archive.ts';
import { allParts, type Manifest, SnapshotRecords } from '../../../libs/snapshot/records.ts';
import { MemoryChunks } from '../../../libs/store/memory-chunks.ts';
import { manifest } from '../../support/manifest.ts';
import { realClock } from '../../support/memory-pipeline.ts';

const GRAPH = newGraphConfig(
  { name: 'g', id: '00', created: '2026-01-01T00:00:00.000Z' },
  { partitions: 3, replicas: 3, snapshots: { interval: 7 }, purgeEdges: true },
);

let store: MemoryChunks;
let snapshot: Manifest;
let shared: string;

/** Parts that have a chunk in common. */
beforeEach(async () => {
  store = new MemoryChunks(realClock);
  shared = await store.put(bytes('shared'));
  const parts = [];
  for (const task of ['partitioner', 'view', 'worker-0']) {
    const names = [shared, await store.put(bytes(`of ${task}`))];
    const index = await store.put(bytes(JSON.stringify(names)));
    parts.push({
      task,
      barrier: 4,
      sequence: 40,
      generation: 1,
      index,
      chunks: 2,
      bytes: 9,
      newBytes: 9,
      inputs: [],
    });
  }
  snapshot = manifest(4, 40, { partitions: 1, parts });
});

function bytes(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

test('an archive comes back as it was written', () => {
  const archive = { graph: GRAPH, manifest: snapshot };
  expect(readArchive(archiveText(archive))).toEqual(archive);
});

test('an archive that says what cannot be is refused, though its checksum is right', () => {
  const refused = (graph: object, changes: object = {}): void => {
    const archive = { graph: { ...GRAPH, ...graph }, manifest: { ...snapshot, ...changes } };
    expect(() => readArchive(archiveText(archive as Archive))).toThrow(/says what cannot be/);
  };
  refused({ partitions: 1_000_000 });
  refused({ snapshots: { interval: -1, keep: 2 } });
  refused({ snapshots: { interval: 60, keep: 0 } });
  refused({ purgeEdges: 'yes' });
  refused({}, { barrier: '*' });
  refused({}, { parts: {} });
  refused({}, { parts: [...snapshot.parts.slice(1), { ...snapshot.parts[0]!, task: '>' }] });
  refused({}, { parts: [...snapshot.parts.slice(1), { ...snapshot.parts[0]!, index: '../x' }] });
});

test('an archive that is damaged, of a newer format, or none, is refused with the reason', () => {
  const text = archiveText({ graph: GRAPH, manifest: snapshot });
  const refusals: [string, RegExp][] = [
    [text.slice(0, -10), /damaged: it is no JSON/],
    [text.replace('"sequence": 40', '"sequence": 41'), /damaged: its checksum/],
    [text.replace('"checksum": "', '"checksum": "0'), /damaged: its checksum/],
    [text.replace('"format": 1', '"format": 2'), /format 2.*formats through 1/],
    ['{}', /not the record of an exported snapshot/],
    ['null', /not the record of an exported snapshot/],
  ];
  for (const [refused, reason] of refusals) {
    expect(refused).not.toBe(text);
    expect(() => readArchive(refused)).toThrow(reason);
  }
});

test('a snapshot is found by its number or its name', () => {
  const manifests = [manifest(12, 9, { name: 'a' }), manifest(1, 2)];
  expect(findSnapshot(manifests, '12')).toBe(manifests[0]);
  expect(findSnapshot(manifests, 'a')).toBe(manifests[0]);
  expect(findSnapshot(manifests, '2')).toBeUndefined();
  expect(findSnapshot(manifests, 'b')).toBeUndefined();
});

test('all chunks of a snapshot are copied, each once, and are enough', async () => {
  const copy = new MemoryChunks(realClock);
  expect(await copyChunks(store, copy, snapshot)).toMatchObject({ chunks: 7 });
  expect(await damagesOf(copy, snapshot, new Set())).toEqual([]);
  expect((await copy.list()).map(({ name }) => name).sort()).toEqual(
    (await store.list()).map(({ name }) => name).sort(),
  );
});

test('every chunk that is missing or damaged is named, an index too, and nothing of it is copied', async () => {
  const names = (await store.list()).map(({ name }) => name).sort();
  for (const [at, name] of names.entries()) {
    const damaged = new MemoryChunks(realClock);
    await copyChunks(store, damaged, snapshot);
    if (at % 2 === 0) damaged.damage(at, 3);
    else damaged.lose(at);
    const state = at % 2 === 0 ? 'damaged' : 'missing';
    const damages = await damagesOf(damaged, snapshot, new Set());
    // A chunk of all parts is named with both.
    expect(damages).toHaveLength(name === shared ? 3 : 1);
    expect(damages[0]).toMatch(new RegExp(`^part (partitioner|view|worker-0): chunk ${name} is ${state}$`));
    await expect(copyChunks(damaged, new MemoryChunks(realClock), snapshot)).rejects.toThrow(damages[0]);
  }
});

test('what was read whole is not read again', async () => {
  const whole = new Set<string>();
  await damagesOf(store, snapshot, whole);
  expect(whole.size).toBe(7);
  const reads: string[] = [];
  const get = store.get.bind(store);
  store.get = async (name) => {
    reads.push(name);
    return await get(name);
  };
  await damagesOf(store, snapshot, whole);
  expect(reads.filter((name) => !snapshot.parts.some(({ index }) => index === name))).toEqual([]);
});

test('a clone goes on behind the snapshot, with the settings of its graph and a base of its own', async () => {
  const identity = { name: 'h', id: '11', created: '2026-01-02T00:00:00.000Z' };
  const archive = { graph: GRAPH, manifest: snapshot };
  const config = cloneConfig(identity, archive, {}, 'base');
  expect(config).toEqual({
    ...GRAPH,
    ...identity,
    generations: [{ generation: 1, partitions: 3, after: 40, partitioner: GRAPH.partitioner }],
    base: { graphId: 'base', barrier: 4 },
  });
  expect(cloneConfig(identity, archive, { partitions: 5, replicas: 1 }, 'base')).toMatchObject({
    partitions: 5,
    replicas: 1,
    generations: [{ partitions: 5 }],
  });
  const byDegree = { ...GRAPH, partitioner: { algorithm: 'dbh' as const } };
  expect(cloneConfig(identity, { graph: byDegree, manifest: snapshot }, {}, 'base')).toMatchObject({
    partitioner: { algorithm: 'dbh' },
    generations: [{ partitioner: { algorithm: 'dbh' } }],
  });
  const kv = new MemoryKv();
  await recordBase(kv, 'base', snapshot);
  expect(await new SnapshotRecords(kv, 'base').get('manifest', '4')).toEqual(snapshot);
  expect(await allParts(kv)).toEqual(snapshot.parts);
});
