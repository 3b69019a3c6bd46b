#!/usr/bin/env node
/**
 * The program `watershed`: reads the command line, runs one command, ends with a status that tells.
 */
import { randomBytes } from 'node:crypto';
import { Command, CommanderError, InvalidArgumentError, Option } from 'commander';
import { createGraph } from '../../libs/bus/graphs.ts';
import { connectNats, NatsBus } from '../../libs/bus/nats-bus.ts';
import { Registry } from '../../libs/bus/registry.ts';
import { edgesLog, GRAPH_NAME, PARTITIONS_DEFAULT, PARTITIONS_MAX } from '../../libs/dataflow/names.ts';
import type { Bus } from '../../libs/stage/ports.ts';
import { StoreError } from '../../libs/store/level-store.ts';
import { demo } from './demo.ts';
import { CliError, EXIT } from './exit.ts';
import { HttpClient } from './http-client.ts';
import { processClock } from './instance.ts';
import { runLoad } from './load/command.ts';
import { type LoadFlags, loadOptions } from './load/load-options.ts';
import { NatsServerError } from './nats-server.ts';
import { printJson, printLine, say } from './output.ts';
import { publishLines } from './publish.ts';
import * as queries from './queries.ts';
import { parseAddress, parsePartitions, parseRoles } from './roles.ts';
import { serve } from './serve.ts';
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

function partitionsOption(): Option {
  return new Option(
    '--partitions <count>',
    `shares of the work, 1 to ${PARTITIONS_MAX}; of a new graph only`,
  ).argParser(partitionCount);
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
  .addOption(
    new Option('--partitions <list>', "the worker's partitions, such as 0,2; all if absent").argParser(
      parsePartitions,
    ),
  )
  .addOption(natsOption())
  .addOption(
    new Option('--data <folder>', 'state is kept in <folder>/<name>')
      .env('WATERSHED_DATA')
      .default('./watershed-data'),
  )
  .addOption(
    new Option('--name <name>', 'of the instance; made of its roles if absent').env('WATERSHED_NAME'),
  )
  .addOption(
    new Option('--http <address>', 'where a gateway answers').env('WATERSHED_HTTP').default('127.0.0.1:8080'),
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
      'watershed serve --roles worker --partitions 0,2',
    ),
  )
  .action(
    async (flags: {
      roles: string;
      partitions?: number[];
      nats: string;
      data: string;
      name?: string;
      http: string;
      ingestMaxLag: number;
      logLevel: string;
    }) => {
      const roles = parseRoles(flags.roles);
      const name = flags.name ?? [roles.join('-'), ...(flags.partitions ?? [])].join('-');
      if (!/^[A-Za-z0-9_-]{1,64}$/.test(name)) {
        throw new CliError(EXIT.usage, `--name: "${name}" is not 1 to 64 letters, digits, - and _`);
      }
      const options = {
        name,
        roles,
        partitions: flags.partitions,
        natsUrl: flags.nats,
        dataFolder: flags.data,
        http: parseAddress(flags.http),
        maxLagBytes: flags.ingestMaxLag * 1024 * 1024,
        logLevel: flags.logLevel,
      };
      await serve(options, untilSignal());
    },
  );

const graph = program.command('graph').description('create, list, show and remove graphs');
graph
  .command('create')
  .argument('<name>', 'the graph', graphName)
  .description('create a graph; one that is there stays as it is')
  .addOption(partitionsOption())
  .addOption(urlOption())
  .addOption(jsonOption())
  .addHelpText(
    'after',
    examples('watershed graph create social', 'watershed graph create social --partitions 8'),
  )
  .action((name: string, flags: Flags & { partitions?: number }) =>
    queries.graphCreate(new HttpClient(flags.url), name, flags.partitions, flags.json === true),
  );
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
  .description('all graphs, instances and their tasks')
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

/** Connects to NATS, creates the graph if need be, and does the work. */
async function withGraph<T>(
  flags: Flags & { partitions?: number },
  work: (bus: Bus) => Promise<T>,
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
    const bus = new NatsBus(connection);
    const made = await createGraph(
      bus,
      new Registry(connection),
      flags.graph,
      flags.partitions ?? PARTITIONS_DEFAULT,
    );
    if (made.created) say(`created graph ${flags.graph} with ${made.config.partitions} partitions`);
    return await work(bus);
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
