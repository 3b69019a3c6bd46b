import { defineConfig } from 'vitest/config';

/** Suites that start processes run one after the other: two cores, and servers that are shared by nobody. */
export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    exclude: ['test/bench/**'],
    pool: 'forks',
    fileParallelism: false,
    testTimeout: 60_000,
    hookTimeout: 60_000,
    reporters: ['default'],
  },
});
