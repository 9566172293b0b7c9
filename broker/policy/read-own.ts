import { validatePolicyDocument } from "../../schemas/generated/validators.js";
import { describeErrors } from "../../schemas/validation-errors.ts";
import type { PolicyProblem } from "./decision.ts";
import type { DocumentPath, OwnFile, Written, WrittenAt } from "./extends.ts";
import { readYaml } from "./yaml-file.ts";

/** What one file says, or what is wrong with it. */
export type ReadOwn = { readonly own: OwnFile } | { readonly problems: readonly PolicyProblem[] };

export function readOwn(text: string, file: string): ReadOwn {
  const yaml = readYaml(text);
  if ("problems" in yaml)
    return {
      problems: yaml.problems.map(({ message, ...position }) => problem({ file, ...position }, [], message)),
    };
  const at: Written["at"] = (path) => ({ file, ...yaml.positionOf(path) });
  if (!validatePolicyDocument(yaml.value)) {
    const errors = describeErrors(yaml.value, validatePolicyDocument.errors ?? []);
    return { problems: errors.map(({ pointer, message }) => problemAt(at, pointer, message)) };
  }
  const own = { document: yaml.value, at, only: yaml.only };
  const stray = strayMark(own);
  if (stray === undefined) return { own };
  const message = "!only replaces a list of the policy that 'extends' names, and here is none that could be";
  return { problems: [problemAt(at, stray.split("."), message)] };
}

/** A mark that would do nothing: on a list inside an item of a list, or in a policy that starts from none. */
function strayMark({ document, only }: OwnFile): string | undefined {
  return [...only].find((path) => document.extends === undefined || /\.[0-9]+(?:\.|$)/.test(path));
}

export function problemAt(at: Written["at"], path: DocumentPath, message: string): PolicyProblem {
  return problem(at(path), path, message);
}

/** Line 0: of the file as a whole. */
export function problem(
  { file, line, column }: WrittenAt,
  path: DocumentPath,
  message: string,
): PolicyProblem {
  const place = line === 0 ? file : `${file}:${line}:${column}`;
  return { file, line, column, path: path.join("."), message, text: `${place}: ${message}` };
}
