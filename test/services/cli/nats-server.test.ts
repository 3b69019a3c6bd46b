import { execFile } from 'node:child_process';
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';
import { jetstream, jetstreamManager } from '@nats-io/jetstream';
import { connect } from 'nats';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import {
  ensureNatsServer,
  findNatsServer,
  lackOf,
  parseNatsServerVersion,
  startNatsServer,
  userCacheFolder,
} from '../../../services/cli/nats-server.ts';
import { testNatsServer } from '../../integration/harness/nats.ts';

let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'watershed-test-nats-server-'));
});

afterEach(async () => {
  await rm(folder, { recursive: true, force: true });
});

/** A program of that name which prints `output`, in `folder`/`place`. */
async function fakeProgram(place: string, output: string): Promise<string> {
  const path = join(folder, place, 'nats-server');
  await mkdir(join(folder, place), { recursive: true });
  await writeFile(path, `#!/bin/sh\necho '${output}'\n`);
  await chmod(path, 0o755);
  return path;
}

/** PATH holds `places` only, so no nats-server of the machine gets in the way. */
function environment(...places: string[]): NodeJS.ProcessEnv {
  return { PATH: places.map((place) => join(folder, place)).join(delimiter) };
}

describe('version', () => {
  test('the version is read from what nats-server prints', () => {
    expect(parseNatsServerVersion('nats-server: v2.10.27\n')).toBe('2.10.27');
    expect(parseNatsServerVersion('nats-server: 2.15.1\n')).toBe('2.15.1');
    expect(parseNatsServerVersion('nats-server: v2.12.0-RC.1\n')).toBe('2.12.0-RC.1');
    expect(parseNatsServerVersion('nats 0.1.5\n')).toBeUndefined();
  });

  test.each([
    ['2.9.10', /sync_interval/],
    ['2.9.10', /stream metadata or `first_seq`/],
    ['2.10.0', /fixes up to 2\.10\.27/],
    ['2.10.19', /fixes up to 2\.10\.27/],
    ['2.10.20', /delete a whole stream/],
    ['2.10.22', /delete a whole stream/],
    ['2.10.26', /fixes up to 2\.10\.27/],
    ['1.4.1', /JetStream/],
  ])('%s is refused by name of what it lacks: %s', (version, reason) => {
    expect(lackOf(version)).toMatch(reason);
  });

  test.each(['2.10.27', '2.10.29', '2.11.0', '2.12.0-RC.1', '2.15.1', '3.0.0'])('%s will do', (version) => {
    expect(lackOf(version)).toBeUndefined();
  });
});

describe('search', () => {
  test('NATS_SERVER_BIN comes before PATH, PATH before the cache', async () => {
    const chosen = await fakeProgram('chosen', 'nats-server: v2.11.1');
    const onPath = await fakeProgram('path', 'nats-server: v2.11.2');
    const cached = await fakeProgram('cache/bin', 'nats-server: v2.11.3');
    const cache = join(folder, 'cache');

    expect(await findNatsServer({ ...environment('path'), NATS_SERVER_BIN: chosen }, cache)).toEqual({
      kind: 'found',
      path: chosen,
      version: '2.11.1',
    });
    expect(await findNatsServer(environment('path'), cache)).toMatchObject({ path: onPath });
    expect(await findNatsServer(environment('empty'), cache)).toMatchObject({ path: cached });
  });

  test('a program that is too old is passed over and the search goes on, along PATH and to the cache', async () => {
    const old = await fakeProgram('old', 'nats-server: v2.9.10');
    const good = await fakeProgram('good', 'nats-server: v2.10.27');
    const cached = await fakeProgram('cache/bin', 'nats-server: v2.10.28');
    const cache = join(folder, 'cache');

    expect(await findNatsServer(environment('old', 'good'), cache)).toMatchObject({ path: good });
    expect(await findNatsServer(environment('old'), cache)).toMatchObject({ path: cached });
    expect(await findNatsServer(environment('old'), join(folder, 'no-cache'))).toEqual({
      kind: 'missing',
      refused: [expect.stringMatching(new RegExp(`^${old}: version 2\\.9\\.10 has no .sync_interval`))],
    });
  });

  test('what is no program, or is another one, is passed over with the reason', async () => {
    await mkdir(join(folder, 'a', 'nats-server'), { recursive: true });
    await mkdir(join(folder, 'b'));
    await writeFile(join(folder, 'b', 'nats-server'), 'not executable');
    const stranger = await fakeProgram('c', 'hello');
    const broken = await fakeProgram('d', 'x');
    await writeFile(broken, '#!/bin/sh\nexit 3\n');

    const search = await findNatsServer(environment('a', 'b', 'c', 'd'), join(folder, 'no-cache'));
    expect(search).toEqual({
      kind: 'missing',
      refused: [
        expect.stringContaining(`${stranger}: it does not say which version it is`),
        expect.stringContaining(`${broken}: it does not run`),
      ],
    });
  });

  test('an unusable NATS_SERVER_BIN is an error at once, though PATH has a good one', async () => {
    await fakeProgram('path', 'nats-server: v2.11.2');
    const old = await fakeProgram('old', 'nats-server: v2.10.21');
    const search = (bin: string) => findNatsServer({ ...environment('path'), NATS_SERVER_BIN: bin }, folder);

    await expect(search(old)).rejects.toMatchObject({
      code: 'nats-server-unusable',
      message: expect.stringMatching(/NATS_SERVER_BIN is .*2\.10\.21 can delete a whole stream/),
    });
    await expect(search(join(folder, 'nowhere'))).rejects.toMatchObject({
      code: 'nats-server-unusable',
      message: expect.stringContaining('nowhere'),
    });
  });

  test('each system has its own cache folder, and XDG_CACHE_HOME is obeyed if it is absolute', () => {
    expect(userCacheFolder({ HOME: '/home/ann' }, 'linux')).toBe('/home/ann/.cache/watershed');
    expect(userCacheFolder({ HOME: '/home/ann', XDG_CACHE_HOME: '/c' }, 'linux')).toBe('/c/watershed');
    expect(userCacheFolder({ HOME: '/home/ann', XDG_CACHE_HOME: 'c' }, 'linux')).toBe(
      '/home/ann/.cache/watershed',
    );
    expect(userCacheFolder({ HOME: '/Users/ann' }, 'darwin')).toBe('/Users/ann/Library/Caches/watershed');
    expect(userCacheFolder({ LOCALAPPDATA: '/local' }, 'win32')).toBe('/local/watershed');
  });
});

