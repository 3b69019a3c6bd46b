import type { View } from '../../services/gateway/view.ts';

/** All of a view that answers are made of. */
export function contents(view: View): object {
  const { forest } = view;
  return {
    sequence: view.sequence,
    totals: { ...view.messages.totals, time: undefined },
    rows: Array.from({ length: forest.rows }, (_, row) => [
      new TextDecoder().decode(forest.vertices.idOf(row)),
      forest.arrivalSequence(row),
      forest.arrivalIndex(row),
    ]),
    links: Array.from({ length: forest.links }, (_, link) => forest.link(link)),
  };
}
