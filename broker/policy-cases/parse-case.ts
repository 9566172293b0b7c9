import type { PolicyCaseDocument, Verdict } from "../../schemas/generated/types.ts";
import { validatePolicyCaseDocument } from "../../schemas/generated/validators/policy-case.js";
import { describeErrors } from "../../schemas/validation-errors.ts";
import { readYaml, type YamlFile } from "../policy/load/yaml-file.ts";

/** `ALLOW`: the command runs, plainly or isolated. `DENY`: the command is refused, or would be in enforce mode. */
export type CaseKind = "ALLOW" | "DENY";

/** A command, and a policy's expected verdict. */
export type PolicyCase = {
  /** Path of the case's file. */
  readonly place: string;
  readonly kind: CaseKind;
  readonly document: PolicyCaseDocument;
};

/** Why a file is not a valid case: a sentence that begins with the file, line and column. */
export type CaseProblem = { readonly place: string; readonly text: string };

const RUNS: ReadonlySet<Verdict> = new Set<Verdict>(["allow", "isolate", "would_isolate"]);

/** Parses a case. `place` only appears in problems. Pure. */
export function parseCase(
  text: string,
  place: string,
  kind: CaseKind,
): { readonly ok: PolicyCase } | { readonly problems: readonly CaseProblem[] } {
  const yaml = readYaml(text);
  if ("problems" in yaml)
    return { problems: yaml.problems.map(({ line, column, message }) => at(place, line, column, message)) };
  if (!validatePolicyCaseDocument(yaml.value)) {
    const errors = describeErrors(yaml.value, validatePolicyCaseDocument.errors ?? []);
    return { problems: errors.map(({ pointer, message }) => problemAt(yaml, place, pointer, message)) };
  }
  const misplaced = misplacedBecause(yaml.value.verdict, kind);
  if (misplaced !== undefined) return { problems: [problemAt(yaml, place, ["verdict"], misplaced)] };
  return { ok: { place, kind, document: yaml.value } };
}

function misplacedBecause(verdict: Verdict, kind: CaseKind): string | undefined {
  if (RUNS.has(verdict) === (kind === "ALLOW")) return undefined;
  const belongs = kind === "ALLOW" ? "DENY" : "ALLOW";
  return `A case in ${kind} cannot expect '${verdict}': it belongs in ${belongs}`;
}

function problemAt(
  yaml: YamlFile,
  place: string,
  path: readonly (string | number)[],
  message: string,
): CaseProblem {
  const { line, column } = yaml.positionOf(path);
  return at(place, line, column, message);
}

function at(place: string, line: number, column: number, message: string): CaseProblem {
  return { place, text: `${place}:${line}:${column}: ${message}` };
}
