/** Answers about components. */
import { type Static, Type } from 'typebox';
import { AS_OF_EXAMPLE, AsOf, COMPONENT_EXAMPLE, Component, VertexId } from './fields.ts';
import { CLOSED, Named } from './schema.ts';

const NextCursor = Type.String({ description: 'Asks for the next page; absent on the last.' });

export const ComponentAnswer = Type.Object(
  { id: Named(VertexId), size: Type.Integer({ minimum: 1 }), asOf: Named(AsOf) },
  {
    $id: 'ComponentAnswer',
    ...CLOSED,
    description: 'A component. `id` is the present one, also where a retired one was asked for.',
    examples: [{ ...COMPONENT_EXAMPLE, asOf: AS_OF_EXAMPLE }],
  },
);
export type ComponentAnswer = Static<typeof ComponentAnswer>;

export const ComponentsPage = Type.Object(
  {
    components: Type.Array(Named(Component)),
    asOf: Named(AsOf),
    nextCursor: Type.Optional(NextCursor),
  },
  {
    $id: 'ComponentsPage',
    ...CLOSED,
    description: 'Components, largest first; of equal sizes the older first.',
    examples: [{ components: [COMPONENT_EXAMPLE], asOf: AS_OF_EXAMPLE }],
  },
);
export type ComponentsPage = Static<typeof ComponentsPage>;

export const MembersPage = Type.Object(
  {
    component: Named(Component),
    vertices: Type.Array(Named(VertexId)),
    asOf: Named(AsOf),
    nextCursor: Type.Optional(NextCursor),
  },
  {
    $id: 'MembersPage',
    ...CLOSED,
    description: 'Members of a component. All pages of a list are as of the sequence of its first.',
    examples: [{ component: COMPONENT_EXAMPLE, vertices: ['ann', 'bob', 'eve'], asOf: AS_OF_EXAMPLE }],
  },
);
export type MembersPage = Static<typeof MembersPage>;

export const ComponentsOrOne = Type.Union([Named(ComponentsPage), Named(ComponentAnswer)], {
  $id: 'ComponentsOrOne',
  description: 'A page of components, or one component where its id was given.',
  examples: [{ components: [COMPONENT_EXAMPLE], asOf: AS_OF_EXAMPLE }],
});
export type ComponentsOrOne = Static<typeof ComponentsOrOne>;
