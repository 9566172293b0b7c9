// npm test: set-up, then every test. Arguments go to vitest.
import { journey, runNode } from "./journey.mjs";
import { EVERYTHING, setUp } from "./set-up.mjs";

const VITEST = [
  "node_modules/vitest/vitest.mjs",
  "run",
  "--config",
  "test/vitest.config.ts",
  "--configLoader",
  "runner",
];

await journey(async () => {
  await setUp(EVERYTHING);
  return runNode([...VITEST, ...process.argv.slice(2)]);
});
