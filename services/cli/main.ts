#!/usr/bin/env node
/**
 * The program `watershed`: reads the command line, runs one command, ends with a status that tells.
 */
import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import { Command, CommanderError, InvalidArgumentError, Option } from 'commander';
import type { GraphSettings } from '../../libs/api/graph.ts';
import { createGraph } from '../../libs/bus/graphs.ts';
import { connectNats, defaultReplicas, NatsBus } from '../../libs/bus/nats-bus.ts';
import { NatsChunks } from '../../libs/bus/nats-chunks.ts';
import { NatsKv } from '../../libs/bus/nats-kv.ts';
import { Registry } from '../../libs/bus/registry.ts';
import { REPLICAS } from '../../libs/dataflow/graph-config.ts';
import { edgesLog, GRAPH_NAME, PARTITIONS_DEFAULT, PARTITIONS_MAX } from '../../libs/dataflow/names.ts';
import { ALGORITHMS } from '../../libs/partitioning/partitioner-config.ts';
import type { Bus } from '../../libs/stage/ports.ts';
import { FileChunks } from '../../libs/store/file-chunks.ts';
import { StoreError } from '../../libs/store/level-store.ts';
import { demo } from './demo.ts';
import { CliError, EXIT } from './exit.ts';
import { HttpClient } from './http-client.ts';
import { processClock } from './instance.ts';
import { runLoad } from './load/command.ts';
import { type LoadFlags, loadOptions } from './load/load-options.ts';
import { NatsServerError } from './nats-server.ts';
import { printJson, printLine, say } from './output.ts';
import { runPartition } from './partition/command.ts';
import { type PartitionFlags, partitionOptions } from './partition/partition-options.ts';
import { partitionerOf } from './partitioner-flags.ts';
import { publishLines } from './publish.ts';
import * as queries from './queries.ts';
import { parseAddress, parseRoles } from './roles.ts';
import { serve } from './serve.ts';
import * as snapshots from './snapshots.ts';
import { Up } from './up.ts';
import { programVersion } from './version.ts';

interface Flags {
  readonly url: string;
  readonly nats: string;
  readonly graph: string;
  readonly json?: boolean;
  readonly atLeast?: number;
  readonly asOf?: number;
  readonly timeout?: number;
}

const NATS_URL_DEFAULT = 'nats://127.0.0.1:4222';
const GRAPH_NAME_DEFAULT = 'default';

const program = new Command('watershed')
  .description('Streaming connected components: publish edges on NATS, ask which vertices belong together.')
  .version(programVersion())
  .showHelpAfterError('("watershed help" lists the commands, "watershed help <command>" explains one)')
  .configureHelp({ showGlobalOptions: true });

function urlOption(): Option {
  return new Option('--url <url>', 'the gateway').env('WATERSHED_URL').default('http://127.0.0.1:8080');
}

function natsOption(): Option {
  return new Option('--nats <url>', 'the NATS server').env('WATERSHED_NATS').default(NATS_URL_DEFAULT);
}

function graphOption(): Option {
  return new Option('--graph <name>', 'the graph')
    .env('WATERSHED_GRAPH')
    .default(GRAPH_NAME_DEFAULT)
    .argParser(graphName);
}

/** Where the chunks of snapshots are kept; without a folder: in NATS. */
interface SnapshotStore {
  readonly folder: string | undefined;
}

function snapshotStoreOption(): Option {
  return new Option(
    '--snapshot-store <store>',
    'where snapshots are kept: nats, or file:<folder>, which all instances must share',
  )
    .env('WATERSHED_SNAPSHOT_STORE')
    .default({ folder: undefined }, 'nats')
    .argParser(snapshotStore);
}

/** Of commands that go past the gateways. */
function storeOptions(command: Command): Command {
  return command.addOption(natsOption()).addOption(snapshotStoreOption());
}

function jsonOption(): Option {
  return new Option('--json', 'print one JSON object');
}

