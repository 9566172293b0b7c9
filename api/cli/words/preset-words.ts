/** What the presets of a policy stand for here, for `policy show`. */
import { isRefusal } from "../../../broker/model/refusal.ts";
import { realpathSync } from "node:fs";
import { homedir } from "node:os";
import type { PresetName } from "../../../broker/network/names/entries.ts";
import { presetsFor } from "../../../broker/network/presets/for-broker.ts";
import type { Presets } from "../../../broker/network/presets/presets.ts";
import { type CompiledPolicy, loadPolicy } from "../../../broker/policy/index.ts";
import { locateProject, type ProjectRules } from "../../../broker/project/projects.ts";
import { ownPolicyFiles } from "../terminal/policy-files.ts";
import type { Terminal } from "../terminal/terminal.ts";

/** By preset, `host:port` and notes. */
export type ShownPresets = Readonly<
  Partial<Record<PresetName, { readonly hosts: readonly string[]; readonly notes: readonly string[] }>>
>;

/** Asks the tools of this host. `@git` is that of the folder where the command was given. */
export async function shownPresets(terminal: Terminal, policy: CompiledPolicy): Promise<ShownPresets> {
  const expanded = await expandedPresets(terminal, policy);
  const shown = [...expanded].map(([name, { entries, notes }]) => {
    return [name, { hosts: entries.map(({ host, port }) => `${host}:${port}`), notes }] as const;
  });
  return Object.fromEntries(shown) as ShownPresets;
}

/** The same, as rules of the network take it. */
export async function expandedPresets(
  terminal: Terminal,
  policy: CompiledPolicy,
): Promise<Awaited<ReturnType<Presets["expandAll"]>>> {
  const rules = projectRules(terminal);
  const own = ownPolicyFiles(terminal).map((file) => loadPolicy(file, terminal.installation.policies));
  const documents = [policy, ...own.flatMap((loaded) => ("ok" in loaded ? loaded.ok : []))].map(
    ({ document }) => document,
  );
  // Which folders were projects is the broker's to know, and this needs none: it may show more of `@git`, never less.
  const projects = { rules: () => rules, wasProject: () => false };
  const presets = presetsFor(terminal.environment, projects, () => documents);
  const place = locateProject(terminal.cwd, rules);
  const project = isRefusal(place) ? terminal.cwd : place.project;
  return await presets.expandAll(policy.net, project);
}

function projectRules({ home, uid, installation }: Terminal): ProjectRules {
  const user = realpathSync(homedir());
  return { home: user, hidden: home.hidden, uid, installation: installation.root, roots: [] };
}
