/**
 * Whether it is safe to give bytes to the Arrow reader.
 *
 * The reader (apache-arrow 21) trusts its input: it loops as often as a vector length in the metadata says,
 * follows offsets to wherever they point, reads past a cut, and allocates by the row count of a batch. Twenty
 * wrong bytes can make it loop two billion times or ask for gigabytes, and a message in a log would do that to
 * every process that reads it, for ever. So this walks the same structure first, with everything checked:
 *
 * - messages follow each other without a gap up to the end of the payload, the schema first and once;
 * - every vector and every buffer lies inside of its metadata or body, as does every table that is followed;
 * - no more tables are visited than the metadata has bytes, so shared tables cannot multiply;
 * - no batch has more rows than its body has bytes (an edge has at least one byte in each of two columns), and no
 *   dictionary more values than its body has bits;
 * - in the file format, the batches named by the footer do not overlap, so none can be counted twice.
 *
 * Source: https://arrow.apache.org/docs/format/Columnar.html#serialization-and-interprocess-communication-ipc
 * and the schemas Message.fbs, Schema.fbs and File.fbs, whose field numbers are the constants below.
 */

const SCHEMA = 1;
const DICTIONARY_BATCH = 2;
const RECORD_BATCH = 3;

/** MetadataVersion.V4, of Arrow 0.8 in 2017. Before it, buffers had another layout. */
const VERSION_MIN = 3;

const CONTINUATION = -1;
const MAGIC = new TextEncoder().encode('ARROW1');
/** Nested types of columns that we ignore; the reader recurses over them. */
const FIELD_DEPTH_MAX = 64;

class Unsafe extends Error {}

/** Why the bytes are no Arrow stream or file that can be read; undefined if they are one. */
export function arrowProblem(bytes: Uint8Array): string | undefined {
  try {
    if (isArrowFile(bytes)) checkFile(bytes);
    else checkStream(bytes);
    return undefined;
  } catch (error) {
    if (error instanceof Unsafe) return error.message;
    // The getters of DataView throw this for every position outside of the metadata.
    if (error instanceof RangeError) return 'damaged metadata';
    throw error;
  }
}

function isArrowFile(bytes: Uint8Array): boolean {
  return isMagicAt(bytes, 0);
}

function checkStream(bytes: Uint8Array): void {
  let at = 0;
  for (let message = 0; at < bytes.length; message++) {
    const head = headAt(bytes, at);
    if (head === undefined) {
      if (message === 0) break;
      // Another stream or lost bytes: in either case edges that the reader would pass over in silence.
      at = markEnd(bytes, at);
      if (at < bytes.length) throw new Unsafe(`${bytes.length - at} bytes after the end of the stream`);
      return;
    }
    if ((message === 0) !== (head.kind === SCHEMA))
      throw new Unsafe(`message ${message} is of kind ${head.kind}`);
    at = head.bodyStart + head.bodyBytes;
  }
  // A stream may end without its end mark, but not before its schema.
  if (at === 0) throw new Unsafe('no schema');
}

function checkFile(bytes: Uint8Array): void {
  const tail = bytes.length - MAGIC.length;
  if (tail < MAGIC.length + 2 + 4 || !isMagicAt(bytes, tail)) throw new Unsafe('the file has no end mark');
  const footerBytes = viewOf(bytes, tail - 4, 4).getInt32(0, true);
  const footerStart = tail - 4 - footerBytes;
  if (footerBytes <= 0 || footerStart < MAGIC.length) throw new Unsafe(`footer of ${footerBytes} bytes`);
  const footer = new Metadata(viewOf(bytes, footerStart, footerBytes));
  const root = footer.root();
  checkVersion(footer, root);
  checkSchema(footer, footer.required(root, 1));
  let bytesNamed = 0;
  for (const [field, kind] of [
    [2, DICTIONARY_BATCH],
    [3, RECORD_BATCH],
  ] as const) {
    const blocks = footer.vector(root, field, 24);
    for (let i = 0; i < blocks.count; i++) {
      const start = footer.long(blocks.start + i * 24);
      if (start < MAGIC.length || start > footerStart) throw new Unsafe(`batch ${i} is outside of the file`);
      const head = headAt(bytes, start);
      if (head === undefined || head.kind !== kind) throw new Unsafe(`batch ${i} is none`);
      bytesNamed += head.bodyStart + head.bodyBytes - start;
      if (bytesNamed > footerStart) throw new Unsafe('batches overlap');
    }
  }
}

