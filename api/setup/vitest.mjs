/** What starts vitest, for a Node in the checkout. What follows names tests. */
export const VITEST = [
  "node_modules/vitest/vitest.mjs",
  "run",
  "--config",
  "test/vitest.config.ts",
  "--configLoader",
  "runner",
];
