/**
 * The house rules of the layout, as tables, and the checker that lists what breaks them, one line per breach.
 *
 * Sources are read with regular expressions and not with a parser: in files that the formatter has been over,
 * imports and exports begin a line, and that is all that is asked of them. Comments are left out first. What the
 * expressions do not see (a name computed at run time) a reviewer has to.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, posix } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

interface Folder {
  /** Folders whose files it may import, besides its own. */
  readonly folders: readonly string[];
  /** Whether it may use Node's own modules. */
  readonly node: boolean;
}

const PURE = { node: false };
const IO = { node: true };
const CORES = [
  'libs/graph',
  'libs/partitioning',
  'libs/dataflow',
  'libs/stage',
  'libs/snapshot',
  'libs/cluster',
];

/**
 * Which way dependencies point. Store and bus come after stage: it declares the two ports (libs/stage/ports.ts)
 * that they implement, and gets them as arguments. A gateway asks no store; only who starts instances makes one.
 */
const FOLDERS: Readonly<Record<string, Folder>> = {
  'libs/graph': { folders: [], ...PURE },
  'libs/partitioning': { folders: ['libs/graph'], ...PURE },
  'libs/dataflow': { folders: ['libs/graph', 'libs/partitioning'], ...PURE },
  'libs/stage': { folders: ['libs/graph', 'libs/partitioning', 'libs/dataflow'], ...PURE },
  // Leases and snapshots get their ports as arguments, as stages do.
  'libs/cluster': { folders: ['libs/graph', 'libs/dataflow', 'libs/stage'], ...PURE },
  'libs/snapshot': { folders: ['libs/graph', 'libs/dataflow', 'libs/stage'], ...PURE },
  'libs/store': { folders: ['libs/dataflow', 'libs/stage'], ...IO },
  'libs/bus': { folders: ['libs/partitioning', 'libs/dataflow', 'libs/stage'], ...IO },
  'libs/api': { folders: ['libs/partitioning', 'libs/dataflow'], ...PURE },
  'services/partitioner': { folders: [...CORES, 'libs/bus'], ...IO },
  'services/worker': { folders: [...CORES, 'libs/bus'], ...IO },
  'services/gateway': { folders: [...CORES, 'libs/bus', 'libs/api'], ...IO },
  'services/cli': {
    folders: [
      ...CORES,
      'libs/bus',
      'libs/api',
      'libs/store',
      'services/partitioner',
      'services/worker',
      'services/gateway',
    ],
    ...IO,
  },
};

/** Who may import an npm package, types included; `*` ends a prefix. Tests may import all. */
const PACKAGES: Readonly<Record<string, readonly string[]>> = {
  level: ['libs/store'],
  nats: ['libs/bus'],
  '@nats-io/*': ['libs/bus'],
  fastify: ['services/gateway'],
  '@fastify/*': ['services/gateway'],
  'prom-client': ['services/gateway'],
  typebox: ['libs/api', 'services/gateway'],
  // The payload format, and the files that `load` reads.
  'apache-arrow': ['libs/dataflow', 'services/cli'],
  // For query and export, once they are there; until then an oracle of the tests.
  'graphology*': [],
  'cli-progress': ['services/cli'],
  commander: ['services/cli'],
  pino: ['services/cli'],
};

/** A function of its arguments: no clock, randomness, locale, network, disk or process. */
const PURE_FILES = [
  'libs/graph/',
  'libs/partitioning/',
  'libs/dataflow/',
  // Their clock, logs, store and records are arguments.
  'libs/stage/',
  'libs/cluster/',
  'libs/snapshot/',
  'services/partitioner/partitioner.ts',
  'services/partitioner/edge-placer.ts',
  'services/partitioner/edge-rows.ts',
  'services/partitioner/reject-log.ts',
  'services/worker/worker.ts',
  'services/gateway/view.ts',
  'services/gateway/answers.ts',
  // What the answers are made with.
  'services/gateway/cursor.ts',
  'services/gateway/problems.ts',
  'services/gateway/vertex-ids.ts',
];

