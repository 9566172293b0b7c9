import { fileLists } from "../../../broker/file-lists.ts";
import { loadPolicy } from "../../../broker/policy/index.ts";
import { ownPolicyFiles, policyFile } from "../policy-files.ts";
import { Complaint, harmless, printJson, printLine, type Terminal } from "../terminal.ts";

/** A policy as it is loaded. Needs no broker. */
export function showPolicy(terminal: Terminal, name: string, json: boolean): number {
  const file = policyFile(terminal, name);
  const result = loadPolicy(file);
  if ("problems" in result)
    throw new Complaint(
      `Policy '${name}' does not load:\n${result.problems.map(({ text }) => `  ${text}`).join("\n")}`,
    );
  const { id, mode, hash, document, notes } = result.ok;
  if (json) {
    printJson(terminal, { id, file, hash, document, fs: fileLists(document), notes });
    return 0;
  }
  printLine(terminal, `${id}: ${document.name} (${mode})`);
  printLine(terminal, `  file  ${file}`);
  printLine(terminal, `  hash  ${hash}`);
  for (const [list, rules] of Object.entries(document.commands ?? {})) {
    for (const rule of Array.isArray(rules) ? rules : [rules])
      printLine(terminal, `  ${list.padEnd(15)} ${harmless(words(rule))}`);
  }
  for (const [list, paths] of Object.entries(fileLists(document)))
    for (const path of paths) printLine(terminal, `  ${list.padEnd(15)} ${harmless(path)}`);
  for (const note of notes) printLine(terminal, `  note: ${note}`);
  return 0;
}

/** Checks each policy. Exit 1 when one does not load. */
export function validatePolicies(terminal: Terminal, names: readonly string[], json: boolean): number {
  const chosen = names.length === 0 ? ownPolicyFiles(terminal) : names;
  const results = chosen.map((name) => {
    const result = loadPolicy(policyFile(terminal, name));
    return "ok" in result
      ? { name, ok: true, hash: result.ok.hash, notes: result.ok.notes }
      : { name, ok: false, problems: result.problems };
  });
  if (json) printJson(terminal, results);
  else {
    for (const result of results) {
      printLine(terminal, `${result.name}: ${result.ok ? "valid" : "does not load"}`);
      for (const problem of result.problems ?? []) printLine(terminal, `  ${harmless(problem.text)}`);
      for (const note of result.notes ?? []) printLine(terminal, `  note: ${note}`);
    }
  }
  return results.every((result) => result.ok) ? 0 : 1;
}

function words(rule: unknown): string {
  if (typeof rule === "object" && rule !== null && "pattern" in rule) return String(rule.pattern);
  return String(rule);
}
