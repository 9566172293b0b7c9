import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parseSync, Visitor } from "oxc-parser";

/**
 * What the gate needs to know of one source file: its imports of every kind (types, re-exports and `import()` too) and
 * the lines that read the environment.
 * @typedef {{ imports: { from: string | undefined, line: number }[], environment: number[] }} Source
 */

/**
 * Parses one file. Throws when it does not parse.
 * @param {string} root
 * @param {string} path
 * @returns {Source}
 */
export function readSource(root, path) {
  const text = readFileSync(join(root, path), "utf8");
  const { program, errors } = parseSync(path, text);
  if (errors[0] !== undefined) throw new Error(`${path} does not parse: ${errors[0].message}`);

  /** @type {Source} */
  const source = { imports: [], environment: [] };
  const lineOf = (/** @type {number} */ offset) => text.slice(0, offset).split("\n").length;
  const imported = (/** @type {number} */ start, /** @type {unknown} */ from) =>
    source.imports.push({ from: typeof from === "string" ? from : undefined, line: lineOf(start) });
  const environment = (/** @type {number} */ start) => source.environment.push(lineOf(start));

  new Visitor({
    ImportDeclaration(node) {
      imported(node.start, node.source.value);
      if (node.source.value === "node:process" || node.source.value === "process") environment(node.start);
    },
    ExportAllDeclaration: (node) => void imported(node.start, node.source.value),
    ExportNamedDeclaration(node) {
      if (node.source !== null) imported(node.start, node.source.value);
    },
    ImportExpression: (node) => void imported(node.start, literal(node.source)),
    TSImportType: (node) => void imported(node.start, literal(node.source)),
    MemberExpression(node) {
      if (isProcess(node.object) && nameOf(node.property) === "env") environment(node.start);
    },
    VariableDeclarator(node) {
      if (node.id.type === "ObjectPattern" && node.init !== null && isProcess(node.init))
        environment(node.start);
    },
  }).visit(program);
  return source;
}

/** @param {{ type: string }} node */
function literal(node) {
  return "value" in node ? node.value : undefined;
}

/** @param {{ type: string }} node */
function isProcess(node) {
  return nameOf(node) === "process" || ("property" in node && nameOf(node.property) === "process");
}

/** @param {unknown} node an identifier, or the string of `process["env"]` */
function nameOf(node) {
  if (typeof node !== "object" || node === null) return undefined;
  if ("name" in node) return node.name;
  return "value" in node ? node.value : undefined;
}
