/** What commands print: data on stdout for people or, with --json, for machines; all else on stderr. */

export function printJson(value: unknown): void {
  process.stdout.write(`${JSON.stringify(value)}\n`);
}

export function printLine(line = ''): void {
  process.stdout.write(`${line}\n`);
}

export function say(line: string): void {
  process.stderr.write(`${line}\n`);
}

/** An id as it is; quoted where it would not be seen as it is. */
export function showId(id: string): string {
  return /^\s|\s$|[\p{Cc}\p{Cf}\p{Zl}\p{Zp}"]/u.test(id) ? JSON.stringify(id) : id;
}

export function showNumber(value: number): string {
  return value.toLocaleString('en-US');
}

const UNITS = ['bytes', 'KiB', 'MiB', 'GiB', 'TiB'];

export function showBytes(bytes: number): string {
  const unit = Math.min(UNITS.length - 1, Math.floor(Math.log2(Math.max(1, bytes)) / 10));
  const value = bytes / 1024 ** unit;
  return `${showNumber(unit === 0 || value >= 100 ? Math.round(value) : Number(value.toFixed(1)))} ${UNITS[unit]}`;
}

/** Columns of text, as wide as they need; the first on the left, numbers on the right. */
export function printTable(head: readonly string[], rows: readonly (readonly (string | number)[])[]): void {
  for (const line of tableLines(head, rows)) printLine(line);
}

export function tableLines(
  head: readonly string[],
  rows: readonly (readonly (string | number)[])[],
): string[] {
  const cells = [
    head,
    ...rows.map((row) => row.map((cell) => (typeof cell === 'number' ? showNumber(cell) : cell))),
  ];
  const widths = head.map((_, at) => Math.max(...cells.map((row) => row[at]!.length)));
  return cells.map((row, line) => {
    const text = row.map((cell, at) => {
      const isNumber = line > 0 && typeof rows[line - 1]![at] === 'number';
      return isNumber ? cell.padStart(widths[at]!) : cell.padEnd(widths[at]!);
    });
    return text.join('  ').trimEnd();
  });
}
