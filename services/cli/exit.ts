/** Exit statuses of `watershed`: scripts depend on them. */
export const EXIT = { done: 0, failed: 1, usage: 2, notFound: 3, unavailable: 5 } as const;

/** An end of the command that a person is told in one line; anything else thrown is a bug with a stack. */
export class CliError extends Error {
  readonly status: number;

  constructor(status: number, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'CliError';
    this.status = status;
  }
}
