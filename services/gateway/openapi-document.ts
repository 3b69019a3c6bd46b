/** What the OpenAPI document says besides the routes and their schemas. */
import type { FastifyDynamicSwaggerOptions } from '@fastify/swagger';

export function openapiOptions(version: string): FastifyDynamicSwaggerOptions {
  return {
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'Watershed',
        description:
          'Which vertices of a graph belong together, while the graph is still streaming in. Every answer is for an ' +
          'exact prefix of the edge stream and names it: `asOf.sequence`.',
        version,
        license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
      },
      servers: [{ url: 'http://127.0.0.1:8080', description: 'A gateway on this machine' }],
      tags: [
        { name: 'graphs', description: 'Making, showing and removing graphs.' },
        { name: 'edges', description: 'Appending edges.' },
        { name: 'vertices', description: 'Which component a vertex is in; what connects two of them.' },
        { name: 'components', description: 'Connected components and their members.' },
        { name: 'partitions', description: 'How edges are spread over the partitions, and how well.' },
        {
          name: 'snapshots',
          description: 'The state of a graph at a message, to go on from: kept, taken, given up.',
        },
        { name: 'operations', description: 'The service itself.' },
      ],
    },
    convertConstToEnum: false,
    // Components are named as the schemas are, not def-0, def-1 …
    refResolver: { buildLocalReference: (json, _base, _fragment, at) => String(json['$id'] ?? `def-${at}`) },
  };
}
