/**
 * What can happen to the cluster, and what its operators ask of it. Each schedule has some of these, each at a pace of
 * its own. A fault strikes once; what it does for a while it ends by itself, and `heal` ends all of it.
 */
import { rebuilt } from '../../../libs/bus/graphs.ts';
import { newestGeneration } from '../../../libs/dataflow/graph-config.ts';
import { LEASES_BUCKET } from '../../../libs/dataflow/names.ts';
import { SERVERS } from './network.ts';
import type { Seat, World } from './world.ts';

export interface Fault {
  readonly name: string;
  strike(world: World): void | Promise<void>;
  /** It changes PARTS or FOREST. */
  readonly isTampering?: boolean;
  /** What it takes the stages may not be able to make again: then the graph must be rebuilt. */
  readonly isTaking?: boolean;
  /** It takes or damages chunks. */
  readonly losesChunks?: boolean;
}

const DOWN_MS_MAX = 3_000;
/** Long enough for others to take over. */
const ASLEEP_MS_MAX = 6_000;
const PARTITIONS = [1, 1, 2, 2, 3, 4];

export const FAULTS: readonly Fault[] = [
  {
    name: 'kill',
    strike: (world) => atSeat(world, (seat) => killSoon(world, seat, () => world.kill(seat))),
  },
  {
    name: 'power cut',
    strike: (world) => atSeat(world, (seat) => killSoon(world, seat, () => world.cutPower(seat))),
  },
  {
    name: 'disk lost',
    strike: (world) =>
      atSeat(world, (seat) =>
        killSoon(world, seat, () => {
          world.kill(seat);
          const [...disks] = seat.disks;
          for (const [folder, disk] of disks) {
            if (!world.random.chance(0.5)) continue;
            world.trace.note(seat.name, `loses the disk of ${folder}`);
            disk.lose();
          }
        }),
      ),
  },
  {
    name: 'bit flipped',
    strike: (world) =>
      atSeat(world, (seat) => {
        const { random } = world;
        const flip = (): void => {
          const disks = [...seat.disks].filter(([, disk]) => !disk.isEmpty);
          if (disks.length === 0) return;
          const [folder, disk] = random.of(disks);
          world.trace.note(seat.name, `a bit flips on the disk of ${folder}`);
          disk.flip(random.below(1_000), random.below(100_000));
        };
        if (random.chance(0.3)) flip();
        else {
          killSoon(world, seat, () => {
            world.kill(seat);
            flip();
          });
        }
      }),
  },
  {
    name: 'writes fail',
    strike: (world) => {
      world.diskRates.writeFails = 0.05;
      world.clock.after(world.random() * 500, () => {
        world.diskRates.writeFails = 0;
      });
    },
  },
  {
    name: 'log switches',
    strike: (world) => {
      world.diskRates.logSwitches = 0.2;
    },
  },
  {
    name: 'suspended',
    strike: (world) =>
      atSeat(world, ({ name, instance }) => {
        world.trace.note(name, 'is suspended');
        const { process } = instance!;
        process.suspend();
        world.clock.after(world.random() * ASLEEP_MS_MAX, () => {
          if (process.isDead || !process.isSuspended) return;
          world.trace.note(name, 'wakes');
          process.resume();
        });
      }),
  },
  {
    name: 'cut off',
    strike: (world) =>
      atSeat(world, ({ name, instance }) => {
        const { random } = world;
        const { cutOff } = instance!.process;
        const way = random.chance(0.5) ? 'request lost' : 'answer lost';
        const servers = random.chance(0.5) ? SERVERS : [random.of(SERVERS)];
        world.trace.note(name, `is cut off from ${servers.join(', ')}: ${way}`);
        for (const server of servers) cutOff.set(server, way);
        world.clock.after(random() * ASLEEP_MS_MAX, () => cutOff.clear());
      }),
  },
  {
    name: 'server away',
    strike: (world) => {
      const { random, network } = world;
      const server = random.of(SERVERS);
      world.trace.note('network', `${server} is away`);
      network.away(server, random() * ASLEEP_MS_MAX);
    },
  },
  { name: 'requests lost', strike: (world) => forAWhile(world, 'requestLost', 0.05) },
  { name: 'answers lost', strike: (world) => forAWhile(world, 'answerLost', 0.05) },
  { name: 'requests late', strike: (world) => forAWhile(world, 'late', 0.05) },
  { name: 'slow', strike: (world) => forAWhile(world, 'latencyMs', 400) },
  {
    name: 'readers reset',
    strike: (world) =>
      atSeat(world, ({ instance }) => {
        instance!.process.resetRate = 0.1;
      }),
  },
  {
    name: 'chunk lost',
    losesChunks: true,
    isTaking: true,
    strike: (world) => {
      world.trace.note('chunks', 'one is lost');
      world.chunks.lose(world.random.below(1_000));
    },
  },
  {
    name: 'chunk damaged',
    losesChunks: true,
    isTaking: true,
    strike: (world) => {
      world.trace.note('chunks', 'one is damaged');
      world.chunks.damage(world.random.below(1_000), world.random.below(100_000));
    },
  },
  {
    name: 'derived log recreated',
    isTampering: true,
    strike: (world) =>
      atDerivedLog(world, async (stream) => {
        world.trace.note('bus', `${stream} is deleted and created again`);
        await world.bus.recreate(stream);
      }),
  },
  {
    name: 'derived log deleted',
    isTampering: true,
    strike: (world) =>
      atDerivedLog(world, async (stream) => {
        world.trace.note('bus', `${stream} is deleted`);
        await world.bus.remove(stream);
      }),
  },
  {
    name: 'derived head purged',
    isTaking: true,
    isTampering: true,
    strike: (world) =>
      atDerivedLog(world, async (stream) => {
        const { first, last } = (await world.bus.describe(stream))!;
        const to = first + world.random.below(last - first + 2);
        world.trace.note('bus', `${stream} is purged below ${to} by somebody`);
        await world.bus.purge(stream, to);
      }),
  },
  {
    name: 'derived tail cut',
    isTampering: true,
    strike: (world) =>
      atDerivedLog(world, async (stream) => {
        const { first, last } = (await world.bus.describe(stream))!;
        const to = Math.max(first - 1, last - 1 - world.random.below(8));
        world.trace.note('bus', `${stream} loses all behind ${to}`);
        world.bus.cutTail(stream, to, world.random.chance(0.5));
      }),
  },
  {
    name: 'rescale',
    strike: async (world) => {
      await rescale(world);
      // Somebody thinks better of it.
      if (world.random.chance(0.4)) world.clock.after(world.random() * 1_000, () => void rescale(world));
    },
  },
  {
    name: 'snapshot asked for',
    strike: async (world) => {
      await world.askSnapshot(world.random.chance(0.3) ? `named-${world.random.below(100)}` : undefined);
    },
  },
  { name: 'rebuild', isTaking: true, strike: rebuild },
  {
    name: 'lease given away',
    strike: async (world) => {
      const { random, up, kv } = world;
      const leases = await kv.list(LEASES_BUCKET, '');
      if (leases.length === 0 || up.length === 0) return;
      const { key, value } = random.of(leases);
      const { name, incarnation } = random.of(up).instance!;
      const lease = JSON.parse(value) as { turn: number };
      world.trace.note('kv', `the lease of ${key.slice(33)} names ${name}`);
      const given = { ...lease, owner: name, incarnation, turn: lease.turn + 1 };
      await kv.put(LEASES_BUCKET, key, JSON.stringify(given));
    },
  },
  {
    name: 'leave and join',
    strike: (world) =>
      atSeat(world, (seat) => {
        world.trace.note(seat.name, 'leaves');
        void seat.instance!.leave();
        startLater(world, seat);
      }),
  },
];

