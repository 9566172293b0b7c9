/** Node arguments to start vitest in the checkout; file names and `-t` may follow. */
export const VITEST = [
  "node_modules/vitest/vitest.mjs",
  "run",
  "--config",
  "test/vitest.config.ts",
  "--configLoader",
  "runner",
];
