// npm run test:vm: tests in a virtual machine with systemd. The SKIP without one is printed by the test file.
import { journey, runNode } from "../../api/setup/journey.mjs";
import { EVERYTHING, setUp } from "../../api/setup/set-up.mjs";
import { VITEST } from "../../api/setup/vitest.mjs";

await journey(async () => {
  await setUp(EVERYTHING);
  process.env["SUBSTRATE_TEST_ACTORS"] ??= "self";
  return runNode([...VITEST, "--project", "machine"]);
});
