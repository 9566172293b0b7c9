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

export type Proof = { readonly proved: boolean; readonly answers: readonly Answer[] };

type Event = { readonly command: string; readonly cwd: string };

/** Runs the hook of a connection's files for both events, in a project; undefined: in a new repository. */
export async function prove(
  connection: Pick<Connection, "agent" | "files">,
  project: string | undefined,
  environment: Readonly<Record<string, string | undefined>>,
): Promise<Proof> {
  const folder = mkdtempSync(join(tmpdir(), "substrate-proof-"));
  try {
    const cwd = project ?? folder;
    // Without a mark, no folder below /tmp is a project. Without git, the answers say so.
    if (project === undefined) spawnSync("git", ["init", "--quiet", folder], { stdio: "ignore" });
    const answers: Answer[] = [];
    for (const [command, wanted] of [
      [DENIED, "denied"],
      [ALLOWED, "allowed"],
    ] as const) {
      const output = await run(starterOf(connection, { command, cwd }), environment, cwd);
      answers.push({ command, wanted, ...understoodAs(output) });
    }
    return { proved: answers.every(({ wanted, got }) => wanted === got), answers };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

type Starter = { readonly program: string; readonly words: readonly string[]; readonly stdin: string };

function starterOf({ agent, files }: Pick<Connection, "agent" | "files">, event: Event): Starter {
  for (const { path, parts } of files)
    for (const part of parts) {
      if (part.kind === "whole") return pluginStarter(path, event);
      if (part.kind === "json-hook" || part.kind === "toml-hook")
        return {
          program: "/bin/sh",
          words: ["-c", part.hook.hook.command],
          stdin: JSON.stringify(eventOf(agent, part.hook.event, event)),
        };
    }
  throw new Error(`The connection of '${agent}' has no hook`);
}

/** In the form that the agents' own programs send. */
function eventOf(agent: string, name: string, { command, cwd }: Event): object {
  return {
    session_id: "00000000-0000-4000-8000-000000000000",
    transcript_path: "",
    cwd,
    hook_event_name: name,
    ...(agent === "gemini" ? { timestamp: new Date().toISOString() } : { permission_mode: "default" }),
    tool_name: agent === "gemini" ? "run_shell_command" : "Bash",
    tool_input: { command, description: "substrate init: proof" },
    ...(agent === "gemini" ? {} : { tool_use_id: "substrate-init-proof" }),
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
  const decision = said?.permissionDecision ?? answer?.decision;
  if (decision === "deny" || decision === "ask")
    return {
      got: decision === "deny" ? "denied" : "asked",
      words: text(said?.permissionDecisionReason ?? answer?.reason),
    };
  const command = said?.updatedInput?.command ?? said?.tool_input?.command;
  if (decision === "allow" && typeof command === "string") return { got: "allowed", words: command };
  const printed = [out, err].map((each) => each.trim()).filter((each) => each !== "");
  return {
    got: "unreadable",
    words: `${code === null ? "no exit code" : `exit code ${code}`}: ${printed.join(" ") || "no output"}`,
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
