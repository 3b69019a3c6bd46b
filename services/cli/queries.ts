/** The commands that ask a gateway: graph, component, connected, top, status. */
import type { Cluster, ClusterTask } from '../../libs/api/cluster.ts';
import type { ComponentsPage, MembersPage } from '../../libs/api/component.ts';
import type { AsOf } from '../../libs/api/fields.ts';
import type { Graph, GraphList, GraphSettings, GraphStatus } from '../../libs/api/graph.ts';
import type { Partitions, Quality } from '../../libs/api/partitioner.ts';
import type { RebuildRequest, Snapshot, SnapshotList } from '../../libs/api/snapshot.ts';
import type { Connection, Vertex } from '../../libs/api/vertex.ts';
import { partitionerText } from '../../libs/partitioning/partitioner-config.ts';
import { CliError, EXIT } from './exit.ts';
import type { HttpClient } from './http-client.ts';
import { printJson, printLine, printTable, showBytes, showId, showNumber } from './output.ts';

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
  settings: GraphSettings,
  json: boolean,
): Promise<void> {
  printConfig(await client.put<Graph>(`/v1/graphs/${name}`, settings), json);
}

/** As graphCreate, of a graph that is there. */
export async function graphSet(
  client: HttpClient,
  name: string,
  settings: GraphSettings,
  json: boolean,
): Promise<void> {
  const { graphs } = await client.get<GraphList>('/v1/graphs');
  if (!graphs.some((graph) => graph.name === name))
    throw new CliError(EXIT.notFound, `there is no graph ${name}: "watershed graph create" makes one`);
  await graphCreate(client, name, settings, json);
}

export async function graphRebuild(
  client: HttpClient,
  name: string,
  request: RebuildRequest,
  json: boolean,
): Promise<void> {
  const graph = await client.post<Graph>(`/v1/graphs/${name}/rebuild`, request);
  if (json) printJson(graph);
  else printLine(`graph ${graph.name} is being rebuilt: generation ${graph.generation}`);
}

export async function graphList(client: HttpClient, json: boolean): Promise<void> {
  const list = await client.get<GraphList>('/v1/graphs');
  if (json) printJson(list);
  else {
    printTable(
      ['graph', 'partitions', 'generation', 'replicas', 'created'],
      list.graphs.map(({ name, partitions, generation, replicas, created }) => [
        name,
        partitions,
        generation,
        replicas,
        created,
      ]),
    );
  }
}

export async function graphShow(client: HttpClient, name: string, json: boolean): Promise<void> {
  const status = await client.get<GraphStatus>(`/v1/graphs/${name}`);
  if (json) printJson(status);
  else printGraph(status);
}

export async function partitions(client: HttpClient, name: string, json: boolean): Promise<void> {
  const answer = await client.get<Partitions>(`/v1/graphs/${name}/partitions`);
  if (json) {
    printJson(answer);
    return;
  }
  const { generation, partitioner, quality, lastMinute, reported, problem } = answer;
  printLine(`graph ${name}, generation ${generation}, by ${partitionerText(partitioner)}`);
  printTable(
    ['partition', 'edges', 'vertices', 'owned', 'edges in the last minute'],
    answer.partitions.map(({ partition, edges, vertices, owned }, at) => [
      String(partition),
      edges ?? '-',
      vertices ?? '-',
      owned ?? '-',
      lastMinute?.partitions[at]?.edges ?? '-',
    ]),
  );
  for (const line of describeQuality(quality)) printLine(line);
  if (problem !== undefined) printLine(`! ${problem.message} (${problem.code})`);
  else printLine(`as of message ${answer.position}, reported ${reported}`);
}

