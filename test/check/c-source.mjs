import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { compileNative, flagsOf, NATIVE } from "../../api/setup/native.mjs";
import { filesOf } from "./tree.mjs";

/**
 * What the C compiler says against the native programs. Its results are thrown away, so this works where .build is read-only.
 * @param {string} root
 * @returns {Promise<string[]>} one line per finding
 */
export async function checkC(root) {
  const all = filesOf(root, [".c"]);
  const found = Object.values(NATIVE)
    .map((native) => ({ sources: all.filter((path) => isOf(native, path)), flags: flagsOf(root, native) }))
    .filter(({ sources }) => sources.length > 0);
  const findings = await Promise.all(found.map(({ sources, flags }) => compileAside(root, sources, flags)));
  return found.length === 0 ? ["There is no C source"] : findings.flat();
}

/**
 * @param {import("../../api/setup/native.mjs").Native} native
 * @param {string} path
 */
function isOf({ folder, rooms, shared = [] }, path) {
  return rooms ? path.startsWith(`${folder}/`) : [folder, ...shared].includes(dirname(path));
}

/**
 * @param {string} root
 * @param {readonly string[]} sources
 * @param {readonly string[]} flags
 * @returns {Promise<string[]>}
 */
async function compileAside(root, sources, flags) {
  const folder = mkdtempSync(join(tmpdir(), "substrate-check-"));
  try {
    await compileNative(
      join(folder, "program"),
      sources.map((path) => join(root, path)),
      flags,
    );
    return [];
  } catch (error) {
    return [error instanceof Error ? error.message : String(error)];
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
