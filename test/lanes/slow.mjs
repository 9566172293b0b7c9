// npm run test:slow: the files that `npm test` leaves out, as whoever runs it; root leaves those to the plain user in which that does not matter.
import { journey, runNode } from "../../api/setup/journey.mjs";
import { EVERYTHING, setUp } from "../../api/setup/set-up.mjs";
import { VITEST } from "../../api/setup/vitest.mjs";
import { AT_LENGTH, SLOW_AS_ROOT, SLOW_FILES } from "./choice.mjs";

await journey(async () => {
  await setUp(EVERYTHING);
  process.env["SUBSTRATE_TEST_ACTORS"] ??= "self";
  return runNode([...VITEST, ...AT_LENGTH, ...(process.getuid?.() === 0 ? SLOW_AS_ROOT : SLOW_FILES)]);
});
