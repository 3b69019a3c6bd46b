/**
 * Three nats-servers, each in a network namespace of its own, joined by a bridge: cables can be cut, one way or both,
 * while everybody's connections stay. It needs root and a kernel that has namespaces and bridges.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { jetstreamManager } from '@nats-io/jetstream';
import { connectNats } from '../../../libs/bus/nats-bus.ts';
import { ensureNatsServer } from '../../../services/cli/nats-server.ts';
import { ended, until } from './cluster.ts';
import { COUNT, type Servers } from './trio.ts';

const CLIENT_PORT = 4222;
const ROUTE_PORT = 6222;
const LEADER_MS = 60_000;

/** Of this process, so that two can run at once. */
const PREFIX = `ws${process.pid}`;
const NETWORK = `10.77.${process.pid % 250}`;

function ran(command: string): boolean {
  const [program = '', ...args] = command.split(' ');
  return spawnSync(program, args, { stdio: 'ignore' }).status === 0;
}

function mustRun(command: string): void {
  const [program = '', ...args] = command.split(' ');
  const { status, stderr } = spawnSync(program, args, { encoding: 'utf8' });
  if (status !== 0) throw new Error(`${command}: ${stderr}`);
}

/** Whether this machine allows namespaces, and whether it can delay and lose packets as well. */
export function networkAbilities(): { readonly namespaces: boolean; readonly netem: boolean } {
  const [namespace, bridge, ends] = [`${PREFIX}p`, `${PREFIX}b`, [`${PREFIX}x`, `${PREFIX}y`]];
  const namespaces =
    ran(`ip netns add ${namespace}`) &&
    ran(`ip link add ${bridge} type bridge`) &&
    ran(`ip link add ${ends[0]} type veth peer name ${ends[1]}`);
  const netem = namespaces && ran(`tc qdisc add dev ${ends[0]} root netem delay 1ms`);
  ran(`ip link del ${ends[0]}`);
  ran(`ip link del ${bridge}`);
  ran(`ip netns del ${namespace}`);
  return { namespaces, netem };
}

export class NetnsServers implements Servers {
  readonly urls: string;
  private readonly folder: string;
  private readonly bin: string;
  private readonly children: ChildProcess[] = [];
  /** Who is not heard by whom. */
  private readonly lost = new Set<string>();
  private isSlow = false;

  private constructor(bin: string) {
    this.bin = bin;
    this.folder = mkdtempSync(join(tmpdir(), 'watershed-netns-'));
    this.urls = Array.from({ length: COUNT }, (_, n) => this.url(n)).join(',');
  }

  static async create(): Promise<NetnsServers> {
    const servers = new NetnsServers(await ensureNatsServer({ log: (line) => console.error(line) }));
    try {
      servers.wire();
      for (let n = 0; n < COUNT; n++) servers.start(n);
    } catch (error) {
      await servers.stop();
      throw error;
    }
    return servers;
  }

  url(server: number): string {
    return `nats://${address(server)}:${CLIENT_PORT}`;
  }

  async kill(server: number): Promise<void> {
    await ended(this.children[server]!, 'SIGKILL');
  }

  async restart(server: number): Promise<void> {
    this.start(server);
    await (await connectNats({ url: this.url(server), name: 'restart', wait: true })).close();
  }

  /** The server that leads the stream. */
  async leaderOf(stream: string): Promise<number> {
    let leader = -1;
    await until(
      async () => {
        const connection = await connectNats({ url: this.urls, name: 'harness', wait: true });
        try {
          const manager = await jetstreamManager(connection, { timeout: 2_000, checkAPI: false });
          const { cluster } = await manager.streams.info(stream);
          leader = Number(/^n(\d)$/.exec(cluster?.leader ?? '')?.[1] ?? -1);
        } finally {
          await connection.close();
        }
        return leader >= 0;
      },
      `a leader of ${stream}`,
      LEADER_MS,
    );
    return leader;
  }

