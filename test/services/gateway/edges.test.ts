import { Table, tableToIPC, Utf8, vectorFromArray } from 'apache-arrow';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { Appended } from '../../../libs/api/edges.ts';
import { GraphStatus } from '../../../libs/api/graph.ts';
import { edgesLog } from '../../../libs/dataflow/names.ts';
import { expectSchema, TestGateway } from '../../support/gateway.ts';

const URL = '/v1/graphs/g/edges';
const { stream } = edgesLog('g');

let gateway: TestGateway;
beforeEach(async () => {
  gateway = await TestGateway.start();
  await gateway.graph('g');
});
afterEach(async () => await gateway.close());

function request(payload: string | Buffer, contentType?: string, headers: Record<string, string> = {}) {
  const type = contentType === undefined ? {} : { 'content-type': contentType };
  return { method: 'POST', url: URL, payload, headers: { ...type, ...headers } } as const;
}

async function post(...args: Parameters<typeof request>): Promise<Appended> {
  const response = await gateway.app.inject(request(...args));
  expect(response.statusCode, response.body).toBe(202);
  const answer = response.json<Appended>();
  expectSchema(Appended, answer);
  return answer;
}

async function stored(): Promise<number> {
  return (await gateway.bus.describe(stream))!.last;
}

const arrow = Buffer.from(
  tableToIPC(
    new Table({
      source: vectorFromArray(['a', 'b'], new Utf8()),
      target: vectorFromArray(['b', 'c'], new Utf8()),
    }),
    'stream',
  ),
);

test.each([
  ['application/json', '[{"source":"a","target":"b"},{"source":"b","target":"c"}]'],
  ['application/json; charset=utf-8', '[{"source":"a","target":"b"},{"source":"b","target":"c"}]'],
  ['APPLICATION/X-NDJSON', '{"source":"a","target":"b"}\n{"source":"b","target":"c"}\n'],
  ['application/jsonl', '{"source":"a","target":"b"}\n{"source":"b","target":"c"}\n'],
  ['text/csv', 'source,target\na,b\nb,c\n'],
  ['application/vnd.apache.arrow.stream', arrow],
  [undefined, '{"source":"a","target":"b"}\n{"source":"b","target":"c"}\n'],
  [undefined, arrow],
] as const)('a body of type %s is stored and shows in the answers', async (type, body) => {
  const answer = await post(body, type);
  expect(answer).toEqual({ sequence: { first: 1, last: 1 }, accepted: 2, rejected: 0, rejections: [] });
  expect(Buffer.from((await gateway.bus.message(stream, 1))!.payload).equals(Buffer.from(body))).toBe(true);
  await gateway.settle('g');
  const status = await gateway.get<GraphStatus>('/v1/graphs/g?atLeast=1', GraphStatus);
  expect(status.totals).toMatchObject({ vertices: 3, components: 1, edges: 2, rejected: 0 });
});

test('edges that are not valid are named and do not count; the partitioner rejects the same', async () => {
  const answer = await post(
    '[{"source":"a","target":"b"},{"source":"","target":"b"},{"source":9007199254740993,"target":"b"},' +
      '{"source":"a","target":"b","op":"remove"},{"source":"a"},{"__proto__":{"x":1},"source":"a","target":"__proto__"}]',
    'application/json',
  );
  expect(answer).toMatchObject({ accepted: 2, rejected: 4 });
  expect(answer.rejections.map(({ index }) => index)).toEqual([1, 2, 3, 4]);
  expect(answer.rejections[2]?.reason).toMatch(/keeps its edges/);
  await gateway.settle('g');
  const { totals } = await gateway.get<GraphStatus>('/v1/graphs/g', GraphStatus);
  expect(totals).toMatchObject({ edges: 2, rejected: 4, vertices: 3 });
});

test('at most 100 rejections are listed, all are counted', async () => {
  const edges = [{ source: 'a', target: 'b' }, ...Array.from({ length: 150 }, () => ({ source: '' }))];
  const answer = await post(JSON.stringify(edges), 'application/json');
  expect(answer.rejected).toBe(150);
  expect(answer.rejections).toHaveLength(100);
});