async function rescale(world: World): Promise<void> {
  const partitions = world.random.of(PARTITIONS);
  world.trace.note('operator', `wants ${partitions} partitions`);
  await world.change((config) => ({ ...config, partitions }));
}

/** EDGES loses its tail or is made anew, with or without the instances running; others publish in its place. */
export async function loseEdges(world: World): Promise<void> {
  const { random, bus, edges, seats } = world;
  const { stream } = edges;
  const { last } = (await bus.describe(stream))!;
  const isAllKilled = random.chance(0.3);
  for (const seat of seats) {
    if (!isAllKilled && !random.chance(0.3)) continue;
    world.kill(seat);
    for (const disk of seat.disks.values()) if (random.chance(0.3)) disk.lose();
  }
  world.areEdgesLost = true;
  if (random.chance(0.3)) {
    world.trace.note('bus', `${stream} is deleted and created again`);
    await bus.recreate(stream);
  } else {
    const to = last - 1 - random.below(Math.min(8, last));
    world.trace.note('bus', `${stream} loses all behind ${to}`);
    bus.cutTail(stream, Math.max(0, to), true);
  }
  await world.publish(random.below(2 * last));
}

/** Begins a new generation from a snapshot, or from the first message, as an operator does. */
export async function rebuild(world: World): Promise<void> {
  const { manifests, verified } = await world.records.read();
  const whole = manifests.filter(({ barrier }) => verified.has(barrier));
  const snapshot = whole.length === 0 || world.random.chance(0.3) ? undefined : world.random.of(whole);
  world.trace.note(
    'operator',
    `rebuilds from ${snapshot === undefined ? 'the first message' : snapshot.barrier}`,
  );
  await world.change((config) => rebuilt(config, snapshot));
}

