/**
 * npm run faults [-- --rounds N --seed N --kind KIND]: the long fault run. Set-up, then `test/integration/faults.test.ts` with that
 * many rounds for each actor. The seed stands in the test's title; the same one makes the same choices again. KIND is who is killed, as `broker`; without it anybody.
 */
import { parseArgs } from "node:util";
import { journey, runNode } from "../../api/setup/journey.mjs";
import { EVERYTHING, setUp } from "../../api/setup/set-up.mjs";
import { VITEST } from "../../api/setup/vitest.mjs";

const { values } = parseArgs({
  options: { rounds: { type: "string", default: "200" }, seed: { type: "string" }, kind: { type: "string" } },
});

await journey(async () => {
  await setUp(EVERYTHING);
  process.env["SUBSTRATE_FAULT_ROUNDS"] = values.rounds;
  if (values.seed !== undefined) process.env["SUBSTRATE_FAULT_SEED"] = values.seed;
  if (values.kind !== undefined) process.env["SUBSTRATE_FAULT_KIND"] = values.kind;
  return await runNode([...VITEST, "test/integration/faults.test.ts"]);
});
