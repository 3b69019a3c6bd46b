/**
 * Files that are no list of edges, known by how they begin. To read them as columns would make vertices of
 * their brackets and key words; so they are refused, with what to do instead.
 */

const TEXT_START_CHARACTERS = 2000;

interface ForeignFormat {
  readonly name: string;
  readonly remedy: string;
}

const CONVERT = 'write its edges as CSV or NDJSON first, with networkx or igraph for instance';
const DECOMPRESS = (tool: string): string => `decompress it first: ${tool} -dc FILE | watershed load -`;

const BINARY_FORMATS: readonly (ForeignFormat & { readonly magic: string })[] = [
  {
    magic: 'PK\x03\x04',
    name: 'a zip archive or a spreadsheet',
    remedy: 'unpack it, or save the sheet as CSV, first',
  },
  { magic: '\x28\xb5\x2f\xfd', name: 'data compressed with zstd', remedy: DECOMPRESS('zstd') },
  { magic: 'BZh', name: 'data compressed with bzip2', remedy: DECOMPRESS('bzip2') },
  { magic: '\xfd7zXZ', name: 'data compressed with xz', remedy: DECOMPRESS('xz') },
  { magic: '\x1f\x8b', name: 'data compressed with gzip twice', remedy: DECOMPRESS('gzip') },
  { magic: 'PAR1', name: 'a Parquet file', remedy: 'write it as Arrow IPC or CSV first' },
  { magic: 'SQLite format 3', name: 'an SQLite database', remedy: 'export the table as CSV first' },
];

const TEXT_FORMATS: readonly (ForeignFormat & { readonly begins: RegExp })[] = [
  {
    begins: /^version https:\/\/git-lfs/,
    name: 'a Git LFS pointer',
    remedy: 'fetch the file itself: git lfs pull',
  },
  { begins: /^<!doctype html|^<html/i, name: 'a web page', remedy: 'the download may have failed' },
  {
    begins: /^<NUMBER OF |<END OF METADATA>/,
    name: 'a TNTP network',
    remedy:
      'give --skip with the number of lines above the rows, --delimiter blank, --no-header, --source 1 and --target 2',
  },
  {
    begins: /^<\?xml|^<(?:graphml|gexf|gxl|dynetml)\b/i,
    name: 'XML (GraphML or GEXF, perhaps)',
    remedy: CONVERT,
  },
  // Comments and keys may stand before the graph.
  { begins: /(?:^|\n)[ \t]*graph\s*\[/, name: 'GML', remedy: CONVERT },
  { begins: /^(?:strict\s+)?(?:di)?graph\s*[^\s[{]*\s*\{/i, name: 'Graphviz DOT', remedy: CONVERT },
  { begins: /^\*(?:vertices|network)\b/i, name: 'Pajek', remedy: CONVERT },
];

/** What the content looks like and what to do, if it is known and no list of edges. */
export function foreignFormat(start: Uint8Array): ForeignFormat | undefined {
  const bytes = Buffer.from(start.buffer, start.byteOffset, Math.min(start.length, TEXT_START_CHARACTERS));
  const binary = bytes.toString('latin1');
  const known = BINARY_FORMATS.find(({ magic }) => binary.startsWith(magic));
  if (known !== undefined) return known;
  if (bytes.includes(0))
    return { name: 'binary data', remedy: 'edges are read from text, JSON and Arrow IPC' };
  const text = bytes.toString('utf8').trimStart();
  return TEXT_FORMATS.find(({ begins }) => begins.test(text));
}
