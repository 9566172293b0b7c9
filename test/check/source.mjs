import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parseSync, Visitor } from "oxc-parser";

/**
 * What the gate needs to know of one source file: its imports of every kind (types, re-exports and `import()` too) and
 * the lines that read the environment.
 * @typedef {{ imports: { from: string | undefined, line: number, isType: boolean }[], environment: number[] }} Source
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
  const imported = (/** @type {number} */ start, /** @type {unknown} */ from, isType = false) =>
    source.imports.push({ from: typeof from === "string" ? from : undefined, line: lineOf(start), isType });
  const environment = (/** @type {number} */ start) => source.environment.push(lineOf(start));

  new Visitor({
    ImportDeclaration(node) {
      imported(node.start, node.source.value, isOfTypes(node.importKind, node.specifiers));
      if (node.source.value === "node:process" || node.source.value === "process") environment(node.start);
    },
    ExportAllDeclaration: (node) => void imported(node.start, node.source.value, node.exportKind === "type"),
    ExportNamedDeclaration(node) {
      if (node.source !== null)
        imported(node.start, node.source.value, isOfTypes(node.exportKind, node.specifiers));
    },
    ImportExpression: (node) => void imported(node.start, literal(node.source)),
    TSImportType: (node) => void imported(node.start, literal(node.source), true),
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

/**
 * `import type {…}`, and `import { type A, type B }`.
 * @param {string | undefined} kind
 * @param {readonly object[]} specifiers
 */
function isOfTypes(kind, specifiers) {
  const isType = (/** @type {object} */ one) =>
    ("importKind" in one && one.importKind === "type") || ("exportKind" in one && one.exportKind === "type");
  return kind === "type" || (specifiers.length > 0 && specifiers.every(isType));
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
