/**
 * Which algorithm chooses the parts, and with which parameters: the rules, and the one text form of it.
 *
 * A version stands for everything that decides: a new one means that the same stream may get other parts. With
 * the parameters it belongs into the identity of whatever is kept of a partitioner.
 */
import type { FennelPenalty } from './fennel.ts';
import { gridRows } from './grid.ts';

const PARTS_MAX = 1024;

export type PartitionerConfig =
  | { readonly algorithm: 'hash' | 'grid' | 'dbh' | 'greedy' }
  | HdrfConfig
  | LdgConfig
  | FennelConfig;

export interface HdrfConfig extends Capped {
  readonly algorithm: 'hdrf';
  readonly lambda: number;
  readonly epsilon: number;
}

export interface LdgConfig extends Capped {
  readonly algorithm: 'ldg';
  /** n of the whole graph, if known beforehand: the capacity is then fixed. */
  readonly vertices?: number;
}

export interface FennelConfig extends Capped {
  readonly algorithm: 'fennel';
  readonly penalty: FennelPenalty;
  /** n and m of the whole graph, if known beforehand: capacity and α are then fixed. */
  readonly vertices?: number;
  readonly edges?: number;
}

interface Capped {
  /** ν */
  readonly slack: number;
  /** C_min */
  readonly capMin: number;
}

export type Algorithm = PartitionerConfig['algorithm'];

export interface NumberParameter {
  readonly kind: 'number';
  /** Undefined: may be absent. */
  readonly default: number | undefined;
  readonly min: number;
  readonly max: number;
  /** Decimals it may have. */
  readonly decimals: number;
  readonly what: string;
}

export interface ChoiceParameter {
  readonly kind: 'choice';
  readonly default: string;
  readonly choices: readonly string[];
  readonly what: string;
}

export type Parameter = NumberParameter | ChoiceParameter;

interface AlgorithmRules {
  readonly version: number;
  readonly parameters: Readonly<Record<string, Parameter>>;
}

const COUNT_MAX = 1e12;

const CAPPED: Readonly<Record<string, Parameter>> = {
  slack: number(1.1, 1, 1000, 3, 'ν: how far beyond its even share a part may go'),
  capMin: number(2, 1, COUNT_MAX, 0, 'C_min: what a part may hold in any case'),
};
const VERTICES = number(undefined, 1, COUNT_MAX, 0, 'n of the whole graph, if known beforehand');
const EDGES = number(undefined, 1, COUNT_MAX, 0, 'm of the whole graph, if known beforehand');

/** Parameters in the order in which the text form has them. */
export const ALGORITHMS: Readonly<Record<Algorithm, AlgorithmRules>> = {
  hash: { version: 1, parameters: {} },
  grid: { version: 1, parameters: {} },
  dbh: { version: 1, parameters: {} },
  greedy: { version: 1, parameters: {} },
  hdrf: {
    version: 1,
    parameters: {
      lambda: number(1.1, 0, 1000, 3, 'λ: weight of balance against replication'),
      epsilon: number(1, 0.001, 1000, 3, 'ε: keeps the balance term finite where all loads are equal'),
      ...CAPPED,
    },
  },
  ldg: { version: 1, parameters: { ...CAPPED, vertices: VERTICES } },
  fennel: {
    version: 1,
    parameters: {
      penalty: {
        kind: 'choice',
        default: 'derivative',
        choices: ['derivative', 'marginal'],
        what: 'which form of the penalty δc',
      },
      ...CAPPED,
      vertices: VERTICES,
      edges: EDGES,
    },
  },
};

export const DEFAULT_PARTITIONER: PartitionerConfig = { algorithm: 'hash' };

export type ConfigReading =
  | { readonly kind: 'valid'; readonly config: PartitionerConfig }
  /** What is wrong, as a sentence that goes on from "partitioner ". */
  | { readonly kind: 'invalid'; readonly problem: string };