function readOptions(command: Command): Command {
  return command
    .addOption(graphOption())
    .addOption(
      new Option('--at-least <sequence>', 'wait until the answer holds this message').argParser(sequence),
    )
    .addOption(
      new Option('--as-of <sequence>', 'the answer as it was through this message').argParser(sequence),
    )
    .addOption(new Option('--timeout <seconds>', 'of that wait, 1 to 60').argParser(count))
    .addOption(urlOption())
    .addOption(jsonOption());
}

function replicasOption(): Option {
  return new Option(
    '--replicas <count>',
    'NATS servers that hold a copy of each stream: 1, 3 or 5; of a new graph only',
  ).argParser(replicas);
}

/** What a graph can be told when it is created and later. */
function settingsOptions(command: Command): Command {
  return command
    .addOption(
      new Option(
        '--snapshot-interval <seconds>',
        'from one snapshot to the next; 0: only when asked for',
      ).argParser(sequence),
    )
    .addOption(new Option('--snapshots-kept <count>', 'besides the named ones; at least 2').argParser(count))
    .addOption(
      new Option('--purge-edges', 'remove edges from the stream that the oldest kept snapshot is past'),
    )
    .addOption(new Option('--no-purge-edges', 'keep all edges, as by default'));
}

interface SettingsFlags {
  readonly partitions?: number;
  readonly replicas?: number;
  readonly snapshotInterval?: number;
  readonly snapshotsKept?: number;
  readonly purgeEdges?: boolean;
}

interface PartitionerFlags {
  readonly partitioner?: string;
  readonly partitionerOption?: readonly string[];
}

function settingsOf(flags: SettingsFlags & PartitionerFlags): GraphSettings {
  const { partitions, replicas, snapshotInterval: interval, snapshotsKept: keep, purgeEdges } = flags;
  const wanted = {
    ...(interval === undefined ? {} : { interval }),
    ...(keep === undefined ? {} : { keep }),
  };
  return {
    ...(partitions === undefined ? {} : { partitions }),
    ...(flags.partitioner === undefined
      ? {}
      : { partitioner: partitionerOf(flags.partitioner, flags.partitionerOption) }),
    ...(replicas === undefined ? {} : { replicas }),
    ...(Object.keys(wanted).length === 0 ? {} : { snapshots: wanted }),
    ...(purgeEdges === undefined ? {} : { purgeEdges }),
  };
}

function partitionsOption(): Option {
  return new Option(
    '--partitions <count>',
    `shares of the work, 1 to ${PARTITIONS_MAX}; of a new graph only`,
  ).argParser(partitionCount);
}

/** What chooses the partition of an edge. */
function partitionerOptions(command: Command): Command {
  return command
    .addOption(
      new Option(
        '--partitioner <algorithm>',
        `what chooses the partition of each edge: ${Object.keys(ALGORITHMS).join(', ')}; or JSON with its parameters`,
      ),
    )
    .addOption(
      new Option(
        '--partitioner-option <name=value>',
        'a parameter of it, as lambda=1.2; may be given several times',
      ).argParser(append),
    );
}

/** Of a graph that may be there. */
function rescaleOption(): Option {
  return new Option('--partitions <count>', `shares of the work, 1 to ${PARTITIONS_MAX}`).argParser(
    partitionCount,
  );
}

