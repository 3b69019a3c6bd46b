/**
 * What is on an instance's disk is damaged while it is down, in every way that disks and people have: after the start
 * the answers are those of an undisturbed run, and damage that LevelDB or the state's checksums meet is named.
 */
import {
  closeSync,
  cpSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { basename, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { seeded } from '../support/seeded.ts';
import { reached } from './harness/answers.ts';
import { Cluster } from './harness/cluster.ts';
import { expectOracle, Publisher } from './harness/publisher.ts';

const DAMAGES_MIN = 50;
const GRAPH = 'damage';
const PARTITIONS = 2;
const PAGE_BYTES = 4096;
const ROUND_MS = 60_000;

/** Gives false where there is nothing to damage. */
type Damage = (folder: string, random: () => number) => boolean;

/** `named`: no start can go on from it without a word. */
const DAMAGES: Readonly<Record<string, { readonly damage: Damage; readonly named: boolean }>> = {
  'CURRENT is empty': { damage: (folder) => truncated(folder, /^CURRENT$/, 0), named: true },
  'CURRENT is gone': { damage: (folder) => deleted(folder, /^CURRENT$/), named: false },
  'the MANIFEST is cut': { damage: (folder) => truncated(folder, /^MANIFEST/, 0.5), named: true },
  'the MANIFEST is gone': { damage: (folder) => deleted(folder, /^MANIFEST/), named: true },
  'a table is gone': { damage: (folder) => deleted(folder, /\.ldb$/), named: true },
  'a table is cut': { damage: (folder) => truncated(folder, /\.ldb$/, 0.5), named: true },
  'a table has zeros': { damage: (folder, random) => zeroed(folder, /\.ldb$/, random), named: false },
  'a table has other bytes': { damage: (folder, random) => flipped(folder, /\.ldb$/, random), named: false },
  'the log is gone': { damage: (folder) => deleted(folder, /\.log$/), named: false },
  'the log is cut': { damage: (folder) => truncated(folder, /\.log$/, 0.5), named: false },
  'the log has zeros': { damage: (folder, random) => zeroed(folder, /\.log$/, random), named: false },
  'the log has other bytes': { damage: (folder, random) => flipped(folder, /\.log$/, random), named: false },
  'the folder is gone': { damage: (folder) => removed(folder), named: false },
  'the folder is an older copy': { damage: (folder) => replaced(folder), named: false },
};

/** How the program tells that it met damage. */
const NAMED = /"msg":"the stored state is damaged/;
/** How it tells what it began with. */
const TOLD = /"msg":"(?:state restored|the stored state|an output log holds less)/;

describe(`of ${DAMAGES_MIN} damages to the folders of an instance`, () => {
  const seed = Date.now() % 1_000_000;
  let cluster: Cluster;
  let publisher: Publisher;

  beforeAll(async () => {
    cluster = await Cluster.single();
    const response = await fetch(`${cluster.url}/v1/graphs/${GRAPH}`, {
      method: 'PUT',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ partitions: PARTITIONS, snapshots: { interval: 2, keep: 2 } }),
    });
    expect(response.status).toBe(201);
    publisher = await Publisher.connect(cluster.nats.url, GRAPH, seed);
  }, 60_000);

  afterAll(async () => {
    clearInterval(supervisor);
    await publisher?.disconnect();
    await cluster?.stop();
  });

  let deaths = 0;
  let isSupervised = false;
  /** There is damage at which LevelDB ends the process: whoever looks after processes starts it again. */
  const supervisor = setInterval(() => {
    if (!isSupervised || !cluster.hasEnded('all')) return;
    deaths += 1;
    void cluster.restart('all');
  }, 100);

  it('none loses or changes an answer, and none that is met passes in silence', {
    timeout: 600_000,
  }, async () => {
    const random = seeded(seed);
    const kinds = Object.keys(DAMAGES);
    let named = 0;
    let done = 0;
    while (done < DAMAGES_MIN) {
      await publisher.messages(10);
      await reached(cluster, GRAPH, publisher.last);
      // A folder that was closed in order has all in its log; one that was opened again has tables.
      if (random() < 0.5) await cluster.kill9('all');
      else await cluster.stopInstance('all');
      const folders = stateFolders(join(cluster.folder, 'all'));
      const damaged = new Map<string, string>();
      for (const folder of folders) {
        const kind = kinds[(done + damaged.size) % kinds.length]!;
        const isDamaged = random() < 0.7 && DAMAGES[kind]!.damage(folder, random);
        if (isDamaged) damaged.set(folder, kind);
        // For a later round.
        else if (random() < 0.3) copied(folder);
      }
      done += damaged.size;
      const logged = cluster.readLog('all').length;
      await cluster.restart('all');
      isSupervised = true;
      await publisher.messages(2);
      const about = (): string =>
        `after ${JSON.stringify([...damaged])}: ${cluster.readLog('all').slice(logged)}`;
      await reached(cluster, GRAPH, publisher.last, ROUND_MS).catch((error: unknown) => {
        throw new Error(about(), { cause: error });
      });
      await expectOracle(cluster, GRAPH, publisher);
      isSupervised = false;
      const lines = cluster.readLog('all').slice(logged).split('\n');
      for (const [folder, kind] of damaged) {
        const task = basename(folder);
        // It holds nothing but a lock.
        if (task === 'instance') continue;
        const isNamed = lines.some((line) => NAMED.test(line) && isOfTask(line, task));
        if (isNamed) named += 1;
        else if (DAMAGES[kind]!.named) expect.unreachable(`${kind} in ${task} passed in silence: ${about()}`);
        expect(
          lines.some((line) => TOLD.test(line) && isOfTask(line, task)),
          about(),
        ).toBe(true);
      }
    }
    console.log(
      `${done} damages, ${named} of them met and named, ${deaths} deaths by them, 0 answers that differ`,
    );
    expect(named).toBeGreaterThan(10);
  });
});

