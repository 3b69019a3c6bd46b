// @ts-check
/**
 * The one entry behind the npm scripts: `node tools/setup.mjs <command> [args…]`.
 *
 * Runs on a fresh clone with nothing but Node, so it imports nothing that has to be installed. Each command
 * first brings about what it needs (dependencies, dist, a nats-server), then hands over to the program that
 * does the work: its output goes to stdout, what is said here to stderr, its exit status is passed on.
 */

import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmdirSync, rmSync } from 'node:fs';
import { constants, tmpdir } from 'node:os';
import { basename, dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

const NODE_MAJOR_MIN = 20;
const PARENT_POLL_MS = 250;
const ROOT = dirname(dirname(fileURLToPath(import.meta.url)));
const DIST = join(ROOT, 'dist');

/** A step failed and has said so: the command ends with this status. */
class StepFailed extends Error {
  /** @param {number} status */
  constructor(status) {
    super(`status ${status}`);
    this.status = status;
  }
}

/** @type {Record<string, (args: string[]) => Promise<number>>} */
const COMMANDS = {
  async build() {
    install();
    await build();
    return 0;
  },

  async check() {
    install();
    const biome = await run(programOf('@biomejs/biome', 'biome'), ['check', '.']);
    const tsc = await run(programOf('typescript', 'tsc'), ['--noEmit', '-p', '.']);
    return biome || tsc;
  },

  async test(args) {
    let summary = { passed: 0, failed: 1, skipped: 0 };
    try {
      install();
      await build();
      await ensureNatsServer();
      summary = await runTests(args);
      if (summary.passed + summary.failed === 0) say('no test ran');
    } finally {
      // Also after a step that failed: who reads the last line must find it.
      const { passed, failed, skipped } = summary;
      console.log(`${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`);
    }
    return summary.failed > 0 || summary.passed === 0 ? 1 : 0;
  },

  async bench(args) {
    install();
    await build();
    await ensureNatsServer();
    return await run(join(DIST, 'test', 'bench', 'main.js'), args);
  },

  async demo(args) {
    install();
    await build();
    return await run(join(DIST, 'services', 'cli', 'main.js'), ['demo', ...args]);
  },

  async openapi(args) {
    install();
    await build();
    return await run(join(DIST, 'services', 'gateway', 'write-openapi.js'), args);
  },

  async start(args) {
    install();
    await build();
    return await run(join(DIST, 'services', 'cli', 'main.js'), ['up', ...args]);
  },
};

await main(process.argv.slice(2));

/** @param {string[]} argv */
async function main([name = '', ...args]) {
  if (Number(process.versions.node.split('.')[0]) < NODE_MAJOR_MIN) {
    say(`Watershed needs Node ${NODE_MAJOR_MIN} or later; this is ${process.version} (${process.execPath}).`);
    process.exit(1);
  }
  const command = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
  if (command === undefined) {
    say(`usage: node tools/setup.mjs <${Object.keys(COMMANDS).join('|')}> [args…]`);
    process.exit(2);
  }
  try {
    process.exitCode = await command(args);
  } catch (error) {
    if (!(error instanceof StepFailed)) throw error;
    process.exitCode = error.status;
  }
}

/** Makes node_modules what package-lock.json says; nothing to do if it is already. */
function install() {
  const wanted = lockedPackages(join(ROOT, 'package-lock.json'));
  const installed = lockedPackages(join(ROOT, 'node_modules', '.package-lock.json'));
  if (wanted !== undefined && installed !== undefined && isInstalled(wanted, installed)) return;

  const count = [...(wanted?.values() ?? [])].filter(({ optional }) => !optional).length;
  say(`installing ${count} packages (npm ci)…`);
  // Under npm, the very npm that runs us; its own quietness is not ours.
  const npm = process.env['npm_execpath'] ?? '';
  const args = ['ci', '--no-audit', '--no-fund', '--include=dev', '--loglevel=error'];
  /** @type {import('node:child_process').SpawnSyncOptionsWithStringEncoding} */
  const options = { cwd: ROOT, encoding: 'utf8', maxBuffer: 64 << 20 };
  const { status, error, stdout, stderr } =
    basename(npm) === 'npm-cli.js'
      ? spawnSync(process.execPath, [npm, ...args], options)
      : spawnSync(`npm ${args.join(' ')}`, { ...options, shell: true });
  if (status === 0) return;
  process.stderr.write(`${stdout ?? ''}${stderr ?? ''}`);
  say(`npm ci failed${error === undefined ? '' : `: ${error.message}`}`);
  throw new StepFailed(status ?? 1);
}

/**
 * @typedef {{ version?: string, integrity?: string, optional?: boolean, devOptional?: boolean }} LockedPackage
 *
 * The packages of a lock file by their path; undefined if there is no such file. npm writes the one in
 * node_modules at the end of an installation, so it is missing when that was cut short.
 *
 * @param {string} path
 * @returns {Map<string, LockedPackage> | undefined}
 */
function lockedPackages(path) {
  if (!existsSync(path)) return undefined;
  const packages = new Map(Object.entries(JSON.parse(readFileSync(path, 'utf8')).packages ?? {}));
  packages.delete('');
  return packages;
}

/**
 * Contents and not file times: a checkout touches files that did not change. Optional packages may be
 * missing, since most of them are for another system.
 *
 * @param {Map<string, LockedPackage>} wanted
 * @param {Map<string, LockedPackage>} installed
 */
function isInstalled(wanted, installed) {
  for (const path of installed.keys()) {
    if (!wanted.has(path)) return false;
  }
  for (const [path, { version, integrity, optional }] of wanted) {
    const found = installed.get(path);
    if (found === undefined ? !optional : found.version !== version || found.integrity !== integrity)
      return false;
  }
  return true;
}

/** Compiles into dist, in place, so that a program which runs from there is not pulled away. */
async function build() {
  if (existsSync(DIST)) removeStale(DIST);
  const status = await run(programOf('typescript', 'tsc'), ['-p', '.']);
  if (status === 0) return;
  say('the build failed');
  throw new StepFailed(status);
}

/**
 * Removes what was compiled from a source that is no longer there.
 *
 * @param {string} folder
 */
function removeStale(folder) {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) {
      removeStale(path);
      continue;
    }
    const source = join(ROOT, relative(DIST, path)).replace(/\.js(\.map)?$/, '.ts');
    if (!source.endsWith('.ts') || !existsSync(source)) rmSync(path);
  }
  if (folder !== DIST && readdirSync(folder).length === 0) rmdirSync(folder);
}

