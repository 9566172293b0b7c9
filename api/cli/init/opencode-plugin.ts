/** The plugin by which opencode asks `substrate hook`: opencode runs no programs of its own before a tool. */

/** The text of the plugin's file. Command lines for a shell: of the hook that is asked, and of the one that records. */
export function opencodePlugin(asks: string, records: string): string {
  return PLUGIN.replace("ASKS", () => JSON.stringify(asks)).replace("RECORDS", () => JSON.stringify(records));
}

/**
 * The event has the form of Claude Code's PreToolUse, with its names of tools and fields. Every answer but a plain one stops the
 * tool: an error that a plugin throws is what opencode shows to the model.
 */
const PLUGIN = `// Written by 'substrate init opencode'; 'substrate init opencode --undo' removes it.
// Asks Substrate before a tool runs a command or opens a file, and tells it of sessions, prompts and ended tools.
import { spawn } from "node:child_process";

const HOOK = ASKS;
// Ends with 0 whatever happens: events are recorded, and stop nothing.
const RECORD = RECORDS;

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
    const args = output.args ?? {};
    // Only a command has a folder of its own; the model can name one for every tool.
    const cwd = tool === "bash" ? (args.workdir ?? directory) : directory;
    const told = { session_id: sessionID, cwd, ...useOf(tool, args, callID) };
    const answer = await ask(HOOK, { hook_event_name: "PreToolUse", ...told });
    const { permissionDecision: decision, permissionDecisionReason: reason, updatedInput } = answer;
    if (tool === "bash" && decision === "allow" && typeof updatedInput?.command === "string")
      output.args.command = updatedInput.command;
    else if (tool === "bash" || decision !== undefined)
      throw new Error(reason ?? "Substrate gave no answer that allows this");
  },
  "tool.execute.after": ({ tool, sessionID, callID, args = {} }) =>
    record(directory, sessionID, "PostToolUse", useOf(tool, args, callID)),
  "chat.message": ({ sessionID }, { parts = [] } = {}) => {
    const texts = parts.filter(({ type, synthetic }) => type === "text" && !synthetic);
    return record(directory, sessionID, "UserPromptSubmit", { prompt: texts.map(({ text }) => text).join("\\n") });
  },
  event: async ({ event: { type, properties } = {} }) => {
    if (type === "session.created") await record(directory, properties?.info?.id, "SessionStart", { source: "created" });
    if (type === "session.idle") await record(directory, properties?.sessionID, "Stop");
    if (type === "session.deleted") await record(directory, properties?.info?.id, "SessionEnd", { reason: "deleted" });
  },
});

// A tool's use with the names that the hook knows; another tool keeps its name, and its fields are not told.
function useOf(tool, args, callID) {
  const [name, fields] = Object.hasOwn(TOOLS, tool) ? TOOLS[tool] : [tool, {}];
  const input = {};
  for (const [from, to] of Object.entries(fields)) if (args[from] !== undefined) input[to] = args[from];
  return { tool_name: name, tool_input: input, tool_use_id: callID };
}

async function record(cwd, session, name, more = {}) {
  await ask(RECORD, { session_id: session, cwd, hook_event_name: name, ...more }).catch(() => {});
}

function ask(command, event) {
  return new Promise((resolve, reject) => {
    const hook = spawn("/bin/sh", ["-c", command], { stdio: ["pipe", "pipe", "pipe"] });
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