describe('fetch', () => {
  test('what is in the cache is not fetched again', async () => {
    const cached = await fakeProgram('watershed/bin', 'nats-server: v2.10.27');
    const lines: string[] = [];
    const env = { ...environment('empty'), XDG_CACHE_HOME: folder };

    expect(await ensureNatsServer({ log: (line) => lines.push(line), env })).toBe(cached);
    expect(lines).toEqual([]);
  });

  test('where nothing can be fetched, the error tells what was tried and how to get it by hand', async () => {
    await fakeProgram('old', 'nats-server: v2.9.10');
    const env = { ...environment('old'), XDG_CACHE_HOME: join(folder, 'cache') };
    const failure = ensureNatsServer({ log: () => {}, env });

    await expect(failure).rejects.toMatchObject({ code: 'nats-server-missing' });
    const { message } = (await failure.catch((error) => error)) as Error;
    expect(message).toMatch(/old\/nats-server: version 2\.9\.10 has no/);
    expect(message).toContain("Debian's package: dpkg is not on this machine");
    expect(message).toContain('Go: go is not on this machine');
    for (const way of ['brew install', 'winget install', 'docker run', 'NATS_SERVER_BIN']) {
      expect(message).toContain(way);
    }
    expect(await readdir(join(folder, 'cache', 'watershed'))).toEqual(['bin']);
  });

  test('a cache folder that cannot be made is an error that says how to choose another', async () => {
    await writeFile(join(folder, 'file'), '');
    const env = { ...environment('empty'), XDG_CACHE_HOME: join(folder, 'file') };
    await expect(ensureNatsServer({ log: () => {}, env })).rejects.toMatchObject({
      code: 'nats-server-missing',
      message: expect.stringContaining('XDG_CACHE_HOME'),
    });
  });

  test('two callers fetch at once from the package archive, and both get a whole program', async ({
    skip,
  }) => {
    const obstacle = await archiveObstacle();
    skip(obstacle !== undefined, obstacle);
    // Without the folders that hold a nats-server or Go, so that the archive is what it must come from.
    const env = {
      ...process.env,
      PATH: ['/usr/bin', '/bin'].join(delimiter),
      NATS_SERVER_BIN: undefined,
      XDG_CACHE_HOME: folder,
    };
    const installed = await findNatsServer(env, join(folder, 'no-cache'));
    skip(installed.kind === 'found', 'a nats-server that will do is installed beside apt-get');
    const path = join(folder, 'watershed', 'bin', 'nats-server');
    const ensure = () => ensureNatsServer({ log: () => {}, env });

    expect(await Promise.all([ensure(), ensure()])).toEqual([path, path]);
    expect(await findNatsServer({ PATH: '' }, join(folder, 'watershed'))).toMatchObject({
      kind: 'found',
      path,
    });
    expect(await readdir(join(folder, 'watershed'))).toEqual(['bin']);
  });
});

