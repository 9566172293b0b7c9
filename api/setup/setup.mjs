// substrate setup: the native parts of a package that was packed on another machine, for this one; in a checkout, the build.
// --agent: only those of a world agent, which keeps no records: without LMDB's part, and so without npm. --is-made-for-here: nothing is
// done, and the exit code says whether something would be.
import { accessSync, constants, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { CHECKOUT } from "./checkout.mjs";
import { journey } from "./journey.mjs";
import { withLock } from "./lock.mjs";
import { front, init, preload, sh, shim } from "./native.mjs";
import { requireNode } from "./node-version.mjs";
import { copyPrebuilds, PREBUILDS } from "./prebuilds.mjs";
import { lastLines, run } from "./programs.mjs";
import { SetUpError, say } from "./say.mjs";
import { writeWhole } from "./stamp.mjs";
import { isSameTarget, packedFor, TARGET_FILE, targetWords, thisMachine } from "./target.mjs";

await journey(async () => {
  requireNode(process.versions.node);
  const packed = packedFor();
  const machine = thisMachine();
  if (packed === undefined) throw new SetUpError(`'${CHECKOUT}' is a checkout. Run there: npm run build`);
  if (process.argv.includes("--is-made-for-here")) return isSameTarget(packed, machine) ? 0 : 1;
  if (isSameTarget(packed, machine)) {
    say(`nothing to do: the native parts are for ${targetWords(machine)}`);
    return 0;
  }
  requireWritable();
  await withLock(async () => {
    if (machine.platform === "linux") for (const part of [init, shim, front, sh, preload]) await part.make();
    const isAgents = process.argv.includes("--agent");
    if (!isAgents && (packed.platform !== machine.platform || packed.arch !== machine.arch))
      await fetchPrebuilds(packed.lmdb);
    // The last step: until then, every verb says that this one is to be run.
    writeWhole(TARGET_FILE, `${JSON.stringify({ ...machine, lmdb: packed.lmdb })}\n`);
  });
  return 0;
});

function requireWritable() {
  try {
    accessSync(CHECKOUT, constants.W_OK);
  } catch {
    throw new SetUpError(`'${CHECKOUT}' belongs to another user. Run: sudo substrate setup`);
  }
}

/** LMDB's native part is a package of its own, without install scripts. @param {string} version */
async function fetchPrebuilds(version) {
  const name = `${PREBUILDS}@${version}`;
  const folder = mkdtempSync(join(tmpdir(), "substrate-setup-"));
  try {
    say(`fetching ${name} from npm`);
    const words = ["install", "--prefix", folder, "--no-save", "--ignore-scripts", "--no-audit", "--no-fund"];
    const npm = await run(["npm", ...words, name], { cwd: folder });
    if (!npm.ok)
      throw new SetUpError(`'npm install ${name}' ended with ${npm.ending}:\n${lastLines(npm.tail, 15)}`);
    await copyPrebuilds(join(folder, "node_modules", PREBUILDS));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
