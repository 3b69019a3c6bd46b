/**
 * The disk of an instance fills up under load: what is not stored waits in the log, what is known is answered, and when
 * there is space again all goes on without a loss. The disk is a small tmpfs; where this process may not mount one,
 * the suite is skipped.
 */
import { spawnSync } from 'node:child_process';
import { closeSync, mkdirSync, mkdtempSync, openSync, rmSync, statfsSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { GraphStatus } from '../../libs/api/graph.ts';
import { reached } from './harness/answers.ts';
import { Cluster, until } from './harness/cluster.ts';
import { expectOracle, Publisher } from './harness/publisher.ts';

const DISK_MIB = 24;
const GRAPH = 'full';
const RESUME_MS = 60_000;

const MESSAGES = 40;

function mount(folder: string): boolean {
  return spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${DISK_MIB}m`, 'tmpfs', folder]).status === 0;
}

function unmount(folder: string): void {
  spawnSync('umount', [folder]);
}

const probe = mkdtempSync(join(tmpdir(), 'watershed-mount-'));
const canMount = mount(probe);
if (canMount) unmount(probe);
rmSync(probe, { recursive: true });

describe.skipIf(!canMount)('a disk of its own, small, that fills up (needs the right to mount)', () => {
  let cluster: Cluster;
  let publisher: Publisher;
  let disk: string;

  beforeAll(async () => {
    cluster = await Cluster.create();
    disk = join(cluster.folder, 'all');
    mkdirSync(disk);
    expect(mount(disk)).toBe(true);
    cluster.start('all', ['--roles', 'partitioner,worker,gateway']);
    await cluster.ready();
    expect((await cluster.watershed(['graph', 'create', GRAPH, '--partitions', '2'])).status).toBe(0);
    publisher = await Publisher.connect(cluster.nats.url, GRAPH);
    await publisher.messages(MESSAGES);
    await reached(cluster, GRAPH, publisher.last);
  }, 60_000);

  afterAll(async () => {
    await publisher?.disconnect();
    await cluster?.kill9('all');
    if (disk !== undefined) unmount(disk);
    await cluster?.stop();
  });

  it('pauses what has to be stored, answers what it has, and goes on when there is space', {
    timeout: 180_000,
  }, async () => {
    const logged = cluster.readLog('all').length;
    const remove = fill(1024 * 1024);
    publisher.start();
    await until(() => /the disk is nearly full/.test(cluster.readLog('all').slice(logged)), 'it to say so');
    const target = (await publisher.nextMessage(RESUME_MS)) + 50;
    await until(() => publisher.last >= target, 'publishers to go on');
    for (let ask = 0; ask < 20; ask++) {
      const { totals, lag } = await cluster.get<GraphStatus>(`/v1/graphs/${GRAPH}`);
      expect(totals.vertices).toBeGreaterThan(0);
      expect(totals.sequence).toBeLessThan(target);
      expect(lag?.messages).toBeGreaterThan(0);
    }
    remove();
    await reached(cluster, GRAPH, target, RESUME_MS);
    await publisher.stop();
    await expectOracle(cluster, GRAPH, publisher);
    expect(cluster.readLog('all').slice(logged)).toContain('there is space on the disk again');
  });

  it('stops in order while it waits for space, does not start on a full disk, and has lost nothing', {
    timeout: 180_000,
  }, async () => {
    const removeSome = fill(1024 * 1024);
    await publisher.messages(MESSAGES);
    expect(await cluster.stopInstance('all')).toBe(0);
    const removeRest = fill(0);
    await cluster.restart('all');
    await publisher.messages(MESSAGES);
    await until(() => /No space left|nearly full/.test(cluster.readLog('all')), 'it to say what is wrong');
    removeSome();
    removeRest();
    if (cluster.hasEnded('all')) await cluster.restart('all');
    await cluster.ready(RESUME_MS);
    await expectOracle(cluster, GRAPH, publisher);
  });

  it('that is full to the last byte in the middle of writing costs no edge', {
    timeout: 180_000,
  }, async () => {
    for (let round = 0; round < 5; round++) {
      publisher.start();
      await reached(cluster, GRAPH, await publisher.nextMessage(RESUME_MS), RESUME_MS);
      const remove = fill(0);
      const target = (await publisher.nextMessage(RESUME_MS)) + 20;
      await until(() => publisher.last >= target, 'publishers to go on');
      remove();
      await reached(cluster, GRAPH, target, RESUME_MS);
      await publisher.stop();
      await cluster.ready(RESUME_MS);
      await expectOracle(cluster, GRAPH, publisher);
    }
  });

  let ballasts = 0;

  /** Leaves so many bytes free; the function given removes what fills it. */
  function fill(freeBytes: number): () => void {
    const path = join(disk, `ballast-${ballasts++}`);
    const file = openSync(path, 'w');
    const piece = Buffer.alloc(64 * 1024);
    try {
      for (;;) {
        const { bavail, bsize } = statfsSync(disk);
        const left = bavail * bsize - freeBytes;
        if (left <= 0) break;
        writeSync(file, piece, 0, Math.min(left, piece.length));
      }
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
    } finally {
      closeSync(file);
    }
    return () => rmSync(path);
  }
});
