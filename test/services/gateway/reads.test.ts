import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { GraphStatus } from '../../../libs/api/graph.ts';
import { Connection, LookupAnswer, Vertex } from '../../../libs/api/vertex.ts';
import { expectSchema, type MemoryHost, TestGateway } from '../../support/gateway.ts';

let gateway: TestGateway;
let host: MemoryHost;
beforeEach(async () => {
  gateway = await TestGateway.start();
  host = await gateway.graph('g', 3);
  await gateway.publish(
    'g',
    { source: 'a', target: 'b' },
    { source: 'x', target: 'y' },
    { source: 'y', target: 'b' },
  );
});
afterEach(async () => await gateway.close());

async function lookup(payload: object | string, query = '') {
  return await gateway.app.inject({
    method: 'POST',
    url: `/v1/graphs/g/vertices/lookup${query}`,
    headers: { 'content-type': 'application/json' },
    payload,
  });
}

describe('a vertex', () => {
  test('is found by path and by query', async () => {
    const byPath = await gateway.get<Vertex>('/v1/graphs/g/vertices/y', Vertex);
    expect(byPath).toMatchObject({
      id: 'y',
      arrived: { sequence: 2, index: 0 },
      component: { id: 'a', size: 4 },
    });
    expect(await gateway.get('/v1/graphs/g/vertices?id=y', Vertex)).toEqual(byPath);
  });

  test('that is unknown is a problem, as is one that had not arrived as of the sequence', async () => {
    expect((await gateway.problem('/v1/graphs/g/vertices/nobody', 'unknown-vertex')).detail).toContain(
      '"nobody"',
    );
    await gateway.problem('/v1/graphs/g/vertices/x?asOf=1', 'unknown-vertex');
  });

  test('had the component then that it had then', async () => {
    const vertex = await gateway.get<Vertex>('/v1/graphs/g/vertices/y?asOf=2', Vertex);
    expect(vertex).toMatchObject({ component: { id: 'x', size: 2 }, asOf: { sequence: 2 } });
  });
});

describe('connected', () => {
  test('says since when and through which edge', async () => {
    const answer = await gateway.get<Connection>('/v1/graphs/g/connected?source=x&target=a', Connection);
    expect(answer).toMatchObject({
      connected: true,
      component: { id: 'a', size: 4 },
      since: { sequence: 3, index: 0 },
      through: { source: 'y', target: 'b', sequence: 3 },
    });
  });

  test('is false, not an error, before that', async () => {
    const answer = await gateway.get<Connection>(
      '/v1/graphs/g/connected?source=x&target=a&asOf=2',
      Connection,
    );
    expect(answer).toMatchObject({ connected: false, asOf: { sequence: 2 } });
  });

  test('names the vertex that is unknown', async () => {
    const one = await gateway.problem('/v1/graphs/g/connected?source=nobody&target=a', 'unknown-vertex');
    expect(one.detail).toContain('"nobody"');
    const other = await gateway.problem('/v1/graphs/g/connected?source=a&target=noone', 'unknown-vertex');
    expect(other.detail).toContain('"noone"');
  });

  test('needs both', async () => {
    const problem = await gateway.problem('/v1/graphs/g/connected?source=a', 'bad-request');
    expect(problem.errors).toEqual([{ pointer: '/query/target', detail: 'is missing' }]);
  });
});

