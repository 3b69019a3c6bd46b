import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable, Writable } from 'node:stream';
import { gzipSync } from 'node:zlib';
import { Command } from 'commander';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { MemoryBus } from '../../../../libs/bus/memory-bus.ts';
import { edgesLog, edgesSubjects } from '../../../../libs/dataflow/names.ts';
import type { Clock } from '../../../../libs/stage/ports.ts';
import { EXIT } from '../../../../services/cli/exit.ts';
import { type LoadResult, runLoad } from '../../../../services/cli/load/command.ts';
import { type LoadFlags, loadOptions } from '../../../../services/cli/load/load-options.ts';

const LOG = edgesLog('g');

const clock: Clock = {
  now: () => performance.now(),
  sleep: async () => {},
  after: () => () => {},
  yield: async () => {},
};

class Sink extends Writable {
  text = '';
  override _write(chunk: Buffer, _: string, done: () => void): void {
    this.text += chunk.toString();
    done();
  }
}

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'watershed-load-'));
});
afterAll(async () => {
  await rm(folder, { recursive: true, force: true });
});

async function fileOf(name: string, content: string | Uint8Array): Promise<string> {
  const path = join(folder, name);
  await writeFile(path, content);
  return path;
}

async function run(
  paths: readonly string[],
  flags: LoadFlags = {},
  { stdin = '', isTTY = false, bus = new MemoryBus(() => 0n, clock) } = {},
): Promise<LoadResult & { stdout: string; stderr: string; bus: MemoryBus }> {
  await bus.create(LOG.stream, { subjects: edgesSubjects('g'), discard: 'new', denyDelete: true });
  const stdout = new Sink();
  const stderr = Object.assign(new Sink(), { isTTY, columns: 80 });
  const result = await runLoad(paths, flags, {
    bus,
    log: LOG,
    clock,
    stdin: Readable.from(stdin === '' ? [] : [Buffer.from(stdin)]),
    stdout,
    stderr,
    isTTY,
    runId: 'run',
  });
  return { ...result, stdout: stdout.text, stderr: stderr.text, bus };
}

const messagesOf = async (bus: MemoryBus): Promise<number> => (await bus.describe(LOG.stream))!.last;

