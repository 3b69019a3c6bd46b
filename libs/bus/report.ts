/** What an instance says of itself in its record, besides that it lives. */
export interface InstanceReport {
  readonly version: string;
  readonly pid: number;
  /** ISO 8601. */
  readonly started: string;
  readonly reported: string;
  /** What runs here: tasks that are its own, and the views of a gateway. */
  readonly tasks: readonly TaskReport[];
}

export interface TaskReport {
  readonly graph: string;
  /** For people: "worker 2 of social". */
  readonly task: string;
  readonly state: 'starting' | 'running' | 'stopped';
  /** The last EDGES message that the task's state holds whole. */
  readonly position: number;
  readonly problem?: { readonly code: string; readonly message: string };
}
