import { Readable } from 'node:stream';
import { Type } from 'typebox';
import { GraphParams, readParameters } from '../../../libs/api/query.ts';
import { CLOSED, Named, StringEnum } from '../../../libs/api/schema.ts';
import { EXPORT_FORMATS, type ExportFormat, ExportRow } from '../../../libs/api/vertex.ts';
import { exportChunks } from '../export-rows.ts';
import type { App, RouteContext } from './context.ts';
import { content, problems, READ_PROBLEMS } from './responses.ts';

const CONTENT_TYPES: Readonly<Record<ExportFormat, string>> = {
  ndjson: 'application/x-ndjson',
  csv: 'text/csv; charset=utf-8; header=present',
};

export function exportRoutes(app: App, { reader, deps }: RouteContext): void {
  app.get(
    '/v1/graphs/:graph/export',
    {
      schema: {
        operationId: 'exportVertices',
        tags: ['vertices'],
        summary: 'Export every vertex with its component',
        description:
          'In order of arrival, all as of one sequence, which the header `Watershed-As-Of` names. CSV as in RFC 4180, ' +
          'with a header line.',
        params: GraphParams,
        querystring: Type.Object(
          {
            format: Type.Optional(
              StringEnum(EXPORT_FORMATS, { default: 'ndjson', description: 'By default `ndjson`.' }),
            ),
            ...readParameters,
          },
          CLOSED,
        ),
        response: {
          200: content(
            'One line per vertex.',
            { 'application/x-ndjson': Named(ExportRow), 'text/csv': { type: 'string' } },
            {
              headers: {
                'Watershed-As-Of': { type: 'string', description: 'The sequence that the export is for.' },
              },
            },
          ),
          ...problems(...READ_PROBLEMS),
        },
      },
    },
    async ({ params, query }, reply) => {
      const { format = 'ndjson' } = query;
      const reading = await reader.read(params.graph, query);
      reply.header('watershed-as-of', String(reading.sequence)).type(CONTENT_TYPES[format]);
      return reply.send(Readable.from(sliced(exportChunks(reading, format)), { objectMode: false }));
    },
  );

  /** Other work is let in after each chunk; the stream asks for the next one when the client took the last. */
  async function* sliced(chunks: Iterable<string>): AsyncGenerator<string> {
    for (const chunk of chunks) {
      yield chunk;
      await deps.clock.yield();
    }
  }
}
