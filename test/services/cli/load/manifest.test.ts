import { describe, expect, it } from 'vitest';
import { CliError, EXIT } from '../../../../services/cli/exit.ts';
import type { LoadFlags } from '../../../../services/cli/load/load-options.ts';
import {
  ALL_REFUSED,
  answered,
  BAD_TIMES,
  DATA_FOLDER,
  FLAGS,
  hasDataFiles,
  manifest,
  REFUSED,
  SEMICOLONS,
  TRUNCATED,
  UNDECIDED,
} from '../../../support/data-files.ts';
import { componentsOf, loaded } from './loaded.ts';

async function problemOf(name: string, flags: LoadFlags = {}): Promise<CliError> {
  const error = await loaded(DATA_FOLDER + name, flags).then(
    () => undefined,
    (caught: unknown) => caught,
  );
  expect(error).toBeInstanceOf(CliError);
  return error as CliError;
}

describe.skipIf(!hasDataFiles)('the files of ../shared/data', () => {
  it('are all there', () => {
    expect(manifest).toHaveLength(80);
    for (const name of [...Object.keys(FLAGS), ...Object.keys(UNDECIDED), ...Object.keys(ALL_REFUSED)]) {
      expect(manifest.map((row) => row.name)).toContain(name);
    }
  });

  for (const { name, rows, vertices, components, largest } of answered) {
    it(`${name} has the vertices and components of the manifest`, async () => {
      const file = await loaded(DATA_FOLDER + name, FLAGS[name]);
      expect({ rows: file.rows, refused: file.refused, ...componentsOf(file.edges) }).toEqual({
        rows,
        refused: REFUSED[name] ?? 0,
        vertices,
        components,
        largest,
      });
      if (name !== TRUNCATED) expect(file.error).toBeUndefined();
    });
  }

  it('the gzip file that is cut short says so, after the rows that it has', async () => {
    const { error, edges } = await loaded(DATA_FOLDER + TRUNCATED);
    expect(edges).toHaveLength(410_884);
    expect(error).toMatchObject({ status: EXIT.failed });
    expect((error as CliError).message).toContain(`${TRUNCATED} cannot be read: the gzip file is cut short`);
  });

  for (const [name, message] of Object.entries(UNDECIDED)) {
    it(`${name} is refused as a whole`, async () => {
      const problem = await problemOf(name);
      expect(problem.status).toBe(EXIT.usage);
      expect(problem.message).toMatch(message);
      expect(problem.message).toContain(name);
    });
  }

  for (const [name, reason] of Object.entries(ALL_REFUSED)) {
    it(`${name} has its row refused`, async () => {
      const file = await loaded(DATA_FOLDER + name);
      expect(file).toMatchObject({ rows: 1, refused: 1, edges: [], reasons: [{ place: 'line 2', reason }] });
    });
  }

  it('rows with a bad time are refused one by one where the column is chosen', async () => {
    const flags = { time: 'block_timestamp' };
    for (const [name, reason] of Object.entries(BAD_TIMES)) {
      const file = await loaded(DATA_FOLDER + name, flags);
      expect(file).toMatchObject({ rows: 1, edges: [], reasons: [{ place: 'line 2', reason }] });
    }
  });

  it('a semicolon is found as well as a comma', async () => {
    const file = await loaded(DATA_FOLDER + SEMICOLONS);
    expect(file.edges).toEqual([['bc1qabc', 'bc1qdef']]);
    expect(file.times).toEqual([Date.parse('2025-11-10T00:28:09Z')]);
  });

  it('a first column of times is never taken for ids', async () => {
    for (const [name, { source, time }] of Object.entries(FLAGS)) {
      if (source !== '2' || time === false) continue;
      const problem = await problemOf(name);
      expect(problem.status).toBe(EXIT.usage);
      expect(problem.message).toContain('--source 2 --target 3');
    }
  });

  it('without --skip the line of counts is an edge, and a hint says so', async () => {
    const file = await loaded(`${DATA_FOLDER}messy_facebook_count_header.txt`);
    expect(file.hint).toContain('"4039 88234"');
    const skipped = await loaded(`${DATA_FOLDER}messy_facebook_count_header.txt`, { skip: '1' });
    expect(componentsOf(skipped.edges)).toEqual({ vertices: 4039, components: 1, largest: 4039 });
    expect(skipped.hint).toBeUndefined();
  });

  it('times keep their unit and their fractions', async () => {
    const { times } = await loaded(`${DATA_FOLDER}snap_soc-sign-bitcoinotc.csv.gz`, { time: '4' });
    expect(times[0]).toBe(1_289_241_911_728);
    const proximity = await loaded(`${DATA_FOLDER}sp_baboons_proximity.txt.gz`);
    expect(proximity.times[0]).toBe(1_560_396_500_000);
    const ldbc = await loaded(`${DATA_FOLDER}messy_ldbc_person_knows_person.csv`);
    expect(ldbc.times[0]).toBe(1_278_777_892_244);
    const flights = await loaded(`${DATA_FOLDER}tiny/openflights_fm-standard_bom.csv`);
    expect(flights.times[0]).toBe(Date.parse('2009-04-17T21:15:00Z'));
  });

  it('trimming is for those who ask', async () => {
    const { edges } = await loaded(`${DATA_FOLDER}messy_marvel_hero-comic.csv`, { trim: true });
    expect(componentsOf(edges)).toEqual({ vertices: 19_286, components: 22, largest: 19_225 });
  });
});
