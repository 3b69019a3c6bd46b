/**
 * Decompresses gzip, all members, and keeps what was decompressed before a fault.
 *
 * A stream that fails is destroyed with what it still holds, so piping through `createGunzip` loses rows when a
 * file is cut short. Here each chunk is written alone and its output taken before the next one.
 */

import { createGunzip } from 'node:zlib';

const OUTPUT_BYTES = 64 * 1024;

export function isGzip(bytes: Uint8Array): boolean {
  return bytes[0] === 0x1f && bytes[1] === 0x8b;
}

/** Throws behind the last whole output if the input is damaged or ends too early. */
export async function* gunzip(compressed: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const engine = createGunzip({ chunkSize: OUTPUT_BYTES });
  let output: Uint8Array[] = [];
  let failure: Error | undefined;
  let wake = (): void => {};
  engine.on('data', (chunk: Uint8Array) => {
    output.push(new Uint8Array(chunk.buffer, chunk.byteOffset, chunk.byteLength));
  });
  engine.on('error', (error) => {
    failure = error;
    wake();
  });
  engine.on('end', () => wake());
  const taken = (): Uint8Array[] => {
    const chunks = output;
    output = [];
    return chunks;
  };
  try {
    for await (const chunk of compressed) {
      // Behind the last member only zeros are there, which pad the file.
      if (engine.readableEnded) continue;
      await new Promise<void>((resolve) => {
        wake = resolve;
        engine.write(chunk, () => resolve());
      });
      yield* taken();
      if (failure !== undefined) throw failure;
    }
    if (!engine.readableEnded) {
      await new Promise<void>((resolve) => {
        wake = resolve;
        engine.end();
      });
    }
    yield* taken();
    if (failure !== undefined) throw failure;
  } finally {
    engine.destroy();
  }
}
