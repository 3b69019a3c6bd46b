import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ComponentAnswer, ComponentsPage, MembersPage } from '../../../libs/api/component.ts';
import { Totals } from '../../../libs/api/graph.ts';
import { Connection, Vertex } from '../../../libs/api/vertex.ts';
import { Reading } from '../../../services/gateway/answers.ts';
import { readComponentsCursor, readMembersCursor } from '../../../services/gateway/cursor.ts';
import { RequestProblem } from '../../../services/gateway/problems.ts';
import type { View } from '../../../services/gateway/view.ts';
import { FEED_GRAPH_ID, FEED_START_MS, Feed, type FeedPayload, feedView } from '../../support/feed.ts';
import { expectSchema } from '../../support/gateway.ts';

const PARTITIONS = [1, 2, 3, 4, 8];

/** Streams of messages with several edges, a few vertices, self-loops, repetitions and rejects. */
const streams = fc.array(
  fc.array(
    fc.record(
      {
        source: fc.integer({ min: 0, max: 14 }).map((n) => `v${n}`),
        target: fc.oneof(
          fc.integer({ min: 0, max: 14 }).map((n) => `v${n}`),
          fc.constant(''),
        ),
        time: fc.integer({ min: 0, max: 10 ** 12 }),
      },
      { requiredKeys: ['source', 'target'] },
    ),
    { minLength: 1, maxLength: 4 },
  ),
  { minLength: 1, maxLength: 12 },
);

/** Everything that can be asked at a sequence, as text. */
function allAnswers(view: View, sequence: number): string {
  const reading = new Reading(view, sequence);
  const rows = [...reading.exportRows()];
  const ids = rows.map(({ vertex }) => vertex);
  const components = pages(view, sequence, 3);
  return JSON.stringify({
    totals: reading.totals,
    rows,
    vertices: ids.map((id) => reading.vertex(id)),
    named: ids.map((id) => outcome(() => reading.componentById(id))),
    components,
    members: components.map(({ id }) => members(view, sequence, id, 2)),
    lookup: reading.lookup([...ids, 'nobody']),
    connections: ids.flatMap((a) => ids.map((b) => reading.connection(a, b))),
  });
}

function outcome(ask: () => unknown): unknown {
  try {
    return ask();
  } catch (error) {
    if (error instanceof RequestProblem) return error.body('');
    throw error;
  }
}

function pages(view: View, sequence: number, limit: number): { id: string; size: number }[] {
  const found = [];
  let cursor: string | undefined;
  do {
    const after = cursor === undefined ? undefined : readComponentsCursor(cursor, FEED_GRAPH_ID);
    const page = result(new Reading(view, sequence).components(FEED_GRAPH_ID, after, limit, true));
    expectSchema(ComponentsPage, page);
    found.push(...page.components);
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  return found;
}

function members(view: View, sequence: number, id: string, limit: number): string[] {
  const found = [];
  let row: number | undefined;
  for (;;) {
    const page = new Reading(view, sequence).members(id, FEED_GRAPH_ID, row, limit);
    expectSchema(MembersPage, page);
    found.push(...page.vertices);
    if (page.nextCursor === undefined) return found;
    row = readMembersCursor(page.nextCursor, FEED_GRAPH_ID).row;
  }
}

function result<T>(steps: Generator<undefined, T>): T {
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
  }
}

function at(view: View): Reading {
  return new Reading(view, view.sequence);
}

describe('answers', () => {
  test('are the same bytes for any number of partitions', () => {
    fc.assert(
      fc.property(streams, (stream) => {
        const [first, ...others] = PARTITIONS.map((partitions) => {
          const view = feedView(stream, partitions);
          return allAnswers(view, view.sequence);
        });
        for (const other of others) expect(other).toBe(first);
      }),
      { numRuns: 60 },
    );
  });

  test('as of an earlier sequence are those that were given live at it', () => {
    fc.assert(
      fc.property(streams, fc.constantFrom(1, 2, 3), (stream, partitions) => {
        const feed = new Feed({ partitions });
        const live = [allAnswers(feed.view, 0)];
        for (const payload of stream) live.push(allAnswers(feed.view, feed.publish(payload)));
        for (const [sequence, answers] of live.entries()) {
          expect(allAnswers(feed.view, sequence)).toBe(answers);
        }
      }),
      { numRuns: 60 },
    );
  });

  test('list the components and members that a recomputation from scratch finds', () => {
    fc.assert(
      fc.property(streams, (stream) => {
        const view = feedView(stream, 3);
        const expected = componentsFromScratch(stream);
        const found = pages(view, view.sequence, 2);
        expect(found).toEqual(expected.map((vertices) => ({ id: vertices[0], size: vertices.length })));
        for (const [index, { id }] of found.entries()) {
          expect(members(view, view.sequence, id, 3).sort()).toEqual([...expected[index]!].sort());
        }
      }),
      { numRuns: 100 },
    );
  });
});

