// npm run test:lanes [VERSION] [FILE…]: tests with another Node than this one; without files those that it could fail.
import { spawnSync } from "node:child_process";
import { dirname } from "node:path";
import { CHECKOUT } from "../../api/setup/checkout.mjs";
import { journey } from "../../api/setup/journey.mjs";
import { EVERYTHING, setUp } from "../../api/setup/set-up.mjs";
import { VITEST } from "../../api/setup/vitest.mjs";
import { nodeOf } from "./other-node.mjs";

const VERSION = "24";
/** Where another Node could differ: everything without a broker, and of the rest what stands on its sockets, streams and processes. */
const TESTS = [
  "test/unit",
  ...`bad-input cli execute held-cli network-npm policy-reload publish replay scopes shims shims-unanswered trace-cli`
    .split(" ")
    .map((name) => `test/integration/${name}.test.ts`),
];

const [version = VERSION, ...files] = process.argv.slice(2);

await journey(async () => {
  await setUp(EVERYTHING);
  process.env["SUBSTRATE_TEST_ACTORS"] ??= "self";
  const node = await nodeOf(version);
  console.log(`lane: Node ${spawnSync(node, ["--version"], { encoding: "utf8" }).stdout.trim()}`);
  // First on PATH too, for the launchers that ask env for it.
  const env = { ...process.env, PATH: `${dirname(node)}:${process.env["PATH"]}` };
  const tests = files.length > 0 ? files : TESTS;
  const { status } = spawnSync(node, [...VITEST, ...tests], { cwd: CHECKOUT, env, stdio: "inherit" });
  return status ?? 1;
});