program
  .command('up')
  .description('run nats-server and instances on this machine, one process per core; Ctrl-C stops all')
  .addOption(new Option('--data <folder>', 'data of all').env('WATERSHED_DATA').default('./watershed-data'))
  .addOption(
    new Option('--http <address>', 'where the gateway answers')
      .env('WATERSHED_HTTP')
      .default('127.0.0.1:8080'),
  )
  .addOption(
    new Option('--nats-port <port>', 'port of the nats-server that is started').default(4222).argParser(port),
  )
  .addOption(new Option('--nats <url>', 'use this NATS server instead of starting one'))
  .addOption(graphOption())
  .addOption(partitionsOption())
  .addHelpText(
    'after',
    examples('watershed up', 'watershed up --http 127.0.0.1:9000 --data /var/lib/watershed'),
  )
  .action(
    async (flags: {
      data: string;
      http: string;
      natsPort: number;
      nats?: string;
      graph: string;
      partitions?: number;
    }) => {
      const http = parseAddress(flags.http);
      const stopped = untilSignal();
      const up = await Up.start(
        {
          dataFolder: flags.data,
          natsPort: flags.natsPort,
          natsUrl: flags.nats,
          http,
          graph: { name: flags.graph, partitions: flags.partitions ?? PARTITIONS_DEFAULT },
          say,
        },
        interruption(stopped),
      );
      printLine(`gateway  ${up.url}`);
      printLine(`NATS     ${up.natsUrl}`);
      const graphFlag = flags.graph === GRAPH_NAME_DEFAULT ? '' : ` --graph ${flags.graph}`;
      const natsFlag = up.natsUrl === NATS_URL_DEFAULT ? '' : ` --nats ${up.natsUrl}`;
      printLine(`try      echo '{"source":"ann","target":"bob"}' | watershed publish${graphFlag}${natsFlag}`);
      printLine(`         curl '${up.url}/v1/graphs/${flags.graph}/connected?source=ann&target=bob'`);
      say('running until Ctrl-C');
      await stopped;
      say('stopping');
      await up.stop();
    },
  );

program
  .command('serve')
  .description('run one instance')
  .requiredOption('--roles <list>', 'partitioner, worker, gateway, separated by commas')
  .addOption(natsOption())
  .addOption(
    new Option('--data <folder>', 'state is kept in <folder>/<name>')
      .env('WATERSHED_DATA')
      .default('./watershed-data'),
  )
  .addOption(
    new Option('--name <name>', 'of the instance; its roles and the host name if absent').env(
      'WATERSHED_NAME',
    ),
  )
  .addOption(
    new Option('--http <address>', 'where a gateway answers').env('WATERSHED_HTTP').default('127.0.0.1:8080'),
  )
  .addOption(snapshotStoreOption())
  .addOption(
    new Option(
      '--replicas <count>',
      'NATS servers that hold a copy of what is kept there: 1, 3 or 5; 3 in a cluster of servers if absent, else 1',
    )
      .env('WATERSHED_REPLICAS')
      .argParser(replicas),
  )
  .addOption(
    new Option('--lease <seconds>', 'an instance that says nothing for so long is taken for dead')
      .env('WATERSHED_LEASE')
      .default(6)
      .argParser(count),
  )
  .addOption(
    new Option(
      '--ingest-max-lag <MiB>',
      'HTTP refuses edges (429) while more than this is not in the answers yet',
    )
      .env('WATERSHED_INGEST_MAX_LAG')
      .default(256)
      .argParser(count),
  )
  .addOption(
    new Option('--log-level <level>', 'what is logged, as JSON lines on stderr')
      .env('WATERSHED_LOG_LEVEL')
      .choices(['error', 'warn', 'info', 'debug'])
      .default('info'),
  )
  .addHelpText(
    'after',
    examples(
      'watershed serve --roles partitioner,worker,gateway',
      'watershed serve --roles worker --name worker-2 --nats nats://a:4222,nats://b:4222,nats://c:4222 --replicas 3',
    ),
  )
  .action(
    async (flags: {
      roles: string;
      nats: string;
      data: string;
      snapshotStore: SnapshotStore;
      replicas?: number;
      lease: number;
      name?: string;
      http: string;
      ingestMaxLag: number;
      logLevel: string;
    }) => {
      const roles = parseRoles(flags.roles);
      const name = flags.name ?? defaultName(roles);
      if (!/^[A-Za-z0-9_-]{1,64}$/.test(name)) {
        throw new CliError(EXIT.usage, `--name: "${name}" is not 1 to 64 letters, digits, - and _`);
      }
      const options = {
        name,
        roles,
        natsUrl: flags.nats,
        dataFolder: flags.data,
        snapshotFolder: flags.snapshotStore.folder,
        replicas: flags.replicas,
        leaseMs: flags.lease * 1000,
        http: parseAddress(flags.http),
        maxLagBytes: flags.ingestMaxLag * 1024 * 1024,
        logLevel: flags.logLevel,
      };
      await serve(options, untilSignal());
    },
  );

