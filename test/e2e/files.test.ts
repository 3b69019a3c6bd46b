/**
 * The real edge files of ../shared/data through the whole of it: read by the program, sent over NATS, asked for
 * over HTTP. test/services/cli/load/manifest.test.ts has the same files at the level of reading them.
 */
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ComponentsPage } from '../../libs/api/component.ts';
import type { Totals } from '../../libs/api/graph.ts';
import type { ExportRow } from '../../libs/api/vertex.ts';
import { EXIT } from '../../services/cli/exit.ts';
import type { LoadFlags } from '../../services/cli/load/load-options.ts';
import {
  ALL_REFUSED,
  answered,
  BAD_TIMES,
  DATA_FOLDER,
  FLAGS,
  hasDataFiles,
  type ManifestRow,
  manifest,
  REFUSED,
  SEMICOLONS,
  TRUNCATED,
  UNDECIDED,
  WCC,
  WCC_EDGES,
} from '../support/data-files.ts';
import { type LiveLoad, liveLoad } from '../support/live-load.ts';
import { Cluster, until } from './harness/cluster.ts';

/** Files take turns: the answers are the same for any number. */
const PARTITIONS = [1, 2, 4];

describe.skipIf(!hasDataFiles)('every edge file of ../shared/data, loaded by the program', () => {
  let cluster: Cluster;
  let graphs = 0;

  beforeAll(async () => {
    cluster = await Cluster.single();
  });

  afterAll(() => cluster?.stop());

  /** Loads a file into a graph of its own, hands it to `look`, and removes it. */
  async function inGraph(
    name: string,
    flags: LoadFlags,
    look: (load: LiveLoad, graph: string) => Promise<void>,
  ): Promise<void> {
    const partitions = String(PARTITIONS[graphs % PARTITIONS.length]!);
    const graph = `file-${graphs++}`;
    try {
      await look(await liveLoad(cluster, graph, [DATA_FOLDER + name], { ...flags, partitions }), graph);
    } finally {
      await fetch(`${cluster.url}/v1/graphs/${graph}`, { method: 'DELETE' });
    }
  }

  /** What HTTP says of the graph when it holds all that was sent. */
  async function answers(graph: string, { summary }: LiveLoad): Promise<Totals & { largest: number }> {
    const { totals } = await cluster.graph(graph, summary.sequence?.last ?? 0);
    // Of a graph that got nothing, the first thing may be the answer.
    await until(
      async () => (await cluster.graph(graph, 0)).problem === undefined,
      `nothing to be wrong with ${graph}`,
    );
    const { components } = await cluster.get<ComponentsPage>(`/v1/graphs/${graph}/components?limit=1`);
    return { ...totals, largest: components[0]?.size ?? 0 };
  }

  function expected({ rows, vertices, components, largest, name }: ManifestRow): object {
    return { vertices, components, largest, edges: rows - (REFUSED[name] ?? 0), rejected: 0 };
  }

  it('is there', () => {
    expect(manifest).toHaveLength(80);
    const names = [
      ...answered.map(({ name }) => name),
      ...Object.keys(UNDECIDED),
      ...Object.keys(ALL_REFUSED),
      SEMICOLONS,
      WCC,
    ];
    expect(new Set(names)).toEqual(new Set(manifest.map(({ name }) => name)));
  });

  for (const row of answered) {
    const { name, rows } = row;
    if (name === TRUNCATED) continue;
    it(`${name} gives the vertices, components and largest component of the manifest`, async () => {
      const refused = REFUSED[name] ?? 0;
      await inGraph(name, FLAGS[name] ?? {}, async (load, graph) => {
        expect(load.summary).toMatchObject({
          rows,
          edges: rows - refused,
          refused,
          duplicates: 0,
          error: null,
        });
        expect(load.summary.reasons).toHaveLength(Math.min(refused, load.summary.reasons.length));
        expect(load.summary.reasons.length > 0).toBe(refused > 0);
        expect(load.status).toBe(EXIT.done);
        expect(await answers(graph, load)).toMatchObject(expected(row));
        if (name === WCC_EDGES) await expectPartition(graph);
      });
    });
  }

  /** The same vertices belong together as the file of golden components says. */
  async function expectPartition(graph: string): Promise<void> {
    const response = await fetch(`${cluster.url}/v1/graphs/${graph}/export`);
    const lines = (await response.text()).trimEnd().split('\n');
    const labels = new Map(
      readFileSync(DATA_FOLDER + WCC, 'utf8')
        .trimEnd()
        .split('\n')
        .map((line) => line.split(' ') as [string, string]),
    );
    expect(lines).toHaveLength(labels.size);
    const labelOf = new Map<string, string>();
    for (const line of lines) {
      const { vertex, component } = JSON.parse(line) as ExportRow;
      const label = labels.get(vertex);
      if (label === undefined || (labelOf.get(component) ?? label) !== label) {
        throw new Error(`vertex ${vertex} of component ${component} has the label ${label}`);
      }
      labelOf.set(component, label);
    }
    expect(labelOf.size).toBe(new Set(labels.values()).size);
  }

  it(`${TRUNCATED}, cut short, ends with an error that names it, and what it had is sent and counted`, async () => {
    const row = answered.find(({ name }) => name === TRUNCATED)!;
    await inGraph(TRUNCATED, {}, async (load, graph) => {
      const message = `${TRUNCATED} cannot be read: the gzip file is cut short`;
      expect(load.status).toBe(EXIT.failed);
      expect(load.summary).toMatchObject({ rows: row.rows, edges: row.rows, refused: 0 });
      expect(load.summary.error).toContain(message);
      expect(load.stderr).toContain(message);
      expect(await answers(graph, load)).toMatchObject(expected(row));
    });
  });

  it('a line of counts at the head of a file is an edge, with a hint, unless it is skipped', async () => {
    const name = 'messy_facebook_count_header.txt';
    await inGraph(name, {}, async ({ stderr }) => {
      expect(stderr).toMatch(/hint: .*"4039 88234".*--skip 1/);
    });
    await inGraph(name, { skip: '1' }, async (load, graph) => {
      expect(load.stderr).not.toContain('hint:');
      const truth = answered.find((row) => row.name === 'snap_facebook_combined.txt')!;
      expect(await answers(graph, load)).toMatchObject(expected(truth));
    });
  });

  it(`${SEMICOLONS}: the semicolon is found as well as a comma`, async () => {
    await inGraph(SEMICOLONS, {}, async (load, graph) => {
      expect(load.status).toBe(EXIT.done);
      expect(await answers(graph, load)).toMatchObject({ vertices: 2, components: 1, edges: 1 });
    });
  });

  for (const [name, message] of Object.entries(UNDECIDED)) {
    it(`${name} is refused as a whole: exit status 2, the reason, and nothing sent`, async () => {
      await inGraph(name, {}, async ({ status, summary, stderr }) => {
        expect(status).toBe(EXIT.usage);
        expect(summary).toMatchObject({ rows: 0, edges: 0, sequence: null });
        expect(summary.error).toMatch(message);
        expect(stderr).toMatch(message);
        expect(stderr).toContain(name.replace('tiny/', ''));
      });
    });
  }

  for (const [name, reason] of Object.entries(ALL_REFUSED)) {
    it(`${name} has its row refused: exit status 1, the line and the reason`, async () => {
      await inGraph(name, {}, async (load, graph) => await expectAllRefused(load, graph, reason));
    });
  }

  for (const [name, reason] of Object.entries(BAD_TIMES)) {
    it(`${name} has its row refused where the column of times is chosen`, async () => {
      await inGraph(name, { time: 'block_timestamp' }, async (load, graph) =>
        expectAllRefused(load, graph, reason),
      );
    });
  }

  async function expectAllRefused(load: LiveLoad, graph: string, reason: string): Promise<void> {
    expect(load.status).toBe(EXIT.failed);
    expect(load.summary).toMatchObject({ rows: 1, edges: 0, refused: 1, sequence: null });
    expect(load.summary.reasons).toMatchObject([{ place: 'line 2', reason }]);
    expect(load.stderr).toContain(`line 2: ${reason}`);
    expect(await answers(graph, load)).toMatchObject({ vertices: 0, components: 0, edges: 0, rejected: 0 });
  }

  it('with --strict a refused row is a failure, though the others are sent', async () => {
    const name = 'messy_ethereum_txs.csv';
    await inGraph(name, { strict: true }, async (load, graph) => {
      expect(load.status).toBe(EXIT.failed);
      expect(await answers(graph, load)).toMatchObject({ edges: 297, vertices: 437, components: 148 });
    });
  });
});