interface MessageHead {
  readonly kind: number;
  readonly bodyStart: number;
  readonly bodyBytes: number;
}

/** The message at `at`, checked; undefined for the mark that ends a stream. */
function headAt(bytes: Uint8Array, at: number): MessageHead | undefined {
  const prefix = prefixAt(bytes, at);
  if (prefix.metadataBytes === 0) return undefined;
  const bodyStart = prefix.end + prefix.metadataBytes;
  if (prefix.metadataBytes < 0 || bodyStart > bytes.length) throw cut(at);
  const metadata = new Metadata(viewOf(bytes, prefix.end, prefix.metadataBytes));
  const root = metadata.root();
  checkVersion(metadata, root);
  metadata.checkKeyValues(root, 4);
  const kindField = metadata.field(root, 1);
  const kind = kindField === 0 ? 0 : metadata.byte(kindField);
  const bodyField = metadata.field(root, 3);
  const bodyBytes = bodyField === 0 ? 0 : metadata.long(bodyField);
  if (bodyStart + bodyBytes > bytes.length) throw cut(at);
  const header = metadata.required(root, 2);
  if (kind === SCHEMA) {
    checkSchema(metadata, header);
    if (bodyBytes !== 0) throw new Unsafe('the schema has a body');
  } else if (kind === RECORD_BATCH) checkBatch(metadata, header, bodyBytes);
  else if (kind === DICTIONARY_BATCH) checkDictionary(metadata, metadata.required(header, 1), bodyBytes);
  else throw new Unsafe(`message at byte ${at} is of kind ${kind}`);
  return { kind, bodyStart, bodyBytes };
}

/** Length of the metadata at `at`, and where it begins: before Arrow 0.15 there was no continuation marker. */
function prefixAt(bytes: Uint8Array, at: number): { metadataBytes: number; end: number } {
  if (at + 4 > bytes.length) throw cut(at);
  const first = viewOf(bytes, at, 4).getInt32(0, true);
  if (first !== CONTINUATION) return { metadataBytes: first, end: at + 4 };
  if (at + 8 > bytes.length) throw cut(at);
  return { metadataBytes: viewOf(bytes, at + 4, 4).getInt32(0, true), end: at + 8 };
}

function markEnd(bytes: Uint8Array, at: number): number {
  return prefixAt(bytes, at).end;
}

function checkVersion(metadata: Metadata, root: number): void {
  const field = metadata.field(root, 0);
  const version = field === 0 ? 0 : metadata.short(field);
  if (version < VERSION_MIN) throw new Unsafe(`metadata version V${version + 1} is older than V4`);
}

function checkSchema(metadata: Metadata, schema: number): void {
  const endianness = metadata.field(schema, 0);
  if (endianness !== 0 && metadata.short(endianness) !== 0)
    throw new Unsafe('big-endian streams are not supported');
  metadata.checkKeyValues(schema, 2);
  checkFields(metadata, schema, 1, 0);
}

function checkFields(metadata: Metadata, parent: number, index: number, depth: number): void {
  if (depth > FIELD_DEPTH_MAX) throw new Unsafe(`types nested deeper than ${FIELD_DEPTH_MAX}`);
  const fields = metadata.vector(parent, index, 4);
  for (let i = 0; i < fields.count; i++) {
    const field = metadata.table(fields.start + i * 4);
    metadata.checkKeyValues(field, 6);
    checkFields(metadata, field, 5, depth + 1);
  }
}

