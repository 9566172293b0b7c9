import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync } from "node:fs";
import { join } from "node:path";
import { BUILD, CHECKOUT } from "./checkout.mjs";
import { findProgram, run } from "./programs.mjs";
import { SetUpError, say } from "./say.mjs";
import { updateStamp } from "./stamp.mjs";

/** LMDB's native part for this machine. */
export const PREBUILDS = `@lmdb/lmdb-${process.platform}-${process.arch}`;

/** Where the loader of the native part looks: `prebuilds` beside the program that it is bundled into. */
const FOLDER = `prebuilds/${process.platform}-${process.arch}`;

/** Step: `.build/prebuilds`, LMDB's native part for each version of Node and each libc. */
export const prebuilds = {
  /** @param {import("./stamp.mjs").Stamp} stamp */
  isCurrent(stamp) {
    const from = join(CHECKOUT, "node_modules", PREBUILDS);
    if (!existsSync(from)) return true;
    return (
      stamp.prebuilds === versionOf(from) &&
      nativeParts(from).every((name) => existsSync(join(BUILD, FOLDER, name)))
    );
  },

  async make() {
    const from = join(CHECKOUT, "node_modules", PREBUILDS);
    await copyPrebuilds(from);
    updateStamp({ prebuilds: versionOf(from) });
    say(`copied .build/${FOLDER}`);
  },
};

/**
 * Copies without debug symbols, which are four fifths of them.
 * @param {string} from folder of the package
 */
export async function copyPrebuilds(from) {
  const names = nativeParts(from);
  if (names.length === 0) throw new SetUpError(`'${from}' has no native part of LMDB`);
  mkdirSync(join(BUILD, FOLDER), { recursive: true });
  const strip = findProgram("strip");
  for (const name of names) {
    const target = join(BUILD, FOLDER, name);
    // A running broker has the old file mapped, so it is replaced and not written over.
    const draft = `${target}.${process.pid}.tmp`;
    const stripped =
      strip !== undefined && (await run([strip, "--strip-unneeded", "-o", draft, join(from, name)])).ok;
    if (!stripped) copyFileSync(join(from, name), draft);
    renameSync(draft, target);
  }
}

/** @param {string} folder */
function nativeParts(folder) {
  return existsSync(folder) ? readdirSync(folder).filter((name) => name.endsWith(".node")) : [];
}

/** @param {string} folder @returns {string} */
export function versionOf(folder) {
  return JSON.parse(readFileSync(join(folder, "package.json"), "utf8")).version;
}
