import { Readable } from 'node:stream';
import { EdgeColumns, OP_REMOVE } from '../../../../libs/dataflow/edge-columns.ts';
import { decodePayload } from '../../../../libs/dataflow/payload.ts';
import { InputFile } from '../../../../services/cli/load/input-file.ts';
import { type LoadFlags, parseLoadFlags } from '../../../../services/cli/load/load-options.ts';
import { LoadReader } from '../../../../services/cli/load/load-reader.ts';
import type { RefusedRow } from '../../../../services/cli/load/refused-rows.ts';

/** What became of a file, in a form that tests can compare. */
export interface Loaded {
  readonly description: string;
  readonly hint: string | undefined;
  readonly rows: number;
  readonly refused: number;
  readonly reasons: readonly RefusedRow[];
  readonly edges: readonly (readonly [source: string, target: string])[];
  /** Milliseconds; NaN where an edge has none. */
  readonly times: readonly number[];
  readonly payloads: readonly Uint8Array[];
  /** What ended the reading early. */
  readonly error: unknown;
}

/** Reads a file as `watershed load` does, and decodes what would be sent as the partitioner does. */
export async function loaded(
  path: string,
  flags: LoadFlags = {},
  stdin = Readable.from([]),
): Promise<Loaded> {
  const options = parseLoadFlags(flags);
  const file = await InputFile.at(path, stdin, options.skipLines);
  const reader = await LoadReader.open(file, options);
  const edges: [string, string][] = [];
  const times: number[] = [];
  const payloads: Uint8Array[] = [];
  let error: unknown;
  try {
    for await (const { payload, edges: count } of reader.payloads()) {
      const columns = new EdgeColumns();
      const reason = decodePayload(payload, 'application/vnd.apache.arrow.stream', columns);
      if (reason !== undefined || columns.rejectedCount > 0 || columns.count !== count) {
        throw new Error(`payload of ${count} edges: ${reason ?? JSON.stringify(columns.reasons)}`);
      }
      const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
      const { source, target } = columns;
      for (let i = 0; i < count; i++) {
        if (columns.op[i] === OP_REMOVE) throw new Error('a removal');
        edges.push([
          text.decode(source.bytes.subarray(source.start[i], source.end[i])),
          text.decode(target.bytes.subarray(target.start[i], target.end[i])),
        ]);
        times.push(columns.time[i]!);
      }
      payloads.push(payload);
    }
  } catch (caught) {
    error = caught;
  }
  const { description, hint, rows, refused } = reader;
  return {
    description,
    hint,
    rows,
    refused: refused.count,
    reasons: refused.first,
    edges,
    times,
    payloads,
    error,
  };
}

/** The same for a text, or bytes, in chunks of `chunkBytes`. */
export async function loadedText(
  content: string | Uint8Array,
  flags: LoadFlags = {},
  chunkBytes = 7,
): Promise<Loaded> {
  const bytes = typeof content === 'string' ? new TextEncoder().encode(content) : content;
  const chunks: Uint8Array[] = [];
  for (let at = 0; at < bytes.length; at += chunkBytes) chunks.push(bytes.subarray(at, at + chunkBytes));
  return await loaded('-', flags, Readable.from(chunks));
}

/** Vertices, components and the size of the largest, by breadth-first search over strings. */
export function componentsOf(edges: Loaded['edges']): {
  vertices: number;
  components: number;
  largest: number;
} {
  const neighbours = new Map<string, string[]>();
  const of = (vertex: string): string[] => {
    const known = neighbours.get(vertex);
    if (known !== undefined) return known;
    const none: string[] = [];
    neighbours.set(vertex, none);
    return none;
  };
  for (const [source, target] of edges) {
    of(source).push(target);
    of(target).push(source);
  }
  const seen = new Set<string>();
  let components = 0;
  let largest = 0;
  for (const start of neighbours.keys()) {
    if (seen.has(start)) continue;
    components += 1;
    const before = seen.size;
    seen.add(start);
    const queue = [start];
    for (const vertex of queue) {
      for (const neighbour of neighbours.get(vertex)!) {
        if (seen.has(neighbour)) continue;
        seen.add(neighbour);
        queue.push(neighbour);
      }
    }
    largest = Math.max(largest, seen.size - before);
  }
  return { vertices: neighbours.size, components, largest };
}
