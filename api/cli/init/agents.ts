/** Coding agents: how they are found, which settings files connect them, and what their policies are called. */
import { join } from "node:path";
import { type Hook, isAsWritten, type Part } from "./parts.ts";
import { opencodePlugin } from "./opencode-plugin.ts";
import {
  AIDER_FILE,
  aiderReminders,
  claudeCodeBlockers,
  claudeCodeReminders,
  codexBlockers,
  codexReminders,
  copilotBlockers,
  copilotReminders,
  cursorBlockers,
  cursorReminders,
  geminiBlockers,
  geminiReminders,
  hasTomlHooks,
  isHookTrusted,
  isToml,
  opencodeReminders,
} from "./reminders.ts";

/** Surroundings of a connection. */
export type Ground = {
  /** The person's home folder. */
  readonly home: string;
  /** The project whose settings are written; undefined: the person's own settings. */
  readonly project: string | undefined;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** The front: settings name it by its absolute path. */
  readonly front: string;
  /** The front as a shell. */
  readonly shell: string;
  /** Text of a file; undefined for a missing file. */
  readonly read: (path: string) => string | undefined;
};

/** A part for a settings file. */
export type Planned = {
  readonly path: string;
  readonly part: Part;
  /** What the change does, above its diff. */
  readonly what: string;
};

export type Agent = {
  /** Also the name of its policy, and of its socket. */
  readonly id: string;
  readonly title: string;
  /** Names of its program. */
  readonly programs: readonly string[];
  /** Folder of its settings for a person. */
  readonly folder: (ground: Ground) => string;
  /** A variable of the environment that names another folder. */
  readonly variable?: string;
  readonly plan: (ground: Ground) => readonly Planned[];
  /** Settings of a person under which the agent asks nobody. */
  readonly blockers: (ground: Ground) => readonly string[];
  /** What remains for a person once the files are written. */
  readonly byHand: (ground: Ground) => readonly string[];
};

/** Seconds for a hook; it gives up sooner by itself, and then blocks. A hook that an agent gives up on blocks nothing. */
const HOOK_SECONDS = 60;

const ASKS = "Substrate is asked before a tool runs a command or opens a file";

/** Events that are recorded. Only old names for Claude Code, which ignores a whole file for one that it does not know. */
const CLAUDE_EVENTS = ["SessionStart", "UserPromptSubmit", "PostToolUse", "Stop", "SessionEnd"];
const GEMINI_EVENTS = ["SessionStart", "BeforeAgent", "AfterTool", "AfterAgent", "SessionEnd"];

const RECORD_SECONDS = 10;

const RECORDS = "Sessions, prompts (by hash and length) and ended tools are recorded, and stop nothing";

/** All tools: `substrate hook` knows which ones run commands or open files, and lets the others pass without asking. */
const EVERY_TOOL = "*";

const CLAUDE_CODE: Agent = {
  id: "claude-code",
  title: "Claude Code",
  programs: ["claude"],
  variable: "CLAUDE_CONFIG_DIR",
  folder: ({ environment, home }) => set(environment["CLAUDE_CONFIG_DIR"]) ?? join(home, ".claude"),
  plan: (ground) => {
    const { project } = ground;
    const folder = project === undefined ? CLAUDE_CODE.folder(ground) : join(project, ".claude");
    const hook: Hook = {
      event: "PreToolUse",
      matcher: EVERY_TOOL,
      hook: { type: "command", command: hookCommand(ground, "claude-code"), timeout: HOOK_SECONDS },
    };
    return asksAndRecords(
      ground,
      "claude-code",
      { path: join(folder, "settings.json"), kind: "json-hook" },
      hook,
      CLAUDE_EVENTS,
    );
  },
  blockers: (ground) => claudeCodeBlockers(ground, CLAUDE_CODE.folder(ground)),
  byHand: claudeCodeReminders,
};

/** codex warns where one folder has hooks in both of its files. Without its sandbox and before its hook is trusted nothing would stand
 * before a command, so the sandbox is switched off by a second `init`, after the person has trusted the hook. */