test.each([
  ['all edges rejected', '[{"source":"a"},{"target":"b"}]', 2],
  ['a removal alone', '{"source":"a","target":"b","op":"remove"}', 1],
  ['no edges', '[]', 0],
])('%s: nothing is stored', async (_name, body, rejected) => {
  const problem = await gateway.problem(request(body, 'application/json'), 'no-valid-edge');
  expect(problem).toMatchObject({ status: 422, rejected });
  expect(problem.rejections).toHaveLength(rejected);
  expect(await stored()).toBe(0);
});

test.each([
  ['no JSON', '{"source":', 'application/json'],
  ['empty', '', 'application/json'],
  ['a number', '7', 'application/json'],
  ['deep JSON', '['.repeat(100_000), 'application/json'],
  ['UTF-16', Buffer.from('[{"source":"a","target":"b"}]', 'utf16le'), 'application/json'],
  ['no CSV header of ours', 'x,y\n1,2\n', 'text/csv'],
  ['no Arrow', 'ARROW1', 'application/vnd.apache.arrow.stream'],
  ['Arrow cut short', arrow.subarray(0, arrow.length / 2), 'application/vnd.apache.arrow.stream'],
  ['neither', 'hello', undefined],
] as const)('a body that cannot be decoded (%s) is refused whole', async (_name, body, type) => {
  await gateway.problem(request(body, type), 'bad-payload');
  expect(await stored()).toBe(0);
});

test('a type that is not known is refused, with those that are', async () => {
  const problem = await gateway.problem(request('<edge/>', 'application/xml'), 'unsupported-media-type');
  expect(problem.detail).toContain('application/json, application/x-ndjson');
  await gateway.problem(
    request('{}', 'application/json', { 'content-encoding': 'gzip' }),
    'unsupported-media-type',
  );
});

test('a body over the limit is refused', async () => {
  await gateway.problem(request(' '.repeat(4 * 1024 * 1024 + 1), 'application/json'), 'payload-too-large');
});

test('one edge that no message can hold is refused', async () => {
  const edges = [
    { source: 'a', target: 'b', note: 'x'.repeat(1024 * 1024) },
    { source: 'a', target: 'b' },
  ];
  await gateway.problem(request(JSON.stringify(edges), 'application/json'), 'payload-too-large');
  expect(await stored()).toBe(0);
});

test('an id of 2 MB is rejected, the other edges count', async () => {
  const answer = await post(
    `{"source":"a","target":"b"}\n{"source":"${'x'.repeat(500_000)}","target":"b"}\n`,
    'application/x-ndjson',
  );
  expect(answer).toMatchObject({ accepted: 1, rejected: 1 });
});

test('a large body is cut into messages that hold the same edges', async () => {
  const edges = Array.from({ length: 40_000 }, (_, n) => ({ source: `source-${n}`, target: `target-${n}` }));
  const answer = await post(JSON.stringify(edges), 'application/json');
  expect(answer.accepted).toBe(40_000);
  expect(answer.sequence).toEqual({ first: 1, last: await stored() });
  expect(answer.sequence.last).toBeGreaterThan(1);
  await gateway.settle('g');
  const { totals } = await gateway.get<GraphStatus>('/v1/graphs/g', GraphStatus);
  expect(totals).toMatchObject({ edges: 40_000, vertices: 80_000, components: 40_000 });
});

test('repeated under the same key, a request stores nothing again and gives the same sequences', async () => {
  const edges = Array.from({ length: 20_000 }, (_, n) => ({ source: `source-${n}`, target: `target-${n}` }));
  const body = JSON.stringify(edges);
  const first = await post(body, 'application/json', { 'idempotency-key': 'load-1' });
  await post('{"source":"x","target":"y"}', 'application/json');
  const last = await stored();
  expect(await post(body, 'application/json', { 'idempotency-key': 'load-1' })).toEqual(first);
  expect(await stored()).toBe(last);
  await post(body, 'application/json', { 'idempotency-key': 'load-2' });
  expect(await stored()).toBeGreaterThan(last);
});

test('without a key every request counts', async () => {
  await post('{"source":"a","target":"b"}');
  await post('{"source":"a","target":"b"}');
  expect(await stored()).toBe(2);
});

