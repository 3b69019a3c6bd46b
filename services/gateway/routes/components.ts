import { type Static, Type } from 'typebox';
import {
  ComponentAnswer,
  ComponentsOrOne,
  type ComponentsPage,
  MembersPage,
} from '../../../libs/api/component.ts';
import {
  GraphParams,
  idParameter,
  idQueryNote,
  PAGE_ITEMS_DEFAULT,
  pageParameters,
  ReadQuery,
  readParameters,
} from '../../../libs/api/query.ts';
import { CLOSED } from '../../../libs/api/schema.ts';
import type { Ranked } from '../../../libs/graph/size-order.ts';
import { badCursor, readComponentsCursor, readMembersCursor } from '../cursor.ts';
import { badRequest } from '../problems.ts';
import { checkId } from '../vertex-ids.ts';
import type { App, RouteContext } from './context.ts';
import { json, problems, READ_PROBLEMS } from './responses.ts';

const PageQuery = Type.Object({ ...pageParameters, ...readParameters }, CLOSED);
type PageQuery = Static<typeof PageQuery>;

const ComponentParams = Type.Object(
  {
    ...GraphParams.properties,
    component: idParameter(
      'The id of its oldest vertex, percent-encoded; a retired id leads to the present one.',
    ),
  },
  CLOSED,
);

export function componentRoutes(app: App, context: RouteContext): void {
  const { reader } = context;
  const componentProblems = problems(...READ_PROBLEMS, 'unknown-vertex', 'not-a-component-id');
  const membersProblems = problems(...READ_PROBLEMS, 'bad-cursor', 'unknown-vertex', 'not-a-component-id');

  app.get(
    '/v1/graphs/:graph/components',
    {
      schema: {
        operationId: 'listComponents',
        tags: ['components'],
        summary: 'List components, largest first; or show the one whose id is given in the query',
        description:
          'Each page is as of its own time, unless `asOf` is given. With `id`, the answer is that of `getComponent`.',
        params: GraphParams,
        querystring: Type.Object(
          { id: Type.Optional(idParameter(idQueryNote)), ...pageParameters, ...readParameters },
          CLOSED,
        ),
        response: {
          200: json('A page of components; with `id`, the component.', ComponentsOrOne),
          ...membersProblems,
        },
      },
    },
    async ({ params, query }): Promise<ComponentsPage | ComponentAnswer> => {
      const { id, ...page } = query;
      if (id === undefined) return await listComponents(context, params.graph, page);
      if (page.cursor !== undefined) throw badRequest('/query/cursor', 'has no meaning with `id`');
      checkId(id, '/query/id');
      return (await reader.read(params.graph, page)).componentById(id);
    },
  );

  app.get(
    '/v1/graphs/:graph/components/:component',
    {
      schema: {
        operationId: 'getComponent',
        tags: ['components'],
        summary: 'Show a component',
        params: ComponentParams,
        querystring: ReadQuery,
        response: { 200: json('The component.', ComponentAnswer), ...componentProblems },
      },
    },
    async ({ params, query }): Promise<ComponentAnswer> => {
      checkId(params.component, '/params/component');
      return (await reader.read(params.graph, query)).componentById(params.component);
    },
  );

  app.get(
    '/v1/graphs/:graph/components/:component/vertices',
    {
      schema: {
        operationId: 'listMembers',
        tags: ['components'],
        summary: 'List the members of a component',
        params: ComponentParams,
        querystring: PageQuery,
        response: { 200: json('A page of members.', MembersPage), ...membersProblems },
      },
    },
    async ({ params, query }): Promise<MembersPage> => {
      checkId(params.component, '/params/component');
      return await listMembers(context, params.graph, params.component, query);
    },
  );

  app.get(
    '/v1/graphs/:graph/components/vertices',
    {
      schema: {
        operationId: 'findMembers',
        tags: ['components'],
        summary: 'List the members of a component whose id is given in the query',
        description: 'A component whose own id is `vertices` is shown by `/components?id=vertices`.',
        params: GraphParams,
        querystring: Type.Object({ id: idParameter(idQueryNote), ...PageQuery.properties }, CLOSED),
        response: { 200: json('A page of members.', MembersPage), ...membersProblems },
      },
    },
    async ({ params, query }): Promise<MembersPage> => {
      checkId(query.id, '/query/id');
      return await listMembers(context, params.graph, query.id, query);
    },
  );
}

async function listComponents(
  { reader, deps }: RouteContext,
  graph: string,
  query: PageQuery,
): Promise<ComponentsPage> {
  let after: Ranked | undefined;
  let isPinned = query.asOf !== undefined;
  const { host, reading } = await reader.readAt(graph, query, ({ config }) => {
    if (query.cursor === undefined) return query.asOf;
    const { sequence, ...ranked } = readComponentsCursor(query.cursor, config.id);
    after = ranked;
    isPinned = sequence !== undefined;
    return pinned(sequence, query.asOf);
  });
  const steps = reading.components(host.config.id, after, query.limit ?? PAGE_ITEMS_DEFAULT, isPinned);
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
    await deps.clock.yield();
  }
}

async function listMembers(
  { reader }: RouteContext,
  graph: string,
  id: string,
  query: PageQuery,
): Promise<MembersPage> {
  let row: number | undefined;
  const { host, reading } = await reader.readAt(graph, query, ({ config }) => {
    if (query.cursor === undefined) return query.asOf;
    const cursor = readMembersCursor(query.cursor, config.id);
    row = cursor.row;
    return pinned(cursor.sequence, query.asOf);
  });
  return reading.members(id, host.config.id, row, query.limit ?? PAGE_ITEMS_DEFAULT);
}

/** A cursor's sequence holds; an `asOf` beside it must be the same. */
function pinned(sequence: number | undefined, asOf: number | undefined): number | undefined {
  if (asOf !== undefined && asOf !== sequence) throw badCursor();
  return sequence;
}