const CODEX: Agent = {
  id: "codex",
  title: "Codex",
  programs: ["codex"],
  variable: "CODEX_HOME",
  folder: ({ environment, home }) => set(environment["CODEX_HOME"]) ?? join(home, ".codex"),
  plan: (ground) => {
    const { project, read } = ground;
    const folder = project === undefined ? CODEX.folder(ground) : join(project, ".codex");
    const config = join(folder, "config.toml");
    const json = join(folder, "hooks.json");
    const hook: Hook = {
      event: "PreToolUse",
      matcher: EVERY_TOOL,
      hook: { type: "command", command: hookCommand(ground, "codex"), timeout: HOOK_SECONDS },
    };
    const inToml = read(json) === undefined && hasTomlHooks(read(config));
    const path = inToml ? config : json;
    const kind = inToml ? "toml-hook" : "json-hook";
    const hooks = asksAndRecords(ground, "codex", { path, kind }, hook, CLAUDE_EVENTS);
    // A file that cannot be read is refused by the second step, before anything is written.
    // Trust counts for a hook that stays as it is: Codex asks again about one that this run changes.
    const isTrusted =
      isAsWritten(read(path) ?? "", { kind, hook }) && isHookTrusted(ground, CODEX.folder(ground), path);
    if (isToml(read(config)) && !isTrusted) return hooks;
    return [
      ...hooks,
      {
        path: config,
        part: { kind: "toml-key", key: "sandbox_mode", value: "danger-full-access" },
        what: "Codex's own sandbox is switched off, because it blocks the broker's socket: every command would fail. Commands run in Substrate's worlds instead",
      },
    ];
  },
  blockers: (ground) => codexBlockers(ground, CODEX.folder(ground)),
  byHand: (ground) => codexReminders(ground, CODEX.folder(ground)),
};

const GEMINI: Agent = {
  id: "gemini",
  title: "Gemini CLI",
  programs: ["gemini"],
  variable: "GEMINI_CLI_HOME",
  folder: ({ environment, home }) => join(set(environment["GEMINI_CLI_HOME"]) ?? home, ".gemini"),
  plan: (ground) => {
    const { project } = ground;
    const folder = project === undefined ? GEMINI.folder(ground) : join(project, ".gemini");
    const hook: Hook = {
      event: "BeforeTool",
      matcher: EVERY_TOOL,
      hook: {
        type: "command",
        name: "substrate",
        command: hookCommand(ground, "gemini"),
        timeout: HOOK_SECONDS * 1000,
      },
    };
    return asksAndRecords(
      ground,
      "gemini",
      { path: join(folder, "settings.json"), kind: "json-hook" },
      hook,
      GEMINI_EVENTS,
    );
  },
  blockers: (ground) => geminiBlockers(ground, GEMINI.folder(ground)),
  byHand: geminiReminders,
};

const OPENCODE: Agent = {
  id: "opencode",
  title: "opencode",
  programs: ["opencode"],
  variable: "XDG_CONFIG_HOME",
  folder: ({ environment, home }) =>
    join(set(environment["XDG_CONFIG_HOME"]) ?? join(home, ".config"), "opencode"),
  plan: (ground) => {
    const { project } = ground;
    const folder = project === undefined ? OPENCODE.folder(ground) : join(project, ".opencode");
    const text = opencodePlugin(hookCommand(ground, "opencode"), recordCommand(ground, "opencode"));
    return [
      {
        path: join(folder, "plugins/substrate.js"),
        part: { kind: "whole", text },
        what: `${ASKS}. ${RECORDS}`,
      },
    ];
  },
  blockers: () => [],
  byHand: opencodeReminders,
};

/** Both hooks are needed: the first may change a command; a version that has only the second asks there. `failClosed` blocks a tool
 * after a hook that was killed, waited too long or printed nothing. The command is one word for a shell, because Cursor may write a
 * here-document behind it. */
