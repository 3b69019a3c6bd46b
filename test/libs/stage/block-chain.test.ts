import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CHANNEL_START } from '../../../libs/dataflow/channel.ts';
import { BlockChain, type BlockPosition, type Restored } from '../../../libs/stage/block-chain.ts';
import { MemoryDisk } from '../../../libs/store/memory-store.ts';

function position(sequence: number): BlockPosition {
  return {
    inputs: [{ sequence, time: BigInt(sequence), created: 1n }],
    outputs: [{ ...CHANNEL_START, through: { sequence, index: 0 } }],
    barrier: 0,
  };
}

interface Read {
  readonly restored: Restored;
  readonly payloads: string[];
}

async function restore(disk: MemoryDisk, keep = Number.POSITIVE_INFINITY, identity = 'me'): Promise<Read> {
  const store = disk.openStore();
  const payloads: string[] = [];
  const restored = await new BlockChain(store, identity).restore(
    ({ outputs }) => outputs[0]!.through.sequence <= keep,
    (payload) => payloads.push(new TextDecoder().decode(payload.take(payload.end - payload.offset))),
  );
  await store.close();
  return { restored, payloads };
}

async function write(disk: MemoryDisk, texts: readonly string[], from = 1): Promise<void> {
  const store = disk.openStore();
  const chain = new BlockChain(store, 'me');
  await chain.restore(
    () => true,
    () => {},
  );
  for (const [at, text] of texts.entries())
    await chain.append(position(from + at), new TextEncoder().encode(text));
  await store.close();
}

const long = 'x'.repeat(10_000);

describe('a chain of blocks', () => {
  it('gives back all payloads in order and the position of the last', async () => {
    const disk = new MemoryDisk();
    await write(disk, ['a', long, '', 'd']);
    const { restored, payloads } = await restore(disk);
    expect(payloads).toEqual(['a', long, '', 'd']);
    expect(restored).toMatchObject({
      found: { kind: 'whole' },
      blocks: 4,
      cutBack: 0,
      position: position(4),
    });
  });

  it('is cut back to the last block that the outputs bear out, and goes on from there', async () => {
    const disk = new MemoryDisk();
    await write(disk, ['a', 'b', 'c', 'd']);
    const cut = await restore(disk, 2);
    expect(cut.payloads).toEqual(['a', 'b']);
    expect(cut.restored).toMatchObject({ found: { kind: 'whole' }, cutBack: 2, position: position(2) });
    await write(disk, ['C'], 3);
    expect((await restore(disk)).payloads).toEqual(['a', 'b', 'C']);
  });

  it('finishes a cut that died between setting the head and deleting the blocks behind it', async () => {
    const disk = new MemoryDisk();
    await write(disk, ['a', long, 'c', 'd']);
    let writes = 0;
    disk.beforeWrite = () => {
      writes += 1;
      if (writes === 2) throw new Error('died');
    };
    const store = disk.openStore();
    const cut = new BlockChain(store, 'me').restore(
      ({ outputs }) => outputs[0]!.through.sequence <= 1,
      () => {},
    );
    await expect(cut).rejects.toThrow('died');
    await store.close();
    disk.beforeWrite = () => {};
    await write(disk, ['B'], 2);
    expect((await restore(disk)).payloads).toEqual(['a', 'B']);
  });

  it('is told of the newest block before any is cut off, and stays whole if that is refused', async () => {
    const disk = new MemoryDisk();
    await write(disk, ['a', 'b', 'c']);
    const store = disk.openStore();
    const told: BlockPosition[] = [];
    const refused = new BlockChain(store, 'me').restore(
      ({ outputs }) => outputs[0]!.through.sequence <= 1,
      () => {},
      async (newest) => {
        told.push(newest);
        throw new Error('not that log');
      },
    );
    await expect(refused).rejects.toThrow('not that log');
    await store.close();
    expect(told).toEqual([position(3)]);
    expect((await restore(disk)).payloads).toEqual(['a', 'b', 'c']);
  });

  it('is cut back to nothing if not even the first block is borne out', async () => {
    const disk = new MemoryDisk();
    await write(disk, ['a', 'b']);
    expect(await restore(disk, 0)).toMatchObject({ payloads: [], restored: { position: undefined } });
    expect(await restore(disk)).toMatchObject({ payloads: [], restored: { found: { kind: 'nothing' } } });
  });

  it('belongs to one identity: another one starts empty', async () => {
    const disk = new MemoryDisk();
    await write(disk, ['a']);
    const { restored, payloads } = await restore(disk, undefined, 'somebody else');
    expect(payloads).toEqual([]);
    expect(restored.found).toEqual({ kind: 'foreign', identity: 'me' });
  });

  it('never gives back a payload that any flipped bit has touched', async () => {
    const texts = ['first', long, 'third', 'fourth', 'fifth'];
    await fc.assert(
      fc.asyncProperty(fc.nat(20), fc.nat(), async (value, bit) => {
        const disk = new MemoryDisk();
        await write(disk, texts);
        disk.flip(value, bit);
        const { payloads } = await restore(disk);
        expect(payloads).toEqual(texts.slice(0, payloads.length));
        await write(disk, ['next'], payloads.length + 1);
        expect((await restore(disk)).payloads).toEqual([...texts.slice(0, payloads.length), 'next']);
      }),
      { numRuns: 1000 },
    );
  });

  it('keeps what is before a hole that a power cut left, whichever writes it took', async () => {
    const texts = Array.from({ length: 8 }, (_, n) => `${n}${n % 3 === 0 ? long : ''}`);
    await fc.assert(
      fc.asyncProperty(fc.array(fc.boolean(), { minLength: 8, maxLength: 8 }), async (kept) => {
        const disk = new MemoryDisk();
        await write(disk, texts);
        disk.powerCut((at) => kept[at] === true);
        const { payloads } = await restore(disk);
        const firstLost = kept.indexOf(false);
        expect(payloads).toEqual(texts.slice(0, payloads.length));
        expect(payloads.length).toBeLessThanOrEqual(firstLost === -1 ? texts.length : firstLost);
      }),
      { numRuns: 100 },
    );
  });

  it('is replaced whole by a copy, and a copy that did not finish is as if it never began', async () => {
    const disk = new MemoryDisk();
    await write(disk, ['a', 'b', 'c']);
    const pieces = ['all', 'of', long, 'it'].map((text) => new TextEncoder().encode(text));
    for (let failAt = 1; failAt <= 5; failAt++) {
      const store = disk.openStore();
      const chain = new BlockChain(store, 'me');
      await chain.restore(
        () => true,
        () => {},
      );
      let writes = 0;
      disk.beforeWrite = () => {
        writes += 1;
        if (writes === failAt) throw new Error('died');
      };
      const copied = chain.copy(position(3), pieces);
      if (failAt <= 4) await expect(copied).rejects.toThrow('died');
      else await copied.catch(() => {});
      disk.beforeWrite = () => {};
      await store.close();
      const { payloads, restored } = await restore(disk);
      expect(payloads).toEqual(failAt <= 4 ? ['a', 'b', 'c'] : ['all', 'of', long, 'it']);
      expect(restored.position).toEqual(position(3));
    }
    expect(new Set(disk.range('B', 'C').map(([key]) => key.slice(1, 5))).size, 'chains on the disk').toBe(1);
    await write(disk, ['d'], 4);
    expect((await restore(disk)).payloads).toEqual(['all', 'of', long, 'it', 'd']);
  });
});
