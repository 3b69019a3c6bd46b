/** Loading through a real nats-server that goes away in the middle. */

import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable, Writable } from 'node:stream';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { connectNats, NatsBus } from '../../../../libs/bus/nats-bus.ts';
import { EdgeColumns } from '../../../../libs/dataflow/edge-columns.ts';
import { edgesLog, edgesSubjects, type LogName } from '../../../../libs/dataflow/names.ts';
import { decodePayload } from '../../../../libs/dataflow/payload.ts';
import type { Appended, AppendOptions, Clock } from '../../../../libs/stage/ports.ts';
import { EXIT } from '../../../../services/cli/exit.ts';
import { runLoad } from '../../../../services/cli/load/command.ts';
import { type TestNatsServer, testNatsServer } from '../../../integration/harness/nats.ts';

const LOG = edgesLog('load');
const ROWS = 800_000;

const clock: Clock = {
  now: () => performance.now(),
  sleep: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
  after: (ms, then) => {
    const timer = setTimeout(then, ms);
    return () => clearTimeout(timer);
  },
  yield: () => new Promise((resolve) => setImmediate(resolve)),
};

/** Does something before an append, counted from 1. */
class CountingBus extends NatsBus {
  private appends = 0;
  beforeAppend: (count: number) => void = () => {};
  override async append(log: LogName, payload: Uint8Array, options: AppendOptions): Promise<Appended> {
    this.beforeAppend(++this.appends);
    return await super.append(log, payload, options);
  }
}

let server: TestNatsServer;
let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'watershed-load-'));
  server = await testNatsServer();
});
afterAll(async () => {
  await server?.stop();
  await rm(folder, { recursive: true, force: true });
});

it('stores every edge once though the server is killed in the middle', async () => {
  const path = join(folder, 'edges.tsv');
  await writeFile(path, Array.from({ length: ROWS }, (_, i) => `${i}\t${i + 1}\n`).join(''));
  const connection = await connectNats({ url: server.url, name: 'load test', wait: false });
  const bus = new CountingBus(connection);
  await bus.create(LOG.stream, { subjects: edgesSubjects('load'), discard: 'new', denyDelete: true });
  let restarted: Promise<void> | undefined;
  bus.beforeAppend = (count) => {
    if (count === 100) restarted = server.kill9().then(() => server.restart());
  };
  const stderr: string[] = [];
  const sink = (into: string[]): Writable =>
    new Writable({
      write(chunk: Buffer, _, done) {
        into.push(chunk.toString());
        done();
      },
    });
  const { status, summary } = await runLoad(
    [path],
    {},
    {
      bus,
      log: LOG,
      clock,
      stdin: Readable.from([]),
      stdout: sink([]),
      stderr: sink(stderr),
      isTTY: false,
      runId: 'run',
    },
  );
  await restarted;
  expect(stderr.join('')).toContain('gives no answer');
  expect(status).toBe(EXIT.done);
  expect(summary).toMatchObject({ rows: ROWS, edges: ROWS, duplicates: 0, refused: 0 });

  const seen = new Uint8Array(ROWS);
  const state = (await bus.describe(LOG.stream))!;
  expect(summary.sequence).toEqual({ first: 1, last: state.last });
  const reader = await bus.read(LOG.stream, 1);
  const columns = new EdgeColumns();
  const decoder = new TextDecoder();
  for (let last = 0; last < state.last; ) {
    for (const message of await reader.next(1000)) {
      expect(decodePayload(message.payload, message.contentType, columns)).toBeUndefined();
      const { source, count } = columns;
      for (let i = 0; i < count; i++) {
        const id = Number(decoder.decode(source.bytes.subarray(source.start[i], source.end[i])));
        seen[id]! += 1;
      }
      last = message.sequence;
    }
  }
  await reader.close();
  await connection.close();
  expect(seen.every((times) => times === 1)).toBe(true);
});
