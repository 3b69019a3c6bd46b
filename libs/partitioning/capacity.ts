/**
 * How much one part may hold, edges or vertices, when there are so many in all.
 *
 * A capacity need not be a whole number, but it is compared as one: in units of which there are `unit` to one edge or
 * vertex, with the slack ν in thousandths. In doubles 1.1 · 10 is more than 11, and rounded up it would be 12.
 */
export interface Capacity {
  readonly unit: number;
  /**
   * In units; `count` is of all parts together, what is being placed counted in. A part that holds `load` has room
   * where (load + 1) · unit ≤ capacity.
   */
  at(count: number): number;
}

export interface CapacityOptions {
  readonly parts: number;
  /** ν ≥ 1, of at most three decimals: how far beyond its even share a part may go. */
  readonly slack: number;
  /** C_min: what a part may hold in any case, so that the first few are not scattered for balance. */
  readonly capMin: number;
}

/** max(C_min, ν · count / k), not rounded. */
export function growingCapacity({ parts, slack, capMin }: CapacityOptions): Capacity {
  const unit = 1000 * parts;
  const permille = Math.round(slack * 1000);
  return { unit, at: (count) => Math.max(capMin * unit, permille * count) };
}

/**
 * max(C_min, ⌈ν · count / k⌉). Under it some part always has room: the one that holds least of k has ⌊(count − 1) / k⌋ or
 * fewer, and one more is ⌈count / k⌉ or fewer.
 */
export function growingWholeCapacity({ parts, slack, capMin }: CapacityOptions): Capacity {
  const permille = Math.round(slack * 1000);
  return { unit: 1, at: (count) => Math.max(capMin, Math.ceil((permille * count) / (1000 * parts))) };
}

/** ν · count / k where it is known beforehand how many there will be. */
export function fixedCapacity(parts: number, slack: number, count: number): Capacity {
  const capacity = Math.round(slack * 1000) * count;
  return { unit: 1000 * parts, at: () => capacity };
}
