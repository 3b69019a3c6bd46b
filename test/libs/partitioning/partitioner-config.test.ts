import { describe, expect, it } from 'vitest';
import { newPartitioner } from '../../../libs/partitioning/new-partitioner.ts';
import {
  ALGORITHMS,
  DEFAULT_PARTITIONER,
  partitionerText,
  partsProblem,
  readPartitionerConfig,
} from '../../../libs/partitioning/partitioner-config.ts';
import { config } from './streams.ts';

describe('the config of a partitioner', () => {
  it.each([
    ['hdrf', { lambda: 1.1, epsilon: 1, slack: 1.1, capMin: 2 }],
    ['ldg', { slack: 1.1, capMin: 2 }],
    ['fennel', { penalty: 'derivative', slack: 1.1, capMin: 2 }],
    ['dbh', {}],
  ])('gives %s its defaults', (algorithm, defaults) => {
    expect(config({ algorithm })).toEqual({ algorithm, ...defaults });
  });

  it.each([
    [undefined, 'must be an object like {"algorithm": "hdrf"}, not undefined'],
    ['hdrf', 'must be an object like {"algorithm": "hdrf"}, not "hdrf"'],
    [[], 'must be an object like {"algorithm": "hdrf"}, not []'],
    [{}, 'has no algorithm: hash, grid, dbh, greedy, hdrf, ldg, fennel'],
    [{ algorithm: 'hdfr' }, 'algorithm "hdfr" is none of hash, grid, dbh, greedy, hdrf, ldg, fennel'],
    [
      { algorithm: 'constructor' },
      'algorithm "constructor" is none of hash, grid, dbh, greedy, hdrf, ldg, fennel',
    ],
    [{ algorithm: 'hash', lambda: 1 }, 'hash has no parameter "lambda": it has none'],
    [
      { algorithm: 'hdrf', balance: 1 },
      'hdrf has no parameter "balance": it has lambda, epsilon, slack, capMin',
    ],
    [
      { algorithm: 'hdrf', lambda: '1' },
      'hdrf: lambda must be a number of at most 3 decimals from 0 to 1000, not "1"',
    ],
    [
      { algorithm: 'hdrf', lambda: -1 },
      'hdrf: lambda must be a number of at most 3 decimals from 0 to 1000, not -1',
    ],
    [
      { algorithm: 'hdrf', lambda: Number.NaN },
      'hdrf: lambda must be a number of at most 3 decimals from 0 to 1000, not NaN',
    ],
    [
      { algorithm: 'hdrf', lambda: null },
      'hdrf: lambda must be a number of at most 3 decimals from 0 to 1000, not null',
    ],
    [
      { algorithm: 'hdrf', epsilon: 0 },
      'hdrf: epsilon must be a number of at most 3 decimals from 0.001 to 1000, not 0',
    ],
    [
      { algorithm: 'ldg', slack: 0.9 },
      'ldg: slack must be a number of at most 3 decimals from 1 to 1000, not 0.9',
    ],
    [
      { algorithm: 'ldg', slack: 1.0005 },
      'ldg: slack must be a number of at most 3 decimals from 1 to 1000, not 1.0005',
    ],
    [
      { algorithm: 'ldg', capMin: 1.5 },
      'ldg: capMin must be a whole number from 1 to 1000000000000, not 1.5',
    ],
    [
      { algorithm: 'fennel', penalty: 'integral' },
      'fennel: penalty must be one of derivative, marginal, not "integral"',
    ],
    [{ algorithm: 'fennel', vertices: 5 }, 'fennel: vertices and edges are given both or neither'],
  ])('refuses %j, and says why', (value, problem) => {
    expect(readPartitionerConfig(value)).toEqual({ kind: 'invalid', problem });
  });

  it.each([
    [{ algorithm: 'hash' }, 'hash 1'],
    [{ algorithm: 'hdrf' }, 'hdrf 1 (lambda 1.1, epsilon 1, slack 1.1, capMin 2)'],
    [
      { capMin: 3, slack: 1.25, lambda: 3, algorithm: 'hdrf' },
      'hdrf 1 (lambda 3, epsilon 1, slack 1.25, capMin 3)',
    ],
    [{ algorithm: 'ldg', vertices: 1e6 }, 'ldg 1 (slack 1.1, capMin 2, vertices 1000000)'],
    [{ algorithm: 'fennel' }, 'fennel 1 (penalty derivative, slack 1.1, capMin 2)'],
  ])('has one text: %j', (value, text) => {
    expect(partitionerText(config(value))).toBe(text);
  });

  it('is hash by default', () => {
    expect(partitionerText(DEFAULT_PARTITIONER)).toBe('hash 1');
  });

  it.each([0, 1025, 1.5, Number.NaN])('refuses %d parts', (parts) => {
    expect(partsProblem(DEFAULT_PARTITIONER, parts)).toBe(
      `parts must be a whole number from 1 to 1024, not ${parts}`,
    );
  });

  it('refuses a grid of parts that stand in no rows and columns', () => {
    const grid = config({ algorithm: 'grid' });
    expect(partsProblem(grid, 31)).toBe(
      'grid needs parts that stand in rows and columns, at least two of each; 31 do not, 30 and 32 do',
    );
    expect(partsProblem(grid, 2)).toContain('; 2 do not, 4 do');
    expect(partsProblem(grid, 3)).toContain('; 3 do not, 4 do');
    expect([1, 4, 30, 32, 1024].map((parts) => partsProblem(grid, parts))).toEqual(
      new Array(5).fill(undefined),
    );
  });

  it('makes a partitioner of each, which places', () => {
    for (const algorithm of Object.keys(ALGORITHMS)) {
      const partitioner = newPartitioner(config({ algorithm }), 4);
      expect(partitioner.place(0, 1, 0, 0, 0)).toBe(0);
      expect(partitioner.placements.parts).toBe(4);
    }
  });
});
