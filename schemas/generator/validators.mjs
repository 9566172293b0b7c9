import { Ajv } from "ajv";
import standalone from "ajv/dist/standalone/index.js";
import { BANNER, documents } from "./documents.mjs";

/** @typedef {import("./documents.mjs").Schema} Schema */
/** @typedef {import("./documents.mjs").SchemaFile} SchemaFile */

/**
 * The operator's files, where all mistakes are reported at once. Validation of other documents stops at the first error: a body
 * of 10 MiB can hold five million errors.
 */
const EVERY_ERROR = new Set([
  "approvals.schema.json",
  "broker-file.schema.json",
  "config.schema.json",
  "policy-case.schema.json",
  "policy.schema.json",
]);

/** Replaces ajv's run-time import (ajv/dist/runtime/ucs2length.js): length in code points. */
const CODE_POINT_LENGTH = `export function codePointLength(text) {
  let length = text.length;
  for (let at = 0; at + 1 < text.length; at++) {
    if ((text.charCodeAt(at) & 0xfc00) !== 0xd800 || (text.charCodeAt(at + 1) & 0xfc00) !== 0xdc00) continue;
    length--;
    at++;
  }
  return length;
}
`;

/**
 * Writes `validators.js` and a module per document below `validators/`, plain JavaScript without packages: all together take 1.7 MB,
 * and a process should load the few that it uses, so the programs import these modules, and tests `validators.js`.
 * @param {SchemaFile[]} schemas
 * @returns {Map<string, string>} texts by file name
 */
export function validatorsModules(schemas) {
  const head = `// ${BANNER}\n// @ts-nocheck\n`;
  const modules = documents(schemas).map(({ file, schema }) => {
    const name = `validators/${file.replace(".schema.json", ".js")}`;
    return { name, validator: `validate${schema.title}`, code: validatorCode(schemas, file) };
  });
  const faces = modules.map(({ name, validator }) => `export { ${validator} } from "./${name}";\n`);
  return new Map([
    ["validators.js", `${head}${faces.join("")}`],
    ["validators/code-point-length.js", `${head}${CODE_POINT_LENGTH}`],
    ...modules.map(
      ({ name, validator }) =>
        /** @type {const} */ ([name.replace(/js$/, "d.ts"), declarationText(validator)]),
    ),
    ...modules.map(
      ({ name, validator, code }) => /** @type {const} */ ([name, `${head}${moduleText(validator, code)}`]),
    ),
  ]);
}

/** @param {string} validator */
function declarationText(validator) {
  return `export { ${validator} } from "../validators.js";\n`;
}

/**
 * @param {string} validator
 * @param {string} code the body of a function that returns the validator
 */
function moduleText(validator, code) {
  const imported = code.includes("codePointLength")
    ? `import { codePointLength } from "./code-point-length.js";\n`
    : "";
  return `${imported}export const ${validator} = /* @__PURE__ */ (() => {${code}})();\n`;
}

/**
 * Writes `validators.d.ts`: declares the validators as type guards.
 * @param {SchemaFile[]} schemas
 */
export function validatorsDeclaration(schemas) {
  const titles = documents(schemas).map(({ schema }) => schema.title);
  return `// ${BANNER}
import type { ErrorObject } from "ajv";
import type {
${titles.map((title) => `  ${title},\n`).join("")}} from "./types.ts";

/** Whether a value is the document. After a call that returned false, \`errors\` says why until the next call. */
export interface Validator<Document> {
  (value: unknown): value is Document;
  readonly errors?: readonly ErrorObject[] | null;
}

${titles.map((title) => `export declare const validate${title}: Validator<${title}>;\n`).join("")}`;
}

/**
 * Writes the body of a function returning the validator.
 * @param {SchemaFile[]} schemas
 * @param {string} file
 * @returns {string}
 */
function validatorCode(schemas, file) {
  // verbose: errors carry the schema, and `describeErrors` reads words and known fields there.
  const ajv = new Ajv({
    allErrors: EVERY_ERROR.has(file),
    verbose: true,
    allowUnionTypes: true,
    strictTypes: false,
    strictRequired: false,
    code: { source: true, lines: true, optimize: 2 },
  });
  ajv.addVocabulary(["x-wanted", "x-tag", "x-frame", "x-limits"]);
  for (const { schema } of schemas) ajv.addSchema(withoutProse(schema));
  const validate = ajv.getSchema(file);
  if (validate === undefined) throw new Error(`Cannot find the schema '${file}'`);
  return withoutModule(/** @type {any} */ (standalone).default(ajv, validate));
}

/**
 * Strips ajv's CommonJS wrapper from a validator.
 * @param {string} code
 */
function withoutModule(code) {
  const body = code
    .replace('"use strict";', "")
    .replace(/module\.exports = (\w+);\s*module\.exports\.default = \1;/, "")
    .replaceAll('require("ajv/dist/runtime/ucs2length").default', "codePointLength");
  const name = /module\.exports = (\w+);/.exec(code)?.[1];
  const foreign = /require\(|module\.exports/.exec(body);
  if (name === undefined || foreign !== null)
    throw new Error("ajv's standalone code has an unknown frame or imports");
  return `${body}return ${name};\n`;
}

/**
 * Drops descriptions, which only readers of schemas and types need.
 * @param {any} schema
 * @returns {any}
 */
function withoutProse(schema) {
  if (Array.isArray(schema)) return schema.map(withoutProse);
  if (typeof schema !== "object" || schema === null) return schema;
  return Object.fromEntries(
    Object.entries(schema)
      .filter(([keyword, value]) => keyword !== "description" || typeof value !== "string")
      .map(([keyword, value]) => [keyword, withoutProse(value)]),
  );
}
