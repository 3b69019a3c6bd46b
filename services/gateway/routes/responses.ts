/** Responses as the OpenAPI document describes them. */
import type { TSchema } from 'typebox';
import { Problem, type ProblemCode } from '../../../libs/api/problem.ts';
import { Named } from '../../../libs/api/schema.ts';
import { PROBLEMS } from '../problems.ts';

type Response = Record<string, unknown>;

/** What any request for a graph's answers can end with. */
export const READ_PROBLEMS: readonly ProblemCode[] = [
  'bad-request',
  'unknown-graph',
  'uri-too-long',
  'internal-error',
  'not-ready',
  'not-yet',
  'nats-unavailable',
];

/** A JSON answer of a named schema. */
export function json(description: string, schema: TSchema & { $id?: string }): Response {
  return { description, content: { 'application/json': { schema: Named(schema) } } };
}

/** An answer that is no JSON, or not made from a schema: its description, by content type. */
export function content(description: string, schemas: Record<string, object>, rest: object = {}): Response {
  const types = Object.entries(schemas).map(([type, schema]) => [type, { schema }]);
  return { description, ...rest, content: Object.fromEntries(types) };
}

/** Problems by status; those of one status together. */
export function problems(...codes: readonly ProblemCode[]): Record<number, Response> {
  const byStatus: Record<number, Response> = {};
  for (const status of new Set(codes.map((code) => PROBLEMS[code].status))) {
    const titles = codes
      .filter((code) => PROBLEMS[code].status === status)
      .map((code) => `${PROBLEMS[code].title} (\`${code}\`)`);
    byStatus[status] = {
      description: titles.join('; '),
      content: { 'application/problem+json': { schema: Named(Problem) } },
    };
  }
  return byStatus;
}
