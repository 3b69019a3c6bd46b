/**
 * The program as scripts and people use it: statuses, streams, folders, and what it leaves behind.
 */
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { GraphStatus } from '../../libs/api/graph.ts';
import type { Connection } from '../../libs/api/vertex.ts';
import { freePort } from '../../services/cli/free-port.ts';
import { reached } from './harness/answers.ts';
import { Cluster, PROGRAM, type Ran, run, until } from './harness/cluster.ts';
import { processesWith, type Running, startProgram } from './harness/processes.ts';

const EDGE = '{"source":"ann","target":"bob"}\n';
const COMMANDS = [
  ['up'],
  ['serve'],
  ['graph', 'create'],
  ['graph', 'list'],
  ['graph', 'show'],
  ['graph', 'remove'],
  ['graph', 'set'],
  ['graph', 'rebuild'],
  ['snapshot', 'create'],
  ['snapshot', 'list'],
  ['snapshot', 'show'],
  ['snapshot', 'remove'],
  ['snapshot', 'verify'],
  ['snapshot', 'export'],
  ['snapshot', 'import'],
  ['snapshot', 'restore'],
  ['load'],
  ['partition'],
  ['partitions'],
  ['publish'],
  ['component'],
  ['connected'],
  ['top'],
  ['status'],
  ['demo'],
];

