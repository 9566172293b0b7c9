import { BANNER } from "./documents.mjs";

/** @typedef {import("./documents.mjs").Schema} Schema */
/** @typedef {import("./documents.mjs").SchemaFile} SchemaFile */
/** @typedef {{ readonly schema: any, readonly file: string }} Place */

/**
 * A section of a page: heading, text, and the document whose keys are listed.
 * @typedef {{ readonly title: string, readonly text: string, readonly file: string }} Part
 */

/** @type {readonly Part[]} */
const POLICIES = [
  {
    title: "A policy",
    file: "policy.schema.json",
    text: "`~/.substrate/policies/<id>.yaml`; `id` and `name` are required. [How the lists work together](README.md).",
  },
  {
    title: "The operator's settings",
    file: "config.schema.json",
    text: "`~/.substrate/config.yaml`. A file that does not validate changes nothing.",
  },
];

/** @type {readonly Part[]} */
const CALLS = [
  { title: "POST /v1/execute, POST /v1/check", file: "execute-request.schema.json", text: "The body:" },
  {
    title: "POST /v1/check about files",
    file: "check-files-request.schema.json",
    text: "The body, with `files` in place of a command:",
  },
  { title: "POST /v1/files", file: "files-request.schema.json", text: "The body:" },
  { title: "The reply of execute", file: "execute-reply.schema.json", text: "With `format: full`:" },
  { title: "POST /v1/request_scopes", file: "request-scopes-request.schema.json", text: "The body:" },
  { title: "POST /v1/replay/:span_id", file: "replay-request.schema.json", text: "The body:" },
  { title: "POST /v1/apply, discard, undo/:span_id", file: "changes-request.schema.json", text: "The body:" },
  { title: "POST /v1/events", file: "event-request.schema.json", text: "The body:" },
  { title: "POST /v1/report", file: "report-request.schema.json", text: "The body:" },
];

/**
 * Writes `policies/REFERENCE.md`: all keys of policies and settings, with values and meaning.
 * @param {SchemaFile[]} schemas
 */
export function policiesReference(schemas) {
  return page("Every key", POLICIES, schemas);
}

/**
 * Writes `api/REFERENCE.md`: all fields of agents' requests and of the reply to a command.
 * @param {SchemaFile[]} schemas
 */
export function apiReference(schemas) {
  return page("Every field", CALLS, schemas);
}

/**
 * @param {string} heading
 * @param {readonly Part[]} parts
 * @param {SchemaFile[]} schemas
 */
function page(heading, parts, schemas) {
  const files = new Map(schemas.map(({ file, schema }) => [file, schema]));
  /** @type {Map<string, Place>} Values shared by several keys: explained once, at the end. */
  const named = new Map();
  const sections = parts.map(({ title, file, text }) => {
    const keys = keysOf({ schema: schemaOf(files, file), file }, "", { files, named });
    return `## ${title}\n\n${text}\n\n${keys.join("\n")}\n`;
  });
  const values = valuesOfAll(named, files).join("\n");
  return [`<!-- ${BANNER} -->\n`, `# ${heading}\n`, ...sections, `## Values\n\n${values}\n`].join("\n");
}

/**
 * Writes a line for each shared value, including values named only by other values.
 * @param {Map<string, Place>} named
 * @param {ReadonlyMap<string, Schema>} files
 */
function valuesOfAll(named, files) {
  const lines = [];
  // Iteration over a Map includes entries added meanwhile.
  for (const [name, place] of named) lines.push(`- *${name}*: ${meaning(place, { files, named })}`);
  return lines;
}

/** @typedef {{ readonly files: ReadonlyMap<string, Schema>, readonly named: Map<string, Place> }} Page */

/**
 * Writes a line for each key of an object; keys of nested objects have the full name (`fs.read`).
 * @param {Place} place
 * @param {string} above
 * @param {Page} page
 * @returns {string[]}
 */
function keysOf({ schema, file }, above, page) {
  const { properties = {}, additionalProperties } = schema.allOf?.[0] ?? schema;
  const keys = Object.entries(properties).flatMap(([name, value]) =>
    linesOf({ schema: value, file }, above === "" ? name : `${above}.${name}`, page),
  );
  if (typeof additionalProperties !== "object" || above === "") return keys;
  return [...keys, ...linesOf({ schema: additionalProperties, file }, `${above}.NAME`, page)];
}

/**
 * @param {Place} place
 * @param {string} name
 * @param {Page} page
 * @returns {string[]}
 */
function linesOf(place, name, page) {
  const below = place.schema.$ref === undefined ? keysOf(place, name, page) : [];
  const text = [valuesOf(place, page), escaped(place.schema.description)].filter(Boolean).join(". ");
  return [`- \`${name}\`: ${text}`, ...below];
}

/**
 * Lists the values of a key; undefined if the description names the values.
 * @param {Place} place
 * @param {Page} page
 * @returns {string | undefined}
 */
function valuesOf({ schema, file }, page) {
  if (schema.$ref !== undefined) return nameOf({ schema, file }, page);
  if (schema.enum !== undefined)
    return schema.enum.map((/** @type {string} */ value) => `\`${value}\``).join(", ");
  if (schema.type === "boolean" && !/true|false/.test(schema.description)) return "`true` or `false`";
  if (schema.items?.$ref !== undefined) return `a list of ${nameOf({ schema: schema.items, file }, page)}`;
  return schema.type === "array" ? "a list" : undefined;
}

/**
 * @param {Place} place a reference
 * @param {Page} page
 */
function nameOf({ schema, file }, { files, named }) {
  const [other, part = ""] = schema.$ref.split("#/definitions/");
  const target = other === "" ? file : other;
  const definition = schemaOf(files, target).definitions?.[part];
  if (definition === undefined) throw new Error(`${file} refers to ${schema.$ref}, which is not there`);
  const name = part.replaceAll("_", " ");
  named.set(name, { schema: definition, file: target });
  return `*${name}*`;
}

/**
 * @param {Place} place
 * @param {Page} page
 */
function meaning(place, page) {
  const { enum: words = [], description } = place.schema;
  const keys = keysOf(place, "", page).map((line) => line.slice("- ".length));
  return [
    escaped(description),
    words.map((/** @type {string} */ word) => `\`${word}\``).join(", "),
    keys.join(" "),
  ]
    .filter(Boolean)
    .join(" ");
}

/**
 * Escapes stars outside of backquotes, so Markdown shows literal stars.
 * @param {string | undefined} text
 */
function escaped(text) {
  return text?.replace(/`[^`]*`|\*/g, (part) => (part === "*" ? "\\*" : part));
}

/**
 * @param {ReadonlyMap<string, Schema>} files
 * @param {string} file
 * @returns {Schema}
 */
function schemaOf(files, file) {
  const schema = files.get(file);
  if (schema === undefined) throw new Error(`There is no ${file}`);
  return schema;
}