describe('watershed load', () => {
  it('says what it guessed, what it read and where it is', async () => {
    const path = await fileOf('plain.csv', 'Source,Target\na,b\nb,c\n');
    const { status, stdout, stderr, summary } = await run([path]);
    expect(status).toBe(EXIT.done);
    expect(stderr).toBe(
      `${path}: comma-separated, header line, source = column 1 "Source", target = column 2 "Target"\n`,
    );
    expect(stdout).toBe('rows read     2\nedges sent    2\nrows refused  0\nsequence      1 to 1\n');
    expect(summary).toMatchObject({ rows: 2, edges: 2, sequence: { first: 1, last: 1 }, error: null });
  });

  it('warns of refused rows, and fails with --strict', async () => {
    const path = await fileOf('refused.csv', `source,target\na,b\n${'a,\n'.repeat(12)}`);
    const { status, stderr } = await run([path]);
    expect(status).toBe(EXIT.done);
    expect(stderr).toContain(`warning: ${path}: 12 rows were refused\n  line 3: target is empty\n`);
    expect(stderr).toContain('  line 12: target is empty\n  …\n');
    expect((await run([path], { strict: true })).status).toBe(EXIT.failed);
  });

  it('fails if no row was accepted', async () => {
    const nothing = await run([await fileOf('nothing.csv', 'source,target\na,\n')]);
    expect(nothing.status).toBe(EXIT.failed);
    expect(nothing.stderr).toContain('error: no row was accepted');
    expect((await run([await fileOf('empty.csv', '')])).status).toBe(EXIT.failed);
  });

  it('sends nothing of any file if one cannot be decided, and names all that cannot', async () => {
    const good = await fileOf('good.csv', 'source,target\na,b\n');
    const odd = await fileOf('odd.csv', 'one\ntwo\n');
    const gml = await fileOf('some.gml', 'graph [\n]\n');
    const { status, stderr, bus, stdout } = await run([good, odd, gml]);
    expect(status).toBe(EXIT.usage);
    expect(stderr).toContain(`error: ${odd}: what separates two columns`);
    expect(stderr).toContain(`error: ${gml}: it looks like GML`);
    expect(await messagesOf(bus)).toBe(0);
    expect(stdout).toBe('');
  });

  it('sends what a file has before it is cut short, fails, and does not go on to the next', async () => {
    const bytes = gzipSync('source,target\na,b\nb,c\n');
    const cut = await fileOf('cut.csv.gz', bytes.subarray(0, bytes.length - 4));
    const next = await fileOf('next.csv', 'source,target\nx,y\n');
    const { status, stderr, summary, bus } = await run([cut, next]);
    expect(status).toBe(EXIT.failed);
    expect(stderr).toContain(`error: ${cut} cannot be read: the gzip file is cut short`);
    expect(summary).toMatchObject({ rows: 2, edges: 2, sequence: { first: 1, last: 1 } });
    expect(await messagesOf(bus)).toBe(1);
  });

  it('fails for files that are not there, and for options that are none', async () => {
    const missing = await run([join(folder, 'missing.csv')]);
    expect(missing.status).toBe(EXIT.failed);
    expect(missing.stderr).toContain('missing.csv cannot be read: there is no such file');
    const path = await fileOf('fine.csv', 'source,target\na,b\n');
    for (const flags of [
      { skip: 'x' },
      { delimiter: '||' },
      { timeUnit: 'h' },
      { id: 'a b' },
      { comment: '' },
    ]) {
      await expect(run([path], flags)).rejects.toMatchObject({ status: EXIT.usage });
    }
  });

  it('fails with the status of an outage when the log stays silent', async () => {
    const bus = new MemoryBus(() => 0n, clock);
    bus.onAppend = () => 'lost-before';
    let now = 0;
    const stderr = new Sink();
    await bus.create(LOG.stream, { subjects: edgesSubjects('g'), discard: 'new', denyDelete: true });
    const { status } = await runLoad(
      [await fileOf('out.csv', 'source,target\na,b\n')],
      {},
      {
        bus,
        log: LOG,
        clock: {
          now: () => now,
          sleep: async (ms) => {
            now += ms;
          },
          after: () => () => {},
          yield: async () => {},
        },
        stdin: Readable.from([]),
        stdout: new Sink(),
        stderr,
        isTTY: false,
        runId: 'run',
      },
    );
    expect(status).toBe(EXIT.unavailable);
    expect(stderr.text).toContain('gives no answer');
    expect(stderr.text).toContain('error: ');
  });

  it('reads standard input and prints one JSON object', async () => {
    const { stdout, status } = await run(
      ['-'],
      { json: true },
      { stdin: '{"source":"a","target":"b"}\n{}\n' },
    );
    expect(status).toBe(EXIT.done);
    expect(JSON.parse(stdout)).toEqual({
      files: [{ file: 'standard input', readAs: 'NDJSON, source = "source", target = "target"', rows: 2 }],
      rows: 2,
      edges: 1,
      duplicates: 0,
      refused: 1,
      reasons: [{ file: 'standard input', place: 'line 2', reason: 'source is missing' }],
      sequence: { first: 1, last: 1 },
      error: null,
    });
    expect(stdout.trim().split('\n')).toHaveLength(1);
  });

  it('lets go of standard input when it will not be read', async () => {
    const odd = await fileOf('undecided.csv', 'one\ntwo\n');
    const stdin = Readable.from([Buffer.from('a,b\n'), Buffer.alloc(10)]);
    const sinks = { stdout: new Sink(), stderr: new Sink() };
    const deps = {
      bus: new MemoryBus(() => 0n, clock),
      log: LOG,
      clock,
      stdin,
      ...sinks,
      isTTY: false,
      runId: 'run',
    };
    expect((await runLoad(['-', odd], {}, deps)).status).toBe(EXIT.usage);
    expect(stdin.destroyed).toBe(true);
    await expect(runLoad(['-', '-'], {}, deps)).rejects.toMatchObject({ status: EXIT.usage });
  });

  it('changes nothing when a load of the same name is repeated', async () => {
    const path = await fileOf('again.csv', 'source,target\na,b\nb,c\n');
    const bus = new MemoryBus(() => 0n, clock);
    await run([path], { id: 'monday' }, { bus });
    const { stdout, status } = await run([path], { id: 'monday' }, { bus });
    expect(status).toBe(EXIT.done);
    expect(stdout).toContain('of which    2 were there already');
    expect(await messagesOf(bus)).toBe(1);
  });

  it('shows a bar to a person only', async () => {
    const rows = Array.from({ length: 100_000 }, (_, i) => `v${i}\tv${i + 1}\n`).join('');
    const paths = [await fileOf('one.tsv', rows), await fileOf('two.tsv', rows)];
    const watched = await run(paths, {}, { isTTY: true });
    expect(watched.stderr).toMatch(/\d+%/);
    expect(watched.stderr).toContain('edges/s');
    expect(watched.summary.edges).toBe(200_000);
    const logged = await run(paths);
    expect(logged.stderr).not.toContain('%');
    expect(logged.stderr.trim().split('\n')).toHaveLength(2);
  });
});

describe('the options on the command line', () => {
  async function flagsOf(...args: string[]): Promise<LoadFlags> {
    let flags: LoadFlags = {};
    const command = loadOptions(new Command('load').argument('<files...>')).action((_, given: LoadFlags) => {
      flags = given;
    });
    await command.parseAsync(['file', ...args], { from: 'user' });
    return flags;
  }

  it('are undefined unless given', async () => {
    expect(await flagsOf()).toEqual({});
  });

  it('may be repeated or negated where that means something', async () => {
    expect(await flagsOf('--null', 'NULL', '--null', 'NA')).toMatchObject({ null: ['NULL', 'NA'] });
    expect(await flagsOf('--no-time', '--no-weight', '--no-header', '--no-comment')).toMatchObject({
      time: false,
      weight: false,
      header: false,
      comment: false,
    });
    expect(await flagsOf('--time', '3', '--header', '--skip', '2', '--time-unit', 's')).toMatchObject({
      time: '3',
      header: true,
      skip: '2',
      timeUnit: 's',
    });
  });
});