describe('the program watershed', () => {
  let cluster: Cluster;
  let file: string;

  beforeAll(async () => {
    cluster = await Cluster.single();
    file = join(cluster.folder, 'edges.csv');
    writeFileSync(file, 'source,target\nann,bob\ncid,dan\n');
    const loaded = await cluster.watershed(['load', file]);
    expect(loaded.status).toBe(0);
    await reached(cluster, 'default', 1);
  });

  afterAll(() => cluster?.stop());

  /** Runs them, two at a time; each is told by its arguments. */
  async function statuses(
    runs: readonly { readonly args: readonly string[]; readonly input?: string }[],
  ): Promise<(Ran & { command: string })[]> {
    const results: (Ran & { command: string })[] = [];
    const left = [...runs];
    const runOne = async (): Promise<void> => {
      for (let next = left.shift(); next !== undefined; next = left.shift()) {
        const ran = await cluster.watershed(next.args, next.input);
        results.push({ ...ran, command: next.args.join(' ') });
      }
    };
    await Promise.all([runOne(), runOne()]);
    return results;
  }

  it('exits 0 where it did what it was told, an answer "no" included', async () => {
    const runs = await statuses([
      { args: ['--version'] },
      { args: ['--help'] },
      { args: ['graph', 'create', 'zero'] },
      { args: ['graph', 'create', 'zero'] },
      { args: ['graph', 'list'] },
      { args: ['graph', 'show', 'default'] },
      { args: ['graph', 'set', 'default', '--snapshot-interval', '90'] },
      { args: ['snapshot', 'list'] },
      { args: ['snapshot', 'verify', 'all'] },
      { args: ['load', '--graph', 'loaded', file] },
      { args: ['publish', '--graph', 'published'], input: EDGE },
      { args: ['component', 'ann'] },
      { args: ['connected', 'ann', 'bob'] },
      { args: ['connected', 'ann', 'cid'] },
      { args: ['top'] },
      { args: ['status'] },
    ]);
    for (const { command, status, stdout, stderr } of runs) {
      expect(status, `${command}: ${stderr}`).toBe(0);
      expect(stdout, command).not.toBe('');
    }
    expect(runs.find(({ command }) => command === 'connected ann cid')!.stdout).toMatch(/^no: /);
  });

  it('exits 2 where the command line is wrong, and says how it should be, with nothing on stdout', async () => {
    const undecided = join(cluster.folder, 'undecided.txt');
    writeFileSync(undecided, 'a;b,c\n');
    const runs = await statuses([
      { args: ['nonsense'] },
      { args: ['top', '--nonsense'] },
      { args: ['connected', 'ann'] },
      { args: ['component'] },
      { args: ['load'] },
      { args: ['load', '--source', '9', file] },
      { args: ['top', '--limit', 'many'] },
      { args: ['top', '--as-of', '-1'] },
      { args: ['component', 'ann', '--at-least', '1.5'] },
      { args: ['graph', 'create', 'Not A Name'] },
      { args: ['graph', 'create', 'many', '--partitions', '65'] },
      { args: ['graph', 'nonsense'] },
      { args: ['graph', 'set', 'default', '--snapshots-kept', '1'] },
      { args: ['graph', 'rebuild', 'default', '--from-start', '--snapshot', '1'] },
      { args: ['snapshot', 'nonsense'] },
      { args: ['snapshot', 'create', '--name', 'Not A Name'] },
      { args: ['snapshot', 'create', '--name', '12'] },
      { args: ['snapshot', 'verify', '1', '--snapshot-store', 'tape'] },
      { args: ['snapshot', 'import', cluster.folder] },
      { args: ['snapshot', 'restore', '1'] },
      { args: ['serve'] },
      { args: ['serve', '--roles', 'cook'] },
      { args: ['serve', '--roles', 'worker', '--replicas', '2'] },
      { args: ['serve', '--roles', 'worker', '--name', 'a/b'] },
      { args: ['serve', '--roles', 'gateway', '--http', 'nowhere'] },
      { args: ['up', '--http', '127.0.0.1:99999'] },
    ]);
    for (const { command, status, stdout, stderr } of runs) {
      expect(status, `${command}: ${stderr}`).toBe(2);
      expect(stdout, command).toBe('');
      expect(stderr, command).not.toMatch(/\n\s+at /);
    }
  });

  it('exits 3 where what was asked for is not there', async () => {
    const runs = await statuses([
      { args: ['graph', 'show', 'nobody'] },
      { args: ['graph', 'remove', 'nobody'] },
      { args: ['graph', 'set', 'nobody', '--partitions', '2'] },
      { args: ['graph', 'rebuild', 'nobody'] },
      { args: ['snapshot', 'create', '--graph', 'nobody'] },
      { args: ['snapshot', 'show', '9'] },
      { args: ['snapshot', 'export', '9', join(cluster.folder, 'export')] },
      { args: ['top', '--graph', 'nobody'] },
      { args: ['component', 'nobody'] },
      { args: ['component', 'ann', '--graph', 'nobody'] },
      { args: ['connected', 'ann', 'nobody'] },
      { args: ['connected', 'ann', 'bob', '--as-of', '0'] },
    ]);
    for (const { command, status, stdout, stderr } of runs) {
      expect(status, `${command}: ${stderr}`).toBe(3);
      expect(stdout, command).toBe('');
      expect(stderr, command).toMatch(/^watershed: .*\n$/);
    }
  });

  it('exits 5 where nobody answers, or not in time, and names the option for another address', async () => {
    const url = `http://127.0.0.1:${await freePort()}`;
    const nats = `nats://127.0.0.1:${await freePort()}`;
    const late = cluster.watershed(['connected', 'ann', 'bob', '--at-least', '1000000']);
    const runs = await statuses([
      { args: ['graph', 'create', 'g', '--url', url] },
      { args: ['graph', 'list', '--url', url] },
      { args: ['graph', 'show', 'g', '--url', url] },
      { args: ['graph', 'remove', 'g', '--url', url] },
      { args: ['component', 'ann', '--url', url] },
      { args: ['connected', 'ann', 'bob', '--url', url] },
      { args: ['top', '--url', url] },
      { args: ['status', '--url', url] },
      { args: ['snapshot', 'list', '--url', url] },
      { args: ['snapshot', 'verify', 'all', '--nats', nats] },
      { args: ['load', file, '--nats', nats] },
      { args: ['publish', '--nats', nats], input: EDGE },
    ]);
    for (const { command, status, stdout, stderr } of runs) {
      expect(status, `${command}: ${stderr}`).toBe(5);
      expect(stdout, command).toBe('');
      expect(stderr, command).toMatch(command.includes('--nats') ? /--nats/ : /--url/);
      expect(stderr, command).not.toMatch(/\n\s+at /);
    }
    const { status, stderr } = await late;
    expect(status).toBe(5);
    expect(stderr).toContain('not 1000000 yet');
  });

  it('exits 1 where it failed at its work', async () => {
    const cut = join(cluster.folder, 'cut.csv.gz');
    const rows = Array.from({ length: 5000 }, (_, n) => `a${n * 7919},b${n * 104_729}\n`).join('');
    writeFileSync(cut, gzipSync(`source,target\n${rows}`).subarray(0, -1000));
    const bad = join(cluster.folder, 'bad.csv');
    writeFileSync(bad, 'source,target\na,b\nc,d\n,f\n');
    const runs = await statuses([
      { args: ['load', join(cluster.folder, 'absent.csv')] },
      { args: ['load', '--graph', 'failed', cut] },
      { args: ['load', '--graph', 'failed', '--strict', bad] },
      {
        args: [
          'serve',
          '--roles',
          'gateway',
          '--name',
          'taken',
          '--data',
          cluster.folder,
          '--http',
          `127.0.0.1:${cluster.port}`,
        ],
      },
      { args: ['up', '--http', `127.0.0.1:${cluster.port}`, '--data', join(cluster.folder, 'up')] },
    ]);
    for (const { command, status, stderr } of runs) {
      expect(status, `${command}: ${stderr}`).toBe(1);
      expect(stderr, command).not.toMatch(/\n\s+at /);
    }
    for (const { stderr } of runs.filter(({ command }) => command.includes('--http'))) {
      expect(stderr).toContain(`127.0.0.1:${cluster.port} is taken: choose another address with --http`);
    }
    expect(runs.filter(({ command }) => command.includes('--http'))).toHaveLength(2);
  });

  it('prints with --json one JSON document on stdout and nothing else there', async () => {
    const runs = await statuses([
      { args: ['graph', 'create', 'json', '--json'] },
      { args: ['graph', 'list', '--json'] },
      { args: ['graph', 'show', 'default', '--json'] },
      { args: ['load', '--graph', 'json-load', '--json', file] },
      { args: ['publish', '--graph', 'json-publish', '--json'], input: EDGE },
      { args: ['component', 'ann', '--json'] },
      { args: ['connected', 'ann', 'bob', '--json'] },
      { args: ['top', '--json'] },
      { args: ['status', '--json'] },
      { args: ['snapshot', 'list', '--json'] },
      { args: ['snapshot', 'verify', 'all', '--json'] },
    ]);
    for (const { command, status, stdout, stderr } of runs) {
      expect(status, `${command}: ${stderr}`).toBe(0);
      expect(stdout, command).toMatch(/^\{.*\}\n$/);
      expect(() => JSON.parse(stdout) as unknown, command).not.toThrow();
    }
    const removed = await cluster.watershed(['graph', 'remove', 'json', '--json']);
    expect(JSON.parse(removed.stdout)).toEqual({ removed: 'json' });
    const chrome = runs.find(({ command }) => command.startsWith('load'))!;
    expect(chrome.stderr).toContain('edges.csv');
    const failed = await cluster.watershed(['component', 'nobody', '--json']);
    expect(failed.stdout).toBe('');
  });

  it('shows examples in the help of every command', { timeout: 120_000 }, async () => {
    const runs = await statuses(COMMANDS.map((command) => ({ args: [...command, '--help'] })));
    for (const { command, status, stdout, stderr } of runs) {
      expect(status, command).toBe(0);
      expect(stderr, command).toBe('');
      expect(stdout, command).toMatch(
        new RegExp(`Examples:\\n(  .*\\n)*.*watershed ${command.replace(' --help', '')}`),
      );
    }
  });

  it('ends quietly when whoever reads its output has seen enough', async () => {
    const lines = Array.from({ length: 1000 }, (_, n) => {
      const id = `${n}`.padEnd(1000, '-');
      return JSON.stringify({ source: id, target: id });
    });
    const published = await cluster.watershed(['publish', '--graph', 'long', '--json'], lines.join('\n'));
    const { sequence } = JSON.parse(published.stdout) as { sequence: number };
    await reached(cluster, 'long', sequence);
    for (const command of ['top --graph long --limit 1000', 'top --graph long --limit 1000 --json']) {
      const piped = await shell(
        `${process.execPath} ${PROGRAM} ${command} | head -c 100; echo " status \${PIPESTATUS[0]}"`,
      );
      expect(piped.stderr, command).toBe('');
      expect(piped.stdout, command).toMatch(/ status 0\n$/);
    }
    const help = await shell(
      `${process.execPath} ${PROGRAM} --help | head -1; echo "status \${PIPESTATUS[0]}"`,
    );
    expect(help.stderr).toBe('');
    expect(help.stdout).toMatch(/^Usage: watershed .*\nstatus 0\n$/);
  });

  it('publishes from stdin, and who waits for the sequence reads it', async () => {
    const input = '{"source":"p1","target":"p2"}\n{"source":"p2","target":"p3"}\n{"source":"p4"}\n';
    const published = await cluster.watershed(['publish', '--graph', 'stdin', '--json'], input);
    expect(published.status).toBe(0);
    const { sequence } = JSON.parse(published.stdout) as { sequence: number };
    const asked = ['connected', '--graph', 'stdin', 'p1', 'p3', '--at-least', String(sequence)];
    const answer = await cluster.watershed([...asked, '--json']);
    expect(JSON.parse(answer.stdout) as Connection).toMatchObject({
      connected: true,
      through: { source: 'p2', target: 'p3' },
      asOf: { sequence },
    });
    const { totals } = await cluster.graph('stdin', sequence);
    expect(totals).toMatchObject({ edges: 2, rejected: 1, vertices: 3, components: 1 });
  });

  it('removes a graph, and one created again under its name inherits nothing', async () => {
    for (let round = 0; round < 2; round++) {
      const created = await cluster.watershed([
        'graph',
        'create',
        'again',
        '--partitions',
        String(2 + round),
        '--json',
      ]);
      expect(created.status).toBe(0);
      const input = `{"source":"a${round}","target":"b${round}"}\n`.repeat(2 + round);
      const published = await cluster.watershed(['publish', '--graph', 'again', '--json'], input);
      const { sequence } = JSON.parse(published.stdout) as { sequence: number };
      expect(sequence).toBe(1);
      // The first round is read before it is removed; after the others the name is used again at once.
      const { config, totals } = await cluster.graph('again', sequence);
      expect(config.partitions).toBe(2 + round);
      expect(totals).toEqual({ sequence, edges: 2 + round, rejected: 0, vertices: 2, components: 1 });
      const old = await cluster.watershed(['component', '--graph', 'again', `a${round - 1}`]);
      expect(old.status).toBe(3);
      expect((await cluster.watershed(['graph', 'remove', 'again'])).status).toBe(0);
      expect((await fetch(`${cluster.url}/v1/graphs/again`)).status).toBe(404);
    }
    // And with no moment between: create, publish, remove, create, by one client.
    const path = `${cluster.url}/v1/graphs/at-once`;
    const put = async (): Promise<number> => (await fetch(path, { method: 'PUT' })).status;
    const post = async (edge: object): Promise<number> =>
      (
        await fetch(`${path}/edges`, {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify(edge),
        })
      ).status;
    for (let round = 0; round < 3; round++) {
      expect(await put()).toBe(201);
      expect(await post({ source: `x${round}`, target: `y${round}` })).toBe(202);
      const { totals } = await cluster.graph('at-once', 1);
      expect(totals).toEqual({ sequence: 1, edges: 1, rejected: 0, vertices: 2, components: 1 });
      if (round > 0) expect((await fetch(`${path}/vertices/x${round - 1}`)).status).toBe(404);
      expect((await fetch(path, { method: 'DELETE' })).status).toBe(204);
    }
    await until(async () => (await fetch(`${cluster.url}/readyz`)).ok, 'the gateway to be ready');
  });

  async function shell(line: string): Promise<Ran> {
    const child = spawn('bash', ['-c', line], { env: cluster.env, stdio: ['ignore', 'pipe', 'pipe'] });
    let stdout = '';
    let stderr = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      stdout += text;
    });
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      stderr += text;
    });
    const status = await new Promise<number | null>((resolve) => child.once('close', resolve));
    return { status, stdout, stderr };
  }
});

