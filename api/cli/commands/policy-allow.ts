import { isRefusal } from "../../../broker/model/refusal.ts";
import { existsSync, readFileSync, realpathSync } from "node:fs";
import { homedir } from "node:os";
import { basename, join } from "node:path";
import { type Edit, editFor } from "../../../broker/allow/allow.ts";
import { commandWish } from "../../../broker/allow/command-wish.ts";
import { netWish } from "../../../broker/allow/net-wish.ts";
import { placeOf, type Spot } from "../../../broker/allow/place.ts";
import { placeWish } from "../../../broker/allow/place-wish.ts";
import { replaceFile } from "../../../broker/allow/policy-file.ts";
import { type Sources, sourcesOf } from "../../../broker/allow/policy-file.ts";
import type { AllowKind, Never, Wish } from "../../../broker/allow/wish.ts";
import { assignedPolicy, touchedPolicies } from "../../../broker/policies/assignment.ts";
import { Config } from "../../../broker/settings/config.ts";
import { fileScope } from "../../../broker/policy/files/file-scope.ts";
import { prepareHome } from "../../../broker/settings/home.ts";
import { type Listed, ListedFolders } from "../../../broker/policies/listed.ts";
import { type CompiledPolicy, loadPolicy, parsePolicy } from "../../../broker/policy/index.ts";
import { Profiles } from "../../../broker/project/profiles.ts";
import type { Place } from "../../../broker/model/place.ts";
import { locateProject, type ProjectRules } from "../../../broker/project/projects.ts";
import {
  type Allowed,
  allowedDocument,
  narrowingNotes,
  type PolicyToEdit,
  printAllowed,
  refusedWords,
} from "../words/allow-words.ts";
import { isSomebodyHere, typedYes } from "../questions/prompt.ts";
import { refuseInside } from "../terminal/inside.ts";
import { policyFile } from "../terminal/policy-files.ts";
import { expandedPresets } from "../words/preset-words.ts";
import {
  Complaint,
  EXIT_SUBSTRATE,
  harmlessLine,
  printJson,
  printLine,
  type Terminal,
} from "../terminal/terminal.ts";
import { agentOf, variable } from "./command-body.ts";

export type AllowOptions = {
  readonly policy?: string;
  readonly agent?: string;
  readonly yes?: boolean;
  readonly dryRun?: boolean;
  readonly json?: boolean;
};

const KINDS: readonly AllowKind[] = ["write", "read", "net", "command"];

/**
 * Makes a policy of the operator's allow a place, a name or a command, by a line in its file. Shows the change, and asks a person who sits
 * at a terminal first. Exit 0 also where it was allowed already; needs no broker, and the next command runs under what is written.
 */
export async function allowInPolicy(
  terminal: Terminal,
  kind: string,
  words: readonly string[],
  options: AllowOptions,
): Promise<number> {
  const known = KINDS.find((each) => each === kind);
  if (known === undefined)
    throw new Complaint(
      `Cannot allow '${harmlessLine(kind)}': give 'write PATH', 'read PATH', 'net NAME[:PORT]' or 'command PATTERN'`,
    );
  refuseInside(terminal, "policy allow", "; 'POST /v1/request_scopes' asks for more access for one command");
  const wanted = oneWish(known, words);
  const allowed = await prepare(terminal, known, wanted, options);
  if (options.json !== true) printAllowed(terminal, allowed);
  const written = allowed.edit !== undefined && (await write(terminal, allowed, allowed.edit, options));
  if (options.json === true) printJson(terminal, allowedDocument(allowed, written));
  const isDone = written || allowed.edit === undefined || options.dryRun === true;
  return isDone ? 0 : EXIT_SUBSTRATE;
}

function oneWish(kind: AllowKind, words: readonly string[]): string {
  if (kind === "command") return words.join(" ");
  const [word = "", ...others] = words;
  if (others.length === 0) return word;
  throw new Complaint(
    `'substrate policy allow ${kind}' takes one ${kind === "net" ? "name" : "path"}, received ${words.length}. Quote a ${kind === "net" ? "name" : "path"} that has spaces`,
  );
}

async function prepare(
  terminal: Terminal,
  kind: AllowKind,
  wanted: string,
  options: AllowOptions,
): Promise<Allowed> {
  const ground = groundOf(terminal);
  const config = new Config(terminal.home.config, () => {}).current();
  const listed = new ListedFolders(ground.spot.rules.home).of(config);
  const agent = agentOf(terminal, options);
  const { folder } = ground;
  const name = options.policy ?? assignedPolicy(config, listed, agent, folder);
  const target = policyToEdit(terminal, name);
  const wish = await wishOf(terminal, kind, wanted, target, ground.spot);
  const [refusal] = wish.refusals;
  if (refusal !== undefined) throw new Complaint(refusedWords(wanted, refusal, target.to));
  const notes = [...wish.notes, ...(await narrowing(terminal, kind, wanted, target, ground, listed))];
  if (wish.additions.length === 0) return { kind, wanted, target, wish, edit: undefined, notes };
  const edit = editFor({ ...target, wish });
  if ("wrong" in edit) throw new Complaint(`Nothing was changed in '${target.to}': ${edit.wrong}`);
  return { kind, wanted, target, wish, edit, notes };
}

type Ground = {
  readonly spot: Spot;
  readonly folder: string;
  readonly place: Place | undefined;
};