const graph = program.command('graph').description('create, change, list, show, rebuild and remove graphs');
partitionerOptions(settingsOptions(graph.command('create').argument('<name>', 'the graph', graphName)))
  .description('create a graph; of one that is there, change what is named')
  .addOption(rescaleOption())
  .addOption(replicasOption())
  .addOption(urlOption())
  .addOption(jsonOption())
  .addHelpText(
    'after',
    examples(
      'watershed graph create social',
      'watershed graph create social --partitions 8',
      'watershed graph create social --partitioner hdrf --partitioner-option lambda=1.2',
    ),
  )
  .action((name: string, flags: Flags & SettingsFlags & PartitionerFlags) =>
    queries.graphCreate(new HttpClient(flags.url), name, settingsOf(flags), flags.json === true),
  );
partitionerOptions(settingsOptions(graph.command('set').argument('<name>', 'the graph', graphName)))
  .description('change a graph while it runs: what is not named stays')
  .addOption(rescaleOption())
  .addOption(urlOption())
  .addOption(jsonOption())
  .addHelpText(
    'after',
    examples(
      'watershed graph set social --partitions 8',
      'watershed graph set social --partitioner dbh',
      'watershed graph set social --snapshot-interval 300',
    ),
  )
  .action((name: string, flags: Flags & SettingsFlags & PartitionerFlags) =>
    queries.graphSet(new HttpClient(flags.url), name, settingsOf(flags), flags.json === true),
  );
graph
  .command('rebuild')
  .argument('<name>', 'the graph', graphName)
  .description('make the state of a graph anew from its edges: from its newest snapshot on, by default')
  .addOption(
    new Option('--snapshot <snapshot>', 'from this one on, by number or name').argParser(snapshotName),
  )
  .addOption(new Option('--from-start', 'from the first edge on').conflicts('snapshot'))
  .addOption(urlOption())
  .addOption(jsonOption())
  .addHelpText(
    'after',
    examples('watershed graph rebuild social', 'watershed graph rebuild social --from-start'),
  )
  .action(async (name: string, flags: Flags & { snapshot?: string; fromStart?: boolean }) => {
    const client = new HttpClient(flags.url);
    const { snapshot, fromStart } = flags;
    const request =
      snapshot === undefined
        ? fromStart === true
          ? { from: 'start' as const }
          : {}
        : { from: 'snapshot' as const, snapshot: await snapshots.numberOf(client, name, snapshot) };
    await queries.graphRebuild(client, name, request, flags.json === true);
  });
graph
  .command('list')
  .description('list all graphs')
  .addOption(urlOption())
  .addOption(jsonOption())
  .addHelpText('after', examples('watershed graph list'))
  .action((flags: Flags) => queries.graphList(new HttpClient(flags.url), flags.json === true));
graph
  .command('show')
  .argument('<name>', 'the graph', graphName)
  .description('totals and state of a graph')
  .addOption(urlOption())
  .addOption(jsonOption())
  .addHelpText('after', examples('watershed graph show social'))
  .action((name: string, flags: Flags) =>
    queries.graphShow(new HttpClient(flags.url), name, flags.json === true),
  );
graph
  .command('remove')
  .argument('<name>', 'the graph', graphName)
  .description('remove a graph and all its edges')
  .addOption(urlOption())
  .addOption(jsonOption())
  .addHelpText('after', examples('watershed graph remove social'))
  .action((name: string, flags: Flags) =>
    queries.graphRemove(new HttpClient(flags.url), name, flags.json === true),
  );

const snapshot = program
  .command('snapshot')
  .description('take, list, check, carry away and restore snapshots of a graph');
