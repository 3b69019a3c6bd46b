/**
 * Cuts a payload that is too large for one message into several of the same content type, with the same edges,
 * rejected ones too, in the same order. Size alone decides where, so the same payload is always cut alike: a
 * publisher that sends it again under the same key sends the same messages.
 *
 * Text is cut between edges and otherwise left as it is: the parts of a JSON array get brackets, those of a CSV
 * text get its header line.
 */

import { sliceArrow } from './arrow-slices.ts';
import { EdgeColumns } from './edge-columns.ts';
import { EdgeRanges } from './edge-ranges.ts';
import { decodePayloadAs } from './payload.ts';

const OPEN_BRACKET = Uint8Array.of(91);
const CLOSE_BRACKET = Uint8Array.of(93);
const NOTHING = new Uint8Array(0);

/**
 * Payloads of at most `bytesMax` bytes each, or the reason why there are none: the payload does not decode, or
 * one edge alone is too large. Without `contentType` the parts may begin with something else than the payload,
 * so they need the header of the format that `decodePayloadAs` finds.
 */
export function splitPayload(
  payload: Uint8Array,
  contentType: string | undefined,
  bytesMax: number,
): Uint8Array[] | string {
  if (payload.length <= bytesMax) return [payload];
  const ranges = new EdgeRanges();
  const decoded = decodePayloadAs(payload, contentType, new EdgeColumns(), ranges);
  if (decoded.kind === 'undecodable') return decoded.reason;
  switch (decoded.format) {
    case 'application/json':
      return cut(payload, ranges, OPEN_BRACKET, CLOSE_BRACKET, bytesMax);
    case 'application/x-ndjson':
      return cut(payload, ranges, NOTHING, NOTHING, bytesMax);
    case 'text/csv':
      return cut(payload, ranges, payload.subarray(0, ranges.headerBytes), NOTHING, bytesMax);
    case 'application/vnd.apache.arrow.stream':
      return sliceArrow(payload, bytesMax);
  }
}

/** Runs of edges, as long as fit, each with what stands between its edges and with a head and a tail. */
function cut(
  payload: Uint8Array,
  ranges: EdgeRanges,
  head: Uint8Array,
  tail: Uint8Array,
  bytesMax: number,
): Uint8Array[] | string {
  const room = bytesMax - head.length - tail.length;
  if (room < 0) return `the header line alone takes ${head.length} bytes of at most ${bytesMax}`;
  const parts: Uint8Array[] = [];
  let first = 0;
  for (let i = 0; i < ranges.count; i++) {
    const edgeBytes = ranges.end[i]! - ranges.start[i]!;
    if (edgeBytes > room) {
      return `edge ${i} alone takes ${edgeBytes + head.length + tail.length} bytes of at most ${bytesMax}`;
    }
    if (ranges.end[i]! - ranges.start[first]! > room) {
      parts.push(joined(head, payload.subarray(ranges.start[first], ranges.end[i - 1]), tail));
      first = i;
    }
  }
  const body =
    ranges.count === 0 ? NOTHING : payload.subarray(ranges.start[first], ranges.end[ranges.count - 1]);
  parts.push(joined(head, body, tail));
  return parts;
}

function joined(head: Uint8Array, body: Uint8Array, tail: Uint8Array): Uint8Array {
  const all = new Uint8Array(head.length + body.length + tail.length);
  all.set(head);
  all.set(body, head.length);
  all.set(tail, head.length + body.length);
  return all;
}
