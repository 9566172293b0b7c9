import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { compileNative } from "../../api/setup/native.mjs";
import { filesOf } from "./tree.mjs";

/** The folders that are a native program each. */
const PROGRAMS = ["world/init/", "shim/"];

/**
 * What the C compiler says against the native programs. Its results are thrown away, so this works where .build is read-only.
 * @param {string} root
 * @returns {Promise<string[]>} one line per finding
 */
export async function checkC(root) {
  const all = filesOf(root, [".c"]);
  const found = PROGRAMS.map((program) => all.filter((path) => path.startsWith(program)));
  const findings = await Promise.all(
    found.filter((sources) => sources.length > 0).map((sources) => compileAside(root, sources)),
  );
  return found.every((sources) => sources.length === 0) ? ["There is no C source"] : findings.flat();
}

/**
 * @param {string} root
 * @param {readonly string[]} sources
 * @returns {Promise<string[]>}
 */
async function compileAside(root, sources) {
  const folder = mkdtempSync(join(tmpdir(), "substrate-check-"));
  try {
    await compileNative(
      join(folder, "program"),
      sources.map((path) => join(root, path)),
    );
    return [];
  } catch (error) {
    return [error instanceof Error ? error.message : String(error)];
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
