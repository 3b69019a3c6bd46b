/**
 * Makes RFC 9457 answers of everything that goes wrong with a request: our own problems, and those that fastify,
 * its validator, the router and Node's parser find.
 */
import type { Socket } from 'node:net';
import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest, RouteOptions } from 'fastify';
import type { ProblemCode, ProblemError } from '../../libs/api/problem.ts';
import { PROBLEMS, RequestProblem, shown } from './problems.ts';

const CONTENT_TYPE = 'application/problem+json';

/** What fastify reports, by its code; whatever else has a 4xx status is a bad request. */
const FASTIFY_CODES: Readonly<Record<string, ProblemCode>> = {
  FST_ERR_CTP_INVALID_MEDIA_TYPE: 'unsupported-media-type',
  FST_ERR_MAX_PARAM_LENGTH: 'uri-too-long',
};

function sendProblem(reply: FastifyReply, request: FastifyRequest, problem: RequestProblem): FastifyReply {
  return reply
    .code(problem.status)
    .headers(problem.headers)
    .type(CONTENT_TYPE)
    .serializer(JSON.stringify)
    .send(problem.body(request.id));
}

export function answerError(error: FastifyError, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const problem = error.code === 'FST_ERR_CTP_BODY_TOO_LARGE' ? tooLarge(request) : problemOf(error);
  if (problem.code === 'internal-error')
    request.log.error({ err: error, url: request.url }, 'a request failed');
  else if (problem.status >= 500)
    request.log.warn({ code: problem.code, url: request.url, cause: problem.cause }, problem.message);
  return sendProblem(reply, request, problem);
}

function tooLarge(request: FastifyRequest): RequestProblem {
  const { bodyLimit } = request.routeOptions;
  return new RequestProblem(
    'payload-too-large',
    `the body has more than the ${bodyLimit} bytes that one request may: send it in parts, or publish it on NATS`,
  );
}

export function answerNotFound(request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const detail = `there is nothing at ${shown(request.url)}: see /openapi.json`;
  return sendProblem(reply, request, new RequestProblem('unknown-route', detail));
}

/**
 * Answers 405 with `Allow` where a path has other methods than the one asked for; fastify would say 404. Call it
 * before the routes are registered, and what it returns after.
 */
export function collectMethods(app: FastifyInstance): () => void {
  const methodsByUrl = new Map<string, Set<string>>();
  const collect = ({ url, method }: RouteOptions): void => {
    const methods = methodsByUrl.get(url) ?? new Set();
    for (const name of [method].flat()) methods.add(name);
    methodsByUrl.set(url, methods);
  };
  let collecting = true;
  app.addHook('onRoute', (route) => {
    if (collecting) collect(route);
  });
  return () => {
    collecting = false;
    for (const [url, methods] of methodsByUrl) {
      for (const [other, itsMethods] of methodsByUrl) {
        if (isMatchedBy(url, other)) for (const method of itsMethods) methods.add(method);
      }
      const missing = app.supportedMethods.filter((method) => !methods.has(method));
      const allow = [...methods].sort().join(', ');
      app.route({
        method: missing,
        url,
        schema: { hide: true },
        onRequest: async (request) => {
          throw new RequestProblem('method-not-allowed', `${request.method} is not one of ${allow}`, {
            allow,
          });
        },
        handler: () => undefined,
      });
    }
  };
}

/** Whether a path with fixed segments falls under another one's parameters as well: `/a/b` under `/a/:id`. */
function isMatchedBy(url: string, pattern: string): boolean {
  const segments = url.split('/');
  const patterns = pattern.split('/');
  return (
    url !== pattern &&
    segments.length === patterns.length &&
    segments.every((segment, at) => segment === patterns[at] || patterns[at]!.startsWith(':'))
  );
}

/** What Node's parser refuses never becomes a request: the answer is written to the socket. */
export function answerClientError(error: Error & { code?: string }, socket: Socket): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy();
    return;
  }
  const [status, code, detail] = clientProblem(error.code);
  const body = JSON.stringify({
    type: `urn:watershed:problem:${code}`,
    title: PROBLEMS[code].title,
    status,
    detail,
    code,
  });
  socket.end(
    `HTTP/1.1 ${status} ${PROBLEMS[code].title}\r\nContent-Type: ${CONTENT_TYPE}\r\n` +
      `Content-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
  );
}

function clientProblem(code: string | undefined): [number, ProblemCode, string] {
  if (code === 'HPE_HEADER_OVERFLOW') {
    return [414, 'uri-too-long', 'the URL and the headers together are longer than 16 KiB'];
  }
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return [400, 'bad-request', 'the request did not arrive in time'];
  return [400, 'bad-request', 'what was sent is not HTTP/1.1'];
}

function problemOf(error: FastifyError): RequestProblem {
  if (error instanceof RequestProblem) return error;
  const { validation, validationContext } = error;
  if (validation !== undefined) {
    const context = validationContext === 'querystring' ? 'query' : (validationContext ?? 'request');
    const errors = validation.map(({ instancePath, keyword, params, message }): ProblemError => {
      const named =
        keyword === 'additionalProperties'
          ? params['additionalProperty']
          : keyword === 'required'
            ? params['missingProperty']
            : undefined;
      const pointer = `/${context}${instancePath}${typeof named === 'string' ? `/${escapePointer(named)}` : ''}`;
      const detail =
        keyword === 'additionalProperties'
          ? 'is not known'
          : keyword === 'required'
            ? 'is missing'
            : (message ?? 'is not valid');
      return { pointer: pointer.slice(0, 200), detail };
    });
    const first = errors[0];
    const detail = first === undefined ? error.message : `${first.pointer}: ${first.detail}`;
    return new RequestProblem('bad-request', detail, { errors });
  }
  const code = Object.hasOwn(FASTIFY_CODES, error.code ?? '') ? FASTIFY_CODES[error.code]! : undefined;
  if (code !== undefined) return new RequestProblem(code, fastifyDetail(code, error), {}, { cause: error });
  const status = error.statusCode ?? 500;
  if (status >= 400 && status < 500)
    return new RequestProblem('bad-request', error.message, {}, { cause: error });
  return new RequestProblem('internal-error', 'the gateway failed; its log says more', {}, { cause: error });
}

function fastifyDetail(code: ProblemCode, error: FastifyError): string {
  if (code === 'unsupported-media-type') return 'the body must be application/json';
  if (code === 'uri-too-long') return 'a part of the path is longer than any id';
  return error.message;
}

function escapePointer(name: string): string {
  return name.replaceAll('~', '~0').replaceAll('/', '~1');
}
