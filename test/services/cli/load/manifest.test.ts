import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { CliError, EXIT } from '../../../../services/cli/exit.ts';
import type { LoadFlags } from '../../../../services/cli/load/load-options.ts';
import { componentsOf, loaded } from './loaded.ts';

const FOLDER = fileURLToPath(new URL('../../../../../shared/data/', import.meta.url));

/** Options that a person needs who looks at the file; all other files need none. */
const FLAGS: Readonly<Record<string, LoadFlags>> = {
  // A time first, and no header.
  'sp_HighSchool2013_proximity.csv.gz': { source: '2', target: '3', time: '1' },
  'sp_SFHH_tij.dat.gz': { source: '2', target: '3' },
  'sp_ht2009_contact_list.dat.gz': { source: '2', target: '3' },
  'sp_hospital_lyon.dat.gz': { source: '2', target: '3', time: '1', timeUnit: 's' },
  'sp_primaryschool.csv.gz': { source: '2', target: '3' },
  // Its last row is a header line, which counts as an edge; with --time it would be refused.
  'tiny/openflights_fm-latin1.csv': { source: '2', target: '3' },
  'tiny/openflights_cr-only.csv': { source: '2', target: '3', time: '1' },
  'tiny/openflights_of-variants_badheader.csv': { source: '2', target: '3', time: '1' },
  // Many columns, of which no name tells.
  'messy_openflights_routes.dat': { source: '3', target: '5' },
  'messy_febrl3_rec_ssn.csv': { source: 'rec_id', target: 'soc_sec_id' },
  'messy_splink_people_email.csv': { source: 'unique_id', target: 'email' },
  // No list of edges at sight.
  'messy_tntp_anaheim.tntp': {
    skip: '9',
    delimiter: 'blank',
    header: false,
    source: '1',
    target: '2',
  },
};

/** Rows that lack an id and are left out. */
const REFUSED: Readonly<Record<string, number>> = {
  'messy_ethereum_txs.csv': 1,
  'messy_splink_people_email.csv': 112,
};

/** Files that must be refused as a whole, and what the message says. */
const UNDECIDED: Readonly<Record<string, RegExp>> = {
  'football.gml': /looks like GML/,
  'lesmis.gml': /looks like GML/,
  'grape_p2p-31.delta.txt': /column 1 holds only "d", "u", "a"/,
  'tiny/raphtory_bad_missing_id_col.csv': /two columns of ids.*column 2 "outputs_address"/,
  'tiny/raphtory_bad_null_timestamp.csv': /column 1 "block_timestamp".*has none \(line 2\)/,
  'tiny/raphtory_bad_impossible_date.csv': /"2025-99-99 99:99:99".*\(line 2\)/,
  'tiny/raphtory_bad_out_of_range_timestamp.csv': /"999999999999999999999".*\(line 2\)/,
  'tiny/raphtory_bad_timestamp_malformed.csv': /"not-a-timestamp".*\(line 2\)/,
};

/** Files of one bad row, and why it is refused. */
const ALL_REFUSED: Readonly<Record<string, string>> = {
  'tiny/raphtory_bad_extra_field.csv': '4 fields in place of 3',
  'tiny/raphtory_bad_missing_field.csv': '2 fields in place of 3',
  'tiny/raphtory_bad_null_id.csv': 'source is empty',
};

const TRUNCATED = 'snap_soc-Epinions1.TRUNCATED.txt.gz';

interface ManifestRow {
  readonly name: string;
  readonly rows: number;
  readonly vertices: number;
  readonly components: number;
  readonly largest: number;
}

const isThere = existsSync(FOLDER);
const manifest: readonly ManifestRow[] = isThere
  ? readFileSync(`${FOLDER}manifest.tsv`, 'utf8')
      .trim()
      .split('\n')
      .slice(1)
      .map((line) => {
        const [name, rows, vertices, , , components, largest] = line.split('\t');
        return {
          name: name!,
          rows: Number(rows),
          vertices: Number(vertices),
          components: Number(components),
          largest: Number(largest),
        };
      })
  : [];

async function problemOf(name: string, flags: LoadFlags = {}): Promise<CliError> {
  const error = await loaded(FOLDER + name, flags).then(
    () => undefined,
    (caught: unknown) => caught,
  );
  expect(error).toBeInstanceOf(CliError);
  return error as CliError;
}

describe.skipIf(!isThere)('the files of ../shared/data', () => {
  it('are all there', () => {
    expect(manifest).toHaveLength(80);
    for (const name of [...Object.keys(FLAGS), ...Object.keys(UNDECIDED), ...Object.keys(ALL_REFUSED)]) {
      expect(manifest.map((row) => row.name)).toContain(name);
    }
  });

  for (const { name, rows, vertices, components, largest } of manifest) {
    if (Number.isNaN(vertices) || name in UNDECIDED) continue;
    it(`${name} has the vertices and components of the manifest`, async () => {
      const file = await loaded(FOLDER + name, FLAGS[name]);
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
    const { error, edges } = await loaded(FOLDER + TRUNCATED);
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
      const file = await loaded(FOLDER + name);
      expect(file).toMatchObject({ rows: 1, refused: 1, edges: [], reasons: [{ place: 'line 2', reason }] });
    });
  }

  it('rows with a bad time are refused one by one where the column is chosen', async () => {
    const flags = { time: 'block_timestamp' };
    for (const [name, reason] of [
      ['null_timestamp', 'time "" is empty'],
      ['impossible_date', 'time "2025-99-99 99:99:99" is no time'],
      ['out_of_range_timestamp', 'time "999999999999999999999" is no time'],
    ]) {
      const file = await loaded(`${FOLDER}tiny/raphtory_bad_${name}.csv`, flags);
      expect(file).toMatchObject({ rows: 1, edges: [], reasons: [{ place: 'line 2', reason }] });
    }
  });

  it('a semicolon is found as well as a comma', async () => {
    const file = await loaded(`${FOLDER}tiny/raphtory_bad_semicolon_delimiter.csv`);
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
    const file = await loaded(`${FOLDER}messy_facebook_count_header.txt`);
    expect(file.hint).toContain('"4039 88234"');
    const skipped = await loaded(`${FOLDER}messy_facebook_count_header.txt`, { skip: '1' });
    expect(componentsOf(skipped.edges)).toEqual({ vertices: 4039, components: 1, largest: 4039 });
    expect(skipped.hint).toBeUndefined();
  });

  it('times keep their unit and their fractions', async () => {
    const { times } = await loaded(`${FOLDER}snap_soc-sign-bitcoinotc.csv.gz`, { time: '4' });
    expect(times[0]).toBe(1_289_241_911_728);
    const proximity = await loaded(`${FOLDER}sp_baboons_proximity.txt.gz`);
    expect(proximity.times[0]).toBe(1_560_396_500_000);
    const ldbc = await loaded(`${FOLDER}messy_ldbc_person_knows_person.csv`);
    expect(ldbc.times[0]).toBe(1_278_777_892_244);
    const flights = await loaded(`${FOLDER}tiny/openflights_fm-standard_bom.csv`);
    expect(flights.times[0]).toBe(Date.parse('2009-04-17T21:15:00Z'));
  });

  it('trimming is for those who ask', async () => {
    const { edges } = await loaded(`${FOLDER}messy_marvel_hero-comic.csv`, { trim: true });
    expect(componentsOf(edges)).toEqual({ vertices: 19_286, components: 22, largest: 19_225 });
  });
});
