/**
 * How much each part holds, with what every placement asks for: the most, and the part that holds least.
 *
 * Loads only grow. So the parts that hold least become fewer until the last of them grows too, and the search
 * for the next of them need not look back: a step per placement on average, however many parts there are.
 */
export class Loads {
  readonly counts: Float64Array;
  total = 0;
  max = 0;
  /** Of the parts that hold least, the one of the lowest index. */
  least = 0;

  constructor(parts: number) {
    this.counts = new Float64Array(parts);
  }

  get min(): number {
    return this.counts[this.least]!;
  }

  add(part: number): void {
    const count = this.counts[part]! + 1;
    this.counts[part] = count;
    this.total += 1;
    if (count > this.max) this.max = count;
    if (part === this.least) this.findLeast(count - 1);
  }

  /** Of two parts the one that holds less; if they hold as much, the one of the lower index. */
  lighter(a: number, b: number): number {
    const difference = this.counts[a]! - this.counts[b]!;
    return difference < 0 || (difference === 0 && a < b) ? a : b;
  }

  /** Takes the counts from elsewhere. */
  restore(counts: readonly number[]): void {
    this.counts.set(counts);
    this.total = counts.reduce((sum, count) => sum + count, 0);
    this.max = counts.reduce((most, count) => Math.max(most, count), 0);
    this.least = 0;
    for (let part = 1; part < counts.length; part++) this.least = this.lighter(this.least, part);
  }

  /** The least part, which held `level`, grew. */
  private findLeast(level: number): void {
    const { counts } = this;
    for (let part = this.least + 1; part < counts.length; part++) {
      if (counts[part] !== level) continue;
      this.least = part;
      return;
    }
    let least = 0;
    for (let part = 1; part < counts.length; part++) if (counts[part]! < counts[least]!) least = part;
    this.least = least;
  }
}

/** Whether a part goes before the best one so far: by a higher score; at equal ones a smaller load, then a lower index. */
export function goesBefore(
  score: number,
  load: number,
  part: number,
  bestScore: number,
  bestLoad: number,
  best: number,
): boolean {
  if (score !== bestScore) return score > bestScore;
  return load < bestLoad || (load === bestLoad && part < best);
}
