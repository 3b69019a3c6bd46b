import type { AddressInfo } from 'node:net';
import { connect } from 'node:net';
import fc from 'fast-check';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { PROBLEM_CODES } from '../../../libs/api/problem.ts';
import { PROBLEMS } from '../../../services/gateway/problems.ts';
import { expectProblem, TestGateway } from '../../support/gateway.ts';

let gateway: TestGateway;
beforeEach(async () => {
  gateway = await TestGateway.start();
  await gateway.graph('g', 2);
  await gateway.publish('g', { source: 'a', target: 'b' });
});
afterEach(async () => await gateway.close());

test('every code has its place in the catalogue', () => {
  expect(Object.keys(PROBLEMS).sort()).toEqual([...PROBLEM_CODES].sort());
});

test.each([
  '/',
  '/nope',
  '/v1',
  '/v1/graphs/g/nope',
  '/v1/graphs/',
  '//v1/graphs',
  '/V1/graphs',
  '/v1/graphs/g/',
])('there is nothing at %s', async (url) => {
  const response = await gateway.app.inject(url);
  const problem = expectProblem(response.statusCode, response.headers['content-type'], response.body);
  expect(['unknown-route', 'bad-request']).toContain(problem.code);
});

test.each([
  ['POST', '/v1/graphs', 'GET, HEAD'],
  ['PATCH', '/v1/graphs/g', 'DELETE, GET, HEAD, PUT'],
  ['GET', '/v1/graphs/g/edges', 'POST'],
  ['PUT', '/v1/graphs/g/edges', 'POST'],
  ['DELETE', '/v1/graphs/g/vertices/a', 'GET, HEAD'],
  ['PUT', '/v1/graphs/g/vertices/lookup', 'GET, HEAD, POST'],
  ['DELETE', '/v1/graphs/g/components/vertices', 'GET, HEAD'],
  ['OPTIONS', '/healthz', 'GET, HEAD'],
  ['TRACE', '/metrics', 'GET, HEAD'],
] as const)('%s %s: the methods that there are', async (method, url, allow) => {
  const problem = await gateway.problem({ method: method as 'GET', url }, 'method-not-allowed');
  expect(problem.headers['allow']).toBe(allow);
});

test('GET of a vertex whose id is a word of a path is no other method', async () => {
  await gateway.problem('/v1/graphs/g/vertices/lookup', 'unknown-vertex');
});

test('a fault of ours is 500 and tells nothing of its inside', async () => {
  const host = gateway.hosts.get('g')!;
  host.feed.view.forest.cutAt = () => {
    throw new TypeError('secret at /home/someone/file.ts:1');
  };
  const problem = await gateway.problem('/v1/graphs/g/vertices/a', 'internal-error');
  expect(JSON.stringify(problem)).not.toMatch(/secret|file\.ts|TypeError/);
});

test('the answer to a HEAD is that of the GET without its body', async () => {
  const response = await gateway.app.inject({ method: 'HEAD', url: '/v1/graphs/g/vertices/a' });
  expect(response.statusCode).toBe(200);
  expect(response.body).toBe('');
});

const URLS = [
  '/v1/graphs',
  '/v1/graphs/g',
  '/v1/graphs/g/edges',
  '/v1/graphs/g/vertices/lookup',
  '/v1/graphs/g/vertices/a',
  '/v1/graphs/g/components',
  '/v1/graphs/g/connected',
  '/v1/cluster',
] as const;
const METHODS = ['GET', 'PUT', 'POST', 'DELETE', 'PATCH'] as const;
const TYPES = [
  'application/json',
  'application/x-ndjson',
  'text/csv',
  'application/vnd.apache.arrow.stream',
  'application/x-www-form-urlencoded',
  'multipart/form-data; boundary=x',
  'text/plain',
  'application/json; charset=utf-16',
  'garbage',
  '/',
  '',
];

