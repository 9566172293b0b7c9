import type { ErrorObject } from "ajv";

/**
 * A failed `anyOf` or `oneOf` comes as the errors of every choice and then its own. One of them is enough: if one
 * choice has the type that was received, its errors; else one error that names the types of all choices.
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

/** ajv lists the errors of the choices right before the error of the choice itself. */
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

/** The path of a schema that a choice refers to starts anew, at that schema. */
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

/** The number of the choice an error comes from; those behind a reference count as one. */
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
