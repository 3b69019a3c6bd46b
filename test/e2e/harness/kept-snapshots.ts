/** Reads back every snapshot of a graph that is kept, and compares it with an oracle of the same prefix. */
import assert from 'node:assert/strict';
import { connectNats } from '../../../libs/bus/nats-bus.ts';
import { NatsChunks } from '../../../libs/bus/nats-chunks.ts';
import { NatsKv } from '../../../libs/bus/nats-kv.ts';
import { damageOf } from '../../../libs/snapshot/keeper.ts';
import { partBlocks } from '../../../libs/snapshot/part-chunks.ts';
import { type Manifest, SnapshotRecords, VIEW_PART } from '../../../libs/snapshot/records.ts';
import { readBlocks } from '../../../libs/stage/block-chain.ts';
import { View } from '../../../services/gateway/view.ts';
import { contents } from '../../support/contents.ts';
import { CorePipeline } from '../../support/core-pipeline.ts';
import { until } from './cluster.ts';

const SNAPSHOT_MS = 60_000;

/** Waits until a snapshot through `sequence` or later is complete, then checks all; gives how many there are. */
export async function expectSnapshots(
  natsUrl: string,
  graphId: string,
  sequence: number,
  oracle: CorePipeline,
): Promise<number> {
  const connection = await connectNats({ url: natsUrl, name: 'snapshots', wait: true });
  try {
    const records = new SnapshotRecords(new NatsKv(connection, 1), graphId);
    const chunks = new NatsChunks(connection, 1);
    let kept: readonly Manifest[] = [];
    await until(
      async () => {
        const { manifests, verified } = await records.read();
        kept = manifests.filter(({ barrier }) => verified.has(barrier));
        return kept.some((manifest) => manifest.sequence >= sequence);
      },
      `a snapshot of all through ${sequence}`,
      SNAPSHOT_MS,
    );
    for (const manifest of kept) {
      assert.equal(await damageOf({ chunks }, manifest), undefined, `barrier ${manifest.barrier}`);
      const part = manifest.parts.find(({ task }) => task === VIEW_PART)!;
      const view = new View({ graphId, origin: 1 }, { visible: () => {}, advanced: () => {} });
      await readBlocks(partBlocks(chunks, part.index), (payload) => view.restore(payload));
      const expected = prefixOf(oracle, manifest.sequence);
      assert.deepEqual(contents(view), contents(expected), `the view at barrier ${manifest.barrier}`);
      assert.equal(manifest.digest, expected.digest, `the digest at barrier ${manifest.barrier}`);
    }
    return kept.length;
  } finally {
    await connection.close();
  }
}

/** The view of the oracle's first messages alone. */
function prefixOf(oracle: CorePipeline, sequence: number): View {
  const prefix = new CorePipeline(1);
  for (const { payload, contentType } of oracle.edges.messages.slice(0, sequence))
    prefix.publish(payload, contentType);
  return prefix.settle();
}
