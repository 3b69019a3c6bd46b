/**
 * The catalogue of problems: every error that a request can end with, by its stable code.
 *
 * Whoever finds that a request cannot be answered throws a RequestProblem; the error handler (http-errors.ts)
 * makes an RFC 9457 answer of it. Everything else that is thrown is a bug or an outage and answers 500.
 */
import type { Problem, ProblemCode, ProblemError } from '../../libs/api/problem.ts';

interface Kind {
  readonly status: number;
  /** The same for all of a kind. */
  readonly title: string;
}

export const PROBLEMS: Readonly<Record<ProblemCode, Kind>> = {
  'bad-cursor': { status: 400, title: 'The cursor is not one of this list' },
  'bad-payload': { status: 400, title: 'The body cannot be decoded' },
  'bad-request': { status: 400, title: 'The request is not valid' },
  'cannot-rebuild': { status: 409, title: 'The graph cannot be rebuilt from that' },
  'ingest-full': { status: 429, title: 'Too much is waiting to be worked off' },
  'internal-error': { status: 500, title: 'The gateway failed' },
  'method-not-allowed': { status: 405, title: 'The resource has no such method' },
  'name-taken': { status: 409, title: 'There is a snapshot of that name' },
  'nats-unavailable': { status: 503, title: 'NATS cannot be reached' },
  'no-valid-edge': { status: 422, title: 'No edge of the body counts' },
  'not-a-component-id': { status: 404, title: 'The vertex does not name a component' },
  'not-ready': { status: 503, title: 'Not ready yet' },
  'not-yet': { status: 503, title: 'What was waited for is not there yet' },
  'payload-too-large': { status: 413, title: 'The body is too large' },
  'replicas-fixed': { status: 409, title: 'The number of replicas is fixed' },
  'unknown-graph': { status: 404, title: 'No such graph' },
  'unknown-partition': { status: 404, title: 'No such partition' },
  'unknown-route': { status: 404, title: 'No such resource' },
  'unknown-snapshot': { status: 404, title: 'No such snapshot' },
  'unknown-vertex': { status: 404, title: 'No such vertex' },
  'unsupported-media-type': { status: 415, title: 'The content type is not accepted' },
  'uri-too-long': { status: 414, title: 'The URL is too long' },
};

export interface ProblemDetails {
  readonly errors?: readonly ProblemError[];
  readonly sequence?: number;
  readonly componentId?: string;
  readonly rejected?: number;
  readonly rejections?: readonly { readonly index: number; readonly reason: string }[];
  /** Becomes the header of that name. */
  readonly retryAfterSeconds?: number;
  /** Likewise: the methods that there are. */
  readonly allow?: string;
}

export class RequestProblem extends Error {
  readonly code: ProblemCode;
  readonly details: ProblemDetails;

  constructor(code: ProblemCode, detail: string, details: ProblemDetails = {}, options?: ErrorOptions) {
    super(detail, options);
    this.name = 'RequestProblem';
    this.code = code;
    this.details = details;
  }

  get status(): number {
    return PROBLEMS[this.code].status;
  }

  /** The body of the answer; `instance` is the id of the request. */
  body(instance: string): Problem {
    const { errors, sequence, componentId, rejected, rejections } = this.details;
    return {
      type: `urn:watershed:problem:${this.code}`,
      title: PROBLEMS[this.code].title,
      status: this.status,
      detail: this.message,
      code: this.code,
      instance,
      ...(errors === undefined ? {} : { errors: [...errors] }),
      ...(sequence === undefined ? {} : { sequence }),
      ...(componentId === undefined ? {} : { componentId }),
      ...(rejected === undefined ? {} : { rejected }),
      ...(rejections === undefined ? {} : { rejections: [...rejections] }),
    };
  }

  get headers(): Record<string, string> {
    const { retryAfterSeconds, allow } = this.details;
    return {
      ...(retryAfterSeconds === undefined ? {} : { 'retry-after': String(retryAfterSeconds) }),
      ...(allow === undefined ? {} : { allow }),
    };
  }
}

/** A part of the request is wrong: `pointer` names it, as `/query/limit`. */
export function badRequest(pointer: string, detail: string): RequestProblem {
  return new RequestProblem('bad-request', `${pointer}: ${detail}`, { errors: [{ pointer, detail }] });
}

/** A value in a sentence, quoted and not endless. */
export function shown(text: string): string {
  return JSON.stringify(text.length <= 80 ? text : `${text.slice(0, 80)}…`);
}
