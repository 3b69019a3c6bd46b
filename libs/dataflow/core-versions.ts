/**
 * Versions of the stages' cores. They are bound to a generation and stand in frames and blocks: a new number
 * means that the same input may give other output, so old state is not continued but made anew.
 */
export const PARTITIONER_VERSION = 1;
export const WORKER_VERSION = 1;
export const VIEW_VERSION = 2;
