/**
 * The real edge files of ../shared/data, with the answers of their manifest, and what a person who looks at a
 * file tells the program about it.
 */
import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { LoadFlags } from '../../services/cli/load/load-options.ts';

export const DATA_FOLDER = fileURLToPath(new URL('../../../shared/data/', import.meta.url));

/** Options that a person needs who looks at the file; all other files need none. */
export const FLAGS: Readonly<Record<string, LoadFlags>> = {
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
export const REFUSED: Readonly<Record<string, number>> = {
  'messy_ethereum_txs.csv': 1,
  'messy_splink_people_email.csv': 112,
};

/** Files that must be refused as a whole, and what the message says. */
export const UNDECIDED: Readonly<Record<string, RegExp>> = {
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
export const ALL_REFUSED: Readonly<Record<string, string>> = {
  'tiny/raphtory_bad_extra_field.csv': '4 fields in place of 3',
  'tiny/raphtory_bad_missing_field.csv': '2 fields in place of 3',
  'tiny/raphtory_bad_null_id.csv': 'source is empty',
};

/** Files of one row with a bad time: refused where the column `block_timestamp` is chosen. */
export const BAD_TIMES: Readonly<Record<string, string>> = {
  'tiny/raphtory_bad_null_timestamp.csv': 'time "" is empty',
  'tiny/raphtory_bad_impossible_date.csv': 'time "2025-99-99 99:99:99" is no time',
  'tiny/raphtory_bad_out_of_range_timestamp.csv': 'time "999999999999999999999" is no time',
};

export const SEMICOLONS = 'tiny/raphtory_bad_semicolon_delimiter.csv';
export const TRUNCATED = 'snap_soc-Epinions1.TRUNCATED.txt.gz';
/** Not edges, but the vertices of grape_p2p-31.e with the components they are in. */
export const WCC = 'grape_p2p-31-WCC.txt';
export const WCC_EDGES = 'grape_p2p-31.e';

export interface ManifestRow {
  readonly name: string;
  readonly rows: number;
  /** NaN, like the two that follow, where the file is not one of edges, or malformed. */
  readonly vertices: number;
  readonly components: number;
  readonly largest: number;
}

export const hasDataFiles = existsSync(DATA_FOLDER);

export const manifest: readonly ManifestRow[] = hasDataFiles
  ? readFileSync(`${DATA_FOLDER}manifest.tsv`, 'utf8')
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

/** The files whose vertices and components the manifest gives. */
export const answered: readonly ManifestRow[] = manifest.filter(
  ({ name, vertices }) => !Number.isNaN(vertices) && !(name in UNDECIDED),
);