function checkBatch(metadata: Metadata, batch: number, bodyBytes: number): void {
  if (metadata.field(batch, 3) !== 0) throw new Unsafe('compressed buffers are not supported');
  const rowsField = metadata.field(batch, 0);
  const rows = rowsField === 0 ? 0 : metadata.long(rowsField);
  if (rows > bodyBytes) throw new Unsafe(`batch of ${rows} rows in ${bodyBytes} bytes`);
  const nodes = metadata.vector(batch, 1, 16);
  for (let i = 0; i < nodes.count * 2; i++) metadata.long(nodes.start + i * 8);
  const buffers = metadata.vector(batch, 2, 16);
  for (let i = 0; i < buffers.count; i++) {
    const offset = metadata.long(buffers.start + i * 16);
    const length = metadata.long(buffers.start + i * 16 + 8);
    if (offset + length > bodyBytes) throw new Unsafe(`buffer ${i} ends beyond its batch`);
  }
  metadata.vector(batch, 4, 8);
}

function checkDictionary(metadata: Metadata, batch: number, bodyBytes: number): void {
  checkBatch(metadata, batch, bodyBytes);
  const nodes = metadata.vector(batch, 1, 16);
  const values = nodes.count === 0 ? 0 : metadata.long(nodes.start);
  if (values > bodyBytes * 8) throw new Unsafe(`dictionary of ${values} values in ${bodyBytes} bytes`);
}

function cut(at: number): Unsafe {
  return new Unsafe(`message at byte ${at} is cut off`);
}

function isMagicAt(bytes: Uint8Array, at: number): boolean {
  for (let i = 0; i < MAGIC.length; i++) if (bytes[at + i] !== MAGIC[i]) return false;
  return true;
}

function viewOf(bytes: Uint8Array, start: number, length: number): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset + start, length);
}

/**
 * A FlatBuffers message (https://flatbuffers.dev/internals): tables that name the positions of their fields in a
 * vtable. Positions are checked by the getters of the view, which cover the metadata only.
 */
class Metadata {
  private readonly view: DataView;
  private tablesLeft: number;

  constructor(view: DataView) {
    this.view = view;
    this.tablesLeft = view.byteLength;
  }

  root(): number {
    return this.table(0);
  }

  /** Position of a field in its table; 0 if absent. */
  field(table: number, index: number): number {
    const vtable = table - this.view.getInt32(table, true);
    const entry = 4 + index * 2;
    if (entry >= this.view.getInt16(vtable, true)) return 0;
    const offset = this.view.getInt16(vtable + entry, true);
    if (offset < 0) throw new Unsafe('damaged metadata');
    return offset === 0 ? 0 : table + offset;
  }

  /** The table that the offset at `at` points to. Offsets point forward, so there are no circles. */
  table(at: number): number {
    const table = this.target(at);
    this.tablesLeft -= 1;
    if (this.tablesLeft < 0) throw new Unsafe('damaged metadata');
    // Proves that the table and its vtable are inside.
    this.field(table, 0);
    return table;
  }

  required(table: number, index: number): number {
    const field = this.field(table, index);
    if (field === 0) throw new Unsafe('damaged metadata');
    return this.table(field);
  }

  vector(table: number, index: number, elementBytes: number): { start: number; count: number } {
    const field = this.field(table, index);
    if (field === 0) return { start: 0, count: 0 };
    const vector = this.target(field);
    const count = this.view.getInt32(vector, true);
    if (count < 0 || vector + 4 + count * elementBytes > this.view.byteLength)
      throw new Unsafe('damaged metadata');
    return { start: vector + 4, count };
  }

  checkKeyValues(table: number, index: number): void {
    const pairs = this.vector(table, index, 4);
    for (let i = 0; i < pairs.count; i++) this.table(pairs.start + i * 4);
  }

  byte(at: number): number {
    return this.view.getUint8(at);
  }

  short(at: number): number {
    return this.view.getInt16(at, true);
  }

  /** A length or offset of 64 bits. */
  long(at: number): number {
    const low = this.view.getUint32(at, true);
    const high = this.view.getInt32(at + 4, true);
    const value = high * 0x1_0000_0000 + low;
    if (value < 0 || !Number.isSafeInteger(value)) throw new Unsafe('damaged metadata');
    return value;
  }

  private target(at: number): number {
    const offset = this.view.getInt32(at, true);
    if (offset <= 0) throw new Unsafe('damaged metadata');
    return at + offset;
  }
}
