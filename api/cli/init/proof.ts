/** Drives two events through the hook that was just installed, as the agent would: one to be denied, one to be allowed. */
import { spawn, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { Connection } from "./records.ts";

/** Denied by the shipped policies of all agents; the proof asks, and runs neither command. */
const DENIED = "sudo -n true";
const ALLOWED = "echo hello";

/** The longest a hook may take here; agents wait longer. */
const PATIENCE_MS = 20_000;

/** What a hook answered to one event. */
export type Answer = {
  /** The command that the agent wants to run. */
  readonly command: string;
  readonly wanted: "denied" | "allowed";
  readonly got: "denied" | "allowed" | "asked" | "unreadable";
  /** The reason of a denial, the command that runs in place of the agent's, or what was printed. */
  readonly words: string;
};

export type Proof = {
  readonly proved: boolean;
  readonly answers: readonly Answer[];
  /** Whether an allowed command ran: a shell runs what it is given. */
  readonly ran: boolean;
};

type Event = { readonly command: string; readonly cwd: string };

/** Runs the hook of a connection's files for both events, in a project; undefined: in a new repository. */
export async function prove(
  connection: Pick<Connection, "agent" | "files">,
  project: string | undefined,
  environment: Readonly<Record<string, string | undefined>>,
): Promise<Proof> {
  const folder = mkdtempSync(join(tmpdir(), "substrate-proof-"));
  const ran = connection.files.some(({ parts }) => parts.some(({ kind }) => kind === "yaml-list"));
  try {
    const cwd = project ?? folder;
    // Without a mark, no folder below /tmp is a project. Without git, the answers say so.
    if (project === undefined) spawnSync("git", ["init", "--quiet", folder], { stdio: "ignore" });
    const answers: Answer[] = [];
    for (const [command, wanted] of [
      [DENIED, "denied"],
      [ALLOWED, "allowed"],
    ] as const) {
      const { variables = {}, ...starter } = starterOf(connection, { command, cwd });
      const output = await run(starter, { ...environment, ...variables }, cwd);
      answers.push({ command, wanted, ...(ran ? ranAs(output) : understoodAs(output)) });
    }
    return { proved: answers.every(({ wanted, got }) => wanted === got), answers, ran };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

type Starter = {
  readonly program: string;
  readonly words: readonly string[];
  readonly stdin: string;
  readonly variables?: Readonly<Record<string, string>>;
};

function starterOf({ agent, files }: Pick<Connection, "agent" | "files">, event: Event): Starter {
  for (const { path, parts } of files)
    for (const part of parts) {
      if (part.kind === "whole") return pluginStarter(path, event);
      if (part.kind === "yaml-list") return shellStarter(part.items, event);
      if (part.kind === "json-hook" || part.kind === "toml-hook")
        return {
          program: "/bin/sh",
          words: ["-c", part.hook.hook.command],
          stdin: JSON.stringify(eventOf(agent, part.hook.event, event)),
        };
    }
  throw new Error(`The connection of '${agent}' has no hook`);
}

/** As Aider calls a shell. */
function shellStarter(items: readonly string[], { command }: Event): Starter {
  const variables = Object.fromEntries(
    items.map((item) => item.split(/=(.*)/s).slice(0, 2) as [string, string]),
  );
  return { program: variables["SHELL"] ?? "", words: ["-i", "-c", command], stdin: "", variables };
}

const SHELL_TOOLS: Readonly<Record<string, string>> = { gemini: "run_shell_command", cursor: "Shell" };

/** Fields that only the agent's own events have. */
const OWN_FIELDS: Readonly<Record<string, object>> = {
  gemini: { timestamp: new Date().toISOString() },
  copilot: { timestamp: new Date().toISOString() },
  cursor: { cursor_version: "", conversation_id: "substrate-init", workspace_roots: [] },
};

/** In the form that the agents' own programs send. */
function eventOf(agent: string, name: string, { command, cwd }: Event): object {
  return {
    session_id: "00000000-0000-4000-8000-000000000000",
    transcript_path: "",
    cwd,
    hook_event_name: name,
    tool_name: SHELL_TOOLS[agent] ?? "Bash",
    tool_input: { command, description: "substrate init: proof" },
    ...(OWN_FIELDS[agent] ?? { permission_mode: "default", tool_use_id: "substrate-init-proof" }),
  };
}

/** Loads the plugin from its file, and prints its answer in the form of a hook. */
const LOAD_PLUGIN = `
const [file, command, directory] = process.argv.slice(1);
const [plugin] = Object.values(await import(file));
const hooks = await plugin({ directory, worktree: directory });
const output = { args: { command, description: "substrate init: proof" } };
const answer = await hooks["tool.execute.before"]({ tool: "bash", sessionID: "proof", callID: "proof" }, output).then(
  () => ({ permissionDecision: "allow", updatedInput: output.args }),
  (error) => ({ permissionDecision: "deny", permissionDecisionReason: error.message }),
);
process.stdout.write(JSON.stringify({ hookSpecificOutput: answer }));
`;

function pluginStarter(path: string, { command, cwd }: Event): Starter {
  return {
    program: process.execPath,
    words: ["--input-type=module", "--eval", LOAD_PLUGIN, pathToFileURL(path).href, command, cwd],
    stdin: "",
  };
}

type Output = { readonly code: number | null; readonly out: string; readonly err: string };

function run(
  { program, words, stdin }: Starter,
  environment: Readonly<Record<string, string | undefined>>,
  cwd: string,
): Promise<Output> {
  return new Promise((resolve) => {
    const child = spawn(program, words, {
      cwd: existsSync(cwd) ? cwd : "/",
      env: { ...environment },
      stdio: ["pipe", "pipe", "pipe"],
      timeout: PATIENCE_MS,
      killSignal: "SIGKILL",
    });
    let out = "";
    let err = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      out += text;
    });
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      err += text;
    });
    // The hook may answer without reading all of the event.
    child.stdin.on("error", () => {});
    child.once("error", (error) => resolve({ code: null, out, err: error.message }));
    child.once("close", (code) => resolve({ code, out, err }));
    child.stdin.end(stdin);
  });
}