test.each(['', 'x'.repeat(129), 'a b', 'ä'])('the key %j is refused', async (key) => {
  await gateway.problem(
    request('{"source":"a","target":"b"}', undefined, { 'idempotency-key': key }),
    'bad-request',
  );
});

test('an append whose answer was lost is repeated, and counts once', async () => {
  let appends = 0;
  gateway.bus.onAppend = () => (++appends === 1 ? 'lost-after' : 'none');
  expect(await post('{"source":"a","target":"b"}')).toMatchObject({ sequence: { first: 1, last: 1 } });
  expect(appends).toBe(2);
  expect(await stored()).toBe(1);
});

test('while NATS gives no answer the edges are not taken', async () => {
  gateway.bus.onAppend = () => 'lost-before';
  const problem = await gateway.problem(request('{"source":"a","target":"b"}'), 'nats-unavailable');
  expect(problem.headers['retry-after']).toBe('1');
  gateway.nats = { connected: false, since: new Date() };
  await gateway.problem(request('{"source":"a","target":"b"}'), 'nats-unavailable');
});

test('a body that was stored in part says so', async () => {
  const edges = Array.from({ length: 40_000 }, (_, n) => ({ source: `source-${n}`, target: `target-${n}` }));
  let appends = 0;
  gateway.bus.onAppend = () => (++appends === 1 ? 'none' : 'lost-before');
  const problem = await gateway.problem(
    request(JSON.stringify(edges), 'application/json'),
    'nats-unavailable',
  );
  expect(problem.detail).toMatch(/1 of \d messages of the body are stored already.*same Idempotency-Key/);
});

test('a full log refuses edges until there is room', async () => {
  gateway.bus.append = async () => ({ kind: 'full', reason: 'maximum bytes exceeded' });
  const problem = await gateway.problem(request('{"source":"a","target":"b"}'), 'ingest-full');
  expect(problem).toMatchObject({ status: 429, headers: { 'retry-after': '1' } });
});

test('edges are refused while too many bytes are not in the answers yet, and taken again after', async () => {
  const filler = new TextEncoder().encode(`{"source":"a","target":"b","note":"${'x'.repeat(600_000)}"}`);
  for (let n = 0; n < 2; n++) await gateway.bus.append(edgesLog('g'), filler, {});
  const problem = await gateway.problem(request('{"source":"a","target":"b"}'), 'ingest-full');
  expect(problem.detail).toMatch(/^2 messages, about 1200\d\d\d bytes/);
  expect(problem.headers['retry-after']).toBe('1');
  await gateway.settle('g');
  await post('{"source":"a","target":"b"}');
});

test('there is no such graph', async () => {
  await gateway.problem(
    { ...request('{"source":"a","target":"b"}'), url: '/v1/graphs/nope/edges' },
    'unknown-graph',
  );
});

test('a graph whose log was deleted is unknown once its record is gone, and broken before', async () => {
  await gateway.bus.remove(stream);
  await gateway.problem(request('{"source":"a","target":"b"}'), 'nats-unavailable');
  await gateway.registry.removeGraph('g');
  await gateway.problem(request('{"source":"a","target":"b"}'), 'unknown-graph');
});

test('bodies beyond what the gateway can hold at once are refused, until others are done', async () => {
  const small = await TestGateway.start({ limits: { ingestMaxLagBytes: 1024 * 1024, bodyMaxBytes: 1_000 } });
  await small.graph('g');
  let release = (): void => {};
  const gate = new Promise<void>((resolve) => {
    release = resolve;
  });
  const append = small.bus.append.bind(small.bus);
  small.bus.append = async (...args) => {
    await gate;
    return await append(...args);
  };
  const body = request('{"source":"a","target":"b"}'.padEnd(900), 'application/json');
  const held = Array.from({ length: 4 }, async () => await small.app.inject(body));
  await small.problem(body, 'ingest-full');
  release();
  for (const response of await Promise.all(held)) expect(response.statusCode).toBe(202);
  expect((await small.app.inject(body)).statusCode).toBe(202);
  await small.close();
});
