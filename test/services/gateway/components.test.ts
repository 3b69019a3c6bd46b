import { afterEach, beforeEach, expect, test } from 'vitest';
import { ComponentAnswer, ComponentsPage, MembersPage } from '../../../libs/api/component.ts';
import { writeComponentsCursor, writeMembersCursor } from '../../../services/gateway/cursor.ts';
import { type MemoryHost, TestGateway } from '../../support/gateway.ts';

let gateway: TestGateway;
let host: MemoryHost;
beforeEach(async () => {
  gateway = await TestGateway.start();
  host = await gateway.graph('g', 3);
});
afterEach(async () => await gateway.close());

/** A star of `size` vertices, `<name>0` first. */
function star(name: string, size: number): { source: string; target: string }[] {
  return Array.from({ length: size - 1 }, (_, n) => ({ source: `${name}0`, target: `${name}${n + 1}` }));
}

async function components(query: string): Promise<ComponentsPage> {
  return await gateway.get<ComponentsPage>(`/v1/graphs/g/components?${query}`, ComponentsPage);
}

async function members(id: string, query: string): Promise<MembersPage> {
  return await gateway.get<MembersPage>(`/v1/graphs/g/components/${id}/vertices?${query}`, MembersPage);
}

test('components come largest first, of equal sizes the older first, page by page', async () => {
  await gateway.publish('g', star('a', 2), star('b', 5), star('c', 70), star('d', 2), star('e', 5));
  const ids: string[] = [];
  let cursor = '';
  do {
    const page = await components(`limit=2${cursor}`);
    expect(page.components.length).toBeLessThanOrEqual(2);
    ids.push(...page.components.map(({ id }) => id));
    cursor = page.nextCursor === undefined ? '' : `&cursor=${page.nextCursor}`;
  } while (cursor !== '');
  expect(ids).toEqual(['c0', 'b0', 'e0', 'a0', 'd0']);
});

test('each page is as of its own time, unless asOf pins the list', async () => {
  await gateway.publish('g', star('a', 4), star('b', 3), star('c', 2));
  const live = await components('limit=1');
  const pinned = await components('limit=1&asOf=3');
  await gateway.publish(
    'g',
    { source: 'c0', target: 'd0' },
    { source: 'c0', target: 'd1' },
    { source: 'b0', target: 'c0' },
  );
  const liveNext = await components(`limit=5&cursor=${live.nextCursor}`);
  expect(liveNext).toMatchObject({ components: [], asOf: { sequence: 6 } });
  const pinnedNext = await components(`limit=5&cursor=${pinned.nextCursor}`);
  expect(pinnedNext).toMatchObject({
    components: [
      { id: 'b0', size: 3 },
      { id: 'c0', size: 2 },
    ],
    asOf: { sequence: 3 },
  });
  expect(pinnedNext.nextCursor).toBeUndefined();
});

test('a graph without components has an empty page', async () => {
  expect(await components('')).toEqual({ components: [], asOf: { sequence: 0, time: null } });
});

test('one component is shown by path and by query; a retired id leads to the present one', async () => {
  await gateway.publish('g', star('a', 2), star('b', 2), { source: 'b1', target: 'a1' });
  for (const url of ['/v1/graphs/g/components/b0', '/v1/graphs/g/components?id=b0']) {
    const answer = await gateway.get<ComponentAnswer>(url, ComponentAnswer);
    expect(answer).toMatchObject({ id: 'a0', size: 4 });
  }
  const then = await gateway.get<ComponentAnswer>('/v1/graphs/g/components/b0?asOf=2', ComponentAnswer);
  expect(then).toMatchObject({ id: 'b0', size: 2 });
});

test('a vertex that names no component is refused, with the id that does', async () => {
  await gateway.publish('g', star('a', 3));
  for (const path of [
    'components/a2',
    'components?id=a2',
    'components/a2/vertices',
    'components/vertices?id=a2',
  ]) {
    const problem = await gateway.problem(`/v1/graphs/g/${path}`, 'not-a-component-id');
    expect(problem).toMatchObject({ status: 404, componentId: 'a0' });
  }
  await gateway.problem('/v1/graphs/g/components/nobody', 'unknown-vertex');
  await gateway.problem('/v1/graphs/g/components/nobody/vertices', 'unknown-vertex');
});

test('a component whose id is a word of a path is shown by query, its members by path too', async () => {
  await gateway.publish('g', { source: 'vertices', target: 'vertices' }, { source: 'lookup', target: 'y' });
  expect(await gateway.get('/v1/graphs/g/components?id=vertices', ComponentAnswer)).toMatchObject({
    size: 1,
  });
  expect((await members('vertices', '')).vertices).toEqual(['vertices']);
  expect((await members('lookup', '')).vertices).toEqual(['lookup', 'y']);
  const problem = await gateway.problem('/v1/graphs/g/components/vertices', 'bad-request');
  expect(problem.errors).toEqual([{ pointer: '/query/id', detail: 'is missing' }]);
});

