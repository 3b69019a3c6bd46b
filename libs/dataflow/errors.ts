/**
 * What can be wrong with a log. Each has a stable code, names what was found with the values, and says what
 * to do; it reaches the person through the instance's log, /readyz, /v1/cluster and `watershed status`.
 */
export type LogErrorCode =
  | 'log-missing'
  | 'log-recreated'
  | 'log-truncated'
  | 'log-diverged'
  | 'log-gap'
  | 'frame-unreadable'
  | 'state-missing'
  | 'fenced';

export class LogError extends Error {
  readonly code: LogErrorCode;

  constructor(code: LogErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'LogError';
    this.code = code;
  }
}