/** Lines tell a task by its folder or by its name for people. */
function isOfTask(line: string, folder: string): boolean {
  const [, stage, partition] = /^(\w+?)(?:-\d+(?:-(\d+))?)?$/.exec(folder)!;
  const name = partition === undefined ? `${stage} of ${GRAPH}` : `${stage} ${partition} of ${GRAPH}`;
  return line.includes(`"task":"${folder}"`) || line.includes(`"task":"${name}`);
}

function stateFolders(root: string): string[] {
  return readdirSync(root).flatMap((name) => {
    const folder = join(root, name);
    if (existsSync(join(folder, 'LOCK'))) return [folder];
    return readdirSync(folder)
      .filter((task) => !task.endsWith('.older'))
      .map((task) => join(folder, task));
  });
}

/** The largest file of a kind; undefined: there is none that holds anything. */
function fileOf(folder: string, kind: RegExp): string | undefined {
  const files = readdirSync(folder).filter((name) => kind.test(name));
  const paths = files.map((name) => join(folder, name)).filter((path) => statSync(path).size > 0);
  return paths.sort((a, b) => statSync(b).size - statSync(a).size)[0];
}

function deleted(folder: string, kind: RegExp): boolean {
  const file = fileOf(folder, kind);
  if (file !== undefined) rmSync(file);
  return file !== undefined;
}

function truncated(folder: string, kind: RegExp, share: number): boolean {
  const file = fileOf(folder, kind);
  if (file !== undefined) truncateSync(file, Math.floor(statSync(file).size * share));
  return file !== undefined;
}

function zeroed(folder: string, kind: RegExp, random: () => number): boolean {
  return overwritten(folder, kind, random, Buffer.alloc(PAGE_BYTES));
}

function flipped(folder: string, kind: RegExp, random: () => number): boolean {
  return overwritten(folder, kind, random, Buffer.from('other'));
}

function overwritten(folder: string, kind: RegExp, random: () => number, bytes: Uint8Array): boolean {
  const file = fileOf(folder, kind);
  if (file === undefined) return false;
  const handle = openSync(file, 'r+');
  const at = Math.floor((random() * statSync(file).size) / bytes.length) * bytes.length;
  writeSync(handle, bytes, 0, Math.min(bytes.length, statSync(file).size - at), at);
  closeSync(handle);
  return true;
}

function removed(folder: string): boolean {
  rmSync(folder, { recursive: true });
  return true;
}

function olderOf(folder: string): string {
  return join(folder, '..', '..', '..', `${folder.replaceAll('/', '_')}.older`);
}

function copied(folder: string): void {
  rmSync(olderOf(folder), { recursive: true, force: true });
  mkdirSync(olderOf(folder), { recursive: true });
  cpSync(folder, olderOf(folder), { recursive: true });
}

function replaced(folder: string): boolean {
  if (!existsSync(olderOf(folder))) return false;
  rmSync(folder, { recursive: true });
  cpSync(olderOf(folder), folder, { recursive: true });
  writeFileSync(join(folder, 'LOCK'), '');
  return true;
}