snapshot
  .command('create')
  .description('take a snapshot, and wait until it is there')
  .addOption(graphOption())
  .addOption(
    new Option('--name <name>', 'keep it until it is given up by "snapshot remove"').argParser(snapshotName),
  )
  .addOption(new Option('--timeout <seconds>', 'of the wait, 1 to 60; 30 if absent').argParser(count))
  .addOption(urlOption())
  .addOption(jsonOption())
  .addHelpText(
    'after',
    examples('watershed snapshot create', 'watershed snapshot create --name before-migration'),
  )
  .action((flags: Flags & { name?: string }) =>
    snapshots.create(new HttpClient(flags.url), flags.graph, flags.name, flags.timeout, flags.json === true),
  );
snapshot
  .command('list')
  .description('list the snapshots of a graph, newest first')
  .addOption(graphOption())
  .addOption(urlOption())
  .addOption(jsonOption())
  .addHelpText('after', examples('watershed snapshot list --graph social'))
  .action((flags: Flags) => snapshots.list(new HttpClient(flags.url), flags.graph, flags.json === true));
snapshot
  .command('show')
  .argument('<snapshot>', 'its number or name', snapshotName)
  .description('show a snapshot')
  .addOption(graphOption())
  .addOption(urlOption())
  .addOption(jsonOption())
  .addHelpText('after', examples('watershed snapshot show 12', 'watershed snapshot show before-migration'))
  .action((which: string, flags: Flags) =>
    snapshots.show(new HttpClient(flags.url), flags.graph, which, flags.json === true),
  );
snapshot
  .command('remove')
  .argument('<snapshot>', 'its number or name', snapshotName)
  .description('give a named snapshot up: it goes when it is not among the newest any more')
  .addOption(graphOption())
  .addOption(urlOption())
  .addOption(jsonOption())
  .addHelpText('after', examples('watershed snapshot remove before-migration'))
  .action((which: string, flags: Flags) =>
    snapshots.giveUp(new HttpClient(flags.url), flags.graph, which, flags.json === true),
  );
storeOptions(snapshot.command('verify').argument('<snapshot>', 'its number or name, or all', snapshotName))
  .description('read every chunk of a snapshot back; exits 1 if one is damaged')
  .addOption(graphOption())
  .addOption(jsonOption())
  .addHelpText(
    'after',
    examples(
      'watershed snapshot verify all',
      'watershed snapshot verify 12 --snapshot-store file:/mnt/snapshots',
    ),
  )
  .action(async (which: string, flags: StoreFlags) => {
    const isWhole = await withStores(flags, 1, (stores) =>
      snapshots.verify(stores, flags.graph, which, flags.json === true),
    );
    if (!isWhole) process.exitCode = EXIT.failed;
  });
storeOptions(snapshot.command('export').argument('<snapshot>', 'its number or name', snapshotName))
  .argument('<folder>', 'where to; empty, or made if need be')
  .description('copy a snapshot into a folder that can be carried anywhere')
  .addOption(graphOption())
  .addOption(jsonOption())
  .addHelpText('after', examples('watershed snapshot export before-migration ./archive'))
  .action((which: string, folder: string, flags: StoreFlags) =>
    withStores(flags, 1, (stores) =>
      snapshots.exportTo(stores, flags.graph, which, folder, flags.json === true),
    ),
  );
storeOptions(snapshot.command('import').argument('<folder>', 'an exported snapshot'))
  .description('make a new graph that goes on from an exported snapshot')
  .requiredOption('--graph <name>', 'the new graph', graphName)
  .addOption(partitionsOption())
  .addOption(replicasOption())
  .addOption(jsonOption())
  .addHelpText('after', examples('watershed snapshot import ./archive --graph social-2'))
  .action(async (folder: string, flags: StoreFlags & SettingsFlags) => {
    const archive = await snapshots.readArchiveIn(folder);
    await withStores(flags, flags.replicas ?? archive.graph.replicas, (stores) =>
      snapshots.importFrom(stores, folder, archive, flags.graph, flags, flags.json === true),
    );
  });
