import { describe, expect, it } from 'vitest';
import { Sessions } from '../../../libs/cluster/sessions.ts';
import type { KvEntry } from '../../../libs/stage/ports.ts';

const LEASE_MS = 6_000;
const POLL_MS = 500;
const X = { name: 'x', incarnation: 'x1' };
const OWNERS = new Set(['x']);

function record(revision: number, incarnation = 'x1'): KvEntry {
  return { key: 'x', value: JSON.stringify({ incarnation, roles: ['worker'], leaving: false }), revision };
}

/** A watcher that polls, and says when it takes x for gone. */
class Watcher {
  readonly sessions = new Sessions(LEASE_MS, POLL_MS);
  now = 1_000;

  poll(records: readonly KvEntry[], sleptMs = POLL_MS, readMs = 0): void {
    this.now += sleptMs + readMs;
    this.sessions.observe(records, OWNERS, this.now, sleptMs);
  }

  /** How long until x counts as gone, if nothing changes. */
  goneAfterMs(records: readonly KvEntry[]): number {
    const from = this.now;
    while (!this.sessions.isGone(X) && this.now - from < 10 * LEASE_MS) this.poll(records);
    return this.now - from;
  }
}

describe('a session', () => {
  it('is over when its record stood for a term', () => {
    const watcher = new Watcher();
    watcher.poll([record(1)]);
    watcher.poll([record(2)]);
    expect(watcher.sessions.isLive(X)).toBe(true);
    expect(watcher.goneAfterMs([record(2)])).toBe(LEASE_MS);
    expect(watcher.sessions.candidates()).toEqual([]);
  });

  it('is not live before its record has changed, and not over before it has stood', () => {
    const watcher = new Watcher();
    watcher.poll([record(1)]);
    expect(watcher.sessions.isLive(X)).toBe(false);
    expect(watcher.sessions.candidates()).toHaveLength(1);
    expect(watcher.goneAfterMs([record(1)])).toBe(LEASE_MS);
  });

  it('is watched anew after a read that failed, and after a sleep that was too long', () => {
    const watcher = new Watcher();
    watcher.poll([record(1)]);
    watcher.poll([record(2)]);
    for (let poll = 0; poll < 11; poll++) watcher.poll([record(2)]);
    watcher.sessions.missed();
    expect(watcher.goneAfterMs([record(2)])).toBe(LEASE_MS + POLL_MS);

    watcher.poll([record(3)]);
    for (let poll = 0; poll < 11; poll++) watcher.poll([record(3)]);
    watcher.poll([record(3)], 60_000);
    expect(watcher.goneAfterMs([record(3)])).toBe(LEASE_MS);
  });

  it('that is over stays so through a failed read, until its record changes', () => {
    const watcher = new Watcher();
    watcher.poll([record(1)]);
    watcher.goneAfterMs([record(1)]);
    watcher.sessions.missed();
    watcher.poll([record(1)]);
    expect(watcher.sessions.isGone(X)).toBe(true);
    watcher.poll([record(2)]);
    expect(watcher.sessions.isGone(X)).toBe(false);
    expect(watcher.sessions.settled(watcher.now, 1)).toEqual([]);
  });

  it('is not over because one read took long', () => {
    const watcher = new Watcher();
    watcher.poll([record(1)]);
    watcher.poll([record(2)]);
    watcher.poll([record(2)], POLL_MS, 60_000);
    expect(watcher.sessions.isGone(X)).toBe(false);
  });

  it('is over at once when its name has a later incarnation', () => {
    const watcher = new Watcher();
    watcher.poll([record(1)]);
    watcher.poll([record(2, 'x2')]);
    expect(watcher.sessions.isGone(X)).toBe(true);
    expect(watcher.sessions.isLive({ name: 'x', incarnation: 'x2' })).toBe(true);
  });

  it('is not over because its record is lost', () => {
    const watcher = new Watcher();
    watcher.poll([record(1)]);
    watcher.poll([record(2)]);
    watcher.poll([]);
    expect(watcher.sessions.isGone(X)).toBe(false);
    expect(watcher.sessions.candidates()).toEqual([]);
    expect(watcher.goneAfterMs([])).toBe(LEASE_MS - POLL_MS);
  });

  it('of an owner without a record is over after a term', () => {
    const watcher = new Watcher();
    watcher.poll([]);
    expect(watcher.goneAfterMs([])).toBe(LEASE_MS);
  });
});