test('members of the start are neither missing nor repeated while components merge and grow', async () => {
  await gateway.publish('g', star('a', 40), star('b', 30), star('z', 20));
  await gateway.publish('g', { source: 'a3', target: 'b7' });
  const seen: string[] = [];
  let page = await members('a0', 'limit=7');
  let round = 0;
  for (;;) {
    seen.push(...page.vertices);
    expect(page.asOf.sequence).toBe(4);
    expect(page.component).toEqual({ id: 'a0', size: 70 });
    if (page.nextCursor === undefined) break;
    round += 1;
    // New members before and behind the cursor, and another component that takes this one over.
    await gateway.publish(
      'g',
      { source: `a${round}`, target: `new${round}` },
      { source: 'b1', target: `0${round}` },
    );
    if (round === 3) await gateway.publish('g', [...star('z', 200), { source: 'z1', target: 'a1' }]);
    page = await members('a0', `limit=7&cursor=${page.nextCursor}`);
  }
  const start = [...Array(40).keys()].map((n) => `a${n}`).concat([...Array(30).keys()].map((n) => `b${n}`));
  expect(new Set(seen).size).toBe(seen.length);
  expect(seen.sort()).toEqual(start.sort());
});

test('the id that retired between two pages still leads through the list', async () => {
  await gateway.publish('g', star('a', 2), star('b', 6));
  const first = await members('b0', 'limit=4');
  await gateway.publish('g', { source: 'a0', target: 'b0' });
  const second = await members('b0', `limit=4&cursor=${first.nextCursor}`);
  expect([...first.vertices, ...second.vertices].sort()).toEqual(['b0', 'b1', 'b2', 'b3', 'b4', 'b5']);
  expect(second.component).toEqual({ id: 'b0', size: 6 });
});

test('a cursor that is none of this list is refused, never answered with the first page', async () => {
  await gateway.publish('g', star('a', 5), star('b', 5));
  const { id } = host.config;
  const ofMembers = (await members('a0', 'limit=2')).nextCursor!;
  const ofComponents = (await components('limit=1')).nextCursor!;
  const foreign = writeMembersCursor('f'.repeat(32), { sequence: 2, row: 1 });
  const bad = {
    [`components/a0/vertices?cursor=${ofComponents}`]: 'of another kind',
    [`components?cursor=${ofMembers}`]: 'of another kind',
    [`components/b0/vertices?cursor=${ofMembers}`]: 'of another component',
    [`components/a0/vertices?cursor=${foreign}`]: 'of another graph',
    [`components?cursor=${writeComponentsCursor('f'.repeat(32), { sequence: undefined, size: 5, oldest: 0 })}`]:
      'of another graph',
    [`components/a0/vertices?cursor=${writeMembersCursor(id, { sequence: 2, row: 99 })}`]: 'of no row',
    [`components?cursor=${writeComponentsCursor(id, { sequence: undefined, size: 0, oldest: 0 })}`]:
      'of no size',
    [`components?cursor=${writeComponentsCursor(id, { sequence: undefined, size: 2 ** 33, oldest: 0 })}`]:
      'of no size',
    [`components/a0/vertices?cursor=${ofMembers}&asOf=1`]: 'of another sequence',
    [`components?cursor=${ofComponents}&asOf=1`]: 'of another sequence',
    [`components?cursor=${ofComponents}A`]: 'longer',
    [`components?cursor=${ofComponents.slice(0, -1)}`]: 'shorter',
    [`components?cursor=${ofComponents}==`]: 'padded',
    'components?cursor=garbage': 'garbage',
    'components?cursor=%F0%9F%98%80': 'garbage',
    'components/a0/vertices?cursor=0': 'garbage',
  };
  for (const path of Object.keys(bad)) await gateway.problem(`/v1/graphs/g/${path}`, 'bad-cursor');
  await gateway.problem('/v1/graphs/g/components?cursor=', 'bad-request');
  await gateway.problem(`/v1/graphs/g/components?id=a0&cursor=${ofComponents}`, 'bad-request');
});

test('a cursor of a gateway that is ahead waits for the sequence', async () => {
  await gateway.publish('g', star('a', 5));
  const ahead = writeMembersCursor(host.config.id, { sequence: 2, row: 0 });
  await gateway.problem(`/v1/graphs/g/components/a0/vertices?cursor=${ahead}&timeout=0.02`, 'not-yet');
});

test.each(['limit=0', 'limit=1001', 'limit=x', 'limit=1.5', 'limit=', 'offset=5'])(
  'refuses %s',
  async (query) => {
    await gateway.publish('g', star('a', 2));
    for (const path of ['components', 'components/a0/vertices']) {
      const problem = await gateway.problem(`/v1/graphs/g/${path}?${query}`, 'bad-request');
      expect(problem.errors?.[0]?.pointer).toBe(`/query/${query.split('=')[0]}`);
    }
  },
);