storeOptions(snapshot.command('restore').argument('<snapshot>', 'its number or name', snapshotName))
  .description('make a new graph that goes on from a snapshot of another one')
  .addOption(graphOption())
  .requiredOption('--as <name>', 'the new graph', graphName)
  .addOption(partitionsOption())
  .addOption(replicasOption())
  .addOption(jsonOption())
  .addHelpText('after', examples('watershed snapshot restore 12 --graph social --as social-2'))
  .action((which: string, flags: StoreFlags & SettingsFlags & { as: string }) =>
    withStores(flags, 1, (stores) =>
      snapshots.restore(stores, flags.graph, which, flags.as, flags, flags.json === true),
    ),
  );

loadOptions(program.command('load <files...>'))
  .description('stream edge files into a graph (- is standard input)')
  .addOption(graphOption())
  .addOption(partitionsOption())
  .addOption(natsOption())
  .addHelpText(
    'after',
    examples(
      'watershed load edges.csv',
      'watershed load --graph mail --source 1 --target 2 snap_email.txt.gz',
      'zcat pairs.gz | watershed load --delimiter tab -',
    ),
  )
  .action(async (files: string[], flags: LoadFlags & Flags & { partitions?: number }) => {
    const { status } = await withGraph(flags, async (bus) =>
      runLoad(files, flags, {
        bus,
        log: edgesLog(flags.graph),
        clock: processClock,
        stdin: process.stdin,
        stdout: process.stdout,
        stderr: process.stderr,
        isTTY: process.stderr.isTTY,
        runId: randomBytes(8).toString('hex'),
      }),
    );
    process.exitCode = status;
  });

partitionOptions(program.command('partition <files...>'))
  .description('divide the edges of files into parts, without NATS, and say how well (- is standard input)')
  .addHelpText(
    'after',
    examples(
      'watershed partition edges.csv --algorithm hdrf --parts 32 --output parts.csv',
      'watershed partition edges.csv --parts 32 --compare all',
      'watershed partition edges.csv --parts 8 --algorithm hdrf --option lambda=3 --order random',
    ),
  )
  .action(async (files: string[], flags: PartitionFlags) => {
    process.exitCode = await runPartition(files, flags, {
      stdin: process.stdin,
      stdout: process.stdout,
      stderr: process.stderr,
      isTTY: process.stderr.isTTY,
    });
  });

program
  .command('partitions')
  .description('how the edges of a graph are spread over its partitions, and how well')
  .addOption(graphOption())
  .addOption(urlOption())
  .addOption(jsonOption())
  .addHelpText('after', examples('watershed partitions', 'watershed partitions --graph social --json'))
  .action((flags: Flags) => queries.partitions(new HttpClient(flags.url), flags.graph, flags.json === true));

program
  .command('publish')
  .description('publish edges from standard input: one JSON object per line')
  .addOption(graphOption())
  .addOption(partitionsOption())
  .addOption(natsOption())
  .addOption(jsonOption())
  .addHelpText('after', examples(`echo '{"source":"ann","target":"bob"}' | watershed publish`))
  .action(async (flags: Flags & { partitions?: number }) => {
    await withGraph(flags, async (bus) => {
      const published = await publishLines(process.stdin, bus, edgesLog(flags.graph), processClock, say);
      if (flags.json === true) printJson(published);
      else if (published.lines === 0) printLine('nothing was sent: standard input held no lines');
      else {
        const lines = published.lines === 1 ? '1 line' : `${published.lines} lines`;
        printLine(`${lines} sent; answers with --at-least ${published.sequence} hold what of it is an edge`);
      }
    });
  });

readOptions(program.command('component <id>'))
  .description('the component of a vertex, and its members')
  .addOption(new Option('--members <count>', 'list at most this many').default(10).argParser(count))
  .addHelpText('after', examples('watershed component ann', 'watershed component ann --as-of 17 --json'))
  .action((id: string, flags: Flags & { members: number }) =>
    queries.component(new HttpClient(flags.url), id, flags.members, readFlags(flags)),
  );

