import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { compileInit } from "../../api/setup/init.mjs";
import { filesOf } from "./tree.mjs";

/**
 * What the C compiler says against world/init. Its result is thrown away, so this works where .build is read-only.
 * @param {string} root
 * @returns {Promise<string[]>} one line per finding
 */
export async function checkC(root) {
  const folder = mkdtempSync(join(tmpdir(), "substrate-check-"));
  const sources = filesOf(root, [".c"]).filter((path) => path.startsWith("world/init/"));
  try {
    await compileInit(
      join(folder, "substrate-init"),
      sources.map((path) => join(root, path)),
    );
    return [];
  } catch (error) {
    return [error instanceof Error ? error.message : String(error)];
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