/** Why the package archive cannot be asked from here; undefined if it can. */
async function archiveObstacle(): Promise<string | undefined> {
  const format = '$(COMPONENT) $(REPO_URI)';
  let lines: string;
  try {
    const args = ['indextargets', '--no-release-info', '--format', format];
    lines = (await promisify(execFile)('apt-get', args)).stdout;
  } catch {
    return 'there is no apt-get here';
  }
  const archive = /^main (http\S*\bdebian\/)$/m.exec(lines)?.[1];
  if (archive === undefined) return "apt does not know Debian's archive here";
  const url = `${archive}dists/trixie/InRelease`;
  const ok = await fetch(url, { method: 'HEAD', signal: AbortSignal.timeout(10_000) }).then(
    (response) => response.ok,
    () => false,
  );
  return ok ? undefined : `${url} does not answer`;
}

describe('server', () => {
  const log = (line: string) => console.error(line);

  test('what was acknowledged is there after a restart and after a kill, on the same port', async () => {
    const server = await testNatsServer({ syncAlways: true });
    try {
      const nc = await connect({ servers: server.url });
      await (await jetstreamManager(nc)).streams.add({ name: 'KEPT', subjects: ['kept'] });
      await jetstream(nc).publish('kept', 'one');
      await nc.close();

      for (const fault of [() => server.restart(), () => server.kill9().then(() => server.restart())]) {
        await fault();
        const again = await connect({ servers: server.url });
        const { state } = await (await jetstreamManager(again)).streams.info('KEPT');
        expect(state.messages).toBe(1);
        await again.close();
      }
    } finally {
      await server.stop();
    }
    await expect(readdir(server.storeDir)).rejects.toMatchObject({ code: 'ENOENT' });
  });

  test('sync_interval: always is in the configuration if and only if it is asked for', async () => {
    const bin = await ensureNatsServer({ log });
    for (const syncAlways of [true, false]) {
      const server = await startNatsServer({ bin, storeDir: folder, port: 0, syncAlways });
      await server.stop();
      const config = await readFile(join(folder, 'nats-server.conf'), 'utf8');
      expect(config.includes('sync_interval: always')).toBe(syncAlways);
    }
  });

  test('a folder whose name needs quoting holds the store and the log', async () => {
    const bin = await ensureNatsServer({ log });
    const storeDir = join(folder, 'a "store" of {mine}, \\ $HOME');
    const logFile = join(storeDir, 'nats.log');
    const server = await startNatsServer({ bin, storeDir, port: 0, syncAlways: false, logFile });
    await server.stop();
    expect(await readdir(storeDir)).toContain('jetstream');
    expect(await readFile(logFile, 'utf8')).toContain('Server is ready');
  });

  test('a taken port is an error that names the option, and the store is not touched', async () => {
    const bin = await ensureNatsServer({ log });
    const listener = createServer();
    const port = await new Promise<number>((done) => {
      listener.listen(0, '127.0.0.1', () => {
        const address = listener.address();
        if (address === null || typeof address === 'string') throw new Error('no TCP address');
        done(address.port);
      });
    });
    try {
      await expect(startNatsServer({ bin, storeDir: folder, port, syncAlways: false })).rejects.toMatchObject(
        {
          code: 'nats-port-taken',
          message: expect.stringMatching(new RegExp(`Port ${port} .*--nats-port`)),
        },
      );
      expect(await readdir(folder)).toEqual([]);
    } finally {
      await new Promise((done) => listener.close(done));
    }
  });

  test('two servers never share a store, and a killed one does not keep it', async () => {
    const bin = await ensureNatsServer({ log });
    const start = () => startNatsServer({ bin, storeDir: folder, port: 0, syncAlways: false });
    const first = await start();
    await expect(start()).rejects.toMatchObject({
      code: 'nats-store-in-use',
      message: expect.stringContaining(`process id ${first.process.pid}`),
    });
    await first.kill();
    const second = await start();
    await second.stop();
  });

  test('a program that ends at once, or is not there, is an error with what it said', async () => {
    const bin = await fakeProgram('bad', 'x');
    await writeFile(bin, '#!/bin/sh\necho "no such luck" >&2\nexit 1\n');
    const start = (path: string) =>
      startNatsServer({ bin: path, storeDir: folder, port: 0, syncAlways: false });

    await expect(start(bin)).rejects.toMatchObject({
      code: 'nats-start-failed',
      message: expect.stringContaining('no such luck'),
    });
    await expect(start(join(folder, 'nowhere'))).rejects.toMatchObject({
      code: 'nats-start-failed',
      message: expect.stringContaining('ENOENT'),
    });
  });

  test('stop is idempotent, and the process is gone when it returns', async () => {
    const bin = await ensureNatsServer({ log });
    const server = await startNatsServer({ bin, storeDir: folder, port: 0, syncAlways: false });
    await server.stop();
    await server.stop();
    await server.exited;
    expect(server.process.exitCode ?? server.process.signalCode).not.toBeNull();
    await expect(connect({ servers: server.url, reconnect: false, timeout: 500 })).rejects.toThrow();
  });
});