readOptions(program.command('connected <source> <target>'))
  .description('whether two vertices are connected, since when and through which edge')
  .addHelpText('after', examples('watershed connected ann bob', 'watershed connected ann bob --at-least 17'))
  .action((source: string, target: string, flags: Flags) =>
    queries.connected(new HttpClient(flags.url), source, target, readFlags(flags)),
  );

readOptions(program.command('top'))
  .description('the largest components')
  .addOption(new Option('--limit <count>', 'how many').default(10).argParser(count))
  .addHelpText('after', examples('watershed top', 'watershed top --limit 100 --json'))
  .action((flags: Flags & { limit: number }) =>
    queries.top(new HttpClient(flags.url), flags.limit, readFlags(flags)),
  );

program
  .command('status')
  .description('all graphs with their newest snapshots, all instances, and who runs which task')
  .addOption(urlOption())
  .addOption(jsonOption())
  .addHelpText('after', examples('watershed status'))
  .action((flags: Flags) => queries.status(new HttpClient(flags.url), flags.json === true));

program
  .command('demo')
  .description('stream two graphs through a Watershed of its own, show answers, stop it again')
  .option('--keep', 'leave it running until Ctrl-C')
  .addOption(partitionsOption())
  .addHelpText('after', examples('watershed demo', 'watershed demo --keep'))
  .action(async (flags: { keep?: boolean; partitions?: number }) => {
    const keep = flags.keep === true;
    const signal = interruption(untilSignal());
    try {
      await demo({ keep, partitions: flags.partitions ?? PARTITIONS_DEFAULT }, signal);
    } finally {
      // What was broken off waits for answers that nobody gives any more.
      if (signal.aborted) process.exit(keep ? EXIT.done : EXIT.failed);
    }
  });

/** Creates the graph if need be, and does the work. */
async function withGraph<T>(
  flags: Flags & { partitions?: number },
  work: (bus: Bus) => Promise<T>,
): Promise<T> {
  return await withNats(flags, async (connection) => {
    const bus = new NatsBus(connection);
    const replicas = defaultReplicas(connection);
    const made = await createGraph(bus, new Registry(new NatsKv(connection, replicas)), flags.graph, {
      partitions: flags.partitions ?? PARTITIONS_DEFAULT,
      replicas,
    });
    if (made.created) say(`created graph ${flags.graph} with ${made.config.partitions} partitions`);
    return await work(bus);
  });
}

type StoreFlags = Flags & { readonly snapshotStore: SnapshotStore };

/** `replicas` of what is made in NATS if it is not there. */
async function withStores<T>(
  flags: StoreFlags,
  replicas: number,
  work: (stores: snapshots.SnapshotStores) => Promise<T>,
): Promise<T> {
  const { folder } = flags.snapshotStore;
  return await withNats(flags, async (connection) => {
    const kv = new NatsKv(connection, replicas);
    return await work({
      bus: new NatsBus(connection),
      kv,
      registry: new Registry(kv),
      chunks: folder === undefined ? new NatsChunks(connection, replicas) : new FileChunks(folder),
    });
  });
}

async function withNats<T>(
  flags: Flags,
  work: (connection: Awaited<ReturnType<typeof connectNats>>) => Promise<T>,
): Promise<T> {
  const connection = await connectNats({ url: flags.nats, name: 'watershed cli', wait: false }).catch(
    (error: unknown) => {
      throw new CliError(
        EXIT.unavailable,
        `no NATS server answers at ${flags.nats} (${error instanceof Error ? error.message : String(error)}): start one ` +
          'with "watershed up", or name it with --nats or WATERSHED_NATS',
        { cause: error },
      );
    },
  );
  try {
    return await work(connection);
  } finally {
    await connection.close();
  }
}

function readFlags({ graph, atLeast, asOf, timeout, json }: Flags): queries.ReadOptions {
  return { graph, atLeast, asOf, timeout, json: json === true };
}