const CURSOR: Agent = {
  id: "cursor",
  title: "Cursor",
  programs: ["cursor-agent", "cursor"],
  folder: ({ home }) => join(home, ".cursor"),
  plan: (ground) => {
    const { project } = ground;
    const folder = project === undefined ? CURSOR.folder(ground) : join(project, ".cursor");
    const command = `/bin/sh -c ${quoted(hookCommand(ground, "cursor"))}`;
    const hook = { command, timeout: HOOK_SECONDS, failClosed: true };
    const planned = (event: string, what: string): Planned => ({
      path: join(folder, "hooks.json"),
      part: { kind: "json-hook", hook: { event, hook, version: 1 } },
      what,
    });
    return [
      planned("preToolUse", ASKS),
      planned("beforeShellExecution", "A command that was not changed to run in a world is denied"),
    ];
  },
  blockers: (ground) => cursorBlockers(ground, CURSOR.folder(ground)),
  byHand: cursorReminders,
};

/** The event's name in Claude Code's spelling has Copilot send Claude Code's fields and names of tools. */
const COPILOT: Agent = {
  id: "copilot",
  title: "GitHub Copilot CLI",
  programs: ["copilot"],
  variable: "COPILOT_HOME",
  folder: ({ environment, home }) => set(environment["COPILOT_HOME"]) ?? join(home, ".copilot"),
  plan: (ground) => {
    const { project } = ground;
    const folder = project === undefined ? COPILOT.folder(ground) : join(project, ".github");
    const hook: Hook = {
      event: "PreToolUse",
      matcher: EVERY_TOOL,
      hook: { type: "command", command: hookCommand(ground, "copilot"), timeout: HOOK_SECONDS },
      version: 1,
    };
    return [{ path: join(folder, "hooks/substrate.json"), part: { kind: "json-hook", hook }, what: ASKS }];
  },
  blockers: (ground) => copilotBlockers(ground, COPILOT.folder(ground)),
  byHand: copilotReminders,
};

/** Aider has no hooks. At a terminal it runs commands as `$SHELL -i -c COMMAND` (aider/run_cmd.py). */
const AIDER: Agent = {
  id: "aider",
  title: "Aider",
  programs: ["aider"],
  folder: ({ home }) => join(home, ".aider"),
  plan: ({ home, project, shell }) => [
    {
      path: join(project ?? home, AIDER_FILE),
      part: { kind: "yaml-list", key: "set-env", items: [`SHELL=${shell}`, "SUBSTRATE_AGENT_ID=aider"] },
      what: "Commands that Aider runs at a terminal run in Substrate's worlds",
    },
  ],
  blockers: () => [],
  byHand: aiderReminders,
};

/** The hook that is asked comes first, for the proof. */
function asksAndRecords(
  ground: Ground,
  agent: string,
  { path, kind }: { readonly path: string; readonly kind: "json-hook" | "toml-hook" },
  asks: Hook,
  events: readonly string[],
): readonly Planned[] {
  const { hook } = asks;
  const timeout = (Number(hook["timeout"]) / HOOK_SECONDS) * RECORD_SECONDS;
  const records = events.map((event): Planned => {
    const recording = { ...hook, command: recordCommand(ground, agent), timeout };
    return { path, part: { kind, hook: { event, matcher: EVERY_TOOL, hook: recording } }, what: RECORDS };
  });
  return [{ path, part: { kind, hook: asks }, what: ASKS }, ...records];
}

export const AGENTS: readonly Agent[] = [CLAUDE_CODE, CODEX, GEMINI, OPENCODE, CURSOR, COPILOT, AIDER];

/** The hook's command line, for a shell. Agents go on after a hook that was not found (127); only 2 blocks. */
export function hookCommand(ground: Pick<Ground, "front">, agent: string): string {
  return `${hookWords(ground, agent)} || exit 2`;
}

/** The command line of a hook that blocks nothing, whatever happens. */
function recordCommand(ground: Pick<Ground, "front">, agent: string): string {
  return `${hookWords(ground, agent)} || exit 0`;
}

function hookWords({ front }: Pick<Ground, "front">, agent: string): string {
  return `${quoted(front)} hook ${agent}`;
}

function quoted(word: string): string {
  return `'${word.replaceAll("'", String.raw`'\''`)}'`;
}

function set(value: string | undefined): string | undefined {
  return value === "" ? undefined : value;
}