describe('the data folder of an instance', () => {
  let cluster: Cluster;

  beforeAll(async () => {
    cluster = await Cluster.single();
    await cluster.watershed(['publish'], EDGE);
    await reached(cluster, 'default', 1);
  });

  afterAll(() => cluster?.stop());

  function serveAgain(): Running {
    const args = [
      'serve',
      '--name',
      'all',
      '--roles',
      'partitioner,worker,gateway',
      '--data',
      cluster.folder,
    ];
    return startProgram(
      [...args, '--nats', cluster.nats.url, '--http', `127.0.0.1:${cluster.port}`],
      cluster.env,
    );
  }

  async function stillAnswers(): Promise<void> {
    const published = await cluster.watershed(['publish', '--json'], EDGE);
    const { sequence } = JSON.parse(published.stdout) as { sequence: number };
    const { totals, problem } = await cluster.graph('default', sequence);
    expect(totals).toMatchObject({ sequence, edges: sequence, vertices: 2, components: 1 });
    expect(problem).toBeUndefined();
  }

  it('is refused to a second instance, in seconds and by its name, and the first is unharmed', async () => {
    const began = performance.now();
    const { status, stderr } = await serveAgain().ended;
    expect(status).toBe(1);
    expect(performance.now() - began).toBeLessThan(15_000);
    expect(stderr).toContain(join(cluster.folder, 'all'));
    expect(stderr).not.toMatch(/LOCK|\n\s+at /);
    await stillAnswers();
  });

  it('is taken at once after kill -9', async () => {
    await cluster.kill9('all');
    await cluster.restart('all');
    await cluster.ready();
    await stillAnswers();
  });

  it('is waited for while the old instance is still shutting down', async () => {
    const pid = cluster.pid('all');
    process.kill(pid, 'SIGTERM');
    await cluster.restart('all');
    await until(() => !existsSync(`/proc/${pid}`) || isZombie(pid), 'the old instance to end');
    await until(async () => (await fetch(`${cluster.url}/healthz`)).ok, 'the new instance to answer');
    await cluster.ready();
    await stillAnswers();
  });
});

