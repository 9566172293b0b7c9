import type { ErrorObject } from "ajv";
import { closestName } from "./closest-name.ts";
import { pathText, pointerOf, valueAt } from "./document-path.ts";
import { foldChoices } from "./fold-choices.ts";
import { quotedText, quotedValue } from "./quoted-value.ts";
import { wantedBy } from "./wanted-words.ts";

/** One thing that is wrong with a document. */
export interface DocumentProblem {
  /** Where: `commands.denied[2].pattern`, `env.FOO`; empty for the document itself. */
  readonly path: string;
  /** A whole sentence without a full stop that names the place, what was wanted and what was received. */
  readonly message: string;
  /** The steps of `path`, to find line and column. For a missing field: those of the object that lacks it. */
  readonly pointer: (string | number)[];
}

/** More than a person reads; a file of errors must not become a file of messages. */
const MOST = 50;

/**
 * What the errors of a validator mean for the one who wrote the document, the most useful first: misspelt fields
 * (often the cause of missing ones), missing fields, wrong types, wrong values. At least one for any error.
 */
export function describeErrors(document: unknown, errors: readonly ErrorObject[]): DocumentProblem[] {
  const ranked = foldChoices(errors)
    .filter((error) => !isEcho(error))
    .map((error) => ({ rank: rankOf(error), problem: problemOf(document, error) }))
    .sort((a, b) => a.rank - b.rank);
  const distinct = new Map(ranked.map(({ problem }) => [`${problem.path}\n${problem.message}`, problem]));
  return [...distinct.values()].slice(0, MOST);
}

/** Errors that only repeat that another one happened. */
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

/** Of several exclusive fields, how many; of everything else, the value. */
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
