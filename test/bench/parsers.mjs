/**
 * Which parser reads the corpus as bash runs it, what it costs to load, and what to use. The parsers are installed into a
 * folder of their own. Usage: node test/bench/parsers.mjs [--folder F, where they are installed already].
 */
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { bundled } from "../corpus/bundle.mjs";
import { median } from "./numbers.mjs";
import { bashParser, justBash, mvdan, treeSitter } from "./parser-adapters.mjs";

const PACKAGES = [
  "unbash@6.0.4",
  "web-tree-sitter@0.27.1",
  "tree-sitter-bash@0.25.1",
  "just-bash@3.4.2",
  "bash-parser@0.5.0",
  "mvdan-sh@0.10.1",
];
const COLD_STARTS = 15;
const ROUNDS = 5;
const CORPUS = join(import.meta.dirname, "../corpus");

const { values } = parseArgs({ options: { folder: { type: "string" } } });
const folder = values.folder ?? mkdtempSync(join(tmpdir(), "substrate-parsers-"));
const scoring = await bundled(join(CORPUS, "parser-score-entry.ts"), CORPUS);
try {
  if (values.folder === undefined)
    execFileSync("npm", [
      "install",
      "--no-save",
      "--ignore-scripts",
      "--no-audit",
      "--no-fund",
      "--prefix",
      folder,
      ...PACKAGES,
    ]);
  await compare();
} finally {
  rmSync(scoring, { force: true });
  if (values.folder === undefined) rmSync(folder, { recursive: true, force: true });
}

async function compare() {
  const { corpus, outcomeOf, withUnbash } = await import(scoring);
  const recorded = JSON.parse(readFileSync(join(CORPUS, "executed.json"), "utf8")).commands;
  const commands = corpus().filter(
    (/** @type {{ expectation: string }} */ { expectation }) => expectation === "read",
  );
  process.stdout.write(`${commands.length} commands; Node ${process.version}\n`);
  process.stdout.write("parser              read  missed  refused  cold load ms  µs per parse\n");
  /** @type {{ name: string, outcomes: string[], cold: number, each: number }[]} */
  const rows = [];
  const texts = commands.map((/** @type {{ text: string }} */ { text }) => text);
  for (const [name, packages, make] of candidates(withUnbash)) {
    const parser = await make();
    const outcomes = texts.map((/** @type {string} */ text) => outcomeOf(parser, text, recorded[text].bash));
    const cold = median(Array.from({ length: COLD_STARTS }, () => coldLoad(packages)));
    rows.push({ name, outcomes, cold, each: timePerParse(parser, texts) });
  }
  print(rows, texts.length);
}

/**
 * What no parser can know by itself (variables, what is piped into a shell) is read by the product's own steps: commands
 * that all of them miss are told apart.
 * @param {{ name: string, outcomes: string[], cold: number, each: number }[]} rows
 * @param {number} count
 */
function print(rows, count) {
  const beyond = (/** @type {number} */ at) => rows.every(({ outcomes }) => outcomes[at] !== "read");
  const places = Array.from({ length: count }, (_, at) => at).filter((at) => !beyond(at));
  process.stdout.write(`${count - places.length} need more than a parser: not counted\n`);
  for (const { name, outcomes, cold, each } of rows) {
    const counted = (/** @type {string} */ wanted) => places.filter((at) => outcomes[at] === wanted).length;
    const cells = [counted("read"), counted("missed"), counted("refused"), cold.toFixed(1), each.toFixed(1)];
    process.stdout.write(`${name.padEnd(16)}${cells.map((one) => String(one).padStart(9)).join("")}\n`);
  }
}

/** @param {import("./parser-adapters.mjs").Parser} withUnbash @returns {[string, string[], () => Promise<import("./parser-adapters.mjs").Parser>][]} */
function candidates(withUnbash) {
  const wasm = join(folder, "node_modules/tree-sitter-bash/tree-sitter-bash.wasm");
  return [
    ["unbash", ["unbash"], () => Promise.resolve(withUnbash)],
    ["tree-sitter-bash", ["web-tree-sitter", wasm], () => treeSitter(load, wasm)],
    ["just-bash", ["just-bash"], () => justBash(load)],
    ["mvdan-sh", ["mvdan-sh"], () => mvdan(load)],
    ["bash-parser", ["bash-parser"], () => bashParser(load)],
  ];
}

/** @param {string} name */
function load(name) {
  return import(pathOf(name));
}

/** @param {string} name */
function pathOf(name) {
  return pathToFileURL(createRequire(join(folder, "x.js")).resolve(name)).href;
}

/** From nothing to the first answer, in a process of its own, without the start of Node. @param {string[]} packages */
function coldLoad([name = "", wasm]) {
  const path = JSON.stringify(pathOf(name));
  const parse = {
    unbash: "m.parse('ls | wc')",
    "just-bash": "m.parse('ls | wc')",
    "mvdan-sh": "m.default.syntax.NewParser().Parse('ls | wc', 'x')",
    "bash-parser": "m.default('ls | wc')",
    "web-tree-sitter": `await m.Parser.init(); const p = new m.Parser(); p.setLanguage(await m.Language.load(${JSON.stringify(wasm)})); p.parse('ls | wc')`,
  }[name];
  const program = `const s = performance.now(); const m = await import(${path}); ${parse}; console.log(performance.now() - s)`;
  return Number(execFileSync(process.execPath, ["--input-type=module", "-e", program], { encoding: "utf8" }));
}

/** Median of rounds over all texts, in microseconds. @param {import("./parser-adapters.mjs").Parser} parser @param {string[]} texts */
function timePerParse(parser, texts) {
  const round = () => {
    const start = performance.now();
    for (const text of texts) {
      try {
        parser(text);
      } catch {
        // A refusal costs time too.
      }
    }
    return ((performance.now() - start) * 1000) / texts.length;
  };
  round();
  return median(Array.from({ length: ROUNDS }, round));
}
