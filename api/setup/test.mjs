// npm test: set-up, then every kind of test in minutes, as whoever runs it. Arguments go to vitest, and choose among all tests.
import { journey, runNode } from "./journey.mjs";
import { EVERYTHING, setUp } from "./set-up.mjs";
import { VITEST } from "./vitest.mjs";

const chosen = process.argv.slice(2);

await journey(async () => {
  await setUp(EVERYTHING);
  process.env["SUBSTRATE_TEST_ACTORS"] ??= "self";
  if (chosen.length > 0) return runNode([...VITEST, ...chosen]);
  // The run's end lists what it left out.
  process.env["SUBSTRATE_TEST_EXTENT"] = "quick";
  return runNode([...VITEST, "--project", "pure", "--project", "real"]);
});
