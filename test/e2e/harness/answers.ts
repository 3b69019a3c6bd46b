/** What a gateway answers of a graph, to be compared with what it answered before. */
import type { ComponentsPage } from '../../../libs/api/component.ts';
import type { GraphStatus } from '../../../libs/api/graph.ts';
import { type Gateway, until } from './cluster.ts';

export interface Answers {
  readonly totals: GraphStatus['totals'];
  readonly components: ComponentsPage['components'];
  /** Every vertex with its component. */
  readonly exported: string;
}

/** All of it as of one sequence. */
export async function answersOf(gateway: Gateway, graph: string, sequence: number): Promise<Answers> {
  const path = `/v1/graphs/${graph}`;
  const { totals } = await gateway.get<GraphStatus>(`${path}?asOf=${sequence}&timeout=30`);
  const { components } = await gateway.get<ComponentsPage>(`${path}/components?limit=1000&asOf=${sequence}`);
  const exported = await (await fetch(`${gateway.url}${path}/export?asOf=${sequence}`)).text();
  return { totals, components, exported };
}

/** Waits until the answers hold all through `sequence`. */
export async function reached(gateway: Gateway, graph: string, sequence: number, ms?: number): Promise<void> {
  await until(
    async () => (await gateway.get<GraphStatus>(`/v1/graphs/${graph}`)).totals.sequence >= sequence,
    `the answers of ${graph} to reach ${sequence}`,
    ms,
  );
}
