/** The plugin by which opencode asks `substrate hook`: opencode runs no programs of its own before a tool. */

/** The text of the plugin's file. `command` is the hook's command line for a shell. */
export function opencodePlugin(command: string): string {
  return PLUGIN.replace("COMMAND", () => JSON.stringify(command));
}

/**
 * The event has the form of Claude Code's PreToolUse, with its names of tools and fields. Every answer but a plain one stops the
 * tool: an error that a plugin throws is what opencode shows to the model.
 */
const PLUGIN = `// Written by 'substrate init opencode'; 'substrate init opencode --undo' removes it.
// Asks Substrate before a tool runs a command or opens a file.
import { spawn } from "node:child_process";

const HOOK = COMMAND;

// opencode's tools: the name that the hook knows, and the names of fields.
const TOOLS = {
  bash: ["Bash", { command: "command", timeout: "timeout" }],
  read: ["Read", { filePath: "file_path" }],
  write: ["Write", { filePath: "file_path" }],
  edit: ["Edit", { filePath: "file_path" }],
  multiedit: ["MultiEdit", { filePath: "file_path" }],
  patch: ["apply_patch", { patchText: "command" }],
  apply_patch: ["apply_patch", { patchText: "command" }],
  grep: ["Grep", { path: "path", pattern: "pattern" }],
  glob: ["Glob", { path: "path", pattern: "pattern" }],
  list: ["LS", { path: "path" }],
};

export const Substrate = async ({ directory }) => ({
  "tool.execute.before": async ({ tool, sessionID, callID }, output) => {
    if (!Object.hasOwn(TOOLS, tool)) return;
    const [name, fields] = TOOLS[tool];
    const args = output.args ?? {};
    const input = {};
    for (const [from, to] of Object.entries(fields)) if (args[from] !== undefined) input[to] = args[from];
    const answer = await ask({
      session_id: sessionID,
      cwd: args.workdir ?? directory,
      hook_event_name: "PreToolUse",
      tool_name: name,
      tool_input: input,
      tool_use_id: callID,
    });
    const { permissionDecision: decision, permissionDecisionReason: reason, updatedInput } = answer;
    if (tool === "bash" && decision === "allow" && typeof updatedInput?.command === "string")
      output.args.command = updatedInput.command;
    else if (tool === "bash" || decision !== undefined)
      throw new Error(reason ?? "Substrate gave no answer that allows this");
  },
});

function ask(event) {
  return new Promise((resolve, reject) => {
    const hook = spawn("/bin/sh", ["-c", HOOK], { stdio: ["pipe", "pipe", "pipe"] });
    let out = "";
    let said = "";
    hook.stdout.setEncoding("utf8").on("data", (text) => (out += text));
    hook.stderr.setEncoding("utf8").on("data", (text) => (said += text));
    hook.stdin.on("error", () => {});
    hook.on("error", reject);
    hook.on("close", (code) => {
      try {
        if (code !== 0) throw new Error(said.trim() || "Substrate's hook ended with " + code);
        resolve(out.trim() === "" ? {} : (JSON.parse(out).hookSpecificOutput ?? {}));
      } catch (error) {
        reject(error);
      }
    });
    hook.stdin.end(JSON.stringify(event));
  });
}
`;
