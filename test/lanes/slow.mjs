// npm run test:slow [-- --landing]: the files that `npm test` leaves out, as whoever runs it; root leaves those to the plain user in which that does not matter.
import { journey, runNode } from "../../api/setup/journey.mjs";
import { EVERYTHING, setUp } from "../../api/setup/set-up.mjs";
import { VITEST } from "../../api/setup/vitest.mjs";
import { AS_ROOT_AT_LANDING, AT_LENGTH, SLOW_AS_ROOT, SLOW_FILES } from "./choice.mjs";

await journey(async () => {
  await setUp(EVERYTHING);
  process.env["SUBSTRATE_TEST_ACTORS"] ??= "self";
  if (process.argv.includes("--landing")) {
    const left = SLOW_AS_ROOT.length - AS_ROOT_AT_LANDING.length;
    console.log(
      `SKIP ${left} slow files about walls as root — '--landing' was given: 'npm run test:slow' runs them`,
    );
    return runNode([...VITEST, ...AT_LENGTH, ...AS_ROOT_AT_LANDING]);
  }
  return runNode([...VITEST, ...AT_LENGTH, ...(process.getuid?.() === 0 ? SLOW_AS_ROOT : SLOW_FILES)]);
});
