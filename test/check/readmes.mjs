import { existsSync, statSync } from "node:fs";
import { join } from "node:path";
import { FOLDERS } from "./tree.mjs";

const ALSO = ["", "world/native"];

/**
 * Folders without a README.
 * @param {string} root
 * @returns {string[]} one line per finding
 */
export function checkReadmes(root) {
  return [...ALSO, ...FOLDERS]
    .map((folder) => join(folder, "README.md"))
    .filter((path) => !existsSync(join(root, path)) || statSync(join(root, path)).size === 0)
    .map((path) => `${path} is missing or empty`);
}
