/** Expands a policy's presets on the host, for `policy show`. */
import { isRefusal } from "../../../broker/model/refusal.ts";
import { realpathSync } from "node:fs";
import { homedir } from "node:os";
import type { PresetName } from "../../../broker/network/names/entries.ts";
import { Remotes } from "../../../broker/git/remotes.ts";
import { presetsFor } from "../../../broker/network/presets/for-broker.ts";
import type { Presets } from "../../../broker/network/presets/presets.ts";
import { type CompiledPolicy, loadPolicy } from "../../../broker/policy/index.ts";
import { locateProject, type ProjectRules } from "../../../broker/project/projects.ts";
import { ownPolicyFiles } from "../terminal/policy-files.ts";
import type { Terminal } from "../terminal/terminal.ts";

/** Hosts (`host:port`) and notes by preset. */
export type ShownPresets = Readonly<
  Partial<Record<PresetName, { readonly hosts: readonly string[]; readonly notes: readonly string[] }>>
>;

/** Expands the presets for display, by asking the host's tools. `@git` is read from the project of the working directory. */
export async function shownPresets(terminal: Terminal, policy: CompiledPolicy): Promise<ShownPresets> {
  const expanded = await expandedPresets(terminal, policy);
  const shown = [...expanded].map(([name, { entries, notes }]) => {
    return [name, { hosts: entries.map(({ host, port }) => `${host}:${port}`), notes }] as const;
  });
  return Object.fromEntries(shown) as ShownPresets;
}

/** Expands the presets into entries of network rules. */
export async function expandedPresets(
  terminal: Terminal,
  policy: CompiledPolicy,
): Promise<Awaited<ReturnType<Presets["expandAll"]>>> {
  const rules = projectRules(terminal);
  const own = ownPolicyFiles(terminal).map((file) => loadPolicy(file, terminal.installation.policies));
  const documents = [policy, ...own.flatMap((loaded) => ("ok" in loaded ? loaded.ok : []))].map(
    ({ document }) => document,
  );
  // Only the broker knows former projects, and `policy show` needs no broker. Without them `@git` shows more, never less.
  const projects = { rules: () => rules, wasProject: () => false };
  const presets = presetsFor(
    terminal.environment,
    projects,
    () => documents,
    new Remotes(terminal.home.gitRemotes, terminal.uid, noFault),
  );
  const place = locateProject(terminal.cwd, rules);
  const project = isRefusal(place) ? terminal.cwd : place.project;
  return await presets.expandAll(policy.net, project);
}

/** Nothing is noted here. */
const noFault = (): void => {};

function projectRules({ home, uid, installation }: Terminal): ProjectRules {
  const user = realpathSync(homedir());
  return { home: user, hidden: home.hidden, uid, installation: installation.root, roots: [] };
}
