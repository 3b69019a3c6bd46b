/** The public cases of ../shared/cases that concern files, at the level of reading them. */

import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { componentsOf, loaded } from './loaded.ts';

const FOLDER = fileURLToPath(new URL('../../../../../shared/cases/', import.meta.url));
const sizes = async (name: string, flags = {}): Promise<ReturnType<typeof componentsOf>> =>
  componentsOf((await loaded(FOLDER + name, flags)).edges);

describe.skipIf(!existsSync(FOLDER))('the cases of ../shared/cases', () => {
  it('H01: blanks at the ends of an id belong to it, unless trimmed', async () => {
    expect(await sizes('H01_trailing_space.csv')).toEqual({ vertices: 8, components: 4, largest: 2 });
    expect(await sizes('H01_trailing_space.csv', { trim: true })).toMatchObject({ components: 2 });
  });

  it('H02: no id is read as a number', async () => {
    expect(await sizes('H02_leading_zero.csv')).toMatchObject({ vertices: 8, components: 4 });
    const { edges } = await loaded(`${FOLDER}H02_leading_zero.ndjson`);
    expect(componentsOf(edges)).toMatchObject({ components: 4, largest: 3 });
    expect(edges.at(-1)).toEqual(['1', 'z']);
  });

  it('H03: long digits stay what they are', async () => {
    for (const name of ['H03_bigint.csv', 'H03_bigint.ndjson']) {
      const file = await loaded(FOLDER + name);
      const sources = file.edges.map(([source]) => source);
      // A number of JSON beyond the safe integers is refused, never rounded.
      expect(new Set([...sources, ...file.reasons.map(({ reason }) => /\d{10,}/.exec(reason)?.[0])])).toEqual(
        new Set(['9280805980001101', '9280805980001100', '727189530466459649', '727189530466459600']),
      );
      expect(componentsOf(file.edges).components).toBe(file.edges.length);
    }
    expect((await loaded(`${FOLDER}H03_bigint.csv`)).refused).toBe(0);
  });

  it('H04: ids are compared byte for byte', async () => {
    expect(await sizes('H04_nfc_nfd.ndjson')).toEqual({ vertices: 8, components: 4, largest: 2 });
  });

  it('H05: __proto__ is an id, and an unknown key', async () => {
    expect(await sizes('H05_proto.ndjson')).toEqual({ vertices: 7, components: 3, largest: 3 });
    expect(({} as { polluted?: number }).polluted).toBeUndefined();
  });

  it('H06: null and nothing are no ids, blanks are', async () => {
    const ndjson = await loaded(`${FOLDER}H06_null_empty.ndjson`);
    expect(ndjson.edges).toEqual([
      ['d', '   '],
      ['f', 'g'],
    ]);
    expect(ndjson.reasons.map(({ place }) => place)).toEqual(['line 1', 'line 2', 'line 3', 'line 5']);
    const csv = await loaded(`${FOLDER}H06_null_empty.csv`);
    expect(csv.edges).toEqual([['f', 'g']]);
    expect(csv.reasons.map(({ place }) => place)).toEqual(['line 2', 'line 3', 'line 4', 'line 5']);
  });

  it('H07 and H09: chains', async () => {
    expect(await sizes('H07_chain_50000.tsv')).toEqual({ vertices: 50_001, components: 1, largest: 50_001 });
    expect(await sizes('H09_weak_chain.tsv')).toEqual({ vertices: 6, components: 1, largest: 6 });
  });

  it('H08: a self-loop makes its vertex known', async () => {
    expect(await sizes('H08_isolated_selfloop.ndjson')).toEqual({ vertices: 25, components: 2, largest: 24 });
  });

  it('H11 to H14: what is no addition is refused and counted', async () => {
    for (const [name, edges, refused] of [
      ['H11_parallel_delete.ndjson', 4, 1],
      ['H12_delete_unseen.ndjson', 1, 2],
      ['H13_redelivery_order.ndjson', 2, 1],
      ['H14_readd.ndjson', 2, 1],
    ] as const) {
      const file = await loaded(FOLDER + name);
      expect([file.edges.length, file.refused]).toEqual([edges, refused]);
      expect(file.reasons[0]!.reason).toBe('op "delete" is not "add"');
    }
  });

  it('H16: no character of an id means anything', async () => {
    const { edges } = await loaded(`${FOLDER}H16_subject_chars.ndjson`);
    expect(componentsOf(edges)).toEqual({ vertices: 20, components: 10, largest: 2 });
    expect(edges.map(([source]) => source)).toEqual(expect.arrayContaining(['tab\tid', 'line\nid', '>']));
  });

  it('H17: an id that is too long is refused with its line, and the next edge lands', async () => {
    const file = await loaded(`${FOLDER}H17_oversize.ndjson`);
    expect(file.edges).toEqual([['c', 'd']]);
    expect(file.reasons).toEqual([
      { place: 'line 1', reason: 'source has 1100000 bytes: an id has 1 to 1024' },
    ]);
  });

  it('H18: a byte order mark is no part of the header', async () => {
    const { edges, description } = await loaded(`${FOLDER}H18_bom_crlf.csv`);
    expect(edges).toEqual([
      ['a, b', 'c'],
      ['d', 'e'],
    ]);
    expect(description).toContain('header line, source = column 1 "source"');
  });

  it('H19: all members of a gzip file are read', async () => {
    const { edges } = await loaded(`${FOLDER}H19_two_members.csv.gz`);
    expect(edges).toEqual([
      ['a', 'b'],
      ['c', 'd'],
      ['e', 'f'],
    ]);
  });
});
