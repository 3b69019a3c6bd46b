/** Asks a gateway over HTTP; what goes wrong becomes an exit status and one line. */
import { CliError, EXIT } from './exit.ts';

interface Problem {
  readonly status: number;
  readonly code: string;
  readonly detail?: string;
  readonly title: string;
}

export class HttpClient {
  private readonly url: string;

  constructor(url: string) {
    this.url = url.replace(/\/+$/, '');
  }

  async get<Answer>(path: string, query: Record<string, string | number | undefined> = {}): Promise<Answer> {
    return (await this.request('GET', path, query)) as Answer;
  }

  async put<Answer>(path: string, body: object): Promise<Answer> {
    return (await this.request('PUT', path, {}, body)) as Answer;
  }

  async post<Answer>(
    path: string,
    body: object,
    query: Record<string, string | number | undefined> = {},
  ): Promise<Answer> {
    return (await this.request('POST', path, query, body)) as Answer;
  }

  async delete(path: string): Promise<void> {
    await this.request('DELETE', path, {});
  }

  private async request(
    method: string,
    path: string,
    query: Record<string, string | number | undefined>,
    body?: object,
  ): Promise<unknown> {
    const search = new URLSearchParams();
    for (const [name, value] of Object.entries(query))
      if (value !== undefined) search.set(name, String(value));
    const url = `${this.url}${path}${search.size === 0 ? '' : `?${search}`}`;
    let response: Response;
    try {
      response = await fetch(url, {
        method,
        ...(body === undefined
          ? {}
          : { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }),
      });
    } catch (error) {
      const cause = error instanceof Error ? (error.cause ?? error) : error;
      throw new CliError(
        EXIT.unavailable,
        `no gateway answers at ${this.url} (${cause instanceof Error ? cause.message : String(cause)}): start one with ` +
          '"watershed up", or name it with --url or WATERSHED_URL',
        { cause: error },
      );
    }
    if (response.status === 204) return undefined;
    const text = await response.text();
    if (response.ok) return JSON.parse(text) as unknown;
    throw problemError(response.status, text);
  }
}

function problemError(status: number, text: string): CliError {
  let problem: Problem | undefined;
  try {
    problem = JSON.parse(text) as Problem;
  } catch {
    // Not one of ours: a proxy, say. The text itself is the best there is.
  }
  const message = problem?.detail ?? problem?.title ?? `HTTP ${status}: ${text.slice(0, 200)}`;
  if (status === 404) return new CliError(EXIT.notFound, message);
  if (status === 429 || status === 503) return new CliError(EXIT.unavailable, message);
  if (status === 400 || status === 422) return new CliError(EXIT.usage, message);
  return new CliError(EXIT.failed, message);
}