function groundOf({ home, uid, installation, cwd }: Terminal): Ground {
  const user = realpathSync(homedir());
  const rules: ProjectRules = {
    home: user,
    hidden: home.hidden,
    uid,
    installation: installation.root,
    roots: [],
  };
  const place = locateProject(cwd, rules, "person");
  if (isRefusal(place))
    return {
      spot: { cwd, project: undefined, rules },
      folder: cwd,
      place: undefined,
    };
  return {
    spot: { cwd: place.cwd, project: place.project, rules },
    folder: place.project,
    place,
  };
}

function policyToEdit(terminal: Terminal, name: string): PolicyToEdit {
  if (!/^[a-z0-9-]+$/.test(name))
    throw new Complaint(
      `Cannot use '${harmlessLine(name)}' as a policy name: it must be lower-case letters, digits and '-'`,
    );
  const from = policyFile(terminal, name);
  const loaded = loadPolicy(from, terminal.installation.policies);
  if ("problems" in loaded)
    throw new Complaint(
      `Policy '${name}' does not load, so nothing was added. Mend its file first:\n${loaded.problems.map(({ text }) => `  ${harmlessLine(text)}`).join("\n")}`,
    );
  const to = join(terminal.home.policies, `${name}.yaml`);
  if (from !== to) return { name, ...startingFrom(loaded.ok, basename(from)), from, to };
  return { name, policy: loaded.ok, text: readFileSync(from, "utf8"), from, to };
}

/** The operator's own policy in the place of a shipped one: it starts from that, and the next version of it holds too. */
function startingFrom(shipped: CompiledPolicy, file: string): Pick<PolicyToEdit, "policy" | "text"> {
  const { id, name } = shipped;
  const text = `# Extends the shipped policy; only the differences are written here.\nid: ${id}\nname: ${JSON.stringify(name)}\nextends: ${id}\n`;
  const loaded = parsePolicy(text, file, undefined, () => shipped);
  if ("ok" in loaded) return { policy: loaded.ok, text };
  throw new Error(`A policy that adds nothing does not load: ${loaded.problems[0]?.text}`);
}

async function wishOf(
  terminal: Terminal,
  kind: AllowKind,
  wanted: string,
  { policy }: Pick<PolicyToEdit, "policy">,
  spot: Spot,
): Promise<Wish> {
  const wish = await answer(terminal, kind, wanted, policy, sourcesOf(policy), spot);
  if ("never" in wish) throw new Complaint(harmlessLine(wish.never));
  return wish;
}

async function answer(
  terminal: Terminal,
  kind: AllowKind,
  wanted: string,
  policy: CompiledPolicy,
  sources: Sources,
  spot: Spot,
): Promise<Wish | Never> {
  if (kind === "net") return netWish(wanted, policy, await expandedPresets(terminal, policy));
  if (kind === "command") {
    const { cwd, project = cwd, rules } = spot;
    return commandWish(wanted, policy, sources, {
      cwd,
      project,
      home: rules.home,
    });
  }
  const place = placeOf(kind, wanted, spot);
  return "never" in place ? place : placeWish(kind, place, policy, sources, spot);
}

/** Policies that narrow the edited one here: what they do not give as well stays refused. */
async function narrowing(
  terminal: Terminal,
  kind: AllowKind,
  wanted: string,
  target: PolicyToEdit,
  { spot, place }: Ground,
  listed: Listed,
): Promise<readonly string[]> {
  const folder = place === undefined ? { names: [] } : new Profiles().of(place);
  if (isRefusal(folder))
    throw new Complaint(`${harmlessLine(folder.message)}\n  ${harmlessLine(folder.hint)}`);
  const chosen = variable(terminal, "SUBSTRATE_PROFILE");
  const { write } = fileScope(target.policy.document, spot.project ?? spot.cwd, spot.rules.home);
  const names = [
    ...(chosen === undefined ? folder.names : [chosen]),
    ...(spot.project === undefined ? [] : touchedPolicies(listed, spot.project, write)),
  ];
  const others = [...new Set(names)].filter((name) => name !== target.name);
  const notes: string[] = [];
  for (const name of others) {
    const other = policyToEdit(terminal, name);
    const wish = await wishOf(terminal, kind, wanted, other, spot);
    notes.push(...narrowingNotes(name, wish));
  }
  return notes;
}

/** Whether it was written: after a yes, or where nobody has to be asked. */
async function write(
  terminal: Terminal,
  { target }: Allowed,
  edit: Edit,
  options: AllowOptions,
): Promise<boolean> {
  if (options.dryRun === true) return false;
  if (options.yes !== true && !(await saysYes(terminal))) return false;
  if (!existsSync(terminal.home.policies)) prepareHome(terminal.home, terminal.uid);
  replaceFile(target.to, target.from === target.to ? target.text : null, edit.text);
  if (options.json !== true)
    printLine(terminal, `Written to '${target.to}': it applies from the next command`);
  return true;
}

/** Where nobody sits, whoever wrote the command down has said yes by that. */
async function saysYes(terminal: Terminal): Promise<boolean> {
  if (!isSomebodyHere(terminal)) return true;
  if (await typedYes(terminal, "Write it?")) return true;
  terminal.err.write("substrate: nothing was written\n");
  return false;
}
