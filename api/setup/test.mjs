// npm test: set-up, then every test. Arguments go to vitest.
import { journey, runNode } from "./journey.mjs";
import { EVERYTHING, setUp } from "./set-up.mjs";
import { VITEST } from "./vitest.mjs";

await journey(async () => {
  await setUp(EVERYTHING);
  return runNode([...VITEST, ...process.argv.slice(2)]);
});
