import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { CHECKOUT } from "./checkout.mjs";

/**
 * Hashes files (path and content) and facts (plain strings).
 * @param {readonly string[]} files absolute paths
 * @param {readonly string[]} facts
 * @returns {string} hexadecimal SHA-256
 */
export function fingerprint(files, facts = []) {
  const hash = createHash("sha256").update(JSON.stringify(facts));
  for (const file of [...files].sort()) {
    hash.update(`\0${relative(CHECKOUT, file)}\0`).update(readFileSync(file));
  }
  return hash.digest("hex");
}

/**
 * Lists all files below a folder of the checkout with one of the suffixes.
 * @param {string} folder relative to the checkout; may be missing
 * @param {readonly string[]} suffixes
 * @returns {string[]} absolute paths
 */
export function filesBelow(folder, suffixes) {
  const top = join(CHECKOUT, folder);
  if (!existsSync(top)) return [];
  return readdirSync(top, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && suffixes.some((suffix) => entry.name.endsWith(suffix)))
    .map((entry) => join(entry.parentPath, entry.name));
}

/**
 * Lists the folder's own files with one of the suffixes, without subfolders.
 * @param {string} folder
 * @param {readonly string[]} suffixes
 */
export function filesIn(folder, suffixes) {
  const top = join(CHECKOUT, folder);
  return filesBelow(folder, suffixes).filter((path) => dirname(path) === top);
}