/** `new Date(given)` only writes a time in another form, so it is none of these. */
const IMPURE: readonly RegExp[] = [
  /\bDate\.now\b/,
  /\bDate\(\s*\)/,
  /\bnew Date\s*(?!\()/,
  /\bperformance\b/,
  /\b(?:set|clear)(?:Timeout|Interval|Immediate)\b/,
  /\bqueueMicrotask\b/,
  /\bMath\.random\b/,
  /\b(?:crypto|randomUUID|getRandomValues)\b/,
  /\bprocess\b\s*[.[]/,
  /\bconsole\b\s*[.[]/,
  /\bglobalThis\b/,
  /\bfetch\(/,
  /\b(?:Intl\.|localeCompare|toLocale)/,
];

/** Only these form names of streams, subjects and buckets. */
const NAMES_FILE = 'libs/dataflow/names.ts';
const NAMES: readonly RegExp[] = [
  /\bGRAPH_(?:\$\{|[a-z0-9])/,
  /\bgraph\.(?:\$\{|[a-z0-9-]+\.(?:edges|parts|forest|rejected|lineage)\b)/,
  /\bwatershed_(?:graphs|leases|instances|snapshots)\b/,
];

const MAIN_FILE = 'services/cli/main.ts';
const PROCESS_END: readonly RegExp[] = [
  /\bprocess\.(?:exit|abort|kill)\(/,
  /\bprocess\.(?:on|once|addListener|prependListener)\(\s*'(?:SIG[A-Z]+|exit|beforeExit|disconnect|uncaught|unhandled)/,
];

/** Marks of unfinished work, written so that this file has none. */
const LEFTOVERS: readonly RegExp[] = [
  /\b(?:TO(?=DO)|FIX(?=ME)|XX(?=X)|HAC(?=K\b))/,
  /\b(?:it|test|describe|bench)\.(?=only\b)/,
  /\bdebug(?=ger;)/,
];

/** Where programs begin; what no entry leads to is dead. */
const ENTRIES: readonly RegExp[] = [
  /^services\/cli\/main\.ts$/,
  /^services\/gateway\/write-openapi\.ts$/,
  /^test\/.*\.test\.ts$/,
  /^test\/bench\/main\.ts$/,
  // Long runs of the simulated cluster, and the faults put into it on purpose.
  /^test\/simulation\/cluster\/(?:soak|mutants-main)\.ts$/,
  // The rival of the pipeline, in processes of its own.
  /^test\/bench\/bare-copy\.ts$/,
  // The long run of test/e2e/chaos.test.ts, for people.
  /^test\/e2e\/soak\.ts$/,
];
/** Product files must be reached from the product's own entries; these are for tests. */
const TWINS = [
  'libs/bus/memory-bus.ts',
  'libs/bus/memory-kv.ts',
  'libs/bus/memory-questions.ts',
  'libs/store/memory-chunks.ts',
  'libs/store/memory-store.ts',
];

/** What is allowed although a rule forbids it: the rule, the file, what stands there, and why. */
interface Exception {
  readonly rule: Rule;
  readonly file: string;
  readonly text: string;
  readonly reason: string;
}

type Rule =
  | 'direction'
  | 'package'
  | 'node'
  | 'resolves'
  | 'pure'
  | 'names'
  | 'process'
  | 'leftover'
  | 'dead file'
  | 'dead export';

const EXCEPTIONS: readonly Exception[] = [
  {
    rule: 'names',
    file: 'libs/api/fields.ts',
    text: 'GRAPH_social_FOREST_1_0',
    reason: 'an example in the OpenAPI document: what a message looks like',
  },
  {
    rule: 'process',
    file: 'services/cli/nats-server.ts',
    text: "process.once('exit'",
    reason: 'a server that was started must not outlive this process, however it ends',
  },
  {
    rule: 'process',
    file: 'services/cli/nats-server.ts',
    text: 'process.kill(pid, 0)',
    reason: 'signal 0 only asks whether there is such a process',
  },
];

interface Import {
  readonly line: number;
  readonly from: string;
  readonly isType: boolean;
  /** Undefined: all of it. */
  readonly names: readonly string[] | undefined;
}

interface Source {
  readonly path: string;
  /** Without comments, line by line as in the file. */
  readonly code: string;
  /** With comments. */
  readonly text: string;
  readonly imports: readonly Import[];
}

/** All breaches, sorted; `texts` holds the sources by their path from the repository's root. */
function breachesIn(texts: ReadonlyMap<string, string>, exceptions = EXCEPTIONS): string[] {
  const sources = new Map([...texts].map(([path, text]) => [path, sourceOf(path, text)]));
  const found: Breach[] = [];
  for (const source of sources.values()) {
    found.push(...importBreaches(source, sources), ...textBreaches(source));
  }
  found.push(...deadFiles(sources), ...deadExports(sources));
  const used = new Set<Exception>();
  const breaches = found.filter((breach) => {
    const exception = exceptions.find(
      ({ rule, file, text }) => rule === breach.rule && file === breach.path && breach.what.includes(text),
    );
    if (exception !== undefined) used.add(exception);
    return exception === undefined;
  });
  const lines = breaches.map(({ rule, path, line, what }) => `${path}:${line}: ${rule}: ${what}`);
  for (const exception of exceptions) {
    if (!used.has(exception)) lines.push(`${exception.file}:1: ${exception.rule}: an exception of no use`);
  }
  return lines.sort();
}

interface Breach {
  readonly rule: Rule;
  readonly path: string;
  readonly line: number;
  readonly what: string;
}

function importBreaches(source: Source, sources: ReadonlyMap<string, Source>): Breach[] {
  const breaches: Breach[] = [];
  const { path } = source;
  const folder = folderOf(path);
  if (folder === 'test' || folder === 'tools') return unresolved(source, sources);
  const rules = FOLDERS[folder];
  if (rules === undefined) {
    return [{ rule: 'direction', path, line: 1, what: `the folder ${folder} has no row in the table` }];
  }
  for (const { from, line, isType } of source.imports) {
    const breach = (rule: Rule, what: string): void => {
      breaches.push({ rule, path, line, what });
    };
    if (from.startsWith('.')) {
      const target = resolved(path, from);
      const targetFolder = folderOf(target);
      if (targetFolder !== folder && !rules.folders.includes(targetFolder)) {
        breach('direction', `${folder} must not import ${target}`);
      } else if (isPure(path) && !isType && !isPure(target)) {
        breach('pure', `imports ${target}, which is not pure`);
      }
    } else if (from.startsWith('node:')) {
      if (!rules.node) breach('node', `${folder} must not import ${from}`);
      else if (isPure(path) && !isType) breach('pure', `imports ${from}`);
    } else if (!packageFolders(from).includes(folder)) {
      breach('package', `${folder} must not import ${from}`);
    }
  }
  return [...breaches, ...unresolved(source, sources)];
}

function unresolved({ path, imports }: Source, sources: ReadonlyMap<string, Source>): Breach[] {
  if (folderOf(path) === 'tools') return [];
  return imports
    .filter(({ from }) => from.startsWith('.') && !sources.has(resolved(path, from)))
    .map(({ from, line }) => ({ rule: 'resolves', path, line, what: `there is no file ${from}` }));
}

function textBreaches({ path, code, text }: Source): Breach[] {
  const breaches: Breach[] = [];
  const isProduct = path.startsWith('libs/') || path.startsWith('services/');
  const search = (rule: Rule, where: string, patterns: readonly RegExp[]): void => {
    for (const [at, line] of where.split('\n').entries()) {
      for (const pattern of patterns) {
        if (pattern.test(line)) breaches.push({ rule, path, line: at + 1, what: line.trim().slice(0, 120) });
      }
    }
  };
  if (isPure(path)) search('pure', code, IMPURE);
  if (isProduct && path !== NAMES_FILE) search('names', code, NAMES);
  if (isProduct && path !== MAIN_FILE) search('process', code, PROCESS_END);
  search('leftover', text, LEFTOVERS);
  return breaches;
}

/** Files of the product that no entry of it leads to, and files of the tests that no entry at all leads to. */
function deadFiles(sources: ReadonlyMap<string, Source>): Breach[] {
  const entries = [...sources.keys()].filter((path) => ENTRIES.some((entry) => entry.test(path)));
  const byProduct = reached(
    sources,
    entries.filter((path) => !path.startsWith('test/')),
  );
  const byAll = reached(sources, entries);
  return [...sources.keys()]
    .filter((path) => {
      if (path.startsWith('tools/')) return false;
      if (path.startsWith('test/') || TWINS.includes(path)) return !byAll.has(path);
      return !byProduct.has(path);
    })
    .map((path) => ({ rule: 'dead file', path, line: 1, what: 'nothing that runs imports it' }));
}

function reached(sources: ReadonlyMap<string, Source>, entries: readonly string[]): Set<string> {
  const seen = new Set(entries);
  const open = [...entries];
  for (let path = open.pop(); path !== undefined; path = open.pop()) {
    for (const { from } of sources.get(path)?.imports ?? []) {
      const target = resolved(path, from);
      if (!from.startsWith('.') || seen.has(target)) continue;
      seen.add(target);
      open.push(target);
    }
  }
  return seen;
}

/** Exported names that no other file imports. A type may be exported that is part of an exported signature. */
function deadExports(sources: ReadonlyMap<string, Source>): Breach[] {
  const used = new Map<string, Set<string>>();
  for (const { path, imports } of sources.values()) {
    for (const { from, names } of imports) {
      if (!from.startsWith('.')) continue;
      const target = resolved(path, from);
      const ofTarget = used.get(target) ?? new Set();
      used.set(target, ofTarget);
      for (const name of names ?? ['*']) ofTarget.add(name);
    }
  }
  const breaches: Breach[] = [];
  for (const { path, code } of sources.values()) {
    const ofFile = used.get(path);
    if (ofFile?.has('*')) continue;
    for (const { name, line, isType } of exportsOf(code)) {
      if (ofFile?.has(name) || (isType && occurrences(code, name) > 1)) continue;
      breaches.push({ rule: 'dead export', path, line, what: `${name} is imported by nobody` });
    }
  }
  return breaches;
}

function exportsOf(code: string): { name: string; line: number; isType: boolean }[] {
  const pattern =
    /^export (?:default )?(?:declare )?(?:abstract )?(?:async )?(class|function\*?|const|let|interface|type|enum) +(\w+)/gm;
  return [...code.matchAll(pattern)].map((match) => ({
    name: match[2]!,
    line: lineAt(code, match.index),
    isType: match[1] === 'interface' || match[1] === 'type',
  }));
}

function occurrences(code: string, name: string): number {
  return [...code.matchAll(new RegExp(`\\b${name}\\b`, 'g'))].length;
}

function sourceOf(path: string, text: string): Source {
  const code = withoutComments(text);
  return { path, text, code, imports: importsOf(code) };
}

function importsOf(code: string): Import[] {
  const statement = /^(?:import|export)\s+(type\s+)?((?:[\w$*\s,]|\{[^}]*\})*?)\s*from\s+'([^']+)'/gm;
  const imports: Import[] = [...code.matchAll(statement)].map((match) => {
    const clause = match[2]!;
    const names = namesIn(clause);
    return {
      line: lineAt(code, match.index),
      from: match[3]!,
      isType: match[1] !== undefined || (names.length > 0 && names.every(({ isType }) => isType)),
      names: clause.includes('*') ? undefined : names.map(({ name }) => name),
    };
  });
  const bare = /^import\s+'([^']+)'|\bimport\(\s*'([^']+)'/gm;
  for (const match of code.matchAll(bare)) {
    const from = (match[1] ?? match[2])!;
    imports.push({ line: lineAt(code, match.index), from, isType: false, names: undefined });
  }
  return imports;
}

function namesIn(clause: string): { name: string; isType: boolean }[] {
  const [, first = '', braces = ''] = /^([^{]*)(?:\{([^}]*)\})?/.exec(clause)!;
  const named = braces
    .split(',')
    .map((entry) => /^\s*(type\s+)?(\w+)/.exec(entry))
    .filter((match) => match !== null)
    .map((match) => ({ name: match[2]!, isType: match[1] !== undefined }));
  return /\w/.test(first) ? [{ name: 'default', isType: false }, ...named] : named;
}

/** Comments become blanks of the same lines; strings are skipped over, so that `https://…` is none. */
function withoutComments(text: string): string {
  const token =
    /'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"|`(?:[^`\\]|\\.)*`|\/\*[\s\S]*?\*\/|(?<![\\[])\/\/[^\n]*/g;
  return text.replace(token, (found) => (/^\/[/*]/.test(found) ? found.replace(/[^\n]/g, ' ') : found));
}

function lineAt(text: string, index: number): number {
  return text.slice(0, index).split('\n').length;
}

function folderOf(path: string): string {
  const [top = '', second = ''] = path.split('/');
  return top === 'libs' || top === 'services' ? `${top}/${second}` : top;
}

function resolved(path: string, from: string): string {
  return posix.join(posix.dirname(path), from);
}

function isPure(path: string): boolean {
  return PURE_FILES.some((pure) => (pure.endsWith('/') ? path.startsWith(pure) : path === pure));
}

function packageFolders(name: string): readonly string[] {
  for (const [pattern, folders] of Object.entries(PACKAGES)) {
    const isOne = pattern.endsWith('*') ? name.startsWith(pattern.slice(0, -1)) : name === pattern;
    if (isOne) return folders;
  }
  return [];
}

/** The sources under the folders, by their path from the root. */
function readSources(root: string, folders: readonly string[]): Map<string, string> {
  const texts = new Map<string, string>();
  for (const folder of folders) {
    for (const entry of readdirSync(join(root, folder), { withFileTypes: true, recursive: true })) {
      if (!entry.isFile() || !/\.(?:ts|mjs)$/.test(entry.name)) continue;
      const path = join(entry.parentPath, entry.name);
      texts.set(path.slice(root.length + 1).replaceAll('\\', '/'), readFileSync(path, 'utf8'));
    }
  }
  return texts;
}

describe('the sources', () => {
  it('keep the house rules', () => {
    const root = dirname(dirname(fileURLToPath(import.meta.url)));
    const texts = readSources(root, ['libs', 'services', 'test', 'tools']);
    expect(texts.size).toBeGreaterThan(100);
    expect(breachesIn(texts).join('\n')).toBe('');
  });
});

/** A small tree that keeps all rules; `changes` replace or add files. */
function tree(changes: Readonly<Record<string, string>> = {}): Map<string, string> {
  return new Map(
    Object.entries({
      'libs/graph/rows.ts': 'export const ROWS = 1;\n',
      'libs/dataflow/names.ts': "export const EDGES = 'GRAPH_a_EDGES';\n",
      'libs/stage/ports.ts': 'export interface Bus {\n  readonly name: string;\n}\n',
      'libs/bus/nats-bus.ts':
        "import { connect } from 'nats';\nimport type { Bus } from '../stage/ports.ts';\nexport const bus: Bus = connect();\n",
      'services/gateway/view.ts':
        "import { ROWS } from '../../libs/graph/rows.ts';\nexport const view = ROWS;\n",
      'services/cli/main.ts': [
        "import { bus } from '../../libs/bus/nats-bus.ts';",
        "import { EDGES } from '../../libs/dataflow/names.ts';",
        "import { view } from '../gateway/view.ts';",
        'process.exit(view);',
        'bus.send(EDGES); // see https://example.org, Date.now() and GRAPH_b_EDGES',
        '',
      ].join('\n'),
      ...changes,
    }),
  );
}

const unfinished = `// ${'TO'}${'DO'}: the rest\n`;
const alone = `import { it } from 'vitest';\nit.${'only'}('runs', () => {});\n`;

/** What is changed in the tree above, and the breaches that the change is. */
const CASES: readonly (readonly [string, Readonly<Record<string, string>>, readonly string[]])[] = [
  [
    'a library that imports what comes after it',
    {
      'libs/graph/rows.ts':
        "import type { Bus } from '../stage/ports.ts';\nexport const ROWS = 1 as unknown as Bus;\n",
    },
    ['libs/graph/rows.ts:1: direction: libs/graph must not import libs/stage/ports.ts'],
  ],
  [
    'a library that imports a service',
    {
      'libs/bus/nats-bus.ts':
        "import type { Bus } from '../stage/ports.ts';\nimport {\n  view,\n} from '../../services/gateway/view.ts';\nexport const bus = view as Bus;\n",
    },
    ['libs/bus/nats-bus.ts:2: direction: libs/bus must not import services/gateway/view.ts'],
  ],
  [
    'a service that imports another one',
    {
      'services/worker/task.ts': "import { view } from '../gateway/view.ts';\nexport const task = view;\n",
      'services/cli/main.ts':
        "import '../../libs/bus/nats-bus.ts';\nimport '../../libs/dataflow/names.ts';\nimport { task } from '../worker/task.ts';\ntask();\n",
    },
    ['services/worker/task.ts:1: direction: services/worker must not import services/gateway/view.ts'],
  ],
  [
    'a product file that imports a test',
    {
      'test/feed.ts': 'export const feed = 1;\n',
      'services/gateway/view.ts':
        "import { feed } from '../../test/feed.ts';\nimport { ROWS } from '../../libs/graph/rows.ts';\nexport const view = ROWS + feed;\n",
    },
    ['services/gateway/view.ts:1: direction: services/gateway must not import test/feed.ts'],
  ],
  [
    'a folder that is not in the table',
    {
      'libs/utils/all.ts': 'export const all = 1;\n',
      'test/all.test.ts': "import '../libs/utils/all.ts';\n",
    },
    [
      'libs/utils/all.ts:1: dead file: nothing that runs imports it',
      'libs/utils/all.ts:1: direction: the folder libs/utils has no row in the table',
    ],
  ],
  ...(
    [
      ['level', 'services/gateway'],
      ['nats', 'services/gateway'],
      ['@nats-io/kv', 'libs/dataflow'],
      ['fastify', 'libs/api'],
      ['graphology', 'libs/graph'],
      ['left-pad', 'services/cli'],
    ] as const
  ).map(
    ([name, folder]) =>
      [
        `${folder} that imports ${name}`,
        {
          [`${folder}/more.ts`]: `import type { A } from '${name}';\nexport type More = A;\n`,
          'test/more.test.ts': `import type { More } from '../${folder}/more.ts';\nexport type Twice = More | Twice;\n`,
        },
        [
          `${folder}/more.ts:1: dead file: nothing that runs imports it`,
          `${folder}/more.ts:1: package: ${folder} must not import ${name}`,
        ],
      ] as const,
  ),
  [
    'a pure folder that uses Node',
    { 'libs/graph/rows.ts': "import { join } from 'node:path';\nexport const ROWS = join('a');\n" },
    ['libs/graph/rows.ts:1: node: libs/graph must not import node:path'],
  ],
  [
    'a core that uses Node',
    {
      'services/gateway/view.ts':
        "import { ROWS } from '../../libs/graph/rows.ts';\nimport { join } from 'node:path';\nexport const view = join(ROWS);\n",
    },
    ['services/gateway/view.ts:2: pure: imports node:path'],
  ],
  [
    'a core that imports what is not pure',
    {
      'services/gateway/app.ts': 'export const app = process.argv;\n',
      'services/gateway/view.ts':
        "import { ROWS } from '../../libs/graph/rows.ts';\nimport { app } from './app.ts';\nexport const view = [ROWS, app];\n",
    },
    ['services/gateway/view.ts:2: pure: imports services/gateway/app.ts, which is not pure'],
  ],
  ...[
    'Date.now()',
    'new Date()',
    'new Date',
    'Date()',
    'performance.now()',
    'setTimeout(go, 1)',
    'setImmediate(go)',
    'Math.random()',
    'crypto.randomUUID()',
    'process.env',
    "console.log('x')",
    "fetch('x')",
    "'a'.localeCompare('b')",
    'globalThis',
  ].map(
    (impure) =>
      [
        `a pure file that has ${impure}`,
        { 'libs/graph/rows.ts': `export const ROWS = ${impure};\n` },
        [`libs/graph/rows.ts:1: pure: export const ROWS = ${impure};`],
      ] as const,
  ),
  ...[
    ['a stream', "'GRAPH_social_EDGES'"],
    ['a stream', '`GRAPH_$' + '{name}_EDGES`'],
    ['a subject', '`graph.$' + '{name}.edges`'],
    ['a subject', "'graph.social.rejected'"],
    ['a bucket', "'watershed_graphs'"],
  ].map(
    ([what, name]) =>
      [
        `${what} named outside ${NAMES_FILE}: ${name}`,
        {
          'services/gateway/view.ts': `import { ROWS } from '../../libs/graph/rows.ts';\nexport const view = [ROWS, ${name}];\n`,
        },
        [`services/gateway/view.ts:2: names: export const view = [ROWS, ${name}];`],
      ] as const,
  ),
  ...['process.exit(1);', "process.once('SIGTERM', stop);", "process.on('uncaughtException', stop);"].map(
    (end) =>
      [
        `${end} outside ${MAIN_FILE}`,
        {
          'libs/bus/nats-bus.ts': `import type { Bus } from '../stage/ports.ts';\nexport const bus = 1 as unknown as Bus;\n${end}\n`,
        },
        [`libs/bus/nats-bus.ts:3: process: ${end}`],
      ] as const,
  ),
  [
    'unfinished work',
    { 'libs/graph/rows.ts': `${unfinished}export const ROWS = 1;\n` },
    [`libs/graph/rows.ts:1: leftover: ${unfinished.trim()}`],
  ],
  [
    'a test that keeps the others from running',
    { 'test/some.test.ts': alone },
    [`test/some.test.ts:2: leftover: ${alone.split('\n')[1]}`],
  ],
  [
    'a file that nothing imports',
    { 'libs/graph/spare.ts': 'const spare = 1;\nspare.toFixed();\n', 'test/support/spare.ts': '' },
    [
      'libs/graph/spare.ts:1: dead file: nothing that runs imports it',
      'test/support/spare.ts:1: dead file: nothing that runs imports it',
    ],
  ],
  [
    'two files that only import each other',
    {
      'libs/graph/a.ts': "import { b } from './b.ts';\nexport const a = b;\n",
      'libs/graph/b.ts': "import { a } from './a.ts';\nexport const b = a;\n",
    },
    [
      'libs/graph/a.ts:1: dead file: nothing that runs imports it',
      'libs/graph/b.ts:1: dead file: nothing that runs imports it',
    ],
  ],
  [
    'exports that nothing uses',
    {
      'libs/graph/rows.ts':
        'export const ROWS = 1;\n\nexport function spare(): void {}\n\nexport interface Spare {\n  readonly x: 1;\n}\n',
    },
    [
      'libs/graph/rows.ts:3: dead export: spare is imported by nobody',
      'libs/graph/rows.ts:5: dead export: Spare is imported by nobody',
    ],
  ],
  [
    'an import of a file under another name',
    {
      'services/gateway/view.ts':
        "import { ROWS } from '../../libs/graph/rows.js';\nexport const view = ROWS;\n",
    },
    [
      'libs/graph/rows.ts:1: dead export: ROWS is imported by nobody',
      'libs/graph/rows.ts:1: dead file: nothing that runs imports it',
      'services/gateway/view.ts:1: resolves: there is no file ../../libs/graph/rows.js',
    ],
  ],
];

describe('the checker', () => {
  it('finds nothing where the rules are kept', () => {
    expect(breachesIn(tree(), [])).toEqual([]);
  });

  it.each(CASES)('finds %s', (_what, changes, breaches) => {
    expect(breachesIn(tree(changes), [])).toEqual(breaches);
  });

  it('lets pass what a pure file does with times that it is given', () => {
    const rows = 'export const ROWS = (ms: number): string => new Date(ms).toISOString();\n';
    expect(breachesIn(tree({ 'libs/graph/rows.ts': rows }), [])).toEqual([]);
  });

  it('lets pass an exception, and names one that is of no use any more', () => {
    const exception = {
      rule: 'process',
      file: 'libs/bus/nats-bus.ts',
      text: 'process.exit',
      reason: 'to be seen',
    } as const;
    const bus =
      "import type { Bus } from '../stage/ports.ts';\nexport const bus = 1 as unknown as Bus;\nprocess.exit(1);\n";
    expect(breachesIn(tree({ 'libs/bus/nats-bus.ts': bus }), [exception])).toEqual([]);
    expect(breachesIn(tree(), [exception])).toEqual([
      'libs/bus/nats-bus.ts:1: process: an exception of no use',
    ]);
  });
});
