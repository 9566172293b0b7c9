import type { ErrorObject } from "ajv";

/**
 * Reduces the errors of a failed `anyOf` or `oneOf`. ajv reports the errors of every choice, then the error of the keyword. If a
 * single choice has the received type, only the errors of the choice remain; else a single error names the types of all choices.
 */
export function foldChoices(errors: readonly ErrorObject[]): ErrorObject[] {
  const folded: ErrorObject[] = [];
  for (const error of errors) {
    if (error.keyword !== "anyOf" && error.keyword !== "oneOf") {
      folded.push(error);
      continue;
    }
    const start = startOfChoices(folded, error);
    folded.push(...oneAnswer(error, folded.splice(start)));
  }
  return folded;
}

/** Index of the first error of the choices: ajv lists them right before the error of `anyOf` or `oneOf`. */
function startOfChoices(folded: readonly ErrorObject[], choice: ErrorObject): number {
  let start = folded.length;
  while (start > 0 && belongsTo(folded[start - 1], choice)) start--;
  return start;
}

function belongsTo(error: ErrorObject | undefined, choice: ErrorObject): boolean {
  if (error === undefined) return false;
  const inside =
    error.instancePath === choice.instancePath || error.instancePath.startsWith(`${choice.instancePath}/`);
  return inside && (error.schemaPath.startsWith(`${choice.schemaPath}/`) || isReferred(error.schemaPath));
}

/** Whether the path begins at a referenced schema: behind a `$ref`, ajv starts a new path. */
function isReferred(schemaPath: string): boolean {
  return !schemaPath.startsWith("#") || schemaPath.startsWith("#/definitions/");
}

function oneAnswer(choice: ErrorObject, errors: readonly ErrorObject[]): ErrorObject[] {
  if (choice.keyword === "oneOf") return [choice];
  const fitting = branches(choice, errors).filter(
    (branch) => !branch.some((error) => isTypeOf(error, choice)),
  );
  const only = fitting.length === 1 ? fitting[0] : undefined;
  return only ?? [withTypes(choice, errors)];
}

function branches(choice: ErrorObject, errors: readonly ErrorObject[]): ErrorObject[][] {
  const byBranch = new Map<string, ErrorObject[]>();
  for (const error of errors) {
    const branch = branchOf(error, choice);
    const known = byBranch.get(branch);
    if (known === undefined) byBranch.set(branch, [error]);
    else known.push(error);
  }
  return [...byBranch.values()];
}

/** Number of the choice that caused an error; all referenced choices count as a single choice. */
function branchOf(error: ErrorObject, choice: ErrorObject): string {
  const start = `${choice.schemaPath}/`;
  return error.schemaPath.startsWith(start)
    ? (error.schemaPath.slice(start.length).split("/")[0] ?? "")
    : "referred";
}

function isTypeOf(error: ErrorObject, choice: ErrorObject): boolean {
  return error.keyword === "type" && error.instancePath === choice.instancePath;
}

function withTypes(choice: ErrorObject, errors: readonly ErrorObject[]): ErrorObject {
  const types = errors
    .filter((error) => isTypeOf(error, choice))
    .flatMap(({ params: { type } }) => type as string | string[]);
  return { ...choice, params: { ...choice.params, wanted: [...new Set(types)] } };
}