/** Finds or fetches a nats-server and makes it the one that the command's programs use. */
async function ensureNatsServer() {
  const { ensureNatsServer: ensure } = await import('../dist/services/cli/nats-server.js');
  try {
    process.env['NATS_SERVER_BIN'] = await ensure({ log: say });
  } catch (error) {
    say(error instanceof Error ? error.message : String(error));
    throw new StepFailed(1);
  }
}

/**
 * Runs vitest and counts from its report. What fails outside of a test (a file that does not load, a hook, a
 * rejection that nobody handles) counts as one failed.
 *
 * @param {string[]} args
 */
async function runTests(args) {
  const folder = mkdtempSync(join(tmpdir(), 'watershed-vitest-'));
  const reportFile = join(folder, 'report.json');
  try {
    const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${reportFile}`];
    const status = await run(programOf('vitest', 'vitest'), ['run', ...reporters, ...args]);
    if (!existsSync(reportFile)) return { passed: 0, failed: 1, skipped: 0 };
    const report = JSON.parse(readFileSync(reportFile, 'utf8'));
    const passed = report.numPassedTests;
    const skipped = report.numPendingTests + report.numTodoTests;
    let failed = report.numFailedTests;
    for (const { status: fileStatus, assertionResults: results } of report.testResults) {
      const hasFailedTest = results.some(
        (/** @type {{ status: string }} */ test) => test.status === 'failed',
      );
      if (fileStatus === 'failed' && !hasFailedTest) failed++;
    }
    if (status !== 0 && failed === 0 && passed > 0) failed = 1;
    return { passed, failed, skipped };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/**
 * The script behind a command of an installed package.
 *
 * @param {string} packageName
 * @param {string} command
 */
function programOf(packageName, command) {
  const folder = join(ROOT, 'node_modules', packageName);
  const { bin } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  return join(folder, typeof bin === 'string' ? bin : bin[command]);
}

/**
 * Runs a script with this Node and returns its exit status. The child gets the signals that reach us.
 *
 * @param {string} script
 * @param {string[]} args
 * @returns {Promise<number>}
 */
async function run(script, args) {
  const child = spawn(process.execPath, [script, ...args], { cwd: ROOT, stdio: 'inherit' });
  /** @type {(signal: NodeJS.Signals) => void} */
  const forward = (signal) => {
    // A terminal sends Ctrl-C to the child too; a second one would mean "now, at once".
    if (signal === 'SIGINT' && process.stdin.isTTY) return;
    child.kill(signal);
  };
  /** @type {NodeJS.Signals[]} */
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'];
  for (const signal of signals) process.on(signal, forward);
  // npm passes a signal to the shell that it put between us; that dies of it and tells nobody.
  const parent = process.ppid;
  const underNpm = process.env['npm_lifecycle_event'] !== undefined;
  const watch = setInterval(() => {
    if (!underNpm || process.ppid === parent) return;
    clearInterval(watch);
    child.kill('SIGTERM');
  }, PARENT_POLL_MS);
  try {
    return await new Promise((done, fail) => {
      child.once('error', fail);
      child.once('close', (code, signal) =>
        done(code ?? 128 + (signal === null ? 0 : constants.signals[signal])),
      );
    });
  } finally {
    clearInterval(watch);
    for (const signal of signals) process.off(signal, forward);
  }
}

/** @param {string} line */
function say(line) {
  process.stderr.write(`${line}\n`);
}
