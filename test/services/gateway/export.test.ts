import { request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { ExportRow } from '../../../libs/api/vertex.ts';
import { csvField } from '../../../services/gateway/export-rows.ts';
import { expectSchema, TestGateway } from '../../support/gateway.ts';

let gateway: TestGateway;
beforeEach(async () => {
  gateway = await TestGateway.start();
  await gateway.graph('g', 3);
});
afterEach(async () => await gateway.close());

test('NDJSON has a line per vertex, in order of arrival, all as of one sequence', async () => {
  await gateway.publish(
    'g',
    { source: 'b', target: 'a' },
    { source: 'd', target: 'c' },
    { source: 'a', target: 'd' },
  );
  const response = await gateway.app.inject('/v1/graphs/g/export');
  expect(response.statusCode).toBe(200);
  expect(response.headers).toMatchObject({ 'content-type': 'application/x-ndjson', 'watershed-as-of': '3' });
  const rows = response.body
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as ExportRow);
  for (const row of rows) expectSchema(ExportRow, row);
  expect(rows).toEqual(['a', 'b', 'c', 'd'].map((vertex) => ({ vertex, component: 'a' })));
  const then = await gateway.app.inject('/v1/graphs/g/export?asOf=2&format=csv');
  expect(then.headers['watershed-as-of']).toBe('2');
  expect(then.body).toBe('vertex,component\r\na,a\r\nb,a\r\nc,c\r\nd,c\r\n');
});

test('CSV quotes what would break a line, and a reader gets the ids back', async () => {
  const ids = ['a,b', '"', 'line\nbreak', ' blank ', '=1+1', '\ufeffbom'];
  for (const id of ids) await gateway.publish('g', { source: id, target: id });
  const { body, headers } = await gateway.app.inject('/v1/graphs/g/export?format=csv');
  expect(headers['content-type']).toMatch(/^text\/csv/);
  expect(parseCsv(body).slice(1)).toEqual(ids.map((id) => [id, id]));
  expect(csvField('plain')).toBe('plain');
});

test('an empty graph exports nothing', async () => {
  expect((await gateway.app.inject('/v1/graphs/g/export')).body).toBe('');
  expect((await gateway.app.inject('/v1/graphs/g/export?format=csv')).body).toBe('vertex,component\r\n');
});

test('refuses a format that it does not have', async () => {
  const problem = await gateway.problem('/v1/graphs/g/export?format=xml', 'bad-request');
  expect(problem.errors?.[0]?.pointer).toBe('/query/format');
});

test('stays at its sequence while edges stream in, and makes no more than the client takes', async () => {
  const edges = Array.from({ length: 50_000 }, (_, n) => ({
    source: `s${n}-${'x'.repeat(100)}`,
    target: 'hub',
  }));
  for (let at = 0; at < edges.length; at += 5_000) await gateway.publish('g', edges.slice(at, at + 5_000));
  let made = 0;
  const { forest } = gateway.hosts.get('g')!.feed.view;
  const idOf = forest.vertices.idOf.bind(forest.vertices);
  forest.vertices.idOf = (row) => {
    made += 1;
    return idOf(row);
  };
  await gateway.app.listen({ host: '127.0.0.1', port: 0 });
  const { port } = gateway.app.server.address() as AddressInfo;
  const lines = await new Promise<string[]>((resolve, reject) => {
    request({ port, path: '/v1/graphs/g/export' }, (response) => {
      let text = '';
      response.pause();
      void (async () => {
        // What the sockets hold is taken without anybody reading; then it must stop.
        let before = -1;
        while (made !== before) {
          before = made;
          await new Promise((wait) => setTimeout(wait, 100));
        }
        expect(made).toBeLessThan(80_000);
        await gateway.publish('g', { source: 'late', target: 'hub' });
        response.setEncoding('utf8').on('data', (chunk: string) => {
          text += chunk;
        });
        response.on('end', () => resolve(text.trimEnd().split('\n')));
        response.resume();
      })().catch(reject);
    })
      .on('error', reject)
      .end();
  });
  expect(lines).toHaveLength(50_001);
  expect(lines.at(-1)).not.toContain('late');
});

test('a client that takes nothing does not hold up the end of the process', async () => {
  const edges = Array.from({ length: 20_000 }, (_, n) => ({
    source: `s${n}-${'x'.repeat(400)}`,
    target: 'hub',
  }));
  for (let at = 0; at < edges.length; at += 2_000) await gateway.publish('g', edges.slice(at, at + 2_000));
  await gateway.app.listen({ host: '127.0.0.1', port: 0 });
  const { port } = gateway.app.server.address() as AddressInfo;
  const stuck = request({ port, path: '/v1/graphs/g/export' }).end();
  await new Promise<void>((resolve) => {
    stuck.once('response', (response) => {
      response.on('error', () => {}).pause();
      resolve();
    });
  });
  stuck.on('error', () => {});
  await gateway.close();
});

/** RFC 4180, straight from its grammar. */
function parseCsv(text: string): string[][] {
  const records: string[][] = [];
  const field = /(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r\n|$)/gy;
  let record: string[] = [];
  for (const match of text.matchAll(field)) {
    if (match[0] === '' && record.length === 0) break;
    record.push(match[1] === undefined ? match[2]! : match[1].replaceAll('""', '"'));
    if (match[3] === ',') continue;
    records.push(record);
    record = [];
  }
  return records;
}
