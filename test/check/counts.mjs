// node test/check/counts.mjs [--json] [--root FOLDER]: how large the house is, and how plain its English. Prints, and judges nothing.
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join, posix, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { commentsOf, englishOf } from "./english.mjs";
import { membersOfCycles } from "./cycles.mjs";
import { includeGraph } from "./includes.mjs";
import { readSource } from "./source.mjs";

const { values } = parseArgs({ options: { root: { type: "string" }, json: { type: "boolean" } } });
const root = resolve(values.root ?? fileURLToPath(new URL("../..", import.meta.url)));

const CODE = /\.(?:ts|mjs|js|c|h)$/;
/** What the product is made of: neither tests nor what a program writes. */
const PRODUCT = /^(?:api|broker|world|shim|lima|schemas)\//;
const GENERATED = /^schemas\/generated\/|^world\/native\/lib\/frames\.h$/;
const files = execFileSync("git", ["ls-files", "-z"], { cwd: root, encoding: "utf8", maxBuffer: 1 << 26 })
  .split("\0")
  .filter((path) => path !== "");
const product = files.filter((path) => PRODUCT.test(path) && CODE.test(path) && !GENERATED.test(path));
const modules = product.filter((path) => /\.(?:ts|mjs|js)$/.test(path));
const markdown = files.filter((path) => path.endsWith(".md"));
const english = englishOf(product.flatMap((path) => commentsOf(path, textOf(path))));

/** @type {Readonly<Record<string, number | string>>} */
const counts = {
  "tracked files": files.length,
  "product lines": sum(product.map(lines)),
  "generated lines in git": sum(files.filter((path) => GENERATED.test(path)).map(lines)),
  "words of Markdown": sum(markdown.map(words)),
  "words of README.md": words("README.md"),
  "files in broker/ itself": files.filter((path) => posix.dirname(path) === "broker").length,
  "largest product folder": largestFolder(),
  "folders in a cycle": membersOfCycles(folderGraph(false)).length,
  "folders in a cycle, types left out": membersOfCycles(folderGraph(true)).length,
  "C modules in a cycle": membersOfCycles(
    includeGraph(
      root,
      product.filter((path) => /\.[ch]$/.test(path)),
    ),
  ).length,
  "pronouns in comments, %": english.pronouns,
  "comments of 60 % function words, %": english.hollow,
};

if (values.json === true) console.log(JSON.stringify(counts));
else for (const [name, count] of Object.entries(counts)) console.log(`${String(count).padStart(8)}  ${name}`);

/** @param {string} path */
function textOf(path) {
  return readFileSync(join(root, path), "utf8");
}

/** @param {readonly number[]} all */
function sum(all) {
  return all.reduce((total, one) => total + one, 0);
}

/** @param {string} path */
function lines(path) {
  return textOf(path).split("\n").length - 1;
}

/** @param {string} path */
function words(path) {
  return textOf(path).split(/\s+/).filter(Boolean).length;
}

function largestFolder() {
  /** @type {Map<string, number>} */
  const sizes = new Map();
  for (const path of product) sizes.set(posix.dirname(path), (sizes.get(posix.dirname(path)) ?? 0) + 1);
  const [folder, size] = [...sizes].sort(([, a], [, b]) => b - a)[0] ?? ["", 0];
  return `${size} (${folder})`;
}

/** Which folder of the product imports which. @param {boolean} onlyValues */
function folderGraph(onlyValues) {
  /** @type {Map<string, Set<string>>} */
  const graph = new Map();
  for (const path of modules) {
    const from = posix.dirname(path);
    const imports = readSource(root, path).imports.filter(({ isType }) => !(onlyValues && isType));
    for (const { from: target } of imports) {
      if (target?.startsWith(".") !== true) continue;
      const to = posix.dirname(posix.join(from, target));
      if (to !== from) graph.set(from, (graph.get(from) ?? new Set()).add(to));
    }
  }
  return graph;
}
