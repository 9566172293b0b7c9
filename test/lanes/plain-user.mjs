// npm run test:plain-user [-- [--node VERSION] [--landing] [FILE…]]: the suite as a newcomer runs it, who is not root, has the checkout at home and maybe another Node.
import { execFileSync, spawnSync } from "node:child_process";
import { chmodSync, copyFileSync, mkdirSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { parseArgs } from "node:util";
import { findProgram } from "../../api/setup/programs.mjs";
import { journey } from "../../api/setup/journey.mjs";
import { SetUpError } from "../../api/setup/say.mjs";
import { EVERYTHING, setUp } from "../../api/setup/set-up.mjs";
import { addUser, asUser, removeUser } from "./accounts.mjs";
import { AS_PLAIN_USER, isLeftToOthers } from "./choice.mjs";
import { copyCheckout } from "./checkout.mjs";
import { differences, furnish, lookAt } from "./home-of-a-person.mjs";
import { nodeOf } from "./other-node.mjs";

/** In the home and not a person's: npm writes what it did. */
const NOT_LOOKED_AT = ["substrate", "node", ".npm"];

const { values: options, positionals: files } = parseArgs({
  allowPositionals: true,
  options: { node: { type: "string" }, landing: { type: "boolean", default: false } },
});
const version = options.node;

await journey(async () => {
  if (version === "")
    throw new SetUpError("'--node' takes a version, as in 'npm run test:plain-user -- --node 24'");
  const why = whyNot();
  if (why !== undefined) {
    console.log(`SKIP lane: a plain user — ${why}`);
    return 0;
  }
  await setUp(EVERYTHING);
  const node = version === undefined ? process.execPath : await nodeOf(version);
  const account = addUser();
  try {
    return asNewcomer(account, node);
  } finally {
    removeUser(account);
  }
});

/** @returns {string | undefined} */
function whyNot() {
  if (process.getuid?.() !== 0) return "only root can make a user; 'npm test' is that lane for you";
  const missing = ["useradd", "userdel", "setpriv", "git"].find((name) => findProgram(name) === undefined);
  return missing === undefined ? undefined : `${missing} is not installed`;
}

/**
 * @param {import("./accounts.mjs").Account} account
 * @param {string} node
 * @returns {number} the exit code
 */
function asNewcomer(account, node) {
  const { name, home } = account;
  console.log(`lane: '${name}', with a checkout in '${home}'`);
  const checkout = join(home, "substrate");
  copyCheckout(checkout);
  furnish(home);
  const folder = node === process.execPath ? dirname(node) : nodeAtHome(home, node);
  execFileSync("chown", ["-Rh", `${name}:`, home]);
  const before = lookAt(home, NOT_LOOKED_AT);
  const path = `${folder}:/usr/local/bin:/usr/bin:/bin`;
  const retry = process.env["SUBSTRATE_TEST_RETRY"];
  const env = { PATH: path, ...(retry === undefined ? {} : { SUBSTRATE_TEST_RETRY: retry }) };
  const [program, ...start] = [...asUser(account, env), "npm", "test", "--"];
  const tests = files.length > 0 ? files : chosen();
  const { status } = spawnSync(program, [...start, ...tests], { cwd: checkout, stdio: "inherit" });
  const changed = differences(before, lookAt(home, NOT_LOOKED_AT));
  for (const line of changed) console.log(`FAIL lane: a plain user's home — ${line}`);
  if (changed.length === 0) console.log(`lane: ${before.size} names in the home are as they were`);
  return changed.length > 0 ? 1 : (status ?? 1);
}

function chosen() {
  if (!options.landing) return AS_PLAIN_USER;
  const names = AS_PLAIN_USER.filter(isLeftToOthers).map((file) => basename(file, ".test.ts"));
  console.log(`SKIP ${names.join(" ")} — '--landing' was given: 'npm run test:plain-user' runs them`);
  return AS_PLAIN_USER.filter((file) => !isLeftToOthers(file));
}

/**
 * The user cannot read root's checkout, so the program lies in the home.
 * @param {string} home
 * @param {string} node
 * @returns {string} the folder that holds it
 */
function nodeAtHome(home, node) {
  const folder = join(home, "node/bin");
  mkdirSync(folder, { recursive: true });
  copyFileSync(node, join(folder, "node"));
  chmodSync(join(folder, "node"), 0o755);
  return folder;
}
