import { fileLists } from "../../../broker/file-lists.ts";
import type { PolicyNet } from "../../../broker/network/entries.ts";
import { loadPolicy, PASSED_BY_DEFAULT } from "../../../broker/policy/index.ts";
import { ownPolicyFiles, policyFile } from "../policy-files.ts";
import { type ShownPresets, shownPresets } from "../preset-words.ts";
import { Complaint, harmless, harmlessLine, printJson, printLine, type Terminal } from "../terminal.ts";

/** A policy as it is loaded, and what its presets stand for on this host. Needs no broker. */
export async function showPolicy(terminal: Terminal, name: string, json: boolean): Promise<number> {
  const file = policyFile(terminal, name);
  const result = loadPolicy(file);
  if ("problems" in result)
    throw new Complaint(
      `Policy '${name}' does not load:\n${result.problems.map(({ text }) => `  ${text}`).join("\n")}`,
    );
  const { id, mode, hash, document, net, notes } = result.ok;
  const presets = await shownPresets(terminal, result.ok);
  if (json) {
    printJson(terminal, { id, file, hash, document, fs: fileLists(document), presets, notes });
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
  printNet(terminal, net, mode, presets);
  const passed = document.world?.env ?? PASSED_BY_DEFAULT;
  printLine(terminal, `  ${"world.env".padEnd(15)} ${harmlessLine(passed.join(" ")) || "nothing"}`);
  for (const note of notes) printLine(terminal, `  note: ${note}`);
  return 0;
}

/** What no entry means: CONTRACT §7. */
const NO_ENTRY = {
  enforce: "nothing: commands have no network",
  observe: "nothing: every host outside is reached all the same, and recorded as would_deny",
} as const;

/** `net.allowed  @npm  = registry.example:443`; a list that is empty, or not there, says what that means. */
function printNet(
  terminal: Terminal,
  { entries }: PolicyNet,
  mode: keyof typeof NO_ENTRY,
  presets: ShownPresets,
): void {
  const title = "net.allowed".padEnd(15);
  if (entries.length === 0) printLine(terminal, `  ${title} ${NO_ENTRY[mode]}`);
  for (const { written, allows } of entries) {
    const preset = allows.kind === "preset" ? presets[allows.preset] : undefined;
    const hosts = preset === undefined ? "" : ` = ${preset.hosts.join(" ") || "nothing"}`;
    printLine(terminal, `  ${title} ${harmlessLine(written + hosts)}`);
    for (const note of preset?.notes ?? []) printLine(terminal, `    note: ${harmlessLine(note)}`);
  }
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
