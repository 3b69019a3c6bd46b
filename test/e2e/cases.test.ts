/**
 * The public cases of ../shared/cases that need no deletions, each on all surfaces that it
 * names: loaded by the program, published over NATS by a client of its own (as one message, and as one message per
 * edge), asked over HTTP by path and by query, and asked again after a kill -9 of all instances. A case stands for a
 * kind of fault, so each tries a few more inputs of its kind.
 *
 * The fixtures are small and their licences allow no copy here: without the folder the suite is skipped.
 */
import { existsSync, readFileSync } from 'node:fs';
import { readdir, rm, stat, truncate, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { jetstreamManager } from '@nats-io/jetstream';
import { tableFromArrays, tableToIPC } from 'apache-arrow';
import { connect, type NatsConnection } from 'nats';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { ComponentsPage, MembersPage } from '../../libs/api/component.ts';
import type { Appended } from '../../libs/api/edges.ts';
import type { GraphStatus } from '../../libs/api/graph.ts';
import type { Partitions } from '../../libs/api/partitioner.ts';
import type { ExportRow } from '../../libs/api/vertex.ts';
import { connectNats } from '../../libs/bus/nats-bus.ts';
import { NatsKv } from '../../libs/bus/nats-kv.ts';
import { FrameColumns, readFrame } from '../../libs/dataflow/frame.ts';
import { SnapshotRecords } from '../../libs/snapshot/records.ts';
import { EXIT } from '../../services/cli/exit.ts';
import type { LoadFlags } from '../../services/cli/load/load-options.ts';
import { answered, DATA_FOLDER, hasDataFiles } from '../support/data-files.ts';
import { LiveGraph } from '../support/live-graph.ts';
import { type LiveLoad, liveLoad } from '../support/live-load.ts';
import { seeded } from '../support/seeded.ts';
import { Cluster, PROGRAM, run, until } from './harness/cluster.ts';

const FOLDER = fileURLToPath(new URL('../../../shared/cases/', import.meta.url));
const INSTANCES = ['pipeline', 'worker', 'gateway'];

interface Edge {
  readonly source: string;
  readonly target: string;
}

type Pair = readonly [source: string, target: string];

/** Edges in a format that files and messages have in common. */
interface Content {
  readonly format: 'csv' | 'ndjson';
  /** One edge each, bytes as they are; of CSV without the header. */
  readonly records: readonly string[];
  /** The file that holds them; without one they are given to the program as its input. */
  readonly path?: string;
}

const HEADER = 'source,target';
const CONTENT_TYPES = { csv: 'text/csv', ndjson: 'application/x-ndjson' };

/** A graph that got the content in one of the ways there are. */
interface Filled {
  readonly way: string;
  readonly graph: LiveGraph;
  readonly edges: number;
  readonly refused: number;
  /** Why, in order. */
  readonly reasons: readonly string[];
  /** What the program said, if it was the way. */
  readonly load: LiveLoad | undefined;
}

function fixture(name: string): Content {
  const lines = readFileSync(FOLDER + name, 'utf8')
    .split(/\r?\n/)
    .filter((line) => line !== '');
  return name.endsWith('.csv')
    ? { format: 'csv', records: lines.slice(1), path: FOLDER + name }
    : { format: 'ndjson', records: lines, path: FOLDER + name };
}

function ndjson(pairs: readonly Pair[]): Content {
  return { format: 'ndjson', records: pairs.map(([source, target]) => JSON.stringify({ source, target })) };
}

function csv(pairs: readonly Pair[]): Content {
  const quoted = (id: string): string => `"${id.replaceAll('"', '""')}"`;
  return { format: 'csv', records: pairs.map((pair) => pair.map(quoted).join(',')) };
}

/** Each id with a partner of its own: two ids that are taken for one make a component of more than two. */
function partnered(ids: readonly string[]): Pair[] {
  return ids.map((id, at) => [id, `partner-${at}`]);
}

function textOf({ format, records }: Content): string {
  return `${[...(format === 'csv' ? [HEADER] : []), ...records].join('\n')}\n`;
}

function sorted(sets: readonly (readonly string[])[]): string[][] {
  return sets
    .map((members) => [...members].sort())
    .sort((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1));
}

async function memberSets(graph: LiveGraph): Promise<string[][]> {
  return sorted((await graph.components()).map(({ members }) => members));
}

describe.skipIf(!existsSync(FOLDER))('public cases:', () => {
  let cluster: Cluster;
  let connection: NatsConnection;
  let graphs: LiveGraph[] = [];
  let count = 0;

  beforeAll(async () => {
    cluster = await Cluster.create();
    startInstances(cluster);
    connection = await connect({
      servers: cluster.nats.url,
      maxReconnectAttempts: -1,
      reconnectTimeWait: 100,
    });
    await cluster.ready();
  });

  afterEach(async () => {
    await Promise.all(graphs.map((graph) => graph.remove()));
    graphs = [];
  });

  afterAll(async () => {
    await connection?.close();
    await cluster?.stop();
  });

  function startInstances(of: Cluster): void {
    of.start('pipeline', ['--roles', 'partitioner,worker']);
    of.start('worker', ['--roles', 'worker']);
    of.start('gateway', ['--roles', 'gateway']);
  }

  async function newGraph(partitions: number): Promise<LiveGraph> {
    const graph = await LiveGraph.create(cluster, connection, `case-${count++}`, partitions);
    graphs.push(graph);
    return graph;
  }

  async function load(
    graph: LiveGraph,
    content: Content | string,
    flags: LoadFlags = {},
    input?: string | Uint8Array,
  ): Promise<LiveLoad> {
    const path = typeof content === 'string' ? content : (content.path ?? '-');
    const text = typeof content === 'string' || content.path !== undefined ? input : textOf(content);
    const loaded = await liveLoad(cluster, graph.name, [path], flags, text);
    graph.last = Math.max(graph.last, loaded.summary.sequence?.last ?? 0);
    return loaded;
  }

  async function loadText(
    graph: LiveGraph,
    text: string | Uint8Array,
    flags: LoadFlags = {},
  ): Promise<LiveLoad> {
    return await load(graph, '-', flags, text);
  }

  /** Brings the content into three graphs, one for each way, and looks at each. */
  async function everyWay(content: Content, look: (filled: Filled) => Promise<void>): Promise<LiveGraph[]> {
    const filled = await Promise.all([loadedBy(content), inOneMessage(content), inManyMessages(content)]);
    for (const one of filled) {
      await look(one).catch((error: unknown) => {
        if (error instanceof Error) error.message = `${one.way}: ${error.message}`;
        throw error;
      });
    }
    return filled.map(({ graph }) => graph);
  }

  async function loadedBy(content: Content): Promise<Filled> {
    const graph = await newGraph(4);
    const loaded = await load(graph, content);
    const { edges, refused, reasons } = loaded.summary;
    expect((await graph.status()).totals).toMatchObject({ edges, rejected: 0 });
    return {
      way: 'watershed load',
      graph,
      edges,
      refused,
      reasons: reasons.map(({ reason }) => reason),
      load: loaded,
    };
  }

  async function inOneMessage(content: Content): Promise<Filled> {
    const graph = await newGraph(2);
    await graph.publish(textOf(content), CONTENT_TYPES[content.format]);
    return await published('one NATS message', graph);
  }

  async function inManyMessages({ format, records }: Content): Promise<Filled> {
    const graph = await newGraph(1);
    for (const record of records) {
      if (format === 'csv') await graph.publish(`${HEADER}\n${record}\n`, CONTENT_TYPES.csv);
      // As people type it: `nats pub` sends no Content-Type.
      else await graph.publish(record);
    }
    return await published('a NATS message per edge', graph);
  }

  async function published(way: string, graph: LiveGraph): Promise<Filled> {
    const { edges, rejected } = (await graph.status()).totals;
    const rejects = await graph.rejects();
    expect(rejects.reduce((sum, reject) => sum + reject.count, 0)).toBe(rejected);
    const reasons = rejects.flatMap((reject) => reject.reasons.map(({ reason }) => reason));
    return { way, graph, edges, refused: rejected, reasons, load: undefined };
  }

  /** All instances die at once and come back. */
  async function restartAll(): Promise<void> {
    await Promise.all(INSTANCES.map((name) => cluster.kill9(name)));
    for (const name of INSTANCES) await cluster.restart(name);
    await cluster.ready();
  }

  async function expectSets(filled: Filled, expected: readonly (readonly string[])[]): Promise<void> {
    expect(await memberSets(filled.graph)).toEqual(sorted(expected));
  }

  async function expectApart(content: Content, ids: readonly string[]): Promise<LiveGraph[]> {
    return await everyWay(content, async (filled) => {
      expect(filled.refused).toBe(0);
      await expectSets(filled, partnered(ids));
    });
  }

  it('H01: blanks at the ends of an id are part of it, in every format, unless trimming is asked for', async () => {
    const expected: Pair[] = [
      ['x ', 'p'],
      ['x', 'q'],
      ['y', 'r'],
      [' y', 's'],
    ];
    for (const content of [fixture('H01_trailing_space.csv'), ndjson(expected)]) {
      await everyWay(content, async (filled) => {
        expect(filled).toMatchObject({ edges: 4, refused: 0 });
        await expectSets(filled, expected);
      });
    }
    const graph = await newGraph(3);
    const trimmed = await load(graph, fixture('H01_trailing_space.csv'), { trim: true });
    expect(trimmed.status).toBe(EXIT.done);
    expect(await memberSets(graph)).toEqual(
      sorted([
        ['x', 'p', 'q'],
        ['y', 'r', 's'],
      ]),
    );
  });

  it('H01: no white space of Unicode at an end, and no case, makes two ids one', async () => {
    const ids = [
      'k',
      'k ',
      ' k',
      'k  ',
      'k\t',
      'k\u00a0',
      'k\u3000',
      'k\u200b',
      '\ufeffk',
      'k\r',
      'k\n',
      'K',
    ];
    await expectApart(csv(partnered(ids)), ids);
    await expectApart(ndjson(partnered(ids)), ids);
  });

  it('H02: no id is read as a number; a JSON number is the text of its digits', async () => {
    await everyWay(fixture('H02_leading_zero.csv'), async (filled) => {
      expect(filled).toMatchObject({ edges: 4, refused: 0 });
      await expectSets(filled, [
        ['01', 'a'],
        ['1', 'b'],
        ['001', 'c'],
        ['1.0', 'd'],
      ]);
    });
    await everyWay(fixture('H02_leading_zero.ndjson'), async (filled) => {
      expect(filled).toMatchObject({ edges: 5, refused: 0 });
      await expectSets(filled, [
        ['01', 'a'],
        ['1', 'b', 'z'],
        ['001', 'c'],
        ['1.0', 'd'],
      ]);
    });
  });

  it('H02: texts that look like one number, boolean or date stay different ids', async () => {
    const numbers = [
      '0',
      '00',
      '-0',
      '+0',
      '0.0',
      '1e3',
      '1E3',
      '1000',
      '1,000',
      '1_000',
      '0x10',
      '16',
      '016',
    ];
    const ids = [
      ...numbers,
      '١',
      '1',
      'true',
      'TRUE',
      '1.',
      '.5',
      '0.5',
      'NaN',
      'nan',
      '2020-01-01',
      '2020-1-1',
    ];
    await expectApart(csv(partnered(ids)), ids);
    await expectApart(ndjson(partnered(ids)), ids);
    const written = ['1.0', '1e0', '-0', '1.5', '1E3'].map((number) => `{"source":${number},"target":"t"}`);
    await everyWay(
      { format: 'ndjson', records: [...written, '{"source":"s","target":7}'] },
      async (filled) => {
        expect(filled).toMatchObject({ edges: 1, refused: 5 });
        for (const reason of filled.reasons) expect(reason).toContain('quote it');
        await expectSets(filled, [['s', '7']]);
      },
    );
  });

  it('H03: ids of 64 bits keep every digit; a bare JSON number that a double cannot hold is refused', async () => {
    const ids = ['9280805980001101', '9280805980001100', '727189530466459649', '727189530466459600'];
    await everyWay(fixture('H03_bigint.csv'), async (filled) => {
      expect(filled.refused).toBe(0);
      await expectSets(
        filled,
        ids.map((id, at) => [id, 'abcd'[at]!]),
      );
    });
    await everyWay(fixture('H03_bigint.ndjson'), async (filled) => {
      expect(filled).toMatchObject({ edges: 0, refused: 4 });
      expect(filled.reasons.map((reason) => /\d{16,}/.exec(reason)?.[0])).toEqual(ids);
      await expectSets(filled, []);
      for (const id of ids) await filled.graph.expectUnknown(id);
      if (filled.load !== undefined) {
        expect(filled.load.status).toBe(EXIT.failed);
        expect(filled.load.summary.reasons.map(({ place }) => place)).toEqual(
          ids.map((_, at) => `line ${at + 1}`),
        );
      }
    });
  });

  it('H03: at the very edge of the safe integers, and beyond, in JSON, CSV and Arrow', async () => {
    const safe = ['9007199254740991', '-9007199254740991'];
    const beyond = ['9007199254740992', '9007199254740993', '18446744073709551615', '9007199254740991.4'];
    const records = [...safe, ...beyond].map((number, at) => `{"source":${number},"target":"partner-${at}"}`);
    await everyWay({ format: 'ndjson', records }, async (filled) => {
      expect(filled).toMatchObject({ edges: safe.length, refused: beyond.length });
      await expectSets(filled, partnered(safe));
    });
    const ids = [...safe, ...beyond, '9223372036854775807', '9223372036854775806'];
    await expectApart(csv(partnered(ids)), ids);
    const integers = [2n ** 53n, 2n ** 53n + 1n, -(2n ** 63n), 2n ** 63n - 1n, 2n ** 63n - 2n];
    const pairs = partnered(integers.map(String));
    const table = tableFromArrays({
      source: BigInt64Array.from(integers),
      target: pairs.map(([, target]) => target),
    });
    const graph = await newGraph(2);
    await graph.publish(tableToIPC(table, 'stream'), 'application/vnd.apache.arrow.stream');
    expect(await memberSets(graph)).toEqual(sorted(pairs));
    const file = await newGraph(4);
    await loadText(file, tableToIPC(table, 'file'));
    expect(await memberSets(file)).toEqual(sorted(pairs));
  });

  it('H04: ids are compared byte for byte, so no spelling of Unicode stands for another, before and after a restart', async () => {
    const expected = [
      ['Auditor\u00eda', 'a'],
      ['Auditori\u0301a', 'b'],
      ['\u00c5', 'c'],
      ['\u212b', 'd'],
    ];
    const alike = [
      'ﬁ',
      'fi',
      'Ⅳ',
      'IV',
      'ß',
      'ss',
      'SS',
      'İ',
      'i̇',
      'ı',
      'ｱ',
      'ア',
      '각',
      '\u1100\u1161\u11a8',
    ];
    const more = [
      ...alike,
      'ς',
      'σ',
      'a\u200db',
      'ab',
      '\ufffd',
      '\u{1f468}\u200d\u{1f469}',
      '\u{1f468}\u{1f469}',
    ];
    const spellings = await everyWay(fixture('H04_nfc_nfd.ndjson'), (filled) => expectSets(filled, expected));
    const others = await expectApart(ndjson(partnered(more)), more);
    await restartAll();
    for (const graph of spellings) expect(await memberSets(graph)).toEqual(sorted(expected));
    for (const graph of others) expect(await memberSets(graph)).toEqual(sorted(partnered(more)));
    for (const graph of spellings) await graph.expectUnknown('auditor\u00eda');
  });

  it('H05: __proto__, constructor and their like are ids and keys like any other, and pollute no process', async () => {
    // At its end each process says what its Object.prototype has got.
    const atExit =
      "const known=new Set(Reflect.ownKeys(Object.prototype));process.on('exit',()=>{const found=[];" +
      'for(const key of Reflect.ownKeys(Object.prototype))if(!known.has(key))found.push(String(key));' +
      "process.stderr.write('polluted:'+JSON.stringify(found)+String.fromCharCode(10))})";
    const before = process.env['NODE_OPTIONS'];
    process.env['NODE_OPTIONS'] =
      `${before ?? ''} --import=data:text/javascript,${encodeURIComponent(atExit)}`;
    const usual = cluster;
    const own = await Cluster.create();
    try {
      cluster = own;
      startInstances(own);
      await own.ready();
      const client = await connect({ servers: own.nats.url });
      const usualConnection = connection;
      connection = client;
      try {
        await everyWay(fixture('H05_proto.ndjson'), async (filled) => {
          expect(filled).toMatchObject({ edges: 4, refused: 0 });
          await expectSets(filled, [
            ['a', '__proto__', 'constructor'],
            ['hasOwnProperty', 'prototype'],
            ['p', 'q'],
          ]);
          if (filled.load !== undefined) expect(filled.load.stderr).toContain('polluted:[]');
        });
        await expectHostileKeys();
        await expectHostileGraphName();
      } finally {
        connection = usualConnection;
        await client.close();
      }
      for (const name of INSTANCES) {
        expect(await own.stopInstance(name)).toBe(0);
        expect(own.readLog(name).match(/polluted:.*/g)).toEqual(['polluted:[]']);
      }
    } finally {
      cluster = usual;
      graphs = [];
      if (before === undefined) delete process.env['NODE_OPTIONS'];
      else process.env['NODE_OPTIONS'] = before;
      await own.stop();
    }
  });

  /** Keys that would show in answers if they came to be everybody's. */
  async function expectHostileKeys(): Promise<void> {
    const poison = '{"polluted":1,"nextCursor":"poison","problem":"poison","through":"poison","op":"remove"}';
    const records = [
      `{"__proto__":${poison},"source":"p","target":"q"}`,
      `{"constructor":{"prototype":${poison}},"source":"q","target":"r"}`,
      `{"source":"s","target":"t","\\u005f_proto__":${poison}}`,
      `{"source":"toString","target":"valueOf","prototype":${poison}}`,
      `{"source":"__defineGetter__","target":"__lookupSetter__","__proto__":null}`,
      `{"source":"polluted","target":"isPrototypeOf"}`,
      `{"__proto__":{"source":"never","target":"seen"}}`,
    ];
    await everyWay({ format: 'ndjson', records }, async (filled) => {
      expect(filled).toMatchObject({ edges: 6, refused: 1 });
      await expectSets(filled, [
        ['p', 'q', 'r'],
        ['s', 't'],
        ['toString', 'valueOf'],
        ['__defineGetter__', '__lookupSetter__'],
        ['polluted', 'isPrototypeOf'],
      ]);
      await filled.graph.expectUnknown('__proto__');
      await filled.graph.expectUnknown('never');
    });
    const graph = await newGraph(2);
    await graph.publish('source,target,__proto__\n__proto__,constructor,1\n', 'text/csv');
    await load(graph, '-', {}, 'source,target,__proto__,constructor\nconstructor,valueOf,1,2\n');
    expect(await memberSets(graph)).toEqual([['__proto__', 'constructor', 'valueOf']]);
    const { url } = cluster;
    const response = await fetch(`${url}${graph.url}/edges`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: `{"__proto__":${poison},"source":"u","target":"v"}`,
    });
    expect(response.status).toBe(202);
    const lookup = await fetch(`${url}${graph.url}/vertices/lookup`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: `{"__proto__":${poison},"ids":["u"]}`,
    });
    expect([200, 400]).toContain(lookup.status);
    for (const query of ['__proto__=1', '__proto__[polluted]=1', 'constructor=1']) {
      expect((await fetch(`${url}${graph.url}/components?${query}`)).status).toBe(400);
    }
    for (const path of [
      '/v1/graphs',
      graph.url,
      `${graph.url}/components`,
      '/v1/cluster',
      '/readyz',
      '/metrics',
    ]) {
      const answer = await fetch(`${url}${path}`);
      expect(answer.status).toBe(200);
      expect(await answer.text()).not.toMatch(/polluted.*:|poison/);
    }
  }

  async function expectHostileGraphName(): Promise<void> {
    expect((await fetch(`${cluster.url}/v1/graphs/constructor`)).status).toBe(404);
    const graph = await LiveGraph.create(cluster, connection, 'constructor', 2);
    await graph.publish('{"source":"a","target":"b"}');
    expect(await memberSets(graph)).toEqual([['a', 'b']]);
    await graph.remove();
    expect((await fetch(`${cluster.url}/v1/graphs/constructor`)).status).toBe(404);
  }

  it('H06: null, nothing and the empty text are no ids and join nothing; blanks are an id', async () => {
    await everyWay(fixture('H06_null_empty.ndjson'), async (filled) => {
      expect(filled).toMatchObject({ edges: 2, refused: 4 });
      await expectSets(filled, [
        ['d', '   '],
        ['f', 'g'],
      ]);
      for (const id of ['a', 'b', 'c', 'e', 'null', 'undefined']) await filled.graph.expectUnknown(id);
      if (filled.load !== undefined) {
        expect(filled.load.status).toBe(EXIT.done);
        expect(filled.load.summary.reasons.map(({ place }) => place)).toEqual([
          'line 1',
          'line 2',
          'line 3',
          'line 5',
        ]);
      }
    });
    await everyWay(fixture('H06_null_empty.csv'), async (filled) => {
      expect(filled).toMatchObject({ edges: 1, refused: 4 });
      await expectSets(filled, [['f', 'g']]);
      if (filled.load !== undefined) {
        expect(filled.load.summary.reasons.map(({ place }) => place)).toEqual([
          'line 2',
          'line 3',
          'line 4',
          'line 5',
        ]);
      }
    });
  });

  it('H06: nor are booleans, objects, arrays and lines that hold no edge; the text "null" is an id', async () => {
    const records = [
      '{"source":true,"target":"a"}',
      '{"source":{"id":"x"},"target":"b"}',
      '{"source":["x"],"target":"c"}',
      '{"source":[],"target":"d"}',
      '{"target":"e"}',
      '{}',
      '{"source":null,"source":"twice","target":"last"}',
      '{"source":"null","target":"undefined"}',
    ];
    await everyWay({ format: 'ndjson', records }, async (filled) => {
      expect(filled).toMatchObject({ edges: 2, refused: 6 });
      await expectSets(filled, [
        ['twice', 'last'],
        ['null', 'undefined'],
      ]);
    });
    const graph = await newGraph(2);
    const loaded = await load(
      graph,
      csv([
        ['a', '\\N'],
        ['NULL', 'b'],
        ['c', 'nil'],
      ]),
      { null: ['nil'] },
    );
    expect(loaded.summary).toMatchObject({ edges: 1, refused: 2 });
    expect(await memberSets(graph)).toEqual([['NULL', 'b']]);
  });

  it('H07: a chain of 50,000 edges is one component, in any order, before and after a restart', {
    timeout: 120_000,
  }, async () => {
    const path = `${FOLDER}H07_chain_50000.tsv`;
    const lines = readFileSync(path, 'utf8').trimEnd().split('\n');
    const orders = { 'as it is': lines, reversed: lines.toReversed(), shuffled: shuffled(lines) };
    const chains: LiveGraph[] = [];
    for (const [at, order] of Object.values(orders).entries()) {
      const graph = await newGraph([1, 2, 4][at]!);
      const loaded = at === 0 ? await load(graph, path) : await loadText(graph, `${order.join('\n')}\n`);
      expect(loaded).toMatchObject({ status: EXIT.done, summary: { edges: 50_000, refused: 0 } });
      chains.push(graph);
    }
    for (const graph of chains) await expectChain(graph, 50_001);
    await restartAll();
    for (const graph of chains) await expectChain(graph, 50_001);
  });

  async function expectChain(graph: LiveGraph, vertices: number): Promise<void> {
    const { totals } = await graph.status();
    expect(totals).toMatchObject({ vertices, components: 1, edges: vertices - 1, rejected: 0 });
    const ends = await graph.connected('0', String(vertices - 1));
    expect(ends).toMatchObject({ connected: true, component: { size: vertices } });
    const members = await graph.members(ends.component!.id);
    expect(members).toHaveLength(vertices);
    expect(new Set(members).size).toBe(vertices);
    expect((await graph.vertex(String(vertices >> 1))).component).toEqual(ends.component);
  }

  it('H07: a chain of four times the length takes not much more than four times as long', {
    timeout: 120_000,
  }, async () => {
    const seconds: number[] = [];
    for (const length of [100_000, 400_000]) {
      const graph = await newGraph(1);
      const path = join(cluster.folder, `chain-${length}.tsv`);
      // The later vertex first: the order that made a deep tree of it.
      await writeFile(path, Array.from({ length }, (_, i) => `${i + 1}\t${i}\n`).join(''));
      const startedAt = performance.now();
      await load(graph, path);
      expect((await graph.status()).totals).toMatchObject({ vertices: length + 1, components: 1 });
      seconds.push((performance.now() - startedAt) / 1000);
    }
    console.log(
      `H07: chains of 100,000 and 400,000 edges: ${seconds.map((s) => s.toFixed(2)).join(' s, ')} s`,
    );
    expect(seconds[1]! / seconds[0]!).toBeLessThan(10);
  });

  it('H08: a self-loop makes its vertex known and changes no size; a vertex alone is a component', async () => {
    const path = Array.from({ length: 24 }, (_, at) => `n${at}`);
    await everyWay(fixture('H08_isolated_selfloop.ndjson'), async (filled) => {
      expect(filled).toMatchObject({ edges: 25, refused: 0 });
      expect((await filled.graph.status()).totals).toMatchObject({ vertices: 25, components: 2, edges: 25 });
      await expectSets(filled, [path, ['alone']]);
      expect((await filled.graph.vertex('alone')).component).toEqual({ id: 'alone', size: 1 });
    });
    const loops: Pair[] = [
      ['l', 'l'],
      ['l', 'l'],
      ['m', 'm'],
      ['m', 'o'],
      ['o', 'o'],
      ['m', 'm'],
      [' ', ' '],
    ];
    for (const content of [ndjson(loops), csv(loops)]) {
      await everyWay(content, async (filled) => {
        expect(filled).toMatchObject({ edges: 7, refused: 0 });
        await expectSets(filled, [['l'], ['m', 'o'], [' ']]);
      });
    }
  });

  it('H09: edges join against their direction, in every order of arrival, for 1, 2, 3 and 4 partitions', async () => {
    const chain = ['6', '2', '3', '4', '5', '1'];
    const edges = chain.slice(1).map((id, at): Pair => [chain[at]!, id]);
    for (const partitions of [1, 2, 3, 4]) {
      const graph = await newGraph(partitions);
      const loaded = await load(graph, `${FOLDER}H09_weak_chain.tsv`);
      expect(loaded.summary).toMatchObject({ edges: 5, refused: 0 });
      expect(await memberSets(graph)).toEqual([chain.toSorted()]);
      // Every order in ids of its own, one message per edge.
      const orders = permutations(edges);
      for (const [at, order] of orders.entries()) {
        await Promise.all(order.map((pair) => graph.publish(ndjson([named(pair, at)]).records[0]!)));
      }
      const { totals } = await graph.status();
      expect(totals).toMatchObject({ vertices: 6 * 121, components: 121, edges: 5 * 121 });
      const byComponent = new Map<string, string[]>();
      for (const { vertex, component } of await graph.export()) {
        byComponent.set(component, [...(byComponent.get(component) ?? []), vertex]);
      }
      expect(sorted([...byComponent.values()])).toEqual(
        sorted([chain, ...orders.map((_, at) => chain.map((id) => `${at}-${id}`))]),
      );
    }
  });

  function named([source, target]: Pair, at: number): Pair {
    return [`${at}-${source}`, `${at}-${target}`];
  }

  it('H10: a component keeps its id until it joins an older one; others are untouched; the same after a restart', async () => {
    const steps = ['H10_labels_step1', 'H10_labels_step2_delta', 'H10_labels_step3_merge'].map((name) =>
      fixture(`${name}.ndjson`),
    );
    const records = steps.flatMap((step) => step.records);
    const six = ['a', 'b', 'c', 'd', 'e', 'f'];
    const after = [
      [
        { id: 'a', members: six },
        { id: 'u', members: ['u', 'v'] },
        { id: 'x', members: ['x', 'y'] },
      ],
      [
        { id: 'a', members: six },
        { id: 'x', members: ['x', 'y', 'z'] },
        { id: 'u', members: ['u', 'v'] },
      ],
      [
        { id: 'a', members: [...six, 'x', 'y', 'z'] },
        { id: 'u', members: ['u', 'v'] },
      ],
    ];
    const graph = await newGraph(4);
    const ends: number[] = [];
    for (const [at, step] of steps.entries()) {
      await load(graph, step);
      ends.push(graph.last);
      expect(await graph.components()).toEqual(after[at]);
    }
    // The same order: the same ids. Another order: the same members.
    await everyWay({ format: 'ndjson', records }, async (filled) => {
      expect(await filled.graph.components()).toEqual(after[2]);
    });
    await everyWay({ format: 'ndjson', records: shuffled(records) }, async (filled) => {
      await expectSets(
        filled,
        after[2]!.map(({ members }) => members),
      );
    });
    await restartAll();
    expect(await graph.components()).toEqual(after[2]);
    // The retired id leads to the component that took its own over; earlier it was that of its own.
    expect(await graph.get('/components/x')).toMatchObject({ id: 'a', size: 9 });
    expect(await graph.get(`/components/x?asOf=${ends[1]}`)).toMatchObject({ id: 'x', size: 3 });
    expect((await graph.vertex('z', ends[1])).component).toEqual({ id: 'x', size: 3 });
    await graph.expectProblem('/components/z', 404, 'not-a-component-id');
  });

  /** As the fixture has it, and with the name of the operation that graphs with kept edges will take. */
  function removals(name: string): Content[] {
    const { records } = fixture(name);
    return [
      fixture(name),
      { format: 'ndjson', records: records.map((line) => line.replace('delete', 'remove')) },
    ];
  }

  function expectRemovalsNamed({ reasons, refused }: Filled): void {
    expect(reasons).toHaveLength(refused);
    for (const reason of reasons) expect(reason).toMatch(/op.*"(?:delete|remove)"/);
  }

  it('H11: of parallel edges the removal is refused by name and counted, the others hold, also after a restart', async () => {
    const all: LiveGraph[] = [];
    for (const content of removals('H11_parallel_delete.ndjson')) {
      all.push(
        ...(await everyWay(content, async (filled) => {
          expect(filled).toMatchObject({ edges: 4, refused: 1 });
          expectRemovalsNamed(filled);
          await expectSets(filled, [['a', 'b', 'c']]);
        })),
      );
    }
    const totals = await Promise.all(all.map(async (graph) => (await graph.status()).totals));
    await restartAll();
    for (const [at, graph] of all.entries()) {
      expect((await graph.status()).totals).toEqual(totals[at]);
      expect(await memberSets(graph)).toEqual([['a', 'b', 'c']]);
    }
  });

  it('H12: the removal of an edge that was never there leaves no trace but its count', async () => {
    for (const content of removals('H12_delete_unseen.ndjson')) {
      await everyWay(content, async (filled) => {
        expect(filled).toMatchObject({ edges: 1, refused: 2 });
        expectRemovalsNamed(filled);
        await expectSets(filled, [['2', '3']]);
        await filled.graph.expectUnknown('1');
        await filled.graph.publish('{"source":"1","target":"2"}');
        expect(await memberSets(filled.graph)).toEqual([['1', '2', '3']]);
      });
    }
  });

  it('H13: messages count in the order of the log, once each, though the reader is killed with them in its hands', {
    timeout: 120_000,
  }, async () => {
    const { records } = fixture('H13_redelivery_order.ndjson');
    const graph = await newGraph(4);
    const bursts = 5;
    const burst = 24;
    const rounds = bursts * burst;
    for (let round = 0; round < rounds; round++) {
      // It has all that came before, and is up again.
      if (round % burst === 0) await graph.status();
      for (const record of records) await graph.publish(record.replaceAll(/"([a-d])"/g, `"$1${round}"`));
      if (round % burst !== burst / 2) continue;
      await cluster.kill9('pipeline');
      await cluster.restart('pipeline');
    }
    const { totals } = await graph.status();
    expect(totals).toMatchObject({
      vertices: 4 * rounds,
      components: 2 * rounds,
      edges: 2 * rounds,
      rejected: rounds,
      sequence: 3 * rounds,
    });
    for (const round of [0, 36, rounds - 1]) {
      expect(await graph.vertex(`a${round}`)).toMatchObject({
        arrived: { sequence: 3 * round + 1, index: 0 },
        component: { id: `a${round}`, size: 2 },
      });
      expect((await graph.vertex(`c${round}`)).arrived.sequence).toBe(3 * round + 3);
    }
    // Nobody reads with acknowledgements, after which a server would deliver in another order.
    expect(await graph.ackPolicies()).toEqual(new Set(['none']));
    // Each reject once, in order: the second of every three messages.
    const rejects = await graph.rejects();
    expect(rejects.map(({ sequence }) => sequence)).toEqual(
      Array.from({ length: rounds }, (_, round) => 3 * round + 2),
    );
  });

  it('H14: an edge that is added again is not taken for a repetition; under a key a repeated load is', async () => {
    for (const content of removals('H14_readd.ndjson')) {
      await everyWay(content, async (filled) => {
        expect(filled).toMatchObject({ edges: 2, refused: 1 });
        expectRemovalsNamed(filled);
        await expectSets(filled, [['a', 'b']]);
        // Again, within the two minutes in which message ids are remembered.
        await load(filled.graph, content);
        expect((await filled.graph.status()).totals.edges).toBe(4);
      });
    }
    const graph = await newGraph(2);
    const content = fixture('H14_readd.ndjson');
    const first = await load(graph, content, { id: 'monday' });
    expect(first.summary).toMatchObject({ edges: 2, duplicates: 0 });
    const totals = (await graph.status()).totals;
    const again = await load(graph, content, { id: 'monday' });
    expect(again).toMatchObject({ status: EXIT.done, summary: { edges: 2, duplicates: 2 } });
    expect(again.summary.sequence).toEqual(first.summary.sequence);
    expect((await graph.status()).totals).toEqual(totals);
    const other = await load(graph, content, { id: 'tuesday' });
    expect(other.summary).toMatchObject({ edges: 2, duplicates: 0 });
    expect((await graph.status()).totals.edges).toBe(4);
  });

  // Outages in the middle of a load, and what health says meanwhile: nats-restart.test.ts.
  it('H15: between two halves of a file nats-server is restarted, and the answers are those of an undisturbed load', {
    timeout: 120_000,
  }, async () => {
    const lines = readFileSync(`${FOLDER}H07_chain_50000.tsv`, 'utf8').trimEnd().split('\n');
    const halves = [lines.slice(0, 25_000), lines.slice(25_000)].map((half) => `${half.join('\n')}\n`);
    const [clean, disturbed] = [await newGraph(2), await newGraph(4)];
    for (const half of halves) await loadText(clean, half);
    await loadText(disturbed, halves[0]!);
    await cluster.nats.halt();
    await cluster.unready(/NATS is not connected since/);
    await cluster.nats.restart();
    await loadText(disturbed, halves[1]!);
    await expectChain(disturbed, 50_001);
    await cluster.ready();
    expect(await disturbed.export()).toEqual(await clean.export());
    await until(
      async () => (await cluster.get<GraphStatus>(disturbed.url)).lag?.messages === 0,
      'the lag to be 0',
    );
  });

  it('H16: no character of an id means anything to NATS: nothing is published outside the subjects of the graph', async () => {
    const expected: Pair[] = [
      ['test.one two', 'x'],
      ['a b', 'a'],
      ['*', 's1'],
      ['>', 's2'],
      ['foo..bar', 's3'],
      ['.net', 'asp.net'],
      ['$JS.API.INFO', 's4'],
      ['tab\tid', 's5'],
      ['line\nid', 's6'],
      ['peer.127~3127', 's7'],
    ];
    const more = [
      '.',
      '..',
      '$SYS.REQ.SERVER.PING',
      '_INBOX.x',
      'graph.x.edges',
      '>>',
      '*.*',
      '\r\n',
      'PUB a 1\r\nx',
    ];
    const wire = [
      '+OK\r\n',
      'a\u0000b',
      '%2E',
      '$KV.watershed_graphs.g',
      '/',
      '\\',
      'NATS/1.0\r\n\r\n',
      '💥.>',
    ];
    const ids = [...more, ...wire];
    const subjects = await publishedWhile(async () => {
      await everyWay(fixture('H16_subject_chars.ndjson'), async (filled) => {
        expect(filled).toMatchObject({ edges: 10, refused: 0 });
        await expectSets(filled, expected);
      });
      await expectApart(ndjson(partnered(ids)), ids);
      // To a file a NUL is a sign of binary data.
      const texts = ids.filter((id) => !id.includes('\0'));
      await expectApart(csv(partnered(texts)), texts);
    });
    expectOwnSubjects(subjects);
  });

  it.skipIf(!hasDataFiles)('H16: nor of the ids of real files: tags and genes with dots', async () => {
    const subjects = await publishedWhile(async () => {
      for (const [name, vertices, components] of [
        ['messy_stackoverflow_tags.csv', 115, 6],
        ['messy_wormnet_dots.tsv', 2445, 46],
      ] as const) {
        const graph = await newGraph(4);
        await load(graph, DATA_FOLDER + name);
        expect((await graph.status()).totals).toMatchObject({ vertices, components });
        for (const { vertex } of (await graph.export()).slice(0, 40)) await graph.vertex(vertex);
      }
    });
    expectOwnSubjects(subjects);
  });

  /** All subjects that anybody published to meanwhile. */
  async function publishedWhile(work: () => Promise<void>): Promise<Set<string>> {
    const watcher = await connect({ servers: cluster.nats.url });
    const subjects = new Set<string>();
    watcher.subscribe('>', { callback: (_error, message) => void subjects.add(message.subject) });
    await watcher.flush();
    try {
      await work();
      await watcher.flush();
    } finally {
      await watcher.close();
    }
    return subjects;
  }

  function expectOwnSubjects(subjects: ReadonlySet<string>): void {
    const names = graphs.map(({ name }) => name).join('|');
    // The graph of the test before may just be going away.
    const stream = `(?:GRAPH_case-\\d+_(?:EDGES|REJECTED|PARTS_1_[0-3]|FOREST_1_[0-3])|KV_watershed_(?:graphs|instances|leases|snapshots))`;
    // The client reads all records through an ordered consumer (oc_).
    const reader = '(?:watershed-[0-9A-Z]+|oc_[0-9A-Z]+_\\d+(?:\\.\\$KV\\.watershed_graphs\\.>)?)';
    const known = [
      `graph\\.(?:${names})\\.(?:edges|rejected|parts\\.1\\.[0-3]|forest\\.1\\.[0-3])`,
      // What JetStream and its clients say to each other, each about a stream of graphs or of records.
      `\\$JS\\.(?:API|EVENT\\.ADVISORY)(?:\\.[A-Z]+)+(?:\\.${stream}(?:\\.${reader})?)?`,
      `\\$JS\\.API\\.[A-Z.]+\\.OBJ_watershed_snapshots.*`,
      `\\$JS\\.API\\.DIRECT\\.GET\\.KV_watershed_graphs\\.\\$KV\\.watershed_graphs\\.case-\\d+`,
      `\\$KV\\.watershed_(?:graphs|instances)\\.(?:${['case-\\d+', ...INSTANCES].join('|')})`,
      '\\$KV\\.watershed_leases\\.[0-9a-f]{32}\\.(?:partitioner|view|worker)(?:\\.\\d+)+',
      // Records of snapshots, and their chunks.
      '\\$(?:KV|O)\\.watershed_snapshots\\.[0-9A-Za-z._=-]+',
      '_INBOX\\.\\w+(?:\\.\\w+)?',
    ];
    const pattern = new RegExp(`^(?:${known.join('|')})$`);
    expect([...subjects].filter((subject) => !pattern.test(subject))).toEqual([]);
    for (const { name } of graphs) expect(subjects).toContain(`graph.${name}.edges`);
  }

  it('H17: an edge that is too large is refused with its line, and all others land, by file and by NATS', async () => {
    const { records } = fixture('H17_oversize.ndjson');
    const byFile = await newGraph(2);
    const loaded = await load(byFile, fixture('H17_oversize.ndjson'));
    expect(loaded).toMatchObject({ status: EXIT.done, summary: { edges: 1, refused: 1 } });
    expect(loaded.summary.reasons).toMatchObject([{ place: 'line 1' }]);
    expect(loaded.summary.reasons[0]!.reason).toContain('1100000 bytes');
    expect(loaded.stderr).toContain('line 1: ');
    expect(loaded.stderr.length).toBeLessThan(2000);
    expect(await memberSets(byFile)).toEqual([['c', 'd']]);
    const strict = await load(await newGraph(1), fixture('H17_oversize.ndjson'), { strict: true });
    expect(strict).toMatchObject({ status: EXIT.failed, summary: { edges: 1 } });

    const byNats = await newGraph(2);
    await expect(byNats.publish(records[0]!)).rejects.toThrow();
    await byNats.publish(records[1]!);
    // Of a size that NATS takes and the rule does not.
    await byNats.publish(`{"source":"${'a'.repeat(1_000_000)}","target":"b"}\n${records[1]}`);
    expect((await byNats.status()).totals).toMatchObject({ edges: 2, rejected: 1 });
    expect(JSON.stringify(await byNats.rejects()).length).toBeLessThan(1000);
    expect(await memberSets(byNats)).toEqual([['c', 'd']]);

    const byHttp = await newGraph(2);
    // A body is cut into messages, and this edge fits into none: the answer names it, and nothing is stored.
    await expect(post(byHttp, records.join('\n'), 'application/x-ndjson')).rejects.toThrow(
      /^413 .*edge 0 alone takes 1100030 bytes/,
    );
    expect(await post(byHttp, records[1]!, 'application/x-ndjson')).toMatchObject({
      accepted: 1,
      rejected: 0,
    });
    expect((await byHttp.status()).totals).toMatchObject({ edges: 1, sequence: 1 });
  });

  it('H17: messages near the limit, and batches and bodies beyond it, are split and not refused', {
    timeout: 120_000,
  }, async () => {
    // The shortest edges that there are: what the partitioner makes of them is longer than they.
    let text = `${HEADER}\n`;
    let edges = 0;
    for (; text.length < 1_048_400; edges++) text += `${edges % 90},${(edges * 7) % 90}\n`;
    for (const partitions of [1, 4]) {
      const graph = await newGraph(partitions);
      await graph.publish(text.trimEnd(), 'text/csv');
      await graph.publish('{"source":"c","target":"d"}');
      expect((await graph.status()).totals).toMatchObject({ vertices: 92, edges: edges + 1, rejected: 0 });
    }
    // Long ones, in one message and each vertex new, so that forests are as long as the messages.
    const long = (n: number): string => String(n).padStart(1000, 'x');
    const pairs = Array.from({ length: 500 }, (_, n): Pair => [long(2 * n), long(2 * n + 1)]);
    for (const partitions of [1, 4]) {
      const graph = await newGraph(partitions);
      await graph.publish(`${HEADER}\n${pairs.map((pair) => pair.join(',')).join('\n')}`, 'text/csv');
      await graph.publish(textOf(ndjson(pairs)));
      expect((await graph.status()).totals).toMatchObject({ vertices: 1000, components: 500, edges: 1000 });
    }
    const many = Array.from({ length: 3000 }, (_, n): Pair => [long(n), long(n + 1)]);
    const byFile = await newGraph(2);
    expect((await load(byFile, ndjson(many))).summary).toMatchObject({ edges: 3000, refused: 0 });
    expect((await byFile.status()).totals).toMatchObject({ vertices: 3001, components: 1, edges: 3000 });
    const byHttp = await newGraph(2);
    const { accepted, rejected, sequence } = await post(byHttp, textOf(ndjson(many)), 'application/x-ndjson');
    expect({ accepted, rejected }).toEqual({ accepted: 3000, rejected: 0 });
    expect(sequence.last).toBeGreaterThan(sequence.first);
    expect((await byHttp.status()).totals).toMatchObject({ vertices: 3001, components: 1, edges: 3000 });
  });

  async function post(graph: LiveGraph, body: string, contentType: string): Promise<Appended> {
    const response = await fetch(`${cluster.url}${graph.url}/edges`, {
      method: 'POST',
      headers: { 'content-type': contentType },
      body,
    });
    const answer = await response.text();
    if (response.status !== 202) throw new Error(`${response.status} ${answer}`);
    const appended = JSON.parse(answer) as Appended;
    graph.last = Math.max(graph.last, appended.sequence.last);
    return appended;
  }

  it('H18: a byte order mark is part of no header and no id, in any format', async () => {
    const expected: Pair[] = [
      ['a, b', 'c'],
      ['d', 'e'],
    ];
    const graph = await newGraph(4);
    const loaded = await load(graph, `${FOLDER}H18_bom_crlf.csv`);
    expect(loaded.summary).toMatchObject({ rows: 2, edges: 2, refused: 0 });
    expect(loaded.stderr).toContain('source = column 1 "source"');
    expect(await memberSets(graph)).toEqual(sorted(expected));
    const bytes = readFileSync(`${FOLDER}H18_bom_crlf.csv`);
    const lines = textOf(ndjson(expected));
    for (const input of [
      gzipSync(bytes),
      '\ufeff"a, b",c\r\nd,e\r\n',
      '\ufeff"a, b"\tc\nd\te\n',
      `\ufeff${lines}`,
      `\ufeff${JSON.stringify(expected.map(([source, target]) => ({ source, target })))}`,
      '\ufeff# comment\nsource;target\n"a, b";c\nd;e\n',
      '\ufeffsource,target\r"a, b",c\rd,e',
    ]) {
      const other = await newGraph(2);
      expect((await loadText(other, input)).summary).toMatchObject({ edges: 2, refused: 0 });
      expect(await memberSets(other)).toEqual(sorted(expected));
    }
    const messages = await newGraph(2);
    await messages.publish(bytes, 'text/csv');
    await messages.publish(`\ufeff${lines}`, 'application/x-ndjson');
    await messages.publish(`\ufeff${lines}`);
    expect((await messages.status()).totals).toMatchObject({ edges: 6, rejected: 0 });
    expect(await memberSets(messages)).toEqual(sorted(expected));
  });

  it('H18: a mark of UTF-16 is told, with what to do; a mark inside of the text is part of its id', async () => {
    const utf16 = Buffer.from('\ufeffsource,target\na,b\n', 'utf16le');
    for (const bytes of [utf16, Buffer.from(utf16).swap16()]) {
      const told = await loadText(await newGraph(1), bytes);
      expect(told.status).toBe(EXIT.failed);
      expect(told.stderr).toMatch(/UTF-16.*iconv/);
      expect(told.summary.edges).toBe(0);
    }
    const ids = ['\ufeffx', 'x', 'x\ufeff'];
    await expectApart(csv(partnered(ids)), ids);
  });

  it('H19: all members of a gzip file are read', async () => {
    const expected: Pair[] = [
      ['a', 'b'],
      ['c', 'd'],
      ['e', 'f'],
    ];
    const graph = await newGraph(2);
    const loaded = await load(graph, `${FOLDER}H19_two_members.csv.gz`);
    expect(loaded).toMatchObject({ status: EXIT.done, summary: { rows: 3, edges: 3, refused: 0 } });
    expect(await memberSets(graph)).toEqual(sorted(expected));
    const members = ['source,target\na', ',b\n', '', 'c,d\ne', ',f\n'].map((text) => gzipSync(text));
    for (const input of [Buffer.concat(members), Buffer.concat([...members, Buffer.alloc(700)])]) {
      const other = await newGraph(2);
      expect(await loadText(other, input)).toMatchObject({
        status: EXIT.done,
        summary: { edges: 3, refused: 0 },
      });
      expect(await memberSets(other)).toEqual(sorted(expected));
    }
    // As `bgzip` and `pigz -i` write them: thousands, each of a few lines.
    const rows = Array.from({ length: 3000 }, (_, n) => `${n},${n + 1}\n`);
    const blocks = await newGraph(2);
    await loadText(blocks, Buffer.concat(rows.map((row) => gzipSync(row))));
    expect((await blocks.status()).totals).toMatchObject({ vertices: 3001, components: 1, edges: 3000 });
  });

  it('H19: a gzip file that is cut short or damaged fails by its name, after what it had was sent and counted', async () => {
    // Ids of one length, so that a cut one would be told from a whole one.
    const number = (n: number): string => String(n).padStart(5, '0');
    const pairs = Array.from(
      { length: 40_000 },
      (_, n): Pair => [`l-${number((n * 7919) % 40_000)}`, `r-${number(n)}`],
    );
    const rows = pairs.map((pair) => `${pair.join(',')}\n`).join('');
    const whole = gzipSync(`${HEADER}\n${rows}`);
    const damaged = Buffer.from(whole);
    damaged.fill(0x55, whole.length >> 1, (whole.length >> 1) + 64);
    const wrongCheck = Buffer.from(whole);
    wrongCheck[whole.length - 6]! ^= 1;
    const two = Buffer.concat([whole, gzipSync('more,rows\n').subarray(0, 15)]);
    // What there is before the fault is sent: all of it, unless the fault is in the middle or its check fails.
    const files: [name: string, bytes: Uint8Array, hasAll: boolean][] = [
      ['cut-in-the-middle', whole.subarray(0, whole.length >> 1), false],
      ['without-its-last-byte', whole.subarray(0, whole.length - 1), true],
      ['without-its-trailer', whole.subarray(0, whole.length - 8), true],
      ['second-member-cut', two, true],
      ['damaged', damaged, false],
      ['wrong-checksum', wrongCheck, false],
      ['garbage-behind', Buffer.concat([whole, Buffer.from('garbage, and no member')]), false],
    ];
    const failed = files.map(async ([name, bytes, hasAll]) => {
      const path = join(cluster.folder, `${name}.csv.gz`);
      await writeFile(path, bytes);
      const graph = await newGraph(2);
      const { status, summary, stderr } = await load(graph, path);
      expect([name, status]).toEqual([name, EXIT.failed]);
      expect(stderr).toContain(`error: ${path}`);
      expect(summary.error).toContain(basename(path));
      if (hasAll) expect(summary).toMatchObject({ edges: 40_000, refused: 0 });
      else expect(summary.edges).toBeGreaterThan(0);
      expect((await graph.status()).totals).toMatchObject({ edges: summary.edges, rejected: 0 });
      const vertices = (await graph.export()).map(({ vertex }) => vertex);
      expect(vertices.filter((id) => !/^[lr]-\d{5}$/.test(id))).toEqual([]);
    });
    await Promise.all(failed);
  });

  it('H20: a second instance on one data folder ends in seconds with a message that names it; the first goes on', async () => {
    const graph = await newGraph(4);
    await graph.publish('{"source":"a","target":"b"}');
    const startedAt = performance.now();
    const seconds = INSTANCES.map(async (name) => {
      const role = name === 'gateway' ? 'gateway' : 'worker';
      const place = ['--name', name, '--nats', cluster.nats.url, '--data', cluster.folder];
      const second = await run([PROGRAM, 'serve', '--roles', role, ...place], cluster.env);
      expect(second.status).toBe(EXIT.failed);
      expect(second.stderr).toContain(join(cluster.folder, name));
      expect(second.stderr).toContain('in use by another process');
      // No advice to remove the lock, and no stack of ours.
      expect(second.stderr).not.toMatch(/LOCK\b|\bat .*\.js:\d+|not open/);
    });
    await Promise.all(seconds);
    expect(performance.now() - startedAt).toBeLessThan(15_000);
    await graph.publish('{"source":"b","target":"c"}');
    expect(await memberSets(graph)).toEqual([['a', 'b', 'c']]);
  });

  it('H20: after kill -9 an instance starts at once, and one may be started while the old one is still stopping', {
    timeout: 120_000,
  }, async () => {
    const graph = await newGraph(4);
    for (let round = 0; round < 2; round++) {
      await graph.publish(`{"source":"v${round}","target":"v${round + 1}"}`);
      await restartAll();
      await graph.status();
      const stopping = INSTANCES.map((name) => cluster.stopInstance(name));
      for (const name of INSTANCES) await cluster.restart(name);
      expect(await Promise.all(stopping)).toEqual([0, 0, 0]);
      await cluster.ready();
      expect((await graph.status()).totals).toMatchObject({
        vertices: round + 2,
        components: 1,
        edges: round + 1,
      });
    }
    expect(await memberSets(graph)).toEqual([['v0', 'v1', 'v2']]);
  });

  it('H22: every id up to 1,024 bytes is found by path and by query; longer ones are told, and never unknown', async () => {
    const arabic = 'فراکسیون محیط زیست';
    await everyWay(fixture('H22_long_ids.ndjson'), async (filled) => {
      expect(filled).toMatchObject({ edges: 4, refused: 0 });
      await expectSets(filled, [
        ['D'.repeat(108), 'x'],
        [arabic, 'y'],
        ['https://host.example/a/b?c=d&e=f#g', 'z'],
        ['a/b', 'a%2Fb'],
      ]);
      expect(encodeURIComponent(arabic).length).toBeGreaterThan(100);
    });
    const lengths = [99, 100, 101, 255, 256, 257, 511, 1023, 1024].map((bytes) => 'l'.repeat(bytes));
    const wide = ['é'.repeat(512), '漢'.repeat(341), '😀'.repeat(256), '/'.repeat(1024), '%'.repeat(1024)];
    const encoded = [
      'a%252Fb',
      'a%2Fb',
      'a/b',
      'a//b',
      '/a/b',
      'a/b/',
      '%',
      '%zz',
      '../x',
      './x',
      '?',
      '#',
      'a;b',
      '&',
    ];
    const ids = [...lengths, ...wide, ...encoded, 'lookup', 'vertices', 'a+b', 'a b', 'a%20b'];
    const [graph] = await expectApart(ndjson(partnered(ids)), ids);
    for (const [bytes, status, code] of [
      [1025, 400, 'bad-request'],
      [3072, 400, 'bad-request'],
      [3073, 414, 'uri-too-long'],
      [10_000, 414, 'uri-too-long'],
      [100_000, 414, 'uri-too-long'],
    ] as const) {
      const id = 'l'.repeat(bytes);
      await graph!.expectProblem(`/vertices/${id}`, status, code);
      await graph!.expectProblem(`/components/${id}`, status, code);
      await graph!.expectProblem(`/components/${id}/vertices`, status, code);
      // The query form has no limit of its own but the id's, and that of a whole URL.
      const [inQuery, why] =
        bytes > 16_000 ? ([414, 'uri-too-long'] as const) : ([400, 'bad-request'] as const);
      await graph!.expectProblem(`/vertices?id=${id}`, inQuery, why);
      await graph!.expectProblem(`/components?id=${id}`, inQuery, why);
      await graph!.expectProblem(`/connected?source=${id}&target=x`, inQuery, why);
    }
    await graph!.expectProblem(`/vertices/${encodeURIComponent('é'.repeat(513))}`, 400, 'bad-request');
    await graph!.expectUnknown('m'.repeat(1024));
  });

  it.skipIf(!hasDataFiles)('H22: so are the longest ids of a real file', async () => {
    const graph = await newGraph(4);
    await load(graph, `${DATA_FOLDER}messy_provisualizer_edges.csv`);
    const rows = (await graph.export()).sort((a, b) => b.vertex.length - a.vertex.length).slice(0, 100);
    expect(rows[0]!.vertex.length).toBeGreaterThan(100);
    for (const { vertex, component } of rows) {
      expect((await graph.vertex(vertex)).component.id).toBe(component);
    }
  });

  it('H23: pages of members hold each member of the start once, while edges stream in and the component merges', {
    timeout: 120_000,
  }, async () => {
    const graph = await newGraph(4);
    // An older and larger component, which takes the giant over in the middle.
    const star = (hub: string, leaf: (n: number) => string, size: number): string =>
      textOf(ndjson(Array.from({ length: size - 1 }, (_, n): Pair => [hub, leaf(n)])));
    await graph.publish(
      star('older', (n) => `older-${n}`, 3000),
      'application/x-ndjson',
    );
    await graph.publish(
      star('giant', (n) => `m-${(n * 7919) % 2599}`, 2600),
      'application/x-ndjson',
    );
    const atStart = (await graph.export()).filter(({ component }) => component === 'giant');
    expect(atStart).toHaveLength(2600);

    let streaming = true;
    let messages = 0;
    const stream = (async () => {
      for (; streaming; messages++) {
        // Sorting before, between and after the members; by now and then a whole component more.
        const fresh = [`!${messages}`, `m-${messages}-x`, `~${messages}`];
        const edges = fresh.map((id): Pair => [id, messages % 2 === 0 ? 'giant' : `m-${messages % 2599}`]);
        const chain = Array.from(
          { length: 20 },
          (_, n): Pair => [`c${messages}-${n}`, `c${messages}-${n + 1}`],
        );
        await graph.publish(textOf(ndjson([...chain, ...edges])), 'application/x-ndjson');
        await graph.publish(textOf(ndjson([[`c${messages}-7`, `m-${(messages * 31) % 2599}`]])));
      }
    })();
    const members: string[] = [];
    const cursors: string[] = [];
    let first: MembersPage | undefined;
    let cursor: string | undefined;
    try {
      await until(() => messages > 5, 'edges to stream');
      for (let page = 0; page === 0 || cursor !== undefined; page++) {
        const answer: MembersPage = await graph.get<MembersPage>(
          `/components/giant/vertices?limit=100${cursor === undefined ? '' : `&cursor=${cursor}`}`,
        );
        first ??= answer;
        // The list is that of the first page's sequence, to its end.
        expect(answer.asOf).toEqual(first.asOf);
        expect(answer.component).toEqual(first.component);
        members.push(...answer.vertices);
        cursor = answer.nextCursor;
        if (cursor !== undefined) {
          expect(answer.vertices).toHaveLength(100);
          cursors.push(cursor);
        }
        if (page === 7) {
          await graph.publish('{"source":"m-5","target":"older-17"}');
          expect((await graph.status()).totals.sequence).toBeGreaterThan(first.asOf.sequence);
          expect(await graph.get('/vertices/giant')).toMatchObject({ component: { id: 'older' } });
        }
        if (page % 5 === 4) {
          const seen = messages;
          await until(() => messages > seen, 'more edges to stream in');
        }
      }
    } finally {
      streaming = false;
      await stream;
    }
    expect(first!.component.id).toBe('giant');
    expect(members).toHaveLength(first!.component.size);
    expect(new Set(members).size).toBe(members.length);
    expect(new Set(members)).toEqual(
      new Set(
        (await exportAsOf(graph, first!.asOf.sequence))
          .filter(({ component }) => component === 'giant')
          .map(({ vertex }) => vertex),
      ),
    );
    for (const { vertex } of atStart) expect(members).toContain(vertex);

    // A page is the same later, and after a restart.
    const path = `/components/giant/vertices?limit=100&cursor=`;
    await restartAll();
    expect((await graph.get<MembersPage>(path + cursors[3])).vertices).toEqual(members.slice(400, 500));
    expect((await graph.get<MembersPage>(path + cursors.at(-1))).nextCursor).toBeUndefined();
    await expectCursorsRefused(graph, path, cursors[0]!);
  });

  async function exportAsOf(graph: LiveGraph, sequence: number): Promise<ExportRow[]> {
    const text = await (await fetch(`${cluster.url}${graph.url}/export?asOf=${sequence}`)).text();
    return text.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line) as ExportRow]));
  }

  async function expectCursorsRefused(graph: LiveGraph, path: string, cursor: string): Promise<void> {
    const { nextCursor: ofList } = await graph.get<{ nextCursor: string }>('/components?limit=1');
    const other = await newGraph(4);
    await other.publish(
      '[{"source":"giant","target":"h"},{"source":"giant","target":"i"},{"source":"u","target":"v"}]',
    );
    await other.status();
    const bad = [
      'garbage',
      'AAAA',
      cursor.slice(0, -1),
      `${cursor}A`,
      `${cursor}=`,
      `x${cursor.slice(1)}`,
      cursor.toUpperCase(),
      `${cursor}%20`,
      '0',
      '-1',
      'null',
      ofList,
    ];
    for (const text of bad) await graph.expectProblem(path + text, 400, 'bad-cursor');
    await graph.expectProblem(path, 400, 'bad-request');
    await graph.expectProblem(`${path}${'A'.repeat(257)}`, 400, 'bad-request');
    await graph.expectProblem(`${path}${cursor}&cursor=${cursor}`, 400, 'bad-request');
    await graph.expectProblem(`${path}${cursor}&asOf=1`, 400, 'bad-cursor');
    // Of another graph, and of another component.
    await other.expectProblem(path + cursor, 400, 'bad-cursor');
    await graph.expectProblem(`/components/older/vertices?cursor=${cursor}`, 400, 'bad-cursor');
    // Of the graph that had the name before.
    const { nextCursor: old } = await other.get<MembersPage>('/components/giant/vertices?limit=1');
    await other.remove();
    const again = await LiveGraph.create(cluster, connection, other.name, 4);
    await again.publish('[{"source":"giant","target":"h"},{"source":"giant","target":"i"}]');
    await again.status();
    await again.expectProblem(`/components/giant/vertices?cursor=${old}`, 400, 'bad-cursor');
  }

  describe('H21: a snapshot that is not whole is found out, the one before it is used, and the answers are those of a clean load:', () => {
    const name = 'h21';
    const path = `/v1/graphs/${name}`;
    const slices = Array.from({ length: 4 }, (_, slice) => ndjson(chain(slice * 200, 200)));
    let own: Cluster;
    let chunks: string;

    afterEach(() => own?.stop());

    /** A graph of three slices, the first two of them in a snapshot each. */
    async function begin(): Promise<void> {
      own = await Cluster.create();
      chunks = join(own.folder, 'snapshots');
      own.start('all', ['--roles', 'partitioner,worker,gateway', '--snapshot-store', `file:${chunks}`]);
      await own.ready();
      const settings = { partitions: 2, snapshots: { interval: 0, keep: 2 } };
      expect((await ask('PUT', path, settings)).status).toBe(201);
      for (const [at, slice] of slices.slice(0, 3).entries()) {
        const { status, stderr } = await own.watershed(['load', '--graph', name, '-'], textOf(slice));
        expect(`${status} ${stderr}`).toMatch(/^0/);
        if (at < 2) expect((await ask('POST', `${path}/snapshots`, { name: `s${at}` })).status).toBe(201);
      }
    }

    async function ask(method: string, url: string, body: object): Promise<Response> {
      return await fetch(`${own.url}${url}`, {
        method,
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body),
      });
    }

    /** An instance without state takes it from what is left; the rest streams in; a clean graph is the measure. */
    async function expectClean(
      warning: RegExp,
      recover: () => Promise<void> = async () => {},
    ): Promise<void> {
      await rm(join(own.folder, 'all'), { recursive: true });
      await own.restart('all');
      await recover();
      await own.ready();
      for (const [graph, content] of [
        [name, slices.slice(3)],
        ['clean', slices],
      ] as const) {
        if (graph === 'clean') expect((await ask('PUT', `/v1/graphs/${graph}`, {})).status).toBe(201);
        for (const slice of content) {
          const { status } = await own.watershed(['load', '--graph', graph, '-'], textOf(slice));
          expect(status).toBe(0);
        }
      }
      const exported = async (graph: string): Promise<string[]> => {
        const { totals, lag } = await own.get<GraphStatus>(`/v1/graphs/${graph}`);
        await own.graph(graph, lag?.last ?? totals.sequence);
        return (await (await fetch(`${own.url}/v1/graphs/${graph}/export?format=csv`)).text())
          .split('\r\n')
          .map((row) => row.split(',').slice(0, 2).join());
      };
      expect(await exported(name)).toEqual(await exported('clean'));
      expect(own.readLog('all')).toMatch(warning);
      const { snapshots } = await own.get<{ snapshots: { name?: string }[] }>(`${path}/snapshots`);
      expect(snapshots.map((snapshot) => snapshot.name)).toContain('s0');
    }

    it('a file of it is cut short', { timeout: 120_000 }, async () => {
      await begin();
      const before = new Set((await snapshotFiles(chunks)).slice(0, -1));
      await own.stopInstance('all');
      // The file that was written last is of the newest snapshot.
      const [newest] = (await snapshotFiles(chunks)).filter((file) => !before.has(file));
      await truncate(newest!, 10);
      await expectClean(/a snapshot is damaged: trying the one before it/);
    });

    it('nothing of any is whole, so what to do is said, and a rebuild from the first edge does it', {
      timeout: 120_000,
    }, async () => {
      await begin();
      await until(async () => {
        const { snapshots } = await own.get<{ snapshots: { verified: boolean }[] }>(`${path}/snapshots`);
        return snapshots.length === 2 && snapshots.every(({ verified }) => verified);
      }, 'two snapshots to be there');
      await own.stopInstance('all');
      for (const file of await snapshotFiles(chunks)) await truncate(file, 10);
      await expectClean(/a snapshot is damaged: trying the one before it/, async () => {
        await own.unready(/watershed graph rebuild/);
        expect((await ask('POST', `${path}/rebuild`, { from: 'start' })).status).toBe(200);
      });
    });

    it('its manifest is gone', { timeout: 120_000 }, async () => {
      await begin();
      const { config } = await own.get<GraphStatus>(path);
      await own.stopInstance('all');
      const control = await connectNats({ url: own.nats.url, name: 'test', wait: true });
      const records = new SnapshotRecords(new NatsKv(control, 1), config.id);
      const { manifests } = await records.read();
      expect(manifests).toHaveLength(2);
      await records.remove('manifest', String(manifests[0]!.barrier));
      await control.close();
      await expectClean(/the state was restored from a snapshot/);
    });

    it('the instance is killed while it is taken', { timeout: 120_000 }, async () => {
      await begin();
      const answer = ask('POST', `${path}/snapshots`, { name: 'broken-off' }).catch(() => {});
      await new Promise((resolve) => setTimeout(resolve, 100));
      await own.kill9('all');
      await answer;
      await expectClean(/the state was restored from a snapshot/);
    });
  });

  it.skipIf(!hasDataFiles)(
    'H24: a graph that is loaded in slices while instances and partitions change is the one of its manifest',
    {
      timeout: 300_000,
    },
    async () => {
      const file = 'snap_Email-Enron.txt';
      const row = answered.find(({ name }) => name === file)!;
      const lines = readFileSync(DATA_FOLDER + file, 'utf8')
        .trimEnd()
        .split('\n')
        .filter((line) => !line.startsWith('#'));
      const own = await Cluster.create();
      try {
        own.start('gateway', ['--roles', 'gateway', '--lease', '2']);
        const running = new Set<string>();
        const scale = async (count: number): Promise<void> => {
          for (let n = 0; n < Math.max(count, running.size); n++) {
            const name = `worker-${n}`;
            if (n < count && !running.has(name)) {
              own.start(name, ['--roles', 'partitioner,worker', '--lease', '2']);
              running.add(name);
            } else if (n >= count && running.has(name)) {
              await own.stopInstance(name);
              running.delete(name);
            }
          }
        };
        await scale(2);
        await own.ready();
        const graph = await LiveGraph.create(own, connection, 'enron', 2);
        const put = async (partitions: number): Promise<void> => {
          const response = await fetch(`${own.url}/v1/graphs/enron`, {
            method: 'PUT',
            headers: { 'content-type': 'application/json' },
            body: JSON.stringify({ partitions }),
          });
          expect(response.status).toBe(200);
        };
        let loaded = 0;
        for (const [step, size] of [2, 4, 3, 1].entries()) {
          const before = (await graph.status()).totals;
          await scale(size);
          if (step > 0) await put(size);
          const slice = lines.slice(step * 100_000, step === 3 ? undefined : (step + 1) * 100_000);
          const { summary } = await liveLoad(own, 'enron', ['-'], {}, `${slice.join('\n')}\n`);
          expect(summary).toMatchObject({ edges: slice.length, refused: 0, error: null });
          graph.last = summary.sequence!.last;
          loaded += slice.length;
          expect((await graph.status()).totals).toMatchObject({ edges: loaded, rejected: 0 });
          expect((await own.get<GraphStatus>(`/v1/graphs/enron?asOf=${before.sequence}`)).totals).toEqual(
            before,
          );
          const taken = await fetch(`${own.url}/v1/graphs/enron/snapshots`, { method: 'POST' });
          expect(`${taken.status} ${await taken.text()}`).toMatch(/^201/);
        }
        const { totals, problem } = await graph.status();
        expect(problem).toBeUndefined();
        expect(totals).toMatchObject({
          vertices: row.vertices,
          components: row.components,
          edges: row.rows,
          rejected: 0,
        });
        const { components } = await own.get<ComponentsPage>('/v1/graphs/enron/components?limit=1');
        expect(components[0]!.size).toBe(row.largest);
      } finally {
        await own.stop();
      }
    },
  );

  it('H25: the program, the service and HTTP name one partition for an edge, in either orientation, over restarts', {
    timeout: 180_000,
  }, async () => {
    const given = fixture('H25_partition_key.ndjson').records.map((line) => JSON.parse(line) as Edge);
    const ids = given.map(({ source }) => source);
    const among = ids.flatMap((source) =>
      ids.filter((id) => id !== source).map((target) => ({ source, target })),
    );
    const edges = [...given, ...among].flatMap(({ source, target }) => [
      { source, target },
      { source: target, target: source },
    ]);
    const text = edges.map((edge) => JSON.stringify(edge)).join('\n');
    for (const partitions of [1, 5, 12, 64]) {
      const args = ['--parts', String(partitions), '--output', '-', '--format', 'ndjson'];
      const runs = [0, 1].map(() => run([PROGRAM, 'partition', '-', ...args], process.env, text));
      const [first, second] = await Promise.all(runs);
      expect(first!.status, first!.stderr).toBe(0);
      expect(second!.stdout).toBe(first!.stdout);
      const rows = first!.stdout
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line) as Edge & { part: number });
      expect(rows.map(({ source, target }) => ({ source, target }))).toEqual(edges);
      for (const [at, { part }] of rows.entries()) {
        expect(part).toBeGreaterThanOrEqual(0);
        expect(part).toBeLessThan(partitions);
        if (at % 2 === 1) expect(part).toBe(rows[at - 1]!.part);
      }

      // Each orientation in a message of its own. A vertex is where its edges are, by the program as by HTTP.
      const graph = await newGraph(partitions);
      for (const edge of edges) await graph.publish(JSON.stringify(edge));
      const check = async (): Promise<void> => {
        await graph.status();
        for (const id of new Set(edges.flatMap(({ source, target }) => [source, target]))) {
          const parts = rows.filter(({ source, target }) => source === id || target === id);
          const expected = [...new Set(parts.map(({ part }) => part))].sort((a, b) => a - b);
          expect((await graph.vertex(id)).partitions).toEqual(expected);
        }
        const { quality } = await graph.get<Partitions>('/partitions');
        expect(quality.vertices).toBe(10);
      };
      await check();
      // The frames of PARTS are the service's own word.
      const { streams } = await jetstreamManager(connection);
      const columns = new FrameColumns();
      for (let part = 0; part < partitions; part++) {
        const stream = `GRAPH_${graph.name}_PARTS_1_${part}`;
        const { state } = await streams.info(stream);
        for (let seq = state.first_seq; seq <= state.last_seq; seq++) {
          readFrame((await streams.getMessage(stream, { seq }))!.data, columns);
          for (let edge = 0; edge < columns.count; edge++)
            expect(rows[columns.sequence[edge]! - 1]!.part).toBe(part);
        }
      }
      if (partitions !== 12) continue;
      await Promise.all(INSTANCES.map((name) => cluster.kill9(name)));
      await Promise.all(INSTANCES.map((name) => cluster.restart(name)));
      await cluster.ready();
      await check();
    }
  });
});

function chain(from: number, length: number): Pair[] {
  return Array.from({ length }, (_, at) => [
    `v${from + at}`,
    `v${from + at + ((from + at) % 7 === 0 ? 2 : 1)}`,
  ]);
}

/** In the order in which they were written. */
async function snapshotFiles(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  const times = new Map<string, number>();
  for (const file of files) times.set(file, (await stat(file)).mtimeMs);
  return files.sort((one, other) => times.get(one)! - times.get(other)!);
}

function shuffled<T>(items: readonly T[]): T[] {
  const random = seeded(items.length);
  const mixed = [...items];
  for (let at = mixed.length - 1; at > 0; at--) {
    const other = Math.floor(random() * (at + 1));
    [mixed[at], mixed[other]] = [mixed[other]!, mixed[at]!];
  }
  return mixed;
}

function permutations<T>(items: readonly T[]): T[][] {
  if (items.length <= 1) return [[...items]];
  return items.flatMap((item, at) => permutations(items.toSpliced(at, 1)).map((rest) => [item, ...rest]));
}
