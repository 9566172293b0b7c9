import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { BUILD } from "./checkout.mjs";

/**
 * Record of earlier runs: for each step a fingerprint of the inputs.
 * @typedef {{
 *   packages?: string,
 *   tools?: { missing: string[], at: number },
 *   init?: string,
 *   shim?: string,
 *   front?: string,
 *   sh?: string,
 *   preload?: string,
 *   prebuilds?: string,
 *   validators?: string,
 *   bundle?: { inputs: string, files: string[] },
 * }} Stamp
 */

const FILE = join(BUILD, "setup.json");

/**
 * Reads the stamp. A missing or unreadable stamp counts as empty: all steps run again, which is safe.
 * @returns {Stamp}
 */
export function readStamp() {
  try {
    return JSON.parse(readFileSync(FILE, "utf8"));
  } catch {
    return {};
  }
}

/** @param {Stamp} changes */
export function updateStamp(changes) {
  writeWhole(FILE, `${JSON.stringify({ ...readStamp(), ...changes }, null, 2)}\n`);
}

/**
 * Replaces a file atomically: readers never see half a file.
 * @param {string} path
 * @param {string | Uint8Array} content
 */
export function writeWhole(path, content) {
  mkdirSync(BUILD, { recursive: true });
  const draft = `${path}.${process.pid}.tmp`;
  writeFileSync(draft, content);
  renameSync(draft, path);
}