describe('lookup', () => {
  test('answers for each id in order, known or not, repeated or not', async () => {
    const response = await lookup({ ids: ['b', 'nobody', '__proto__', 'b', 'constructor'] });
    expect(response.statusCode).toBe(200);
    const answer = response.json<LookupAnswer>();
    expectSchema(LookupAnswer, answer);
    expect(answer.vertices).toEqual([
      { id: 'b', component: { id: 'a', size: 4 } },
      { id: 'nobody' },
      { id: '__proto__' },
      { id: 'b', component: { id: 'a', size: 4 } },
      { id: 'constructor' },
    ]);
    expect((await lookup({ ids: ['y'] }, '?asOf=2')).json()).toMatchObject({
      vertices: [{ component: { id: 'x', size: 2 } }],
      asOf: { sequence: 2 },
    });
  });

  test('takes 1,000 ids of 1,024 bytes, however they are written', async () => {
    const ids = Array.from({ length: 1000 }, () => '\\u0001'.repeat(1024));
    const response = await lookup(`{"ids":[${ids.map((id) => `"${id}"`).join(',')}]}`);
    expect(response.statusCode).toBe(200);
    expect(response.json<LookupAnswer>().vertices).toHaveLength(1000);
  });

  test.each([
    ['no ids', '{"ids":[]}'],
    ['too many', JSON.stringify({ ids: Array.from({ length: 1001 }, () => 'a') })],
    ['a number, which would lose digits', '{"ids":[9007199254740993]}'],
    ['an empty id', '{"ids":[""]}'],
    ['an id of 1,025 bytes', JSON.stringify({ ids: ['é'.repeat(513)] })],
    ['half of a surrogate pair', '{"ids":["\\ud83d"]}'],
    ['null', '{"ids":[null]}'],
    ['no object', '[]'],
    ['no JSON', '{"ids":'],
    ['nothing', ''],
    ['deep JSON', `{"ids":${'['.repeat(50_000)}${']'.repeat(50_000)}}`],
    ['__proto__', '{"__proto__":{"ids":["a"]}}'],
    ['an unknown key', '{"ids":["a"],"asof":1}'],
  ])('refuses %s', async (_name, payload) => {
    await gateway.problem(
      {
        method: 'POST',
        url: '/v1/graphs/g/vertices/lookup',
        headers: { 'content-type': 'application/json' },
        payload,
      },
      'bad-request',
    );
  });

  test('refuses what is not JSON by its type', async () => {
    await gateway.problem(
      {
        method: 'POST',
        url: '/v1/graphs/g/vertices/lookup',
        headers: { 'content-type': 'text/csv' },
        payload: 'a',
      },
      'unsupported-media-type',
    );
  });
});

describe('waiting', () => {
  test('atLeast waits until the view holds the sequence', async () => {
    setTimeout(() => void gateway.publish('g', { source: 'late', target: 'a' }), 30);
    const vertex = await gateway.get<Vertex>('/v1/graphs/g/vertices/late?atLeast=4', Vertex);
    expect(vertex.asOf.sequence).toBe(4);
  });

  test('asOf beyond the view waits likewise, and is answered as of that sequence', async () => {
    setTimeout(
      () => void gateway.publish('g', { source: 'p', target: 'q' }, { source: 'q', target: 'a' }),
      30,
    );
    const status = await gateway.get<GraphStatus>('/v1/graphs/g?asOf=4', GraphStatus);
    expect(status.totals).toMatchObject({ vertices: 6, components: 2, sequence: 4 });
  });

  test('atLeast later than asOf only waits', async () => {
    const vertex = await gateway.get<Vertex>('/v1/graphs/g/vertices/a?atLeast=3&asOf=1', Vertex);
    expect(vertex).toMatchObject({ component: { size: 2 }, asOf: { sequence: 1 } });
  });

  test('ends after the timeout with how far the view is', async () => {
    for (const wait of ['atLeast=9', 'asOf=9']) {
      const problem = await gateway.problem(`/v1/graphs/g/components?${wait}&timeout=0.02`, 'not-yet');
      expect(problem).toMatchObject({ status: 503, sequence: 3, headers: { 'retry-after': '1' } });
    }
  });

  test('a view whose state is being read is waited for, and then named', async () => {
    host.isRestoring = true;
    const problem = await gateway.problem('/v1/graphs/g/vertices/a?timeout=0.02', 'not-ready');
    expect(problem).toMatchObject({ status: 503, headers: { 'retry-after': '1' } });
    setTimeout(() => {
      host.isRestoring = false;
      host.wake();
    }, 30);
    await gateway.get('/v1/graphs/g/vertices/a', Vertex);
  });

  test.each([
    'atLeast=-1',
    'atLeast=x',
    'atLeast=1.5',
    'atLeast=1e3',
    'atLeast=9007199254740993',
    'atLeast=1&atLeast=2',
    'asOf=',
    'asOf=0x10',
    'timeout=61',
    'timeout=-1',
    'atleast=1',
    '__proto__=1',
    'constructor=1',
  ])('refuses %s', async (query) => {
    const problem = await gateway.problem(`/v1/graphs/g/vertices/a?${query}`, 'bad-request');
    expect(problem.errors?.[0]?.pointer).toBe(`/query/${query.split('=')[0]}`);
  });
});
