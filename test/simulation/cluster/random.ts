/** The one source of chance of a schedule. */
import { seeded } from '../../support/seeded.ts';

export interface Random {
  /** 0 ≤ … < 1. */
  (): number;
  /** 0 ≤ … < `below`, whole. */
  below(below: number): number;
  between(from: number, to: number): number;
  chance(rate: number): boolean;
  of<T>(values: readonly T[]): T;
}

export function randomOf(seed: number): Random {
  const next = seeded(seed);
  // Neighbouring seeds begin alike.
  for (let i = 0; i < 4; i++) next();
  return Object.assign(() => next(), {
    below: (below: number) => Math.floor(next() * below),
    between: (from: number, to: number) => from + next() * (to - from),
    chance: (rate: number) => next() < rate,
    of: <T>(values: readonly T[]) => values[Math.floor(next() * values.length)]!,
  });
}
