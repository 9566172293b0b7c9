/** What a person must do by hand after `substrate init`: trust, and settings of their own under which no hook runs. */
import { join } from "node:path";
import { parse } from "jsonc-parser";
import type { Ground } from "./agents.ts";
import { type Dialect, strangeFor } from "./json-text.ts";
import { readToml } from "./toml-text.ts";

type Settings = Readonly<Record<string, unknown>>;

/** Claude Code ignores a whole file that it cannot read, hooks and all, without a word in `-p`. */
export function claudeCodeBlockers(ground: Ground, folder: string): readonly string[] {
  const { project } = ground;
  const own = [folder, ...(project === undefined ? [] : [join(project, ".claude")])];
  const files = own.flatMap((each) =>
    ["settings.json", "settings.local.json"].map((name) => join(each, name)),
  );
  return [
    ...strange(ground, join(own.at(-1) ?? folder, "settings.json"), "Claude Code", {
      comments: false,
      bom: true,
    }),
    ...files
      .filter((path) => json(ground, path)["disableAllHooks"] === true)
      .map((path) => `'${path}' sets disableAllHooks`),
  ];
}

export function claudeCodeReminders(ground: Ground): readonly string[] {
  return [
    "Look at '/hooks' in Claude Code: it ignores a whole settings file for one key that it does not accept, and then lists no hook of Substrate",
    ...inProject(ground, "Claude Code"),
    again("Claude Code"),
  ];
}

export function codexBlockers(ground: Ground, folder: string): readonly string[] {
  const { own, near } = codexSettings(ground, folder);
  const features = { ...record(own["features"]), ...record(near["features"]) };
  const place = ground.project === undefined ? folder : join(ground.project, ".codex");
  return [
    ...strange(ground, join(place, "hooks.json"), "Codex", { comments: false, bom: false }),
    ...(features["hooks"] === false ? ["[features] in config.toml sets hooks = false"] : []),
  ];
}

export function codexReminders(ground: Ground, folder: string): readonly string[] {
  const { own, near } = codexSettings(ground, folder);
  const sandbox = near["sandbox_mode"];
  return [
    "Trust the new hooks before the first task: start 'codex', and answer the question about hooks, or open '/hooks'. Then run 'substrate init codex' again: only then does it switch Codex's own sandbox off, which blocks the broker's socket. Until then commands fail",
    ...(sandbox === undefined || sandbox === "danger-full-access"
      ? []
      : [
          `sandbox_mode is ${JSON.stringify(sandbox)} by your own choice: Codex's sandbox blocks the broker's socket, so every command fails. Set it to "danger-full-access" if commands are to run in Substrate's worlds`,
        ]),
    ...(own["default_permissions"] === undefined
      ? []
      : ["default_permissions names a profile of permissions: it must not restrict the sandbox either"]),
    ...inProject(ground, "Codex"),
    again("Codex"),
  ];
}

/** Codex notes below `hooks.state` which hooks the person has trusted, by file, event and place. */
export function isHookTrusted(ground: Ground, folder: string, path: string): boolean {
  const { state } = record(codexSettings(ground, folder).own["hooks"]);
  return Object.entries(record(state)).some(
    ([name, trust]) => name.includes(`${path}:pre_tool_use:`) && record(trust)["trusted_hash"] !== undefined,
  );
}

function codexSettings(
  { project, read }: Ground,
  folder: string,
): { readonly own: Settings; readonly near: Settings } {
  const own = toml(read(join(folder, "config.toml")));
  return { own, near: project === undefined ? own : toml(read(join(project, ".codex/config.toml"))) };
}

export function geminiBlockers(ground: Ground, folder: string): readonly string[] {
  const { project } = ground;
  const files = [folder, ...(project === undefined ? [] : [join(project, ".gemini")])].map((each) =>
    join(each, "settings.json"),
  );
  const isOff = (path: string): boolean => {
    const { enabled, disabled } = record(json(ground, path)["hooksConfig"]);
    return enabled === false || (Array.isArray(disabled) && disabled.includes("substrate"));
  };
  return [
    ...strange(ground, files.at(-1) ?? "", "Gemini CLI", { comments: true, bom: false }),
    ...files.filter(isOff).map((path) => `'${path}' switches hooks off in hooksConfig`),
  ];
}

export function geminiReminders(ground: Ground): readonly string[] {
  return [...inProject(ground, "Gemini CLI"), again("Gemini CLI")];
}

