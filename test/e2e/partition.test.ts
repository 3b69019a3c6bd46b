/**
 * The network between the nats-servers is cut or slow while everybody stays connected to where they are: answers go
 * on when two of three servers hear each other, and nothing is lost or counted twice. The servers are in network
 * namespaces; where this machine allows none, or cannot delay packets, the tests are skipped by their names.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { edgesLog } from '../../libs/dataflow/names.ts';
import { NetnsServers, networkAbilities } from './harness/netns.ts';
import { expectOracle, Publisher } from './harness/publisher.ts';
import { COUNT, Trio } from './harness/trio.ts';

const GRAPH = 'cut';
/** An election of up to ten seconds, and before it the time in which clients leave a server that does not answer. */
const RECOVER_MS_MAX = 60_000;
const SETTLE_MS = 120_000;
/** Of the list, while the network is as bad. */
const SLOW_MS = 10_000;

const { namespaces, netem } = networkAbilities();

describe.skipIf(!namespaces)('nats-servers in network namespaces (needs root)', () => {
  let servers: NetnsServers;
  let trio: Trio<NetnsServers>;
  let publisher: Publisher;

  beforeAll(async () => {
    servers = await NetnsServers.create();
    // With all addresses: a server that is cut off tells its clients that there are no others.
    trio = await Trio.on(servers);
    const snapshots = { interval: 5, keep: 2 };
    await trio.put(GRAPH, { partitions: 3, replicas: COUNT, snapshots });
    publisher = await Publisher.connect(servers.urls, GRAPH);
    publisher.start();
    await trio.visible(GRAPH, await publisher.nextMessage(SETTLE_MS), SETTLE_MS);
  }, 240_000);

  afterAll(async () => {
    servers?.heal();
    await publisher?.disconnect();
    if (trio === undefined) await servers?.stop();
    await trio?.stop();
  });

  async function expectRecovered(what: string, began: number): Promise<void> {
    await trio.visible(GRAPH, await publisher.nextMessage(SETTLE_MS), SETTLE_MS);
    const ms = Math.round(performance.now() - began);
    console.log(`${what}: visible again after ${ms} ms`);
    expect(ms).toBeLessThan(RECOVER_MS_MAX);
  }

  async function expectExact(): Promise<void> {
    await publisher.stop();
    for (const machine of trio.machines) await expectOracle(machine, GRAPH, publisher);
    publisher.start();
  }

  it.each([
    ['cut off from the others both ways', true, true],
    ['not heard by the others', true, false],
    ['deaf to the others', false, true],
  ])(
    'the leader of EDGES, %s, with its clients still connected: answers go on, and nothing is lost',
    {
      timeout: 360_000,
    },
    async (what, isFrom, isTo) => {
      const leader = await servers.leaderOf(edgesLog(GRAPH).stream);
      const began = performance.now();
      if (isFrom) servers.cutFrom(leader);
      if (isTo) servers.cutTo(leader);
      await expectRecovered(`leader n${leader} ${what}`, began);
      servers.heal();
      // When it is back there is another election (no PreVote in nats-server).
      await expectRecovered('healed', performance.now());
      await trio.healthy();
      await expectExact();
    },
  );

  it.skipIf(!netem)(
    'a delay of 200 ms and 5 % loss between all servers (needs netem): slower, and exact',
    {
      timeout: 360_000,
    },
    async () => {
      servers.slow(200, 5);
      await expectRecovered('200 ms and 5 % loss', performance.now());
      // For a while it stays so: the moment of the end is no condition.
      await new Promise((resolve) => setTimeout(resolve, SLOW_MS));
      servers.heal();
      await expectRecovered('healed', performance.now());
      await expectExact();
    },
  );
});
