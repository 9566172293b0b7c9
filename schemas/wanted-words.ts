import type { ErrorObject } from "ajv";
import { closestName } from "./closest-name.ts";

/** Schema keywords used in messages. */
type Limits = {
  readonly type?: unknown;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly "x-wanted"?: unknown;
};

const TYPES: Readonly<Record<string, string>> = {
  array: "a list",
  boolean: "true or false",
  integer: "an integer",
  null: "null",
  number: "a number",
  object: "an object",
  string: "a string",
};

/** Describes the wanted value, to follow "must be". `x-wanted` holds a schema's own description. */
export function wantedBy(error: ErrorObject): string {
  const { limit, wanted, allowedValue } = error.params;
  const schema = (error.parentSchema ?? {}) as Limits;
  switch (error.keyword) {
    case "type":
      return wantedType(error, schema);
    case "anyOf":
      return anyType(wanted);
    case "enum":
      return wantedEnum(error);
    case "const":
      return JSON.stringify(allowedValue);
    case "minimum":
    case "maximum":
      return range(schema, limit);
    case "minLength":
      return `at least ${count(limit, "character")}`;
    case "maxLength":
      return `at most ${count(limit, "character")}`;
    case "minItems":
      return `a list of at least ${count(limit, "item")}`;
    case "maxItems":
      return `a list of at most ${count(limit, "item")}`;
    case "maxProperties":
      return `an object of at most ${count(limit, "field")}`;
    default:
      return ownWords(schema) ?? `what the schema says (${error.message ?? error.keyword})`;
  }
}

/** Describes the wanted type: `a string`, `an integer from 1 to 86400000`, `a string: an absolute path`. */
function wantedType(error: ErrorObject, schema: Limits): string {
  const { type } = error.params;
  const own = ownWords(schema);
  if (own !== undefined && [type].flat().includes("string")) return `${anyType(type)}: ${own}`;
  return type === "integer" ? range(schema) : anyType(type);
}

function wantedEnum(error: ErrorObject): string {
  const { allowedValues } = error.params;
  const allowed = [allowedValues].flat().map(String);
  const close = typeof error.data === "string" ? closestName(error.data, allowed) : undefined;
  return `one of ${allowed.join(", ")}${close === undefined ? "" : ` (did you mean '${close}'?)`}`;
}

/** Names both limits: a reader who exceeded one limit needs the other too. A maximum of 2^53 - 1 is omitted unless exceeded. */
function range({ type, minimum, maximum }: Limits, limit?: unknown): string {
  const noun = type === "integer" ? "an integer" : "a number";
  const bounded = maximum !== undefined && (maximum !== Number.MAX_SAFE_INTEGER || limit === maximum);
  if (minimum !== undefined && bounded) return `${noun} from ${minimum} to ${maximum}`;
  if (minimum !== undefined) return `${noun}, at least ${minimum}`;
  return bounded ? `${noun}, at most ${maximum}` : noun;
}

function ownWords({ "x-wanted": words }: Limits): string | undefined {
  return typeof words === "string" ? words : undefined;
}

function anyType(types: unknown): string {
  return [types]
    .flat()
    .map((type) => TYPES[String(type)] ?? String(type))
    .join(" or ");
}

function count(limit: unknown, noun: string): string {
  return limit === 1 ? `1 ${noun}` : `${String(limit)} ${noun}s`;
}