function graphName(text: string): string {
  if (!GRAPH_NAME.test(text)) {
    throw new InvalidArgumentError(
      `"${text}" is not a graph name: 1 to 63 of a-z, 0-9 and -, not beginning with -.`,
    );
  }
  return text;
}

function snapshotName(text: string): string {
  if (!GRAPH_NAME.test(text)) {
    throw new InvalidArgumentError(`"${text}" is neither a number nor a name: 1 to 63 of a-z, 0-9 and -.`);
  }
  return text;
}

/** Two of one name on two machines would fight for every task. */
function defaultName(roles: readonly string[]): string {
  const host = hostname().replaceAll(/[^A-Za-z0-9_-]/g, '-');
  return `${roles.join('-')}-${host}`.slice(0, 64);
}

function snapshotStore(text: string): SnapshotStore {
  if (text === 'nats') return { folder: undefined };
  if (text.startsWith('file:') && text.length > 5) return { folder: text.slice(5) };
  throw new InvalidArgumentError(`"${text}" is neither nats nor file:<folder>.`);
}

function replicas(text: string): number {
  const value = count(text);
  if (!REPLICAS.includes(value)) throw new InvalidArgumentError(`It is one of ${REPLICAS.join(', ')}.`);
  return value;
}

function sequence(text: string): number {
  const value = Number(text);
  if (!/^\d+$/.test(text) || !Number.isSafeInteger(value))
    throw new InvalidArgumentError('It is a whole number from 0 on.');
  return value;
}

function count(text: string): number {
  const value = sequence(text);
  if (value < 1) throw new InvalidArgumentError('It is a whole number from 1 on.');
  return value;
}

function append(text: string, texts: readonly string[] | undefined): string[] {
  return [...(texts ?? []), text];
}

function partitionCount(text: string): number {
  const value = count(text);
  if (value > PARTITIONS_MAX) throw new InvalidArgumentError(`It is 1 to ${PARTITIONS_MAX}.`);
  return value;
}

function port(text: string): number {
  const value = sequence(text);
  if (value > 65_535) throw new InvalidArgumentError('It is 0 to 65535; 0 takes a free one.');
  return value;
}

function examples(...lines: string[]): string {
  return `\nExamples:\n${lines.map((line) => `  ${line}`).join('\n')}`;
}

/** Ctrl-C, SIGTERM, or the end of the process that started this one. */
async function untilSignal(): Promise<void> {
  await new Promise<void>((resolve) => {
    process.once('SIGINT', () => resolve());
    process.once('SIGTERM', () => resolve());
    process.once('disconnect', () => resolve());
    // It may have ended while this one was being loaded.
    if (process.connected === false) resolve();
  });
  // The channel to the process that started this one would keep it alive.
  if (process.connected) process.disconnect();
}

/** For work that can be broken off: aborted with an error for the person. */
function interruption(stopped: Promise<void>): AbortSignal {
  const controller = new AbortController();
  void stopped.then(() => controller.abort(new CliError(EXIT.failed, 'interrupted')));
  return controller.signal;
}

function statusOf(error: unknown): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.done : EXIT.usage;
  if (error instanceof CliError) return error.status;
  return EXIT.failed;
}

async function main(): Promise<void> {
  // A reader that has seen enough, such as `head`, closes the pipe: that is no failure.
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') process.exit(EXIT.done);
    throw error;
  });
  forAll(program, (command) => command.exitOverride());
  try {
    await program.parseAsync();
  } catch (error) {
    process.exitCode = statusOf(error);
    if (error instanceof CommanderError) return;
    const isExpected =
      error instanceof CliError || error instanceof NatsServerError || error instanceof StoreError;
    say(
      `watershed: ${isExpected ? error.message : error instanceof Error ? (error.stack ?? error.message) : String(error)}`,
    );
  }
}

function forAll(command: Command, change: (command: Command) => void): void {
  change(command);
  for (const child of command.commands) forAll(child, change);
}

await main();
