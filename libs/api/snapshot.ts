/** Snapshots of a graph. */
import { type Static, Type } from 'typebox';
import { GRAPH_NAME } from '../dataflow/names.ts';
import { Sequence } from './fields.ts';
import { GraphParams, TIMEOUT_SECONDS_MAX } from './query.ts';
import { CLOSED, Named, StringEnum } from './schema.ts';

export const SNAPSHOT_TIMEOUT_SECONDS_DEFAULT = 30;

/** As a graph's name, but no number: that is how snapshots are told otherwise. */
const SNAPSHOT_NAME = '^(?![0-9]+$)[a-z0-9][a-z0-9-]{0,62}$';

const SNAPSHOT_EXAMPLE = {
  snapshot: 12,
  sequence: 17,
  time: '2026-05-04T09:30:00.000Z',
  generation: 1,
  partitions: 4,
  name: 'before-migration',
  digest: '9906411f-46561ea5-002a41e3-b97ed6e4-2000-0',
  bytes: 734_003,
  newBytes: 20_480,
  verified: true,
};

export const Snapshot = Type.Object(
  {
    snapshot: Type.Integer({ minimum: 1, description: 'Its number in the graph; newer ones have greater.' }),
    sequence: Named(Sequence),
    time: Type.Unsafe<string | null>({
      type: ['string', 'null'],
      format: 'date-time',
      description: 'When message `sequence` arrived; null where there is none.',
    }),
    generation: Type.Integer({ minimum: 1, description: 'The layout that was in force.' }),
    partitions: Type.Integer({ minimum: 1 }),
    name: Type.Optional(Type.String({ description: 'One with a name is kept until it is given up.' })),
    digest: Type.String({ description: 'Equal for all views of the graph at `sequence`.' }),
    bytes: Type.Integer({ minimum: 0, description: 'Of all its parts.' }),
    newBytes: Type.Integer({ minimum: 0, description: 'Of these, what no earlier snapshot had stored.' }),
    verified: Type.Boolean({ description: 'Whether all of it was read back after it was stored.' }),
  },
  {
    $id: 'Snapshot',
    ...CLOSED,
    description: 'The state of all stages of a graph for exactly messages 1 to `sequence`.',
    examples: [SNAPSHOT_EXAMPLE],
  },
);
export type Snapshot = Static<typeof Snapshot>;

export const SnapshotList = Type.Object(
  { snapshots: Type.Array(Named(Snapshot)) },
  {
    $id: 'SnapshotList',
    ...CLOSED,
    description: 'The snapshots of a graph, newest first.',
    examples: [{ snapshots: [SNAPSHOT_EXAMPLE] }],
  },
);
export type SnapshotList = Static<typeof SnapshotList>;

export const SnapshotRequest = Type.Object(
  {
    name: Type.Optional(
      Type.String({
        pattern: SNAPSHOT_NAME,
        description:
          'Keeps it until it is given up. Lower-case letters, digits and hyphens, not digits alone.',
      }),
    ),
  },
  {
    $id: 'SnapshotRequest',
    ...CLOSED,
    description: 'A snapshot to take.',
    examples: [{}, { name: 'before-migration' }],
  },
);

export const RebuildRequest = Type.Object(
  {
    from: Type.Optional(
      StringEnum(['snapshot', 'start'], {
        description:
          'What the new generation begins with. By default the newest verified snapshot, or the start if there is none.',
      }),
    ),
    snapshot: Type.Optional(
      Type.Integer({
        minimum: 1,
        description: 'The number of the snapshot; the newest verified one if absent.',
      }),
    ),
  },
  {
    $id: 'RebuildRequest',
    ...CLOSED,
    description: 'What to rebuild a graph from.',
    examples: [{}, { from: 'start' }, { from: 'snapshot', snapshot: 12 }],
  },
);
export type RebuildRequest = Static<typeof RebuildRequest>;

export const SnapshotParams = Type.Object(
  {
    ...GraphParams.properties,
    snapshot: Type.String({
      pattern: GRAPH_NAME.source,
      description: 'The number or the name of a snapshot.',
    }),
  },
  CLOSED,
);

export const TakeQuery = Type.Object(
  {
    timeout: Type.Optional(
      Type.Number({
        minimum: 0,
        maximum: TIMEOUT_SECONDS_MAX,
        default: SNAPSHOT_TIMEOUT_SECONDS_DEFAULT,
        description: 'How many seconds to wait for the snapshot at most.',
      }),
    ),
  },
  CLOSED,
);