export function opencodeReminders(ground: Ground): readonly string[] {
  return [
    "'opencode --pure' loads no plugins: then nobody asks",
    "Formatters and language servers, where opencode's settings have them on, are the project's programs, which opencode starts outside every world: 'formatter' and 'lsp' false in opencode.json switch them off",
    ...inProject(ground, undefined),
    again("opencode"),
  ];
}

/** Cursor reads neither a file without `version` nor one with an event that it does not know, and says nothing. */
export function cursorBlockers(ground: Ground, folder: string): readonly string[] {
  const path = join(ground.project === undefined ? folder : join(ground.project, ".cursor"), "hooks.json");
  const text = ground.read(path);
  return [
    ...strange(ground, path, "Cursor", { comments: false, bom: false }),
    ...(text !== undefined && json(ground, path)["version"] !== 1 ? [`'${path}' has no "version": 1`] : []),
  ];
}

export function cursorReminders(ground: Ground): readonly string[] {
  return [
    "Look at the page 'Hooks' of Cursor's settings: it ignores a whole hooks.json for one event that it does not know, and then lists no hook of Substrate",
    "Cursor has no question of its own for a hook: a command that needs a person waits for 'substrate approvals'",
    ...inProject(ground, "Cursor"),
    again("Cursor"),
  ];
}

export function copilotBlockers(ground: Ground, folder: string): readonly string[] {
  const { project } = ground;
  const own = join(project === undefined ? folder : join(project, ".github"), "hooks/substrate.json");
  const github = project === undefined ? [] : ["settings.json", "settings.local.json"];
  const files = [
    own,
    ...["settings.json", "config.json"].map((name) => join(folder, name)),
    ...github.map((name) => join(project ?? "", ".github/copilot", name)),
  ];
  return [
    ...strange(ground, own, "GitHub Copilot CLI", { comments: false, bom: false }),
    ...files
      .filter((path) => json(ground, path)["disableAllHooks"] === true)
      .map((path) => `'${path}' sets disableAllHooks`),
  ];
}

export function copilotReminders(ground: Ground): readonly string[] {
  return [
    "Look at '/env' in Copilot: it must list the hook, because Copilot says nothing of a hooks file that it cannot read",
    "Copilot's own sandbox must be off ('copilot help sandbox'): it may block the broker's socket, and then every command fails",
    "A command that needs a person waits for 'substrate approvals'",
    ...inProject(ground, "Copilot"),
    again("Copilot"),
  ];
}

export const AIDER_FILE = ".aider.conf.yml";

export function aiderReminders(ground: Ground): readonly string[] {
  return [
    "Only commands at a terminal run in worlds: /run, /test, and those that the model proposes. Aider's edits and git, 'lint-cmd', and all commands of an Aider whose input is no terminal do not. 'substrate run --profile aider -- aider' runs all of it in a world",
    "Aider runs commands on the host where the shell that it names is gone: undo this before you remove Substrate",
    `A 'set-env' in a later ${AIDER_FILE} (project, working directory) takes the place of this list, and so does a SHELL in '.env'`,
    ...(ground.project === undefined ? [] : ["Do not commit the settings: they name a path of this machine"]),
    again("Aider"),
  ];
}

/** `title` undefined: an agent that trusts every project. */
function inProject({ project }: Ground, title: string | undefined): readonly string[] {
  if (project === undefined) return [];
  const trust =
    title === undefined ? [] : [`Trust the project in ${title}: it reads a project's hooks only then`];
  return [...trust, "Do not commit the settings: they name a path of this machine"];
}

function strange(ground: Ground, path: string, title: string, dialect: Dialect): readonly string[] {
  const text = ground.read(path);
  const what = text === undefined ? undefined : strangeFor(text, dialect);
  return what === undefined ? [] : [`${title} does not read '${path}' because of ${what}`];
}

function again(title: string): string {
  return `Start ${title} again where it runs now`;
}

/** Whether a config.toml has hooks; `hooks.state` alone is what Codex notes about trust. */
export function hasTomlHooks(text: string | undefined): boolean {
  return Object.keys(record(toml(text)["hooks"])).some((name) => name !== "state");
}

function json({ read }: Ground, path: string): Settings {
  return record(parse(read(path) ?? "{}", [], { allowTrailingComma: true }));
}

function toml(text: string | undefined): Settings {
  return isToml(text) ? readToml(text ?? "") : {};
}

/** Whether a file can be read; a missing one can. */
export function isToml(text: string | undefined): boolean {
  try {
    readToml(text ?? "");
    return true;
  } catch {
    return false;
  }
}

function record(value: unknown): Settings {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Settings) : {};
}