  /** What a server sends to the other two is lost. Its clients hear it as before. */
  cutFrom(server: number): void {
    for (const other of others(server)) this.lose(server, other);
  }

  /** What the other two send to a server is lost. */
  cutTo(server: number): void {
    for (const other of others(server)) this.lose(other, server);
  }

  heal(): void {
    for (let n = 0; n < COUNT; n++) {
      for (const other of others(n)) {
        const route = `blackhole ${address(other)}/32`;
        if (this.lost.delete(`${n} ${other}`)) mustRun(`ip netns exec ${space(n)} ip route del ${route}`);
      }
      if (this.isSlow) mustRun(`ip netns exec ${space(n)} tc qdisc del dev eth0 root`);
    }
    this.isSlow = false;
  }

  /** All that servers send comes late, and some of it never. */
  slow(delayMs: number, lossPercent: number): void {
    this.isSlow = true;
    for (let n = 0; n < COUNT; n++) {
      mustRun(
        `ip netns exec ${space(n)} tc qdisc add dev eth0 root netem delay ${delayMs}ms loss ${lossPercent}%`,
      );
    }
  }

  async stop(): Promise<void> {
    await Promise.all(this.children.map((child) => ended(child, 'SIGKILL')));
    for (let n = 0; n < COUNT; n++) {
      ran(`ip link del ${PREFIX}v${n}`);
      ran(`ip netns del ${space(n)}`);
    }
    ran(`ip link del ${PREFIX}b`);
    rmSync(this.folder, { recursive: true, force: true });
  }

  private lose(from: number, to: number): void {
    mustRun(`ip netns exec ${space(from)} ip route add blackhole ${address(to)}/32`);
    this.lost.add(`${from} ${to}`);
  }

  private wire(): void {
    const bridge = `${PREFIX}b`;
    mustRun(`ip link add ${bridge} type bridge`);
    mustRun(`ip addr add ${NETWORK}.1/24 dev ${bridge}`);
    mustRun(`ip link set ${bridge} up`);
    for (let n = 0; n < COUNT; n++) {
      const outside = `${PREFIX}v${n}`;
      mustRun(`ip netns add ${space(n)}`);
      mustRun(`ip link add ${outside} type veth peer name eth0 netns ${space(n)}`);
      mustRun(`ip link set ${outside} master ${bridge} up`);
      mustRun(`ip netns exec ${space(n)} ip addr add ${address(n)}/24 dev eth0`);
      mustRun(`ip netns exec ${space(n)} ip link set eth0 up`);
      mustRun(`ip netns exec ${space(n)} ip link set lo up`);
    }
  }

  private start(n: number): void {
    const config = join(this.folder, `n${n}.conf`);
    const routes = Array.from({ length: COUNT }, (_, server) => `nats://${address(server)}:${ROUTE_PORT}`);
    const lines = [
      `server_name: n${n}`,
      `listen: "${address(n)}:${CLIENT_PORT}"`,
      // A cable that is cut is noticed by pings alone.
      'ping_interval: "2s"',
      'ping_max: 2',
      'jetstream {',
      `  store_dir: ${JSON.stringify(join(this.folder, `n${n}`))}`,
      '  sync_interval: always',
      '}',
      'cluster {',
      '  name: netns',
      `  listen: "${address(n)}:${ROUTE_PORT}"`,
      `  routes: ${JSON.stringify(routes)}`,
      '}',
    ];
    writeFileSync(config, `${lines.join('\n')}\n`);
    // It becomes the server: the process is the one that is killed later.
    const child = spawn('ip', ['netns', 'exec', space(n), this.bin, '-c', config], { stdio: 'ignore' });
    process.once('exit', () => child.kill('SIGKILL'));
    this.children[n] = child;
  }
}

function space(server: number): string {
  return `${PREFIX}n${server}`;
}

function address(server: number): string {
  return `${NETWORK}.${10 + server}`;
}

function others(server: number): number[] {
  return Array.from({ length: COUNT }, (_, n) => n).filter((n) => n !== server);
}
