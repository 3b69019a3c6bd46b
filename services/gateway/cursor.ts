/**
 * Cursors: where the next page of a list begins, as text that means nothing to the client.
 *
 * A cursor holds all that is needed, so it works on any gateway and as long as the graph lives. It names its kind
 * and its graph, so that one of another list, or of a graph that was removed and created again, is refused
 * instead of giving some page.
 *
 *   u8 version · u8 kind · 16 bytes graph id · the fields of the kind as varints; all in base64url
 */
import { ByteReader, ByteWriter } from '../../libs/dataflow/bytes.ts';
import { RequestProblem } from './problems.ts';

const VERSION = 1;
const MEMBERS = 1;
const COMPONENTS = 2;
const PARTITION = 3;
/** More rows than this there cannot be. */
const ROWS_MAX = 2 ** 32 - 1;

/** All pages of members are as of the first one's sequence; `row` is the next member. */
export interface MembersCursor {
  readonly sequence: number;
  readonly row: number;
}

/** The next page begins behind the component (size, oldest). */
export interface ComponentsCursor {
  /** Undefined: each page is as of its own time. */
  readonly sequence: number | undefined;
  readonly size: number;
  readonly oldest: number;
}

/** Each page is as of its own time; rows from `row` on are yet to come. */
export interface PartitionCursor {
  readonly generation: number;
  readonly partition: number;
  readonly row: number;
}

export function writeMembersCursor(graphId: string, { sequence, row }: MembersCursor): string {
  return write(graphId, MEMBERS, [sequence, row]);
}

export function readMembersCursor(text: string, graphId: string): MembersCursor {
  const [sequence, row] = read(text, graphId, MEMBERS, 2);
  return { sequence: sequence!, row: row! };
}

export function writeComponentsCursor(graphId: string, { sequence, size, oldest }: ComponentsCursor): string {
  return write(graphId, COMPONENTS, [sequence === undefined ? 0 : sequence + 1, size, oldest]);
}

export function readComponentsCursor(text: string, graphId: string): ComponentsCursor {
  const [sequence, size, oldest] = read(text, graphId, COMPONENTS, 3);
  if (size === 0 || size! > ROWS_MAX || oldest! > ROWS_MAX) throw badCursor();
  return { sequence: sequence === 0 ? undefined : sequence! - 1, size: size!, oldest: oldest! };
}

export function writePartitionCursor(
  graphId: string,
  { generation, partition, row }: PartitionCursor,
): string {
  return write(graphId, PARTITION, [generation, partition, row]);
}

export function readPartitionCursor(text: string, graphId: string): PartitionCursor {
  const [generation, partition, row] = read(text, graphId, PARTITION, 3);
  return { generation: generation!, partition: partition!, row: row! };
}

export function badCursor(): RequestProblem {
  return new RequestProblem(
    'bad-cursor',
    'the cursor is not a `nextCursor` of this list: begin again without one',
    { errors: [{ pointer: '/query/cursor', detail: 'not a cursor of this list' }] },
  );
}

function write(graphId: string, kind: number, fields: readonly number[]): string {
  const writer = new ByteWriter(48);
  writer.u8(VERSION);
  writer.u8(kind);
  writer.bytes(Buffer.from(graphId, 'hex'));
  for (const field of fields) writer.varint(field);
  return Buffer.from(writer.written()).toString('base64url');
}

function read(text: string, graphId: string, kind: number, fieldCount: number): number[] {
  const fields = readFields(Buffer.from(text, 'base64url'), graphId, kind, fieldCount);
  // Written anew it must be the same text: Node's decoder skips over what is no base64url.
  if (fields === undefined || write(graphId, kind, fields) !== text) throw badCursor();
  return fields;
}

function readFields(
  bytes: Uint8Array,
  graphId: string,
  kind: number,
  fieldCount: number,
): number[] | undefined {
  try {
    const reader = new ByteReader(bytes);
    if (reader.u8() !== VERSION || reader.u8() !== kind) return undefined;
    if (Buffer.from(reader.take(16)).toString('hex') !== graphId) return undefined;
    const fields = Array.from({ length: fieldCount }, () => reader.varint());
    return fields.every(Number.isSafeInteger) ? fields : undefined;
  } catch (error) {
    // It ends too early.
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}