describe('watershed up', () => {
  const folders: string[] = [];
  const started: Running[] = [];

  afterEach(async () => {
    for (const { child } of started) child.kill('SIGKILL');
    for (const folder of folders) {
      for (const { pid } of processesWith(folder)) process.kill(pid, 'SIGKILL');
      await until(() => processesWith(folder).length === 0, 'all to be gone');
      rmSync(folder, { recursive: true, force: true });
    }
    started.length = 0;
    folders.length = 0;
  });

  async function startUp(): Promise<{ up: Running; folder: string; url: string; env: NodeJS.ProcessEnv }> {
    const folder = mkdtempSync(join(tmpdir(), 'watershed-up-test-'));
    folders.push(folder);
    const port = await freePort();
    const args = ['up', '--data', folder, '--http', `127.0.0.1:${port}`, '--nats-port', '0'];
    const up = startProgram(args, process.env);
    started.push(up);
    await until(() => up.stdout().includes('NATS '), 'up to be there');
    const nats = /^NATS\s+(\S+)/m.exec(up.stdout())![1]!;
    const url = `http://127.0.0.1:${port}`;
    return { up, folder, url, env: { ...process.env, WATERSHED_NATS: nats, WATERSHED_URL: url } };
  }

  async function publish(url: string, env: NodeJS.ProcessEnv): Promise<void> {
    const { status, stdout, stderr } = await run([PROGRAM, 'publish', '--json'], env, EDGE);
    expect(status, stderr).toBe(0);
    const { sequence } = JSON.parse(stdout) as { sequence: number };
    const response = await fetch(`${url}/v1/graphs/default?atLeast=${sequence}&timeout=30`);
    expect(response.status).toBe(200);
    expect(((await response.json()) as GraphStatus).totals).toMatchObject({ edges: sequence, vertices: 2 });
  }

  it('answers, starts again whatever is killed, and on Ctrl-C stops all in order and leaves nothing', {
    timeout: 120_000,
  }, async () => {
    const { up, folder, url, env } = await startUp();
    expect(up.stdout()).toContain(url);
    expect(up.stdout()).toContain(env['WATERSHED_NATS']);
    await publish(url, env);

    for (const part of processesWith(folder).filter(({ pid }) => pid !== up.child.pid)) {
      process.kill(part.pid, 'SIGKILL');
      await until(() => {
        const now = processesWith(folder).filter(({ command }) => command === part.command);
        return now.length === 1 && now[0]!.pid !== part.pid;
      }, `${part.command} to be started again`);
      await until(async () => (await fetch(`${url}/readyz`)).ok, 'all to be ready again');
      await publish(url, env);
    }
    expect(up.stderr().match(/instance \S+ ended \(SIGKILL\)/g)?.length).toBeGreaterThan(0);
    expect(up.stderr()).toContain('nats-server ended, starting it again');

    const logs = join(folder, 'logs');
    const before = new Map(
      readdirSync(logs).map((name) => [name, readFileSync(join(logs, name), 'utf8').length]),
    );
    up.interrupt();
    const { status } = await up.ended;
    expect(status).toBe(0);
    expect(processesWith(folder)).toEqual([]);
    for (const [name, length] of before) {
      if (name === 'nats-server.log') continue;
      // nats-server ends last: no instance misses it.
      expect(readFileSync(join(logs, name), 'utf8').slice(length)).not.toContain('nats-server is gone');
    }
  });

  it('stops all it has started when it is told to while it still starts', { timeout: 60_000 }, async () => {
    const folder = mkdtempSync(join(tmpdir(), 'watershed-up-test-'));
    folders.push(folder);
    const http = `127.0.0.1:${await freePort()}`;
    const up = startProgram(['up', '--data', folder, '--http', http, '--nats-port', '0'], process.env);
    started.push(up);
    await until(() => processesWith(join(folder, 'nats')).length > 0, 'nats-server to be started');
    up.interrupt();
    const { status } = await up.ended;
    expect(status).toBe(1);
    await until(() => processesWith(folder).length === 0, 'all to be gone', 20_000);
  });

  it('leaves no instance behind when it is killed with -9, not even while they start', {
    timeout: 60_000,
  }, async () => {
    const folder = mkdtempSync(join(tmpdir(), 'watershed-up-test-'));
    folders.push(folder);
    const http = `127.0.0.1:${await freePort()}`;
    const up = startProgram(['up', '--data', folder, '--http', http, '--nats-port', '0'], process.env);
    started.push(up);
    const instances = () => processesWith(folder).filter(({ command }) => command.includes(' serve '));
    await until(() => instances().length > 0, 'the instances to be started');
    up.child.kill('SIGKILL');
    await until(() => instances().length === 0, 'the instances to be gone', 20_000);
  });

  it('says which port of nats-server is taken, and exits 1', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'watershed-up-test-'));
    folders.push(folder);
    const server = createServer();
    const port = await new Promise<number>((resolve) =>
      server.listen(0, '127.0.0.1', () => resolve((server.address() as { port: number }).port)),
    );
    const http = `127.0.0.1:${await freePort()}`;
    const up = startProgram(
      ['up', '--data', folder, '--http', http, '--nats-port', String(port)],
      process.env,
    );
    started.push(up);
    const { status, stderr } = await up.ended;
    server.close();
    expect(status).toBe(1);
    expect(stderr).toContain(`Port ${port} on 127.0.0.1 is taken`);
    expect(stderr).toContain('--nats-port');
    expect(processesWith(folder)).toEqual([]);
  });
});

