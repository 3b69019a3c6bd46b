import { readFile } from 'node:fs/promises';
import type { TSchema } from 'typebox';
import { beforeAll, describe, expect, test } from 'vitest';
import { SCHEMAS } from '../../libs/api/schemas.ts';
import { openapiYaml } from '../../services/gateway/openapi-yaml.ts';
import { expectSchema, TestGateway } from '../support/gateway.ts';

const ROOT = new URL('../../', import.meta.url);

interface Operation {
  operationId?: string;
  tags?: string[];
  summary?: string;
  parameters?: { name: string; description?: string }[];
  requestBody?: { content: Record<string, { schema: object }> };
  responses: Record<
    string,
    { description?: string; content?: Record<string, { schema: { $ref?: string } }> }
  >;
}

interface Document {
  openapi: string;
  tags: { name: string; description?: string }[];
  paths: Record<string, Record<string, Operation>>;
  components: { schemas: Record<string, object> };
}

let document: Document;
let operations: [string, Operation][];

beforeAll(async () => {
  const gateway = await TestGateway.start();
  document = (await gateway.app.inject('/openapi.json')).json<Document>();
  await gateway.close();
  operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]): [string, Operation] => [
      `${method} ${path}`,
      operation,
    ]),
  );
});

test('openapi/openapi.yaml is what `npm run openapi` writes', async () => {
  const { version } = JSON.parse(await readFile(new URL('package.json', ROOT), 'utf8')) as {
    version: string;
  };
  const written = await readFile(new URL('openapi/openapi.yaml', ROOT), 'utf8');
  expect(written === (await openapiYaml(version)), 'it is stale: run `npm run openapi`').toBe(true);
});

describe('the document', () => {
  test('is OpenAPI 3.1 and describes every route of the interface', () => {
    expect(document.openapi).toBe('3.1.0');
    expect(operations.map(([name]) => name).sort()).toEqual([
      'delete /v1/graphs/{graph}',
      'delete /v1/graphs/{graph}/snapshots/{snapshot}',
      'get /healthz',
      'get /metrics',
      'get /openapi.json',
      'get /readyz',
      'get /v1/cluster',
      'get /v1/graphs',
      'get /v1/graphs/{graph}',
      'get /v1/graphs/{graph}/components',
      'get /v1/graphs/{graph}/components/vertices',
      'get /v1/graphs/{graph}/components/{component}',
      'get /v1/graphs/{graph}/components/{component}/vertices',
      'get /v1/graphs/{graph}/connected',
      'get /v1/graphs/{graph}/export',
      'get /v1/graphs/{graph}/partitions',
      'get /v1/graphs/{graph}/partitions/{partition}/vertices',
      'get /v1/graphs/{graph}/snapshots',
      'get /v1/graphs/{graph}/snapshots/{snapshot}',
      'get /v1/graphs/{graph}/vertices',
      'get /v1/graphs/{graph}/vertices/{vertex}',
      'post /v1/graphs/{graph}/edges',
      'post /v1/graphs/{graph}/rebuild',
      'post /v1/graphs/{graph}/snapshots',
      'post /v1/graphs/{graph}/vertices/lookup',
      'put /v1/graphs/{graph}',
    ]);
  });

  test('names every operation, once, with a known tag, a summary, and its errors', () => {
    const tags = document.tags.map(({ name }) => name);
    const ids = operations.map(([, { operationId }]) => operationId);
    expect(new Set(ids).size).toBe(ids.length);
    for (const [name, operation] of operations) {
      expect(operation.operationId, name).toMatch(/^[a-z]+[A-Za-z]+$/);
      expect(operation.tags, name).toHaveLength(1);
      expect(tags, name).toContain(operation.tags![0]);
      expect(operation.summary, name).toBeTruthy();
      const statuses = Object.keys(operation.responses);
      expect(
        statuses.some((status) => status.startsWith('4')),
        name,
      ).toBe(true);
      expect(
        statuses.some((status) => status.startsWith('5')),
        name,
      ).toBe(true);
      for (const parameter of operation.parameters ?? []) {
        expect(parameter.description, `${name} ${parameter.name}`).toBeTruthy();
      }
    }
  });

  test('refers to named schemas wherever a response is JSON', () => {
    for (const [name, { responses }] of operations) {
      for (const [status, { description, content = {} }] of Object.entries(responses)) {
        expect(description, `${name} ${status}`).toBeTruthy();
        for (const [type, { schema }] of Object.entries(content)) {
          if (!type.includes('json') || name === 'get /openapi.json') continue;
          expect(schema.$ref, `${name} ${status} ${type}`).toMatch(/^#\/components\/schemas\/[A-Z]/);
          if (Number(status) >= 400) expect(schema.$ref).toBe('#/components/schemas/Problem');
        }
      }
    }
  });

  test('has no reference that leads nowhere, and no schema without a use', () => {
    const names = Object.keys(document.components.schemas);
    expect(names.sort()).toEqual(SCHEMAS.map((schema) => idOf(schema)).sort());
    const used = new Set(
      [...JSON.stringify(document).matchAll(/#\/components\/schemas\/(\w+)"/g)].map(([, name]) => name),
    );
    expect([...used].sort()).toEqual(names);
  });
});

describe('the examples', () => {
  test.each(SCHEMAS.map((schema): [string, TSchema] => [idOf(schema), schema]))(
    'of %s are valid',
    (name, schema) => {
      const { examples } = schema as { examples?: unknown[] };
      expect(examples?.length, name).toBeGreaterThan(0);
      for (const example of examples!) expectSchema(schema, example);
    },
  );
});

function idOf(schema: TSchema): string {
  return (schema as { $id?: string }).$id!;
}
