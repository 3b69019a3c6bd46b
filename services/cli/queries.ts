/** The commands that ask a gateway: graph, component, connected, top, status. */
import type { Cluster } from '../../libs/api/cluster.ts';
import type { ComponentsPage, MembersPage } from '../../libs/api/component.ts';
import type { AsOf } from '../../libs/api/fields.ts';
import type { Graph, GraphList, GraphStatus } from '../../libs/api/graph.ts';
import type { Connection, Vertex } from '../../libs/api/vertex.ts';
import type { HttpClient } from './http-client.ts';
import { printJson, printLine, printTable, showId, showNumber } from './output.ts';

export interface ReadOptions {
  readonly graph: string;
  readonly atLeast: number | undefined;
  readonly asOf: number | undefined;
  readonly timeout: number | undefined;
  readonly json: boolean;
}

export async function graphCreate(
  client: HttpClient,
  name: string,
  partitions: number | undefined,
  json: boolean,
): Promise<void> {
  const graph = await client.put<Graph>(`/v1/graphs/${name}`, partitions === undefined ? {} : { partitions });
  if (json) printJson(graph);
  else printLine(`graph ${graph.name}: ${graph.partitions} partitions, since ${graph.created}`);
}

export async function graphList(client: HttpClient, json: boolean): Promise<void> {
  const list = await client.get<GraphList>('/v1/graphs');
  if (json) printJson(list);
  else {
    printTable(
      ['graph', 'partitions', 'created'],
      list.graphs.map(({ name, partitions, created }) => [name, partitions, created]),
    );
  }
}

export async function graphShow(client: HttpClient, name: string, json: boolean): Promise<void> {
  const status = await client.get<GraphStatus>(`/v1/graphs/${name}`);
  if (json) printJson(status);
  else printGraph(status);
}

export async function graphRemove(client: HttpClient, name: string, json: boolean): Promise<void> {
  await client.delete(`/v1/graphs/${name}`);
  if (json) printJson({ removed: name });
  else printLine(`graph ${name} and all its edges are removed`);
}

export async function component(
  client: HttpClient,
  id: string,
  members: number,
  options: ReadOptions,
): Promise<void> {
  const base = `/v1/graphs/${options.graph}`;
  const vertex = await client.get<Vertex>(`${base}/vertices`, { id, ...prefix(options) });
  const page = await client.get<MembersPage>(`${base}/components/vertices`, {
    id: vertex.component.id,
    limit: members,
    asOf: vertex.asOf.sequence,
  });
  if (options.json) {
    printJson({ ...vertex, vertices: page.vertices });
    return;
  }
  const { size } = vertex.component;
  printLine(
    `${showId(id)} is in component ${showId(vertex.component.id)} of ${showNumber(size)} ${size === 1 ? 'vertex' : 'vertices'}`,
  );
  printLine(
    `arrived with message ${vertex.arrived.sequence}.${vertex.arrived.index}, ${vertex.arrived.time}`,
  );
  for (const member of page.vertices) printLine(`  ${showId(member)}`);
  if (size > page.vertices.length) printLine(`  and ${showNumber(size - page.vertices.length)} more`);
  printAsOf(vertex.asOf);
}

export async function connected(
  client: HttpClient,
  source: string,
  target: string,
  options: ReadOptions,
): Promise<void> {
  const answer = await client.get<Connection>(`/v1/graphs/${options.graph}/connected`, {
    source,
    target,
    ...prefix(options),
  });
  if (options.json) {
    printJson(answer);
    return;
  }
  for (const line of describeConnection(answer)) printLine(line);
  printAsOf(answer.asOf);
}

/** A connection in words; the demo prints it too. */
export function describeConnection(answer: Connection): string[] {
  const pair = `${showId(answer.source)} and ${showId(answer.target)}`;
  if (!answer.connected) return [`no: ${pair} are not connected`];
  const lines = [`yes: ${pair} are connected`];
  if (answer.component !== undefined) {
    lines.push(
      `  in component ${showId(answer.component.id)} of ${showNumber(answer.component.size)} vertices`,
    );
  }
  if (answer.since !== undefined) {
    lines.push(`  since message ${answer.since.sequence}.${answer.since.index}, ${answer.since.time}`);
  }
  if (answer.through !== undefined) {
    const { source, target, time } = answer.through;
    lines.push(`  through the edge ${showId(source)} – ${showId(target)} of ${time}`);
  }
  return lines;
}

export async function top(client: HttpClient, limit: number, options: ReadOptions): Promise<void> {
  const page = await client.get<ComponentsPage>(`/v1/graphs/${options.graph}/components`, {
    limit,
    ...prefix(options),
  });
  if (options.json) {
    printJson(page);
    return;
  }
  printTable(
    ['component', 'vertices'],
    page.components.map(({ id, size }) => [showId(id), size]),
  );
  printAsOf(page.asOf);
}

export async function status(client: HttpClient, json: boolean): Promise<void> {
  const { graphs } = await client.get<GraphList>('/v1/graphs');
  const states: GraphStatus[] = [];
  for (const { name } of graphs) states.push(await client.get<GraphStatus>(`/v1/graphs/${name}`));
  const cluster = await client.get<Cluster>('/v1/cluster');
  if (json) {
    printJson({ graphs: states, instances: cluster.instances });
    return;
  }
  for (const graph of states) {
    printGraph(graph);
    printLine();
  }
  printTable(
    ['instance', 'task', 'state', 'position'],
    cluster.instances.flatMap(({ name, tasks, reported }) =>
      tasks.map(({ task, state, position }) => [name, task, isSilent(reported) ? 'silent' : state, position]),
    ),
  );
  for (const { name, reported } of cluster.instances) {
    if (isSilent(reported))
      printLine(`! ${name} has not reported since ${reported}: it was killed, or cannot reach NATS`);
  }
  for (const { name, tasks } of cluster.instances) {
    for (const { task, problem } of tasks) {
      if (problem !== undefined) printLine(`! ${name}, ${task}: ${problem.message} (${problem.code})`);
    }
  }
}

/** Instances report every two seconds. */
function isSilent(reported: string): boolean {
  return Date.now() - Date.parse(reported) > 10_000;
}

function printGraph({ config, totals, lag, partitions, problem, asOf }: GraphStatus): void {
  printLine(`graph ${config.name}: ${config.partitions} partitions, since ${config.created}`);
  printLine(`  ${showNumber(totals.vertices)} vertices in ${showNumber(totals.components)} components`);
  printLine(`  ${showNumber(totals.edges)} edges, ${showNumber(totals.rejected)} rejected`);
  printLine(`  as of message ${totals.sequence}${asOf.time === null ? '' : `, ${asOf.time}`}`);
  if (lag !== undefined)
    printLine(`  ${lag.messages === 0 ? 'nothing waits' : `${showNumber(lag.messages)} messages wait`}`);
  const behind = partitions.filter(({ watermark }) => lag !== undefined && watermark < lag.last);
  if (behind.length > 0)
    printLine(
      `  partitions behind: ${behind.map(({ partition, watermark }) => `${partition} (at ${watermark})`).join(', ')}`,
    );
  if (problem !== undefined) printLine(`  ! ${problem.message} (${problem.code})`);
}

function printAsOf({ sequence, time }: AsOf): void {
  printLine(`as of message ${sequence}${time === null ? '' : `, ${time}`}`);
}

function prefix({ atLeast, asOf, timeout }: ReadOptions): Record<string, number | undefined> {
  return { atLeast, asOf, timeout };
}