/** Reads what a person gave; absent parameters get their defaults. */
export function readPartitionerConfig(value: unknown): ConfigReading {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    return invalid(`must be an object like {"algorithm": "hdrf"}, not ${shown(value)}`);
  }
  const { algorithm, ...given } = value as Readonly<Record<string, unknown>>;
  if (algorithm === undefined) return invalid(`has no algorithm: ${NAMES}`);
  if (typeof algorithm !== 'string' || !Object.hasOwn(ALGORITHMS, algorithm)) {
    return invalid(`algorithm ${shown(algorithm)} is none of ${NAMES}`);
  }
  const { parameters } = ALGORITHMS[algorithm as Algorithm];
  for (const name of Object.keys(given)) {
    if (Object.hasOwn(parameters, name)) continue;
    const names = Object.keys(parameters);
    const instead = names.length === 0 ? 'it has none' : `it has ${names.join(', ')}`;
    return invalid(`${algorithm} has no parameter ${shown(name)}: ${instead}`);
  }
  const config: Record<string, unknown> = { algorithm };
  for (const [name, parameter] of Object.entries(parameters)) {
    const chosen = given[name] === undefined ? parameter.default : given[name];
    if (chosen === undefined) continue;
    const wrong = problemOf(parameter, chosen);
    if (wrong !== undefined) return invalid(`${algorithm}: ${name} ${wrong}, not ${shown(chosen)}`);
    config[name] = chosen;
  }
  if (algorithm === 'fennel' && (config['vertices'] === undefined) !== (config['edges'] === undefined)) {
    return invalid('fennel: vertices and edges are given both or neither');
  }
  // Built from the table above, whose names and kinds are those of the type.
  return { kind: 'valid', config: config as unknown as PartitionerConfig };
}

/** Why an algorithm cannot divide into so many parts, as a sentence that goes on from "partitioner "; undefined: it can. */
export function partsProblem(config: PartitionerConfig, parts: number): string | undefined {
  if (!Number.isInteger(parts) || parts < 1 || parts > PARTS_MAX) {
    return `parts must be a whole number from 1 to ${PARTS_MAX}, not ${parts}`;
  }
  if (config.algorithm !== 'grid' || parts === 1 || gridRows(parts) > 1) return undefined;
  return `grid needs parts that stand in rows and columns, at least two of each; ${parts} do not, ${nearestGrids(parts)} do`;
}

/**
 * The one text of a config, all parameters spelled out, in a fixed order:
 * `hdrf 1 (lambda 1.1, epsilon 1, slack 1.1, capMin 2)`, `hash 1`.
 */
export function partitionerText(config: PartitionerConfig): string {
  const { version, parameters } = ALGORITHMS[config.algorithm];
  const values = config as unknown as Readonly<Record<string, unknown>>;
  const given = Object.keys(parameters).filter((name) => values[name] !== undefined);
  const list = given.map((name) => `${name} ${values[name]}`).join(', ');
  return `${config.algorithm} ${version}${list === '' ? '' : ` (${list})`}`;
}

const NAMES = Object.keys(ALGORITHMS).join(', ');

function number(
  byDefault: number | undefined,
  min: number,
  max: number,
  decimals: number,
  what: string,
): NumberParameter {
  return { kind: 'number', default: byDefault, min, max, decimals, what };
}

function problemOf(parameter: Parameter, value: unknown): string | undefined {
  if (parameter.kind === 'choice') {
    const { choices } = parameter;
    return choices.includes(value as string) ? undefined : `must be one of ${choices.join(', ')}`;
  }
  const { min, max, decimals } = parameter;
  if (typeof value === 'number' && value >= min && value <= max && Number(value.toFixed(decimals)) === value)
    return undefined;
  const what = decimals === 0 ? 'a whole number' : `a number of at most ${decimals} decimals`;
  return `must be ${what} from ${min} to ${max}`;
}

function nearestGrids(parts: number): string {
  const near = [parts - 1, parts + 1].filter((other) => gridRows(other) > 1);
  return near.length > 0 ? near.join(' and ') : '4';
}

function invalid(problem: string): ConfigReading {
  return { kind: 'invalid', problem };
}

function shown(value: unknown): string {
  const text = typeof value === 'number' ? String(value) : (JSON.stringify(value) ?? String(value));
  return text.length > 60 ? `${text.slice(0, 60)}…` : text;
}
