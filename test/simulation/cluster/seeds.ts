/** Schedules that found something once: they are run first, always. */
export const SEEDS: readonly { readonly seed: number; readonly found: string }[] = [];
