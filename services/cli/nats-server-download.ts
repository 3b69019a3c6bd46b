/**
 * Two ways to get a nats-server onto this machine without administrator rights: Debian's package, unpacked
 * and not installed, and a build with Go. Each takes an empty folder to work in and returns the program's
 * path inside it, or throws with the reason in its message. The caller checks, moves and cleans up.
 *
 * No host is named here. Debian's archive comes from the machine's own apt configuration, Go modules from
 * Go's own: proxies and in-house mirrors keep working.
 */

import { execFile } from 'node:child_process';
import { access, mkdir, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';

export interface DownloadOptions {
  /** Empty and writable. */
  readonly folder: string;
  readonly env: NodeJS.ProcessEnv;
  readonly log: (line: string) => void;
}

/** The first Debian suite with nats-server 2.10.27. */
const SUITE = 'trixie';
const GO_MODULE = 'github.com/nats-io/nats-server/v2@v2.10.27';

/** Third-party archives in the apt configuration are tried too, but no endless list of them. */
const ARCHIVES_MAX = 3;
const APT_TIMEOUT_MS = 180_000;
const GO_TIMEOUT_MS = 900_000;

const KEYRINGS = [
  '/usr/share/keyrings/debian-archive-keyring.pgp',
  '/usr/share/keyrings/debian-archive-keyring.gpg',
];

/**
 * Debian's package by apt-get with lists, cache, status and configuration of its own, so that the system's
 * are neither written nor locked. Of the machine's apt settings only `Acquire::` (proxies, timeouts, date
 * checks) is carried over: its update hooks would clean the system's folders.
 */
export async function downloadFromDebian({ folder, env, log }: DownloadOptions): Promise<string> {
  const architecture = (await run('dpkg', ['--print-architecture'], { env })).trim();
  const archives = await debianArchives(env);
  if (archives.length === 0) throw new Error('the apt configuration names no archive');

  const settings = (await run('apt-config', ['dump'], { env }))
    .split('\n')
    .filter((line) => line.startsWith('Acquire::'));
  const failures: string[] = [];
  for (const [index, archive] of archives.entries()) {
    const work = join(folder, `apt-${index}`);
    log(`downloading nats-server from ${archive} (${SUITE})`);
    try {
      return await downloadFromArchive({ work, archive, architecture, settings, env });
    } catch (error) {
      failures.push(`${archive}: ${reasonOf(error)}`);
    }
  }
  throw new Error(failures.join('; '));
}

/** `go install` of the pinned release. Go fetches a newer toolchain by itself if the module asks for one. */
export async function buildWithGo({ folder, env, log }: DownloadOptions): Promise<string> {
  await run('go', ['version'], { env });
  log('building nats-server with Go (a minute or two)');
  await run('go', ['install', GO_MODULE], { env: { ...env, GOBIN: folder }, timeoutMs: GO_TIMEOUT_MS });
  const [name] = await readdir(folder);
  if (name === undefined) throw new Error('go install left no program (is GOOS or GOARCH set?)');
  return join(folder, name);
}

/** The archives of the apt configuration that could hold Debian's main component, Debian's own first. */
async function debianArchives(env: NodeJS.ProcessEnv): Promise<string[]> {
  const format = '$(CREATED_BY) $(COMPONENT) $(RELEASE) $(REPO_URI)';
  // Without --no-release-info apt-get names only what `apt-get update` has already fetched.
  const lines = await run('apt-get', ['indextargets', '--no-release-info', '--format', format], { env });
  const archives = new Set<string>();
  for (const line of lines.split('\n')) {
    const [createdBy, component, release, archive] = line.split(' ');
    if (createdBy !== 'Packages' || component !== 'main' || !release || !archive) continue;
    if (/-(security|updates|backports|proposed)\b/.test(release)) continue;
    archives.add(archive);
  }
  const isDebian = (archive: string) => /\bdebian\b/.test(archive);
  return [...archives].sort((a, b) => Number(isDebian(b)) - Number(isDebian(a))).slice(0, ARCHIVES_MAX);
}

interface ArchiveDownload {
  readonly work: string;
  readonly archive: string;
  readonly architecture: string;
  readonly settings: readonly string[];
  readonly env: NodeJS.ProcessEnv;
}

async function downloadFromArchive(download: ArchiveDownload): Promise<string> {
  const { work, archive, architecture, settings } = download;
  for (const path of ['lists/partial', 'cache/archives/partial', 'empty', 'unpacked']) {
    await mkdir(join(work, path), { recursive: true });
  }
  // Without a keyring of that name, apt falls back to all keys that the machine trusts for any archive.
  const keyring = await firstReadable(KEYRINGS);
  const signedBy = keyring === undefined ? '' : ` signed-by=${keyring}`;
  await writeFile(join(work, 'status'), '');
  await writeFile(join(work, 'main.conf'), '');
  await writeFile(
    join(work, 'sources.list'),
    `deb [arch=${architecture}${signedBy}] ${archive} ${SUITE} main\n`,
  );
  await writeFile(
    join(work, 'apt.conf'),
    [
      ...settings,
      `Dir::Etc::main "${work}/main.conf";`,
      `Dir::Etc::parts "${work}/empty";`,
      `Dir::Etc::sourcelist "${work}/sources.list";`,
      `Dir::Etc::sourceparts "${work}/empty";`,
      `Dir::State::lists "${work}/lists";`,
      `Dir::State::status "${work}/status";`,
      `Dir::Cache "${work}/cache";`,
      'Dir::Cache::pkgcache "";',
      'Dir::Cache::srcpkgcache "";',
      // As root, apt would otherwise hand the work to a user that cannot read this folder.
      'APT::Sandbox::User "root";',
      'Acquire::Languages "none";',
      'Acquire::IndexTargets::deb::DEP-11::DefaultEnabled "false";',
      '',
    ].join('\n'),
  );

  const env = { ...download.env, APT_CONFIG: join(work, 'apt.conf'), LC_ALL: 'C' };
  const options = { env, cwd: work, timeoutMs: APT_TIMEOUT_MS };
  // Without error-mode=any, an archive that does not answer is a warning, and stale lists are used.
  await run('apt-get', ['-q', '-o', 'APT::Update::Error-Mode=any', 'update'], options);
  await run('apt-get', ['-q', 'download', 'nats-server'], options);
  const packageFile = (await readdir(work)).find((name) => name.endsWith('.deb'));
  if (packageFile === undefined) throw new Error('apt-get download left no package');
  await run('dpkg-deb', ['-x', packageFile, 'unpacked'], options);
  return join(work, 'unpacked', 'usr', 'sbin', 'nats-server');
}

async function firstReadable(paths: readonly string[]): Promise<string | undefined> {
  for (const path of paths) {
    try {
      await access(path);
      return path;
    } catch {
      // The next one, then.
    }
  }
  return undefined;
}

interface RunOptions {
  readonly env: NodeJS.ProcessEnv;
  readonly cwd?: string;
  readonly timeoutMs?: number;
}

const execute = promisify(execFile);

async function run(command: string, args: readonly string[], options: RunOptions): Promise<string> {
  const { env, cwd, timeoutMs = 30_000 } = options;
  const { stdout } = await execute(command, args, { env, cwd, timeout: timeoutMs, maxBuffer: 64 << 20 });
  return stdout;
}

/** What failed, in one line: a missing command by its name, else the errors that the command printed. */
export function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const failure = error as Error & { code?: unknown; path?: string; stderr?: string; killed?: boolean };
  if (failure.code === 'ENOENT' && failure.path !== undefined)
    return `${failure.path} is not on this machine`;
  if (failure.killed === true) return `${failure.message.split('\n')[0]} (timed out)`;
  const lines = (failure.stderr ?? '').split('\n').filter((line) => line.trim() !== '');
  const errors = lines.filter((line) => /^(E|Err|error)\b/i.test(line));
  const shown = (errors.length > 0 ? errors : lines).slice(-3).map((line) => line.trim());
  return shown.length > 0 ? shown.join(' ') : (failure.message.split('\n')[0] ?? '');
}
