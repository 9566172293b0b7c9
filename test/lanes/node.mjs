// npm run test:lanes [VERSION] [FILE…]: tests with another Node than this one; without files those that it could fail.
import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { spawnSync } from "node:child_process";
import { dirname, join } from "node:path";
import { BUILD, CHECKOUT } from "../../api/setup/checkout.mjs";
import { journey } from "../../api/setup/journey.mjs";
import { lastLines, run } from "../../api/setup/programs.mjs";
import { SetUpError } from "../../api/setup/say.mjs";
import { EVERYTHING, setUp } from "../../api/setup/set-up.mjs";
import { VITEST } from "../../api/setup/vitest.mjs";

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

/**
 * That Node, from npm. The package of this platform holds the program itself and needs no install script, unlike the
 * package `node`, which only fetches it.
 * @param {string} wanted a version or a range
 * @returns {Promise<string>} the path of the program
 */
async function nodeOf(wanted) {
  const name = `node-${process.platform}-${process.arch}`;
  const folder = join(BUILD, "lanes", wanted);
  const node = join(folder, "node_modules", name, "bin/node");
  if (existsSync(node)) return node;

  const draft = `${folder}.${process.pid}.tmp`;
  mkdirSync(draft, { recursive: true });
  try {
    writeFileSync(join(draft, "package.json"), '{ "private": true }\n');
    const npm = await run([
      "npm",
      "install",
      "--prefix",
      draft,
      "--no-audit",
      "--no-fund",
      `${name}@${wanted}`,
    ]);
    if (!npm.ok)
      throw new SetUpError(
        `'npm install ${name}@${wanted}' ended with ${npm.ending}:\n${lastLines(npm.tail, 15)}`,
      );
    renameSync(draft, folder);
  } finally {
    rmSync(draft, { recursive: true, force: true });
  }
  return node;
}
