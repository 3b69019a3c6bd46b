/** The cluster as this gateway sees it: its instances, and who runs which task how far. */
import type { Cluster, ClusterTask, Instance } from '../../libs/api/cluster.ts';
import type { InstanceReport, TaskReport } from '../../libs/bus/report.ts';
import type { InstanceStatus, TaskStatus } from '../../libs/cluster/member.ts';
import type { EdgesEnds } from './edges-ends.ts';
import type { GatewayDeps } from './ports.ts';

export async function clusterAnswer({ cluster, graphs }: GatewayDeps, ends: EdgesEnds): Promise<Cluster> {
  const { instances, tasks } = cluster();
  const namesById = new Map(graphs.list().map(({ config }) => [config.id, config.name]));
  const lasts = new Map<string, number>();
  for (const name of namesById.values()) {
    // NATS may be away; what was reported can be told without it.
    const end = await ends.of(name).catch(() => undefined);
    if (end !== undefined) lasts.set(name, end.last);
  }
  const answers = instances.map(instanceAnswer);
  return {
    instances: answers,
    tasks: tasks.flatMap((task) => {
      const graph = namesById.get(task.key.split('.')[0]!);
      // Of a graph that was removed this very moment.
      if (graph === undefined) return [];
      const owner = answers.find(({ name, live }) => live && name === task.owner);
      return [taskAnswer(graph, task, owner, lasts.get(graph))];
    }),
  };
}

/** The record of another version may say less. */
function instanceAnswer({ name, roles, live, leaving, fields }: InstanceStatus): Instance {
  const { version, pid, started, reported, tasks = [] } = fields as unknown as Partial<InstanceReport>;
  return {
    name,
    roles: [...roles],
    live,
    leaving,
    ...(version === undefined ? {} : { version }),
    ...(pid === undefined ? {} : { pid }),
    ...(started === undefined ? {} : { started }),
    ...(reported === undefined ? {} : { reported }),
    tasks: tasks.map(({ graph, task, state, position, problem }) => ({
      graph,
      task,
      state,
      position,
      ...(problem === undefined ? {} : { problem }),
    })),
  };
}

function taskAnswer(
  graph: string,
  { name, role, owner, turn, attempts, parked }: TaskStatus,
  instance: Instance | undefined,
  last: number | undefined,
): ClusterTask {
  const answer = { graph, task: name, role, owner, turn, attempts, parked };
  const report = instance?.tasks.find((task) => task.graph === graph && isOf(task, name, role));
  if (report === undefined) return answer;
  const { state, position, problem } = report;
  return {
    ...answer,
    state,
    position,
    ...(last === undefined ? {} : { lag: Math.max(0, last - position) }),
    ...(problem === undefined ? {} : { problem }),
  };
}

/** A gateway's task is to store the view, of which it reports. */
function isOf({ graph, task }: Pick<TaskReport, 'graph' | 'task'>, name: string, role: string): boolean {
  return task === (role === 'gateway' ? `view of ${graph}` : name);
}