/** All faults are over, and all instances run. */
export function heal(world: World): void {
  world.trace.note('world', 'all faults are over');
  world.network.heal();
  Object.assign(world.diskRates, { writeFails: 0, logSwitches: 0 });
  for (const seat of world.seats) {
    const process = seat.instance?.process;
    if (process !== undefined) {
      process.killAtCall(Number.POSITIVE_INFINITY, () => {});
      process.cutOff.clear();
      process.resetRate = 0;
      if (process.isSuspended) process.resume();
    }
  }
}

/** Starts an instance where none runs. */
export function startMissing(world: World): void {
  for (const seat of world.seats) {
    if (seat.instance === undefined || seat.instance.hasLeft) world.start(seat);
  }
}

function atSeat(world: World, strike: (seat: Seat) => void): void {
  const { up } = world;
  if (up.length > 0) strike(world.random.of(up));
}

/** Now, or at one of its next calls. */
function killSoon(world: World, seat: Seat, kill: () => void): void {
  const { random } = world;
  const { instance } = seat;
  const end = (): void => {
    kill();
    startLater(world, seat);
  };
  if (random.chance(0.3)) end();
  else {
    instance!.process.killAtCall(1 + random.below(60), () => {
      if (seat.instance === instance) end();
    });
  }
}

function startLater(world: World, seat: Seat): void {
  world.clock.after(world.random() * DOWN_MS_MAX, () => {
    if (seat.instance === undefined || seat.instance.hasLeft) world.start(seat);
  });
}

function forAWhile(world: World, what: keyof World['network']['rates'], value: number): void {
  const { rates } = world.network;
  const usual = rates[what];
  if (usual === value) return;
  world.trace.note('network', `${what} is ${value}`);
  rates[what] = value;
  world.clock.after(world.random() * ASLEEP_MS_MAX, () => {
    rates[what] = usual;
  });
}

async function atDerivedLog(world: World, strike: (stream: string) => Promise<void>): Promise<void> {
  // What a partitioner wrote in a generation that has ended nobody writes again.
  const { generation } = newestGeneration(await world.config());
  const streams = world.bus.streams.filter(
    (stream) => stream.includes('_FOREST_') || stream.includes(`_PARTS_${generation}_`),
  );
  if (streams.length === 0) return;
  const stream = world.random.of(streams);
  await strike(stream);
  world.tampered(stream);
}
