/** A nats-server of one's own for a test: a free port, a store folder that goes with it, faults on request. */

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ensureNatsServer, type NatsServer, startNatsServer } from '../../../services/cli/nats-server.ts';

export interface TestNatsServer {
  readonly url: string;
  readonly port: number;
  readonly storeDir: string;
  /** Ends the server, if it still runs, and starts it again on the same port and store. */
  restart(): Promise<void>;
  /** The server is gone as by `kill -9`; `restart` brings it back. */
  kill9(): Promise<void>;
  /** The server ends in order; `restart` brings it back. */
  halt(): Promise<void>;
  /** Ends the server and removes its store. */
  stop(): Promise<void>;
}

export interface TestNatsServerOptions {
  /** Off unless a test is about disks: a killed server loses nothing that it wrote, and fsync is slow. */
  readonly syncAlways?: boolean;
}

let program: Promise<string> | undefined;

export async function testNatsServer({
  syncAlways = false,
}: TestNatsServerOptions = {}): Promise<TestNatsServer> {
  program ??= ensureNatsServer({ log: (line) => console.error(line) });
  const bin = await program;
  const storeDir = await mkdtemp(join(tmpdir(), 'watershed-test-nats-'));
  let server: NatsServer;
  try {
    server = await startNatsServer({ bin, storeDir, port: 0, syncAlways });
  } catch (error) {
    await rm(storeDir, { recursive: true, force: true });
    throw error;
  }
  const { url, port } = server;
  return {
    url,
    port,
    storeDir,
    async restart() {
      await server.stop();
      server = await startNatsServer({ bin, storeDir, port, syncAlways });
    },
    async kill9() {
      await server.kill();
    },
    async halt() {
      await server.stop();
    },
    async stop() {
      await server.stop();
      await rm(storeDir, { recursive: true, force: true });
    },
  };
}
