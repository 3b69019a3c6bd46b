/** Answers about the service itself. */
import { type Static, Type } from 'typebox';
import { Fault, Sequence, Time } from './fields.ts';
import { CLOSED, Named, StringEnum } from './schema.ts';

export const Task = Type.Object(
  {
    graph: Type.String(),
    task: Type.String(),
    state: StringEnum(['starting', 'running', 'stopped']),
    position: Named(Sequence),
    problem: Type.Optional(Named(Fault)),
  },
  {
    $id: 'Task',
    ...CLOSED,
    description:
      'One stage of a graph (of one partition). `position`: the last message that its state holds whole.',
    examples: [{ graph: 'social', task: 'worker 2 of social, generation 1', state: 'running', position: 17 }],
  },
);

export const Instance = Type.Object(
  {
    name: Type.String(),
    roles: Type.Array(Type.String()),
    live: Type.Boolean({ description: 'Whether its record still changes, as this gateway sees it.' }),
    leaving: Type.Boolean({ description: 'It hands its tasks over and ends.' }),
    version: Type.Optional(Type.String()),
    pid: Type.Optional(Type.Integer()),
    started: Type.Optional(Named(Time)),
    reported: Type.Optional(Named(Time)),
    tasks: Type.Array(Named(Task)),
  },
  {
    $id: 'Instance',
    ...CLOSED,
    description: 'A process, as it last reported.',
    examples: [
      {
        name: 'a',
        roles: ['partitioner', 'worker', 'gateway'],
        live: true,
        leaving: false,
        version: '0.1.0',
        pid: 4711,
        started: '2026-05-04T09:00:00.000Z',
        reported: '2026-05-04T09:30:00.000Z',
        tasks: [],
      },
    ],
  },
);
export type Instance = Static<typeof Instance>;

export const ClusterTask = Type.Object(
  {
    graph: Type.String(),
    task: Type.String(),
    role: Type.String({ description: 'What an instance must be to run it.' }),
    owner: Type.Unsafe<string | null>({
      type: ['string', 'null'],
      description: 'The instance that its lease names, dead or alive; null: nobody has it.',
    }),
    turn: Type.Integer({ minimum: 0, description: 'How often it has had a new owner.' }),
    attempts: Type.Integer({
      minimum: 0,
      description: 'Take-overs from dead owners in a row that brought no progress.',
    }),
    parked: Type.Boolean({ description: 'Its owners die and it makes no progress: it is tried seldom.' }),
    state: Type.Optional(StringEnum(['starting', 'running', 'stopped'])),
    position: Type.Optional(Named(Sequence)),
    lag: Type.Optional(
      Type.Integer({ minimum: 0, description: 'Messages of the edge stream behind `position`.' }),
    ),
    problem: Type.Optional(Named(Fault)),
  },
  {
    $id: 'ClusterTask',
    ...CLOSED,
    description:
      'A task of the cluster, which one instance runs at a time. `state`, `position` and `problem` are as its owner, if it is ' +
      'alive, last reported.',
    examples: [
      {
        graph: 'social',
        task: 'worker 2 of social, generation 1',
        role: 'worker',
        owner: 'a',
        turn: 1,
        attempts: 0,
        parked: false,
        state: 'running',
        position: 17,
        lag: 0,
      },
    ],
  },
);
export type ClusterTask = Static<typeof ClusterTask>;

export const Cluster = Type.Object(
  { instances: Type.Array(Named(Instance)), tasks: Type.Array(Named(ClusterTask)) },
  {
    $id: 'Cluster',
    ...CLOSED,
    description: 'Who is there, and who runs what.',
    examples: [{ instances: [], tasks: [] }],
  },
);
export type Cluster = Static<typeof Cluster>;

export const Health = Type.Object(
  {
    status: StringEnum(['ok']),
    instance: Type.String(),
    version: Type.String(),
    started: Named(Time),
  },
  {
    $id: 'Health',
    ...CLOSED,
    description: 'The process runs.',
    examples: [{ status: 'ok', instance: 'a', version: '0.1.0', started: '2026-05-04T09:00:00.000Z' }],
  },
);
export type Health = Static<typeof Health>;

export const Readiness = Type.Object(
  { status: StringEnum(['ready']) },
  {
    $id: 'Readiness',
    ...CLOSED,
    description: 'All graphs have caught up since the start, and nothing is wrong.',
    examples: [{ status: 'ready' }],
  },
);
export type Readiness = Static<typeof Readiness>;