describe('watershed demo', () => {
  const folderOf = (running: Running): string => /data in (\S+)/.exec(running.stderr())![1]!;

  it('shows totals, components, a cause, the answer before it, and where to ask; then leaves nothing', {
    timeout: 120_000,
  }, async () => {
    const demo = startProgram(['demo'], process.env);
    const { status, stdout, stderr } = await demo.ended;
    expect(status, stderr).toBe(0);
    expect(stdout).toMatch(
      /^dependencies: [\d,]+ edges, [\d,]+ vertices in [\d,]+ components?, as of message \d+$/m,
    );
    expect(stdout).toMatch(
      /^accounts: 1,000,000 edges, [\d,]+ vertices in [\d,]+ components?, as of message \d+$/m,
    );
    expect(stdout).toMatch(/^largest components\s+vertices$/m);
    expect(stdout).toMatch(
      /^ {2}yes: \S+ and \S+ are connected\n {4}in component .*\n {4}since message .*\n {4}through the edge /m,
    );
    expect(stdout).toMatch(/^And one message earlier, as of \d+\?\n {2}no: /m);
    expect(stdout).toMatch(/^The gateway answers at http:\/\/127\.0\.0\.1:\d+; try:\n {2}curl '/m);
    const folder = folderOf(demo);
    expect(processesWith(folder)).toEqual([]);
    expect(existsSync(folder)).toBe(false);
  });

  it('leaves nothing either when it is interrupted in the middle', { timeout: 60_000 }, async () => {
    const demo = startProgram(['demo'], process.env);
    await until(() => /data in \S+/.test(demo.stderr()), 'the demo to begin');
    const folder = folderOf(demo);
    await until(() => processesWith(folder).length >= 3, 'its processes to run');
    demo.interrupt();
    const { status } = await demo.ended;
    expect(status).toBe(1);
    await until(() => processesWith(folder).length === 0, 'its processes to be gone', 20_000);
    expect(existsSync(folder)).toBe(false);
  });
});

function isZombie(pid: number): boolean {
  return /^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
}