describe('a vertex', () => {
  test('tells where it arrived and its component', () => {
    const view = feedView(
      [
        { source: 'b', target: 'a' },
        [
          { source: 'x', target: 'y' },
          { source: 'a', target: 'c' },
        ],
      ],
      2,
    );
    const answer = at(view).vertex('c');
    expectSchema(Vertex, answer);
    expect(answer).toEqual({
      id: 'c',
      arrived: { sequence: 2, index: 1, time: '2026-01-01T00:00:02.000Z' },
      component: { id: 'a', size: 3 },
      asOf: { sequence: 2, time: '2026-01-01T00:00:02.000Z' },
    });
  });

  test('is unknown before it arrived', () => {
    const view = feedView(
      [
        { source: 'a', target: 'b' },
        { source: 'b', target: 'c' },
      ],
      2,
    );
    expect(() => new Reading(view, 1).vertex('c')).toThrow(/vertex "c" has not arrived through sequence 1/);
  });
});

describe('a component id', () => {
  // {a, b} and {x, y} grow apart; then b–y joins them under a.
  const stream: FeedPayload[] = [
    { source: 'a', target: 'b' },
    { source: 'x', target: 'y' },
    { source: 'b', target: 'y' },
  ];

  test('that is retired leads to the component that took it over', () => {
    const view = feedView(stream, 2);
    const answer = at(view).componentById('x');
    expectSchema(ComponentAnswer, answer);
    expect(answer).toMatchObject({ id: 'a', size: 4 });
    expect(new Reading(view, 2).componentById('x')).toMatchObject({ id: 'x', size: 2 });
  });

  test('is refused for a vertex that never was the oldest of a component, with the right one', () => {
    const body = outcome(() => at(feedView(stream, 2)).componentById('y'));
    expect(body).toMatchObject({ status: 404, code: 'not-a-component-id', componentId: 'a' });
  });

  test('is not that of a vertex which an older one had joined within its own message', () => {
    // n and o arrive together with the edge that joins them to a: no whole message had them apart.
    const view = feedView(
      [
        { source: 'a', target: 'b' },
        [
          { source: 'n', target: 'o' },
          { source: 'o', target: 'a' },
        ],
      ],
      2,
    );
    expect(outcome(() => at(view).componentById('n'))).toMatchObject({
      code: 'not-a-component-id',
      componentId: 'a',
    });
  });
});

describe('a connection', () => {
  test('names the edge as its publisher oriented it, with its own time', () => {
    const view = feedView(
      [
        { source: 'a', target: 'b' },
        { source: 'd', target: 'c' },
        { source: 'd', target: 'a', time: '1999-12-31T23:59:59Z' },
      ],
      3,
    );
    const answer = at(view).connection('b', 'c');
    expectSchema(Connection, answer);
    expect(answer).toMatchObject({
      connected: true,
      component: { id: 'a', size: 4 },
      since: { sequence: 3, index: 0, time: '2026-01-01T00:00:03.000Z' },
      through: { source: 'd', target: 'a', time: '1999-12-31T23:59:59.000Z', sequence: 3, index: 0 },
    });
  });

  test('takes the arrival of the message where the edge has no time', () => {
    const answer = at(feedView([{ source: 'a', target: 'b' }], 1)).connection('a', 'b');
    expect(answer.through?.time).toBe(new Date(FEED_START_MS + 1000).toISOString());
  });

  test('is not there between two components', () => {
    const view = feedView(
      [
        { source: 'a', target: 'b' },
        { source: 'c', target: 'd' },
      ],
      2,
    );
    const answer = at(view).connection('a', 'd');
    expectSchema(Connection, answer);
    expect(answer).toEqual({ source: 'a', target: 'd', connected: false, asOf: at(view).asOf });
  });

  test('of a vertex with itself stands since it arrived, through no edge', () => {
    const answer = at(feedView([{ source: 'a', target: 'b' }], 2)).connection('b', 'b');
    expectSchema(Connection, answer);
    expect(answer).toMatchObject({ connected: true, since: { sequence: 1, index: 0 } });
    expect(answer.through).toBeUndefined();
  });
});

describe('totals', () => {
  test('count edges as often as they were published, and rejects apart', () => {
    const view = feedView(
      [
        [
          { source: 'a', target: 'b' },
          { source: 'a', target: 'b' },
          { source: '', target: 'b' },
        ],
      ],
      2,
    );
    const { totals } = at(view);
    expectSchema(Totals, totals);
    expect(totals).toEqual({ vertices: 2, components: 1, edges: 2, rejected: 1, sequence: 1 });
  });

  test('are nothing, at no time, before the first message', () => {
    const reading = at(feedView([], 2));
    expect(reading.totals).toEqual({ vertices: 0, components: 0, edges: 0, rejected: 0, sequence: 0 });
    expect(reading.asOf).toEqual({ sequence: 0, time: null });
  });
});

/** Components largest first, each with its oldest vertex first: slow and obvious. */
function componentsFromScratch(
  stream: readonly (readonly { source: string; target: string }[])[],
): string[][] {
  const order: string[] = [];
  const component = new Map<string, Set<string>>();
  for (const { source, target } of stream.flat()) {
    if (target === '') continue;
    const [smaller, larger] = [source, target].sort() as [string, string];
    for (const id of [smaller, larger]) {
      if (component.has(id)) continue;
      order.push(id);
      component.set(id, new Set([id]));
    }
    const joined = new Set([...component.get(source)!, ...component.get(target)!]);
    for (const id of joined) component.set(id, joined);
  }
  const lists = [...new Set(component.values())].map((ids) => order.filter((id) => ids.has(id)));
  return lists.sort((a, b) => b.length - a.length || order.indexOf(a[0]!) - order.indexOf(b[0]!));
}