function describeQuality(quality: Quality): string[] {
  const { replicationFactor, edgeBalance, vertexBalance, ownerBalance, cutFraction, forced, capHits } =
    quality;
  const ratios = Object.entries({
    'replication factor': replicationFactor,
    'edge balance': edgeBalance,
    'vertex balance': vertexBalance,
    'owner balance': ownerBalance,
    'cut fraction': cutFraction,
  });
  return [
    ...ratios.flatMap(([name, value]) =>
      value === undefined ? [] : [`${name.padEnd(18)}  ${value.toFixed(3)}`],
    ),
    ...(forced === undefined ? [] : [`forced placements   ${showNumber(forced)}`]),
    ...(capHits === undefined ? [] : [`cap hits            ${showNumber(capHits)}`]),
  ];
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
  const states: { config: Graph; answer: GraphStatus | string; snapshot: Snapshot | undefined }[] = [];
  for (const config of graphs) {
    const path = `/v1/graphs/${config.name}`;
    const { snapshots } = await client.get<SnapshotList>(`${path}/snapshots`);
    states.push({
      config,
      answer: await client.get<GraphStatus>(path).catch(whyUnavailable),
      snapshot: snapshots.find(({ verified }) => verified),
    });
  }
  const { instances, tasks } = await client.get<Cluster>('/v1/cluster');
  if (json) {
    printJson({
      graphs: states.map(({ config, answer, snapshot }) => ({
        ...(typeof answer === 'string' ? { config, unavailable: answer } : answer),
        ...(snapshot && { snapshot }),
      })),
      instances,
      tasks,
    });
    return;
  }
  for (const { config, answer, snapshot } of states) {
    if (typeof answer === 'string') {
      printLine(`graph ${config.name}: ${config.partitions} partitions, since ${config.created}`);
      printLine(`  ! ${answer}`);
    } else {
      printGraph(answer);
      printNewest(snapshot, answer);
    }
    printLine();
  }
  printTable(
    ['instance', 'state', 'roles', 'version', 'process'],
    instances.map(({ name, live, leaving, roles, version = '', pid }) => [
      name,
      live ? (leaving ? 'leaving' : 'live') : 'dead',
      roles.join(','),
      version,
      String(pid ?? ''),
    ]),
  );
  printLine();
  printTable(
    ['task', 'owner', 'state', 'position', 'behind'],
    tasks.map(({ task, owner, state, position, lag }) => [
      task,
      owner ?? '-',
      state ?? '-',
      position ?? '-',
      lag ?? '-',
    ]),
  );
  for (const { name, live, reported } of instances) {
    if (live) continue;
    const since = reported === undefined ? '' : ` since ${reported}`;
    printLine(`! ${name} has not reported${since}: it was killed, or cannot reach NATS`);
  }
  for (const task of tasks)
    if (troubleOf(task) !== undefined) printLine(`! ${task.task}: ${troubleOf(task)}`);
  // What is no task of the cluster: the views that each gateway has.
  const shown = new Set(tasks.map(({ owner, problem }) => `${owner} ${problem?.message}`));
  for (const { name, tasks: reports } of instances) {
    for (const { task, problem } of reports) {
      if (problem !== undefined && !shown.has(`${name} ${problem.message}`))
        printLine(`! ${name}, ${task}: ${problem.message} (${problem.code})`);
    }
  }
}

/** A graph that cannot be asked now must not hide all others. */
function whyUnavailable(error: unknown): string {
  if (error instanceof CliError && error.status === EXIT.unavailable) return error.message;
  throw error;
}

function troubleOf({ owner, parked, attempts, problem }: ClusterTask): string | undefined {
  if (problem !== undefined) return `${problem.message} (${problem.code}), on ${owner}`;
  if (parked) return `parked: its owners died ${attempts} times without progress; it is tried seldom`;
  return owner === null ? 'nobody has taken it' : undefined;
}

function printNewest(snapshot: Snapshot | undefined, { totals, lag }: GraphStatus): void {
  if (snapshot === undefined) {
    printLine('  no snapshot yet');
    return;
  }
  const { name, sequence, time, bytes } = snapshot;
  const behind = Math.max(0, (lag?.last ?? totals.sequence) - sequence);
  printLine(
    `  newest snapshot ${snapshot.snapshot}${name === undefined ? '' : ` "${name}"`} at message ${sequence}` +
      `${time === null ? '' : `, ${time}`}: ${behind === 0 ? 'nothing came after it' : `${showNumber(behind)} messages came after it`}, ${showBytes(bytes)}`,
  );
}

function printConfig(graph: Graph, json: boolean): void {
  if (json) {
    printJson(graph);
    return;
  }
  const { name, partitions, partitioner, replicas, snapshots, purgeEdges, created } = graph;
  const { interval, keep } = snapshots;
  printLine(`graph ${name}: ${partitions} partitions by ${partitionerText(partitioner)}, since ${created}`);
  printLine(
    `  snapshots ${interval === 0 ? 'when asked for' : `every ${interval} s`}, ${keep} are kept; ${replicas} ` +
      `${replicas === 1 ? 'replica' : 'replicas'}; edges ${purgeEdges ? 'are purged behind snapshots' : 'are never purged'}`,
  );
}

function printGraph({ config, totals, lag, generation, partitions, problem, asOf }: GraphStatus): void {
  printLine(
    `graph ${config.name}: ${config.partitions} partitions by ${partitionerText(config.partitioner)}, generation ` +
      `${generation}, since ${config.created}`,
  );
  if (generation !== config.generation || partitions.length !== config.partitions)
    printLine(`  on the way to ${config.partitions} partitions from ${partitions.length}`);
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
