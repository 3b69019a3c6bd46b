/**
 * `watershed publish`: edges from standard input into a graph, as they come.
 *
 * Lines (NDJSON) are gathered for a moment and sent as one message; the wait for more lines is short, so that
 * a person who types sees each one counted.
 */
import { randomBytes } from 'node:crypto';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import type { LogName } from '../../libs/dataflow/names.ts';
import type { Bus, Clock } from '../../libs/stage/ports.ts';
import { EdgeSender } from './load/send.ts';

const MESSAGE_BYTES = 64 * 1024;
const LINGER_MS = 20;
const NDJSON = 'application/x-ndjson';

export interface Published {
  readonly lines: number;
  /** Of the last message; 0 if there was none. Wait for it with --at-least. */
  readonly sequence: number;
}

export async function publishLines(
  input: Readable,
  bus: Bus,
  log: LogName,
  clock: Clock,
  report: (message: string) => void,
): Promise<Published> {
  const sender = new EdgeSender(bus, log, randomBytes(8).toString('hex'), clock, report, NDJSON);
  let lines: string[] = [];
  let bytes = 0;
  let timer: NodeJS.Timeout | undefined;
  // One at a time, so that lines arrive in the order they were written. A failure shows at the next wait.
  let sending: Promise<void> = Promise.resolve();
  const flush = (): Promise<void> => {
    clearTimeout(timer);
    timer = undefined;
    if (lines.length === 0) return sending;
    const message = { payload: new TextEncoder().encode(lines.join('\n')), edges: lines.length };
    lines = [];
    bytes = 0;
    sending = sending.then(() => sender.send(message));
    sending.catch(() => {});
    return sending;
  };
  for await (const line of createInterface({ input, crlfDelay: Number.POSITIVE_INFINITY })) {
    if (line.trim() === '') continue;
    lines.push(line);
    bytes += line.length + 1;
    if (bytes >= MESSAGE_BYTES) await flush();
    else timer ??= setTimeout(() => void flush(), LINGER_MS);
  }
  await flush();
  const { edges, lastSequence = 0 } = await sender.finish();
  return { lines: edges, sequence: lastSequence };
}
