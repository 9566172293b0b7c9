import type { ErrorObject } from "ajv";
import { closestName } from "./closest-name.ts";
import { pathText, pointerOf, valueAt } from "./document-path.ts";
import { foldChoices } from "./fold-choices.ts";
import { quotedText, quotedValue } from "./quoted-value.ts";
import { wantedBy } from "./wanted-words.ts";

/** A fault in a document. */
export interface DocumentProblem {
  /** Place of the fault: `commands.denied[2].pattern`, `env.FOO`; empty for the whole document. */
  readonly path: string;
  /** A sentence without a full stop: place, wanted value, received value. */
  readonly message: string;
  /** Steps of `path`, for finding line and column. For a missing field, the steps of the incomplete object. */
  readonly pointer: (string | number)[];
}

/** Maximum of reported problems: more than a person reads, and a large invalid file must not make as large a report. */
const MOST = 50;

/** Errors looked at: a body can have two hundred thousand fields that nobody knows. */
const MOST_READ = 1000;

/**
 * Translates a validator's errors for the author of the document, most useful first: misspelt fields (often the cause of missing
 * fields), missing fields, wrong types, wrong values. Never empty if `errors` is not empty.
 */
export function describeErrors(document: unknown, errors: readonly ErrorObject[]): DocumentProblem[] {
  const ranked = foldChoices(errors.filter((error) => !isEcho(error)).slice(0, MOST_READ))
    .map((error) => ({ rank: rankOf(error), problem: problemOf(document, error) }))
    .sort((a, b) => a.rank - b.rank);
  const distinct = new Map(ranked.map(({ problem }) => [`${problem.path}\n${problem.message}`, problem]));
  return [...distinct.values()].slice(0, MOST);
}

/** Whether an error only repeats another error. */
function isEcho(error: ErrorObject): boolean {
  return error.keyword === "if" || error.keyword === "propertyNames";
}

function rankOf(error: ErrorObject): number {
  switch (error.keyword) {
    case "additionalProperties":
      return 0;
    case "required":
    case "oneOf":
      return 1;
    case "type":
      return 2;
    default:
      return 3;
  }
}

function problemOf(document: unknown, error: ErrorObject): DocumentProblem {
  const pointer = pointerOf(document, error.instancePath);
  switch (error.keyword) {
    case "additionalProperties":
      return unknownField(error, pointer);
    case "required":
      return missingField(error, pointer);
    default:
      return error.propertyName === undefined
        ? wrongValue(document, error, pointer)
        : wrongName(error, pointer);
  }
}

function unknownField(error: ErrorObject, pointer: (string | number)[]): DocumentProblem {
  const { additionalProperty } = error.params;
  const { properties = {} } = (error.parentSchema ?? {}) as { properties?: object };
  const name = String(additionalProperty);
  const known = Object.keys(properties);
  const close = closestName(name, known);
  const there = known.length === 0 ? "no field is known here" : `known here: ${known.join(", ")}`;
  const hint = close === undefined ? there : `did you mean '${close}'?`;
  return problem([...pointer, name], (path) => `Unknown field '${path}' (${hint})`);
}

function missingField(error: ErrorObject, pointer: (string | number)[]): DocumentProblem {
  const { missingProperty } = error.params;
  const name = String(missingProperty);
  const path = pathText([...pointer, name]);
  return { path, message: `Field '${path}' is required and missing`, pointer };
}

function wrongName(error: ErrorObject, pointer: (string | number)[]): DocumentProblem {
  const name = error.propertyName ?? "";
  const where = pointer.length === 0 ? "the document" : `'${pathText(pointer)}'`;
  return problem(
    [...pointer, name],
    () => `A name in ${where} must be ${wantedBy(error)}; received ${quotedText(name)}`,
  );
}

function wrongValue(document: unknown, error: ErrorObject, pointer: (string | number)[]): DocumentProblem {
  const received = receivedBy(error, valueAt(document, pointer));
  const subject = (path: string): string => (path === "" ? "The document" : `'${path}'`);
  return problem(
    pointer,
    (path) => `${subject(path)} must ${verbOf(error)} ${wantedBy(error)}; received ${received}`,
  );
}

function verbOf(error: ErrorObject): string {
  return error.keyword === "oneOf" ? "have" : "be";
}

/** Received value for the message: "neither" or "both" for exclusive fields, a length for text length, else the value. */
function receivedBy(error: ErrorObject, value: unknown): string {
  const { passingSchemas } = error.params;
  if (error.keyword === "oneOf") return passingSchemas === null ? "neither" : "both";
  if (typeof value === "string" && ["maxLength", "minLength"].includes(error.keyword)) {
    return `${value.length} characters`;
  }
  return quotedValue(value);
}

function problem(pointer: (string | number)[], message: (path: string) => string): DocumentProblem {
  const path = pathText(pointer);
  return { path, message: message(path), pointer };
}
