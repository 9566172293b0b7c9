import { BANNER, framesSchema } from "./documents.mjs";

/** @typedef {import("./documents.mjs").Schema} Schema */
/** @typedef {import("./documents.mjs").SchemaFile} SchemaFile */
/** @typedef {{ name: string, value: number, description: string }} Constant */

/**
 * Writes `frames.ts`: frame numbers and tags as tables.
 * @param {SchemaFile[]} schemas
 */
export function framesModule(schemas) {
  const schema = framesSchema(schemas);
  return [
    `/* ${BANNER} */\n`,
    ...limits(schema).map(
      ({ name, value, description }) => `/** ${description} */\nexport const ${name} = ${value};\n`,
    ),
    table("FRAME", "A frame's type by its name.", frames(schema)),
    table("TAG", "A field's tag by its name.", tags(schema)),
  ].join("\n");
}

/**
 * Writes `frames.h`: the same numbers for substrate-init.
 * @param {SchemaFile[]} schemas
 */
export function framesHeader(schemas) {
  const schema = framesSchema(schemas);
  return [
    `/* ${BANNER} */`,
    "#ifndef SUBSTRATE_FRAMES_H\n#define SUBSTRATE_FRAMES_H\n",
    ...limits(schema).map((each) => define("", each)),
    "",
    ...frames(schema).map((each) => define("FRAME_", each)),
    "",
    ...tags(schema).map((each) => define("TAG_", each)),
    "\n#endif\n",
  ].join("\n");
}

/**
 * @param {string} prefix
 * @param {Constant} constant
 */
function define(prefix, { name, value, description }) {
  return `/* ${description} */\n#define ${prefix}${name} ${value}`;
}

/**
 * @param {string} name
 * @param {string} description
 * @param {Constant[]} constants
 */
function table(name, description, constants) {
  const rows = constants.map((each) => `  /** ${each.description} */\n  ${each.name}: ${each.value},\n`);
  return `/** ${description} */\nexport const ${name} = {\n${rows.join("")}} as const;\n`;
}

/**
 * @param {Schema} schema
 * @returns {Constant[]}
 */
function limits(schema) {
  return Object.entries(schema["x-limits"] ?? {}).map(([name, { value, description }]) => ({
    name,
    value,
    description,
  }));
}

/**
 * @param {Schema} schema
 * @returns {Constant[]}
 */
function frames(schema) {
  return distinct(
    framesOf(schema).map(({ description, frame: { name, number, from, id, payload } }) => ({
      name,
      value: number,
      description: `${from} → ${from === "init" ? "broker" : "init"}, id ${id}, ${payload}: ${description}`,
    })),
  );
}

/**
 * Lists all tags, sorted by number. A tag has the same meaning in all frames.
 * @param {Schema} schema
 * @returns {Constant[]}
 */
function tags(schema) {
  /** @type {Map<number, Constant>} */
  const byNumber = new Map();
  for (const { properties } of framesOf(schema)) {
    for (const [key, field] of Object.entries(properties)) {
      const name = key.toUpperCase();
      const value = field["x-tag"];
      if (value === undefined) throw new Error(`The field '${key}' of a frame has no x-tag`);
      const known = byNumber.get(value);
      if (known !== undefined && known.name !== name)
        throw new Error(`Tag ${value} is both ${known.name} and ${name}`);
      byNumber.set(value, known ?? { name, value, description: `${kindOf(field)}: ${field.description}` });
    }
  }
  return distinct([...byNumber.values()]).sort((a, b) => a.value - b.value);
}

/** @param {Schema} field */
function kindOf(field) {
  if (field.type === "array") return "repeated text";
  if (field.type === "integer") return "u64";
  return field.type === "string" ? "text" : "bytes";
}

/**
 * @param {Constant[]} constants
 * @returns {Constant[]}
 */
function distinct(constants) {
  const names = new Set(constants.map(({ name }) => name));
  const values = new Set(constants.map(({ value }) => value));
  if (names.size < constants.length || values.size < constants.length) {
    throw new Error("Two frames or two tags share a name or a number in world-frames.schema.json");
  }
  return constants;
}

/** @param {Schema} schema */
function framesOf(schema) {
  return Object.entries(schema.definitions ?? {}).map(([name, part]) => {
    const frame = part["x-frame"];
    if (frame === undefined)
      throw new Error(`The definition '${name}' of world-frames.schema.json has no x-frame`);
    return { part, frame, description: part.description, properties: part.properties ?? {} };
  });
}
