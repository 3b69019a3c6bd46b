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
    examples: [{ graph: 'social', task: 'worker 2 of social', state: 'running', position: 17 }],
  },
);

export const Instance = Type.Object(
  {
    name: Type.String(),
    roles: Type.Array(Type.String()),
    version: Type.String(),
    pid: Type.Integer(),
    started: Named(Time),
    reported: Named(Time),
    tasks: Type.Array(Named(Task)),
  },
  {
    $id: 'Instance',
    ...CLOSED,
    description: 'A running process, as it last reported.',
    examples: [
      {
        name: 'a',
        roles: ['partitioner', 'worker', 'gateway'],
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

export const Cluster = Type.Object(
  { instances: Type.Array(Named(Instance)) },
  { $id: 'Cluster', ...CLOSED, examples: [{ instances: [] }] },
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
