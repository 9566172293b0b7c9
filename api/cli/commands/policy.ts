import { fileLists } from "../../../broker/policy/files/file-lists.ts";
import type { PolicyNet } from "../../../broker/network/names/entries.ts";
import { basename } from "node:path";
import { compiled } from "../../../broker/learn/additions.ts";
import { type CompiledPolicy, loadPolicy, PASSED_BY_DEFAULT } from "../../../broker/policy/index.ts";
import type { PolicyDocument, PolicyReply } from "../../../schemas/generated/types.ts";
import { NoBroker } from "../../client/client.ts";
import { everyPolicyFile, ownPolicyFiles, policyFile } from "../terminal/policy-files.ts";
import { type ShownPresets, shownPresets } from "../words/preset-words.ts";
import { ask } from "../terminal/replies.ts";
import {
  Complaint,
  harmless,
  harmlessLine,
  printJson,
  printLine,
  type Terminal,
} from "../terminal/terminal.ts";

/**
 * A policy as it holds, and what its presets stand for on this host. Exit 1 for a file that does not load: shown is then the last
 * good one, which the broker has. Nothing else needs a broker.
 */
export async function showPolicy(terminal: Terminal, name: string, json: boolean): Promise<number> {
  const file = policyFile(terminal, name);
  const result = loadPolicy(file, terminal.installation.policies);
  const problems = "ok" in result ? [] : result.problems.map(({ text }) => text);
  const policy = "ok" in result ? result.ok : await lastGood(terminal, name, file, problems);
  const { id, mode, hash, document, net, notes } = policy;
  const presets = await shownPresets(terminal, policy);
  const exit = problems.length === 0 ? 0 : 1;
  if (json) {
    printJson(terminal, { id, file, hash, document, fs: fileLists(document), presets, notes, problems });
    return exit;
  }
  for (const line of brokenWords(name, problems)) printLine(terminal, harmlessLine(line));
  printLine(terminal, `${id}: ${document.name} (${mode})`);
  printLine(terminal, `  file  ${file}`);
  printLine(terminal, `  hash  ${hash}`);
  if (policy.base !== null) printLine(terminal, `  starts from ${policy.base.at([]).file}`);
  for (const [list, rules] of Object.entries(document.commands ?? {})) {
    for (const rule of Array.isArray(rules) ? rules : [rules])
      printLine(terminal, `  ${list.padEnd(15)} ${harmless(words(rule))}`);
  }
  for (const [list, paths] of Object.entries(fileLists(document)))
    for (const path of paths) printLine(terminal, `  ${list.padEnd(15)} ${harmless(path)}`);
  printNet(terminal, net, document.world?.isolate_network === false ? "host" : mode, presets);
  const passed = document.world?.env ?? PASSED_BY_DEFAULT;
  printLine(terminal, `  ${"world.env".padEnd(15)} ${harmlessLine(passed.join(" ")) || "nothing"}`);
  for (const note of notes) printLine(terminal, `  note: ${note}`);
  return exit;
}

function brokenWords(name: string, problems: readonly string[]): readonly string[] {
  if (problems.length === 0) return [];
  return [
    `Policy '${name}' does not load:`,
    ...problems.map((problem) => `  ${problem}`),
    "The last good version stays in force until the file is mended:",
    "",
  ];
}

/** What the broker goes on with while a file does not load. Throws {@link Complaint} when it has nothing. */
async function lastGood(
  terminal: Terminal,
  name: string,
  file: string,
  problems: readonly string[],
): Promise<CompiledPolicy> {
  const reply = name.endsWith(".yaml") ? null : await inForce(terminal, name);
  const document = reply?.document ?? null;
  if (document !== null) return compiled(document as PolicyDocument, basename(file));
  const means = name.endsWith(".yaml")
    ? ""
    : reply === undefined
      ? "\n  No broker runs. A broker started now would allow nothing under this policy until the file is mended"
      : "\n  The policy has not loaded since the broker started, so it allows nothing until the file is mended";
  throw new Complaint(
    `Policy '${name}' does not load:\n${problems.map((problem) => `  ${harmlessLine(problem)}`).join("\n")}${means}`,
  );
}

/** Undefined when no broker runs. */
async function inForce(terminal: Terminal, name: string): Promise<PolicyReply | undefined> {
  try {
    return await ask<PolicyReply>(terminal, `/v1/policy/${encodeURIComponent(name)}`);
  } catch (error) {
    if (error instanceof NoBroker) return undefined;
    throw error;
  }
}

/** Meaning of an empty `net.allowed`, by the policy's mode; `host`: commands have the host's network. */
const NO_ENTRY = {
  enforce: "nothing: commands have no network",
  observe:
    "nothing: in observe mode commands still reach every host, and connections are recorded as would_deny",
  host: "absent: commands have the host's network (world.isolate_network: false), and reach every host",
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

/** Lists all policies that a name reaches: in the operator's folder, and shipped ones that are in no file there. Needs no broker. */
export function listPolicies(terminal: Terminal, json: boolean): number {
  const { policies: shipped } = terminal.installation;
  const rows = everyPolicyFile(terminal).map((file) => {
    const loaded = loadPolicy(file, shipped);
    const document = "ok" in loaded ? loaded.ok.document : null;
    return {
      name: basename(file, ".yaml"),
      title: document?.name ?? null,
      mode: document?.mode ?? null,
      selectable: document?.selectable === true,
      file,
      problems: "ok" in loaded ? [] : loaded.problems.map(({ text }) => text),
    };
  });
  if (json) printJson(terminal, rows);
  else for (const row of listWords(rows)) printLine(terminal, harmlessLine(row));
  return 0;
}

type ListedPolicy = Readonly<Record<"name" | "file", string>> & {
  readonly title: string | null;
  readonly mode: string | null;
  readonly selectable: boolean;
};

function listWords(rows: readonly ListedPolicy[]): readonly string[] {
  const wide = Math.max(...rows.map(({ name }) => name.length));
  return [
    ...rows.map(({ name, title, mode, selectable }) => {
      const how = mode === null ? "does not load" : `${mode.padEnd(7)} ${selectable ? "--profile" : ""}`;
      return `${name.padEnd(wide)}  ${how.padEnd(17)}  ${title ?? ""}`.trimEnd();
    }),
    "",
    "'substrate policy show NAME' shows one; a command may be narrowed by those with --profile",
  ];
}

/** Checks each policy. Exit 1 when one does not load. */
export function validatePolicies(terminal: Terminal, names: readonly string[], json: boolean): number {
  const chosen = names.length === 0 ? ownPolicyFiles(terminal) : names;
  const results = chosen.map((name) => {
    const result = loadPolicy(policyFile(terminal, name), terminal.installation.policies);
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
