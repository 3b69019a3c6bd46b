/** Ids with any characters go in and come back byte for byte, by path, by query and in bodies. */
import fc from 'fast-check';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { ComponentAnswer, MembersPage } from '../../../libs/api/component.ts';
import { Connection, type LookupAnswer, Vertex } from '../../../libs/api/vertex.ts';
import { TestGateway } from '../../support/gateway.ts';

let gateway: TestGateway;
beforeEach(async () => {
  gateway = await TestGateway.start();
  await gateway.graph('g', 3);
});
afterEach(async () => await gateway.close());

const IDS = [
  'a/b',
  'a%2Fb',
  'a%252Fb',
  '../..',
  '..%2F',
  '%',
  '%%',
  '%zz',
  '100%',
  'a b',
  ' a',
  'a ',
  '+',
  'a+b',
  '&id=x',
  '?',
  '#',
  'a;b=c',
  '=',
  '*',
  '>',
  '$JS.API.INFO',
  'test.one two',
  'foo..bar',
  '"quoted"',
  "it's",
  '\\',
  '\u0000',
  'nul\u0000inside',
  'tab\there',
  'line\nbreak\r\n',
  '\u007f',
  '\ufeffbom',
  '\ufffd',
  'Auditori\u0301a',
  'Auditoría',
  '\u212b',
  '\u00c5',
  'ملف',
  '😀',
  '👩‍👩‍👧',
  '__proto__',
  'constructor',
  'hasOwnProperty',
  'toString',
  'undefined',
  'null',
  '0',
  '-0',
  '01',
  '1.0',
  '1e3',
  '9280805980001101',
  'https://example.org/a?b=c&d=%20#e',
  'lookup',
  'vertices',
  'components',
  'x'.repeat(1024),
  '/'.repeat(1024),
  'é'.repeat(512),
  '😀'.repeat(256),
];

async function checkEverywhere(id: string): Promise<void> {
  const path = encodeURIComponent(id);
  const query = new URLSearchParams({ id }).toString();
  const graph = '/v1/graphs/g';
  const vertex = await gateway.get<Vertex>(`${graph}/vertices/${path}`, Vertex);
  expect(vertex.id).toBe(id);
  for (const encoded of [query, `id=${path}`]) {
    expect(await gateway.get(`${graph}/vertices?${encoded}`, Vertex)).toEqual(vertex);
  }
  const name = vertex.component.id;
  const named = encodeURIComponent(name);
  const component = await gateway.get<ComponentAnswer>(`${graph}/components?id=${named}`, ComponentAnswer);
  expect(component).toMatchObject(vertex.component);
  const members = await gateway.get<MembersPage>(`${graph}/components/vertices?id=${named}`, MembersPage);
  expect(members.vertices).toContain(id);
  // `/components/vertices` is the members' query form; that one id has only the other way.
  if (name !== 'vertices') {
    expect(await gateway.get(`${graph}/components/${named}`, ComponentAnswer)).toEqual(component);
  }
  expect(await gateway.get(`${graph}/components/${named}/vertices`, MembersPage)).toEqual(members);
  const pair = new URLSearchParams({ source: id, target: name }).toString();
  const connection = await gateway.get<Connection>(`${graph}/connected?${pair}`, Connection);
  expect(connection).toMatchObject({ source: id, target: name, connected: true });
  const response = await gateway.app.inject({
    method: 'POST',
    url: `${graph}/vertices/lookup`,
    payload: { ids: [id] },
  });
  expect(response.json<LookupAnswer>().vertices).toEqual([{ id, component: vertex.component }]);
}

test('every id is found alone, as itself', async () => {
  // Each with an own partner, so that two ids taken for one would make a component of more than two.
  await gateway.publish('g', ...IDS.map((id, n) => ({ source: id, target: `partner-${n}` })));
  for (const id of IDS) {
    await checkEverywhere(id);
    const vertex = await gateway.get<Vertex>(`/v1/graphs/g/vertices?id=${encodeURIComponent(id)}`, Vertex);
    expect(vertex.component.size).toBe(2);
  }
});

test('`.` and `..`, which vanish from paths, are found by query', async () => {
  await gateway.publish('g', { source: '.', target: 'one' }, { source: '..', target: 'two' });
  for (const id of ['.', '..']) {
    expect(await gateway.get(`/v1/graphs/g/vertices?id=${id}`, Vertex)).toMatchObject({ id });
    expect(await gateway.get(`/v1/graphs/g/components?id=${id}`, ComponentAnswer)).toMatchObject({ id });
    const page = await gateway.get<MembersPage>(`/v1/graphs/g/components/vertices?id=${id}`, MembersPage);
    expect(page.vertices).toHaveLength(2);
  }
});

test('so is any text that can be an id', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.string({ unit: 'grapheme', minLength: 1, maxLength: 40 }).filter((id) => id !== '.' && id !== '..'),
      async (id) => {
        await gateway.publish('g', { source: id, target: 'hub' });
        await checkEverywhere(id);
      },
    ),
    { numRuns: 100 },
  );
});

test.each([
  ['a path longer than any id', `/vertices/${'x'.repeat(3073)}`, 'uri-too-long'],
  ['an id of 1,025 bytes', `/vertices/${'x'.repeat(1025)}`, 'bad-request'],
  ['an id of 1,025 bytes by query', `/vertices?id=${'x'.repeat(1025)}`, 'bad-request'],
  [
    'an id of 1,026 bytes in fewer characters',
    `/vertices/${encodeURIComponent('é'.repeat(513))}`,
    'bad-request',
  ],
  ['an empty id', '/vertices/', 'bad-request'],
  ['an empty id by query', '/vertices?id=', 'bad-request'],
  ['no id', '/vertices', 'bad-request'],
  ['two ids', '/vertices?id=a&id=b', 'bad-request'],
  ['a byte that is no UTF-8', '/vertices/%FF', 'bad-request'],
  ['a byte that is no UTF-8, by query', '/vertices?id=%FF', 'bad-request'],
  ['an overlong form', '/vertices/%C0%AF', 'bad-request'],
  ['an encoded surrogate', '/vertices?id=%ED%A0%BD', 'bad-request'],
  ['half an escape', '/vertices/%2', 'bad-request'],
  ['half an escape, by query', '/vertices?id=%2', 'bad-request'],
  ['no escape', '/vertices?id=%zz', 'bad-request'],
  ['a component of no id', '/components/', 'bad-request'],
  ['a broken escape of a component', '/components/%FF/vertices', 'bad-request'],
] as const)('%s is refused', async (_name, path, code) => {
  await gateway.publish('g', { source: 'a', target: '%FF' });
  await gateway.problem(`/v1/graphs/g${path}`, code);
});