test('no garbage gives a 500', async () => {
  const bodies = fc.oneof(
    fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes)),
    fc.json().map((text) => Buffer.from(text)),
    fc.string({ unit: 'binary', maxLength: 300 }).map((text) => Buffer.from(text)),
    fc
      .constantFrom('', '[', '{"', 'null', '""', '[[[[', '{"ids":{}}', '\u0000')
      .map((text) => Buffer.from(text)),
    fc.constantFrom(
      Buffer.from(`${'{"a":'.repeat(20_000)}1${'}'.repeat(20_000)}`),
      Buffer.from(`{"source":"${'x'.repeat(2_000_000)}","target":"b"}`),
    ),
  );
  const queries = fc.oneof(
    fc.constant(''),
    fc.webQueryParameters().map((query) => `?${query}`),
    fc
      .dictionary(
        fc.constantFrom(
          'id',
          'limit',
          'cursor',
          'asOf',
          'atLeast',
          'source',
          'target',
          'format',
          '__proto__',
        ),
        fc.string({ maxLength: 20 }),
      )
      .map((query) => `?${new URLSearchParams({ timeout: '0', ...query })}`),
    fc.constantFrom('?%', '?id=%00', '?=&&==', '?timeout=0&atLeast=9e99', `?id=${'%41'.repeat(2000)}`),
  );
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(...METHODS),
      fc.constantFrom(...URLS),
      queries,
      fc.constantFrom(...TYPES),
      bodies,
      async (method, url, query, type, payload) => {
        // DELETE of the graph itself would be understood.
        if (method === 'DELETE' && url === '/v1/graphs/g') return;
        const headers = type === '' ? {} : { 'content-type': type };
        const response = await gateway.app.inject({ method, url: url + query, headers, payload });
        if (response.statusCode < 400) return;
        const { code } = expectProblem(response.statusCode, response.headers['content-type'], response.body);
        expect(code, `${method} ${url}${query} ${type}`).not.toBe('internal-error');
      },
    ),
    { numRuns: 500 },
  );
  expect(({} as Record<string, unknown>)['ids']).toBeUndefined();
});

test('what is not HTTP, and a URL longer than a server reads, are answered with a problem too', async () => {
  await gateway.app.listen({ host: '127.0.0.1', port: 0 });
  const { port } = gateway.app.server.address() as AddressInfo;
  const tooLong = await exchange(
    port,
    `GET /v1/graphs/g/vertices?id=${'x'.repeat(20_000)} HTTP/1.1\r\nHost: a\r\n\r\n`,
  );
  expect(problemIn(tooLong)).toMatchObject({ status: 414, code: 'uri-too-long' });
  expect(problemIn(await exchange(port, 'hello\r\n\r\n'))).toMatchObject({
    status: 400,
    code: 'bad-request',
  });
  const raw = await exchange(
    port,
    'GET /v1/graphs/g/vertices/é HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n',
  );
  expect(problemIn(raw)).toMatchObject({ status: 400, code: 'bad-request' });
  // Dots that are sent encoded, past every client that would resolve them.
  const dots = await exchange(
    port,
    'GET /v1/graphs/g/vertices/%2e%2e HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n',
  );
  expect(problemIn(dots)).toMatchObject({ code: 'unknown-vertex' });
});

async function exchange(port: number, text: string): Promise<string> {
  return await new Promise((resolve, reject) => {
    let answer = '';
    const socket = connect(port, '127.0.0.1', () => socket.write(text));
    socket.setEncoding('utf8');
    socket.on('data', (chunk: string) => {
      answer += chunk;
    });
    socket.on('end', () => resolve(answer));
    socket.on('error', reject);
  });
}

function problemIn(answer: string): unknown {
  const [head, body] = answer.split('\r\n\r\n');
  const status = Number(head!.split(' ')[1]);
  return expectProblem(status, /content-type: (\S+)/i.exec(head!)?.[1], body!);
}
