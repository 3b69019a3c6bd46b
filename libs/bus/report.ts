/** What an instance says of itself in the instances bucket, every two seconds. */
export interface InstanceReport {
  readonly roles: readonly string[];
  readonly version: string;
  readonly pid: number;
  /** ISO 8601. */
  readonly started: string;
  readonly reported: string;
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
