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
import type { Bus } from '../../libs/stage/ports.ts';
import { CliError, EXIT } from './exit.ts';

const MESSAGE_BYTES = 64 * 1024;
const LINGER_MS = 20;
const RETRIES = 60;
const RETRY_MS = 500;

export interface Published {
  readonly messages: number;
  readonly lines: number;
  /** Of the last message; 0 if there was none. Wait for it with --at-least. */
  readonly sequence: number;
}

export async function publishLines(input: Readable, bus: Bus, log: LogName): Promise<Published> {
  const run = randomBytes(8).toString('hex');
  let lines: string[] = [];
  let bytes = 0;
  let messages = 0;
  let total = 0;
  let sequence = 0;
  let timer: NodeJS.Timeout | undefined;
  // One message at a time, so that lines arrive in the order they were written.
  let sending: Promise<void> = Promise.resolve();
  const flush = (): Promise<void> => {
    clearTimeout(timer);
    timer = undefined;
    if (lines.length === 0) return sending;
    const payload = new TextEncoder().encode(lines.join('\n'));
    const messageId = `${run}:${messages++}`;
    lines = [];
    bytes = 0;
    sending = sending.then(async () => {
      sequence = await send(bus, log, payload, messageId);
    });
    return sending;
  };
  for await (const line of createInterface({ input, crlfDelay: Number.POSITIVE_INFINITY })) {
    if (line.trim() === '') continue;
    lines.push(line);
    total += 1;
    bytes += line.length + 1;
    if (bytes >= MESSAGE_BYTES) await flush();
    else timer ??= setTimeout(() => void flush().catch(() => {}), LINGER_MS);
  }
  await flush();
  return { messages, lines: total, sequence };
}

async function send(bus: Bus, log: LogName, payload: Uint8Array, messageId: string): Promise<number> {
  let reason = '';
  for (let attempt = 0; attempt < RETRIES; attempt++) {
    const appended = await bus.append(log, payload, { messageId, contentType: 'application/x-ndjson' });
    if (appended.kind === 'stored') return appended.sequence;
    reason = appended.kind === 'conflict' ? 'refused' : appended.reason;
    await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
  }
  throw new CliError(EXIT.unavailable, `the stream ${log.stream} takes no message (${reason})`);
}
