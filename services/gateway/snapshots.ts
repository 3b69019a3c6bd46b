/**
 * A graph's snapshots as the HTTP interface has them: shown, asked for, given up. The graph's partitioner and its keeper
 * take them; a gateway only reads and writes the records.
 */
import { randomBytes } from 'node:crypto';
import type { Snapshot } from '../../libs/api/snapshot.ts';
import type { GraphConfig } from '../../libs/dataflow/graph-config.ts';
import { findSnapshot } from '../../libs/snapshot/archive.ts';
import { type Manifest, SnapshotRecords, type SnapshotState } from '../../libs/snapshot/records.ts';
import { natsAnswer } from './graph-directory.ts';
import type { GatewayDeps } from './ports.ts';
import { badRequest, RequestProblem, shown } from './problems.ts';

const POLL_MS = 200;
const NANOSECONDS_PER_MS = 1_000_000n;

export class Snapshots {
  private readonly deps: GatewayDeps;
  /** By graph id, so that they are listed only after a change. */
  private readonly records = new Map<string, SnapshotRecords>();

  constructor(deps: GatewayDeps) {
    this.deps = deps;
  }

  async state({ id }: GraphConfig): Promise<SnapshotState> {
    return await natsAnswer(() => this.recordsOf(id).read());
  }

  /** The newest one that was read back; undefined: there is none yet. */
  async newest(config: GraphConfig): Promise<Manifest | undefined> {
    return newestVerified(await this.state(config));
  }

  async list(config: GraphConfig): Promise<Snapshot[]> {
    const state = await this.state(config);
    return state.manifests.map((manifest) => answerOf(manifest, state));
  }

  async get(config: GraphConfig, which: string): Promise<Snapshot> {
    const state = await this.state(config);
    return answerOf(this.find(state, config.name, which), state);
  }

  /** Of this number, or the newest verified one. */
  async manifest(config: GraphConfig, snapshot: number | undefined): Promise<Manifest | undefined> {
    const state = await this.state(config);
    return snapshot === undefined ? newestVerified(state) : this.find(state, config.name, String(snapshot));
  }

  /** Asks for one and waits until it is there and was read back. */
  async take(config: GraphConfig, name: string | undefined, timeoutMs: number): Promise<Snapshot> {
    const { clock } = this.deps;
    const deadline = clock.now() + timeoutMs;
    const request = randomBytes(8).toString('hex');
    if (name !== undefined) this.assertFree(await this.state(config), name, undefined);
    const records = this.recordsOf(config.id);
    await natsAnswer(() => records.create('request', request, name === undefined ? {} : { name }));
    // Two that ask for one name at the same time see each other now.
    if (name !== undefined) {
      try {
        this.assertFree(await this.state(config), name, request);
      } catch (error) {
        if (error instanceof RequestProblem && error.code === 'name-taken')
          await natsAnswer(() => records.remove('request', request));
        throw error;
      }
    }
    let barrier: number | undefined;
    for (;;) {
      const state = await this.state(config);
      const manifest = state.manifests.find((candidate) => candidate.request === request);
      if (manifest !== undefined && state.verified.has(manifest.barrier)) return answerOf(manifest, state);
      barrier = state.barriers.findLast((candidate) => candidate.request === request)?.barrier ?? barrier;
      if (clock.now() >= deadline) throw pending(barrier);
      await clock.sleep(POLL_MS);
    }
  }

  /** Takes a snapshot's name away: it goes when it is not among the newest any more. */
  async giveUp(config: GraphConfig, which: string): Promise<void> {
    const state = await this.state(config);
    const manifest = this.find(state, config.name, which);
    const at = String(manifest.barrier);
    const barrier = state.barriers.find((candidate) => candidate.barrier === manifest.barrier);
    if (manifest.name === undefined && barrier?.name === undefined) {
      throw badRequest(
        '/params/snapshot',
        `snapshot ${at} has no name: it goes by itself when it is not among the newest any more`,
      );
    }
    const records = this.recordsOf(config.id);
    // The barrier last: from then on it may be dropped, and must not be written again.
    await natsAnswer(() => records.put('manifest', at, nameless(manifest)));
    if (barrier !== undefined) await natsAnswer(() => records.put('barrier', at, nameless(barrier)));
  }

  /** All records of a graph that was removed, and of the snapshot of another one that it began with. */
  async removeAll({ id, base }: GraphConfig): Promise<void> {
    await natsAnswer(() => this.recordsOf(id).removeAll());
    this.records.delete(id);
    if (base !== undefined && base.graphId !== id) await this.removeBase(base.graphId);
  }

  async removeBase(baseId: string): Promise<void> {
    await natsAnswer(() => new SnapshotRecords(this.deps.kv, baseId).removeAll());
  }

  private recordsOf(id: string): SnapshotRecords {
    let records = this.records.get(id);
    if (records === undefined) {
      records = new SnapshotRecords(this.deps.kv, id);
      this.records.set(id, records);
    }
    return records;
  }

  private find({ manifests }: SnapshotState, graph: string, which: string): Manifest {
    const manifest = findSnapshot(manifests, which);
    if (manifest !== undefined) return manifest;
    throw new RequestProblem('unknown-snapshot', `graph ${shown(graph)} has no snapshot ${shown(which)}`);
  }

  /** Whether nobody but `request` has, or was to have, the name. */
  private assertFree(state: SnapshotState, name: string, request: string | undefined): void {
    const taken = [...state.manifests, ...state.barriers].find(
      (known) => known.name === name && (request === undefined || known.request !== request),
    );
    if (taken !== undefined) {
      throw new RequestProblem('name-taken', `snapshot ${taken.barrier} has the name ${shown(name)} already`);
    }
    const isAskedFor = state.requests.some(
      ({ at, value }) => value.name === name && (request === undefined || at[0]! < request),
    );
    if (isAskedFor) {
      throw new RequestProblem('name-taken', `a snapshot of the name ${shown(name)} was asked for already`);
    }
  }
}

function newestVerified({ manifests, verified }: SnapshotState): Manifest | undefined {
  return manifests.find(({ barrier }) => verified.has(barrier));
}

function pending(barrier: number | undefined): RequestProblem {
  const how = barrier === undefined ? 'it was asked for' : `it was begun as snapshot ${barrier}`;
  return new RequestProblem(
    'not-yet',
    `the snapshot is not there yet: ${how}, and goes on without this request; look for it in the list`,
    { retryAfterSeconds: 1 },
  );
}

function nameless<Record extends { readonly name?: string }>({ name: _, ...record }: Record) {
  return record;
}

function answerOf(manifest: Manifest, { verified }: SnapshotState): Snapshot {
  const { barrier, sequence, time, generation, partitions, name, digest, bytes, newBytes } = manifest;
  return {
    snapshot: barrier,
    sequence,
    time: time === '0' ? null : new Date(Number(BigInt(time) / NANOSECONDS_PER_MS)).toISOString(),
    generation,
    partitions,
    ...(name === undefined ? {} : { name }),
    digest,
    bytes,
    newBytes,
    verified: verified.has(barrier),
  };
}
