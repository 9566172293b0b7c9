import { compile } from "json-schema-to-typescript";
import { BANNER, documents } from "./documents.mjs";

/** @typedef {import("./documents.mjs").Schema} Schema */
/** @typedef {import("./documents.mjs").SchemaFile} SchemaFile */

/** Characters of a line, as `.biome.json` has it. */
const WIDTH = 110;

/** Keywords without an equivalent in TypeScript types. */
const RULES = new Set(["if", "then", "else", "not", "propertyNames", "dependencies", "$id", "$schema"]);

/**
 * Writes `types.ts`: the types of all documents and shared definitions, named by title, deeply readonly.
 * @param {SchemaFile[]} schemas
 * @returns {Promise<string>}
 */
export async function typesModule(schemas) {
  /** @type {{ [name: string]: unknown }} */
  const parts = {};
  const titles = titlesByReference(schemas);
  const whole = new Set(documents(schemas).map(({ file }) => file));
  for (const { file, schema } of schemas) {
    if (file.startsWith("world-frames.")) continue;
    if (whole.has(file)) parts[schema.title] = shapeOf(schema, file, titles);
    for (const part of Object.values(schema.definitions ?? {}))
      parts[part.title] = shapeOf(part, file, titles);
  }
  return typesOf(parts);
}

/**
 * @param {{ [name: string]: unknown }} parts schemas by type name, referring to each other by `#/definitions/<name>`
 * @returns {Promise<string>}
 */
async function typesOf(parts) {
  const root = { title: "Root", type: "object", additionalProperties: false, definitions: parts };
  const code = await compile(/** @type {any} */ (root), "Root", {
    bannerComment: `/* ${BANNER} */`,
    additionalProperties: false,
    ignoreMinAndMaxItems: true,
    unknownAny: true,
    unreachableDefinitions: true,
    style: { printWidth: WIDTH, semi: true, singleQuote: false, trailingComma: "all" },
  });
  return onOneLine(readonly(withoutRoot(code)));
}

/**
 * @param {SchemaFile[]} schemas
 * @returns {Map<string, string>} type name by absolute reference
 */
function titlesByReference(schemas) {
  const titles = new Map();
  for (const { file, schema } of schemas) {
    titles.set(file, schema.title);
    for (const [name, part] of Object.entries(schema.definitions ?? {})) {
      if (typeof part.title !== "string") throw new Error(`${file}: definition '${name}' has no title`);
      titles.set(`${file}#/definitions/${name}`, part.title);
    }
  }
  return titles;
}

/**
 * Reduces a schema to the parts expressible as a type. The first member of `allOf` is an object's shape; other members are rules.
 * @param {any} schema
 * @param {string} file
 * @param {Map<string, string>} titles
 * @returns {any}
 */
function shapeOf(schema, file, titles) {
  if (Array.isArray(schema)) return schema.map((each) => shapeOf(each, file, titles));
  if (typeof schema !== "object" || schema === null) return schema;
  if (typeof schema.$ref === "string") return { $ref: `#/definitions/${titleOf(schema.$ref, file, titles)}` };
  const { allOf, definitions: _, ...rest } = schema;
  const merged = allOf === undefined ? rest : { ...rest, ...allOf[0] };
  return Object.fromEntries(
    Object.entries(merged)
      .filter(([keyword]) => !RULES.has(keyword) && !keyword.startsWith("x-"))
      .map(([keyword, value]) => [
        keyword,
        keyword === "properties" ? propertiesOf(value, file, titles) : shapeOf(value, file, titles),
      ]),
  );
}

/**
 * @param {{ [name: string]: unknown }} properties
 * @param {string} file
 * @param {Map<string, string>} titles
 */
function propertiesOf(properties, file, titles) {
  return Object.fromEntries(
    Object.entries(properties).map(([name, each]) => [name, shapeOf(each, file, titles)]),
  );
}

/**
 * @param {string} reference
 * @param {string} file
 * @param {Map<string, string>} titles
 */
function titleOf(reference, file, titles) {
  const title = titles.get(reference.startsWith("#") ? `${file}${reference}` : reference);
  if (title === undefined) throw new Error(`${file} refers to '${reference}', which does not exist`);
  return title;
}

/** @param {string} code */
function withoutRoot(code) {
  return code
    .replace(/(?:\/\*\*(?:(?!\*\/)[\s\S])*\*\/\n)?export interface Root \{\}\n/, "")
    .replace(
      / \*\n \* This interface was referenced by `Root`'s JSON-Schema\n \* via the `definition` "[^"]*"\.\n/g,
      "",
    )
    .replace(
      /\/\*\*\n \* This interface was referenced by `Root`'s JSON-Schema\n \* via the `definition` "[^"]*"\.\n \*\/\n/g,
      "",
    );
}

/**
 * Puts a comment of one sentence on one line where it fits, as in the rest of the code.
 * @param {string} code
 */
function onOneLine(code) {
  return code.replace(/^( *)\/\*\*\n\1 \* (.*)\n\1 \*\/$/gm, (whole, indent, text) =>
    `${indent}/** ${text} */`.length <= WIDTH ? `${indent}/** ${text} */` : whole,
  );
}

/**
 * Makes all properties and lists readonly: no code changes a document in place.
 * @param {string} code
 */
function readonly(code) {
  return code
    .replace(/^( +)((?:"[^"]+"|[A-Za-z_$][\w$]*)\??: |\[k: string\]: )/gm, "$1readonly $2")
    .replace(/([:=]) (\(?[\w" |]+\)?\[\])/g, "$1 readonly $2");
}
