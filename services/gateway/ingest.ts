/**
 * Appends the edges of a request to a graph's EDGES log.
 *
 * The body is decoded first, by the decoders and rules of the partitioner, so that the publisher hears at once
 * what does not count; what is appended are the publisher's own bytes. A body larger than a message is cut, by
 * size alone, so the same body under the same key becomes the same messages, and the log drops those that it has.
 */
import { randomBytes } from 'node:crypto';
import type { Appended, Rejection } from '../../libs/api/edges.ts';
import { EdgeColumns } from '../../libs/dataflow/edge-columns.ts';
import { edgesLog } from '../../libs/dataflow/names.ts';
import { decodePayloadAs } from '../../libs/dataflow/payload.ts';
import { rejectRemovals } from '../../libs/dataflow/removals.ts';
import { splitPayload } from '../../libs/dataflow/split-payload.ts';
import type { EdgesEnds } from './edges-ends.ts';
import {
  assertSameLog,
  type GraphDirectory,
  natsAnswer,
  natsUnavailable,
  unknownGraph,
} from './graph-directory.ts';
import type { GatewayDeps } from './ports.ts';
import { RequestProblem, shown } from './problems.ts';

/** Below NATS' own limit of 1 MiB, with room for headers. */
const MESSAGE_BYTES_MAX = 900 * 1024;
const ATTEMPTS = 4;
const RETRY_MS = 100;
const RETRY_AFTER_SECONDS = 1;

/** The edges of a body that count, ready to be appended. */
interface Batch {
  readonly contentType: string;
  readonly payloads: readonly Uint8Array[];
  readonly accepted: number;
  readonly rejected: number;
  readonly rejections: Rejection[];
}

export class Ingest {
  private readonly deps: GatewayDeps;
  private readonly directory: GraphDirectory;
  private readonly ends: EdgesEnds;
  private readonly columns = new EdgeColumns();

  constructor(deps: GatewayDeps, directory: GraphDirectory, ends: EdgesEnds) {
    this.deps = deps;
    this.directory = directory;
    this.ends = ends;
  }

  async append(
    graph: string,
    body: Uint8Array,
    contentType: string | undefined,
    idempotencyKey: string | undefined,
  ): Promise<Appended> {
    await this.directory.config(graph);
    const host = this.directory.host(graph);
    if (host !== undefined) assertSameLog(host);
    const batch = this.decode(body, contentType);
    await this.checkRoom(graph);
    const key = idempotencyKey ?? randomBytes(12).toString('base64url');
    const sequences: number[] = [];
    for (const [part, payload] of batch.payloads.entries()) {
      try {
        sequences.push(await this.appendOne(graph, payload, batch.contentType, `${key}:${part}`));
      } catch (error) {
        throw withProgress(error, sequences, batch.payloads.length);
      }
    }
    const { accepted, rejected, rejections } = batch;
    return {
      sequence: { first: Math.min(...sequences), last: Math.max(...sequences) },
      accepted,
      rejected,
      rejections,
    };
  }

  private decode(body: Uint8Array, contentType: string | undefined): Batch {
    const { columns } = this;
    const decoded = decodePayloadAs(body, contentType, columns);
    if (decoded.kind === 'undecodable') throw new RequestProblem('bad-payload', decoded.reason);
    rejectRemovals(columns);
    const { count, rejectedCount: rejected, reasons } = columns;
    const rejections = [...reasons];
    if (count === rejected) {
      const detail = count === 0 ? 'the body holds no edges' : `all ${count} edges of the body are rejected`;
      throw new RequestProblem('no-valid-edge', detail, { rejected, rejections });
    }
    const payloads = splitPayload(body, decoded.format, MESSAGE_BYTES_MAX);
    if (typeof payloads === 'string') throw new RequestProblem('payload-too-large', payloads);
    // The columns are kept for the next request; what they point into is not.
    columns.reset();
    return { contentType: decoded.format, payloads, accepted: count - rejected, rejected, rejections };
  }

  /** Refuses while publishers outrun the workers. */
  private async checkRoom(graph: string): Promise<void> {
    const end = await natsAnswer(() => this.ends.of(graph));
    if (end === undefined) {
      if ((await this.directory.record(graph)) === undefined) throw unknownGraph(graph);
      throw natsUnavailable(
        `the stream ${edgesLog(graph).stream} is gone: restore it, or remove the graph and create it again`,
      );
    }
    // While the view is restored nobody knows the lag; the log itself has its limit.
    const reached = this.directory.host(graph)?.view?.sequence;
    if (reached === undefined || end.last <= reached) return;
    const messages = end.last - reached;
    const meanBytes = end.bytes / Math.max(1, end.last - end.first + 1);
    const { ingestMaxLagBytes } = this.deps.limits;
    if (messages * meanBytes <= ingestMaxLagBytes) return;
    throw full(
      `${messages} messages, about ${Math.round(messages * meanBytes)} bytes, of graph ${shown(graph)} are not in ` +
        `its answers yet, and the limit is ${ingestMaxLagBytes}: wait`,
    );
  }

  private async appendOne(
    graph: string,
    payload: Uint8Array,
    contentType: string,
    messageId: string,
  ): Promise<number> {
    const { bus, clock, nats } = this.deps;
    let reason = 'not connected';
    for (let attempt = 0; attempt < ATTEMPTS && nats().connected; attempt++) {
      if (attempt > 0) await clock.sleep(RETRY_MS * 2 ** (attempt - 1));
      // The id is the same at each attempt, so what was stored without our knowing is not stored again.
      const outcome = await natsAnswer(() =>
        bus.append(edgesLog(graph), payload, { messageId, contentType }),
      );
      switch (outcome.kind) {
        case 'stored':
          return outcome.sequence;
        case 'full':
          throw full(
            `the stream of graph ${shown(graph)} is full (${outcome.reason}): wait, or raise its limit`,
          );
        case 'unknown':
          reason = outcome.reason;
          break;
        case 'conflict':
          throw new Error('an append without an expected sequence was refused for its sequence');
      }
    }
    throw natsUnavailable(reason);
  }
}

function full(detail: string): RequestProblem {
  return new RequestProblem('ingest-full', detail, { retryAfterSeconds: RETRY_AFTER_SECONDS });
}

/** A body of several messages may be stored in part: the publisher must know, and how to go on. */
function withProgress(error: unknown, stored: readonly number[], parts: number): unknown {
  if (!(error instanceof RequestProblem) || stored.length === 0) return error;
  const detail =
    `${error.message}; ${stored.length} of ${parts} messages of the body are stored already: repeat the whole ` +
    'request with the same Idempotency-Key, or they will count twice';
  return new RequestProblem(error.code, detail, error.details, { cause: error });
}
