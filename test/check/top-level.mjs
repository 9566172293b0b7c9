import { spawnSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { FOLDERS } from "./tree.mjs";

const FILES = [
  "CONTRIBUTING.md",
  "LICENSE",
  "README.md",
  "package-lock.json",
  "package.json",
  "tsconfig.json",
];

/**
 * What lies at the top level and does not belong there.
 * @param {string} root
 * @returns {string[]} one line per finding
 */
export function checkTopLevel(root) {
  const present = new Set(committedPaths(root).map((path) => path.split("/")[0] ?? path));
  const strangers = [...present].filter((name) => !isExpected(name));
  return strangers.sort().map((name) => `'${name}' does not belong at the top level`);
}

/** @param {string} name */
function isExpected(name) {
  return name.startsWith(".") || FILES.includes(name) || FOLDERS.includes(name);
}

/**
 * What git holds; where there is no git or nothing is committed yet, what lies there.
 * @param {string} root
 * @returns {string[]}
 */
function committedPaths(root) {
  // Inside a world the checkout may belong to somebody else; listing its files runs nothing of it.
  const git = spawnSync("git", ["-c", "safe.directory=*", "ls-files", "-z"], { cwd: root, encoding: "utf8" });
  const paths = git.status === 0 ? git.stdout.split("\0").filter((path) => path !== "") : [];
  return paths.length > 0 ? paths : readdirSync(root).filter((name) => name !== "node_modules");
}