type HookAnswer = {
  readonly decision?: unknown;
  readonly reason?: unknown;
  /** Cursor's. */
  readonly permission?: unknown;
  readonly user_message?: unknown;
  readonly updated_input?: { readonly command?: unknown };
  readonly hookSpecificOutput?: {
    readonly permissionDecision?: unknown;
    readonly permissionDecisionReason?: unknown;
    readonly updatedInput?: { readonly command?: unknown };
    readonly tool_input?: { readonly command?: unknown };
  };
};

/** As agents understand it: exit code 2 blocks; every other answer than a valid one would run the agent's own command. */
function understoodAs({ code, out, err }: Output): Pick<Answer, "got" | "words"> {
  if (code === 2) return { got: "denied", words: err.trim() };
  const answer = code === 0 ? parsed(out) : undefined;
  const said = answer?.hookSpecificOutput;
  const decision = said?.permissionDecision ?? answer?.decision ?? answer?.permission;
  if (decision === "deny" || decision === "ask")
    return {
      got: decision === "deny" ? "denied" : "asked",
      words: text(said?.permissionDecisionReason ?? answer?.reason ?? answer?.user_message),
    };
  const input = said?.updatedInput ?? said?.tool_input ?? answer?.updated_input;
  const command = input?.command;
  if (decision === "allow" && typeof command === "string") return { got: "allowed", words: command };
  const printed = [out, err].map((each) => each.trim()).filter((each) => each !== "");
  return {
    got: "unreadable",
    words: `${code === null ? "no exit code" : `exit code ${code}`}: ${printed.join(" ") || "no output"}`,
  };
}

/** The exit code of a command that the policy refuses. */
const REFUSED = 126;

function ranAs({ code, out, err }: Output): Pick<Answer, "got" | "words"> {
  if (code === REFUSED && err.startsWith("substrate: ")) return { got: "denied", words: err.trim() };
  if (code === 0) return { got: "allowed", words: out.trim() };
  return {
    got: "unreadable",
    words: `${code === null ? "no exit code" : `exit code ${code}`}: ${err.trim()}`,
  };
}

function parsed(out: string): HookAnswer | undefined {
  try {
    const answer: unknown = JSON.parse(out);
    return typeof answer === "object" && answer !== null ? answer : undefined;
  } catch {
    return undefined;
  }
}

function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}
