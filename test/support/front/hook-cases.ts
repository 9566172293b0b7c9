/** Events of coding agents, and what `substrate hook` has to answer, through whichever front. */
import { CODEX_AND_GEMINI_CASES } from "./hook-cases-codex-gemini.ts";
import { CURSOR_AND_COPILOT_CASES, cursorEvent } from "./hook-cases-cursor-copilot.ts";

export const HOOK_POLICY = `id: default
name: Hooks
mode: enforce
fs:
  deny_read: ["$HOME/.ssh", "$PROJECT/secret"]
  deny_write: ["$PROJECT/locked"]
commands:
  denied: ["sudo *"]
  ask: ["make deploy"]
  isolated: ["touch isolated*"]
  opaque: allow
`;

export type HookCase = {
  readonly what: string;
  readonly agent?: "claude-code" | "codex" | "gemini" | "opencode" | "cursor" | "copilot";
  /** The event comes from Cursor, which also runs the hooks in Claude Code's settings. */
  readonly from?: "cursor";
  readonly tool: string;
  readonly input: unknown;
  /** `passes`: exit 0 without a word, or `{}` for Cursor. `blocks`: exit 2 and a sentence that contains `says`. */
  readonly answer: "allow" | "ask" | "deny" | "passes" | "blocks";
  /** Part of the reason, or of the rewritten command. */
  readonly says?: string;
};

export function eventOf(
  { agent = "claude-code", from, tool, input }: Omit<HookCase, "what" | "answer">,
  cwd: string,
): object {
  const session_id = "6f2c9a52-4d3f-4c53-9a6e-0f6f3a1f7f10";
  if (from === "cursor" || agent === "cursor") return cursorEvent(tool, input, session_id, cwd);
  const common = { session_id, cwd, tool_name: tool, tool_input: input };
  const named = { ...common, hook_event_name: agent === "gemini" ? "BeforeTool" : "PreToolUse" };
  if (agent === "copilot") return { ...named, timestamp: "2026-11-27T01:45:46.458Z" };
  const transcript_path = "/home/example/transcript.jsonl";
  return { ...named, transcript_path, permission_mode: "default", tool_use_id: "toolu_01A" };
}

export const HOOK_CASES: readonly HookCase[] = [
  { what: "a command", tool: "Bash", input: { command: "true" }, answer: "allow", says: "-- 'true'" },
  {
    what: "a command with every field",
    tool: "Bash",
    input: {
      description: "d",
      command: "true",
      timeout: 5000,
      run_in_background: false,
      later: { a: [1.5, null] },
    },
    answer: "allow",
    says: " --timeout 5000ms -- ",
  },
  {
    what: "a command that goes on by itself",
    tool: "Bash",
    input: { command: "true", timeout: 5000, run_in_background: true },
    answer: "allow",
    says: " --keep -- ",
  },
  {
    what: "a denied command",
    tool: "Bash",
    input: { command: "cd / && sudo id" },
    answer: "deny",
    says: "sudo *",
  },
  {
    what: "a command that needs a person",
    tool: "Bash",
    input: { command: "make deploy" },
    answer: "ask",
    says: "--wait",
  },
  {
    what: "a command that needs a person, in Codex",
    agent: "codex",
    tool: "Bash",
    input: { command: "make deploy" },
    answer: "allow",
    says: " --wait -- ",
  },
  {
    what: "an isolated command",
    tool: "Bash",
    input: { command: "touch isolated.txt" },
    answer: "allow",
    says: " exec --agent claude-code ",
  },
  {
    what: "a command of 128 KiB",
    tool: "Bash",
    input: { command: `: ${"x".repeat(131_072)}` },
    answer: "deny",
    says: "too long",
  },
  {
    what: "a command of quotes that grow",
    tool: "Bash",
    input: { command: `: ${'"\'"'.repeat(20_000)}` },
    answer: "deny",
    says: "too long",
  },
  { what: "no command", tool: "Bash", input: {}, answer: "blocks", says: "'command'" },
  { what: "an empty command", tool: "Bash", input: { command: "" }, answer: "blocks", says: "'command'" },
  {
    what: "a command that is a list",
    tool: "Bash",
    input: { command: ["true"] },
    answer: "blocks",
    says: "'command'",
  },
  {
    what: "a command with a NUL",
    tool: "Bash",
    input: { command: "true\u0000" },
    answer: "blocks",
    says: "NUL",
  },
  {
    what: "a time limit of a wrong type",
    tool: "Bash",
    input: { command: "true", timeout: "5" },
    answer: "blocks",
    says: "'timeout'",
  },
  {
    what: "a time limit of nothing",
    tool: "Bash",
    input: { command: "true", timeout: 0 },
    answer: "blocks",
    says: "'timeout'",
  },
  {
    what: "a flag of a wrong type",
    tool: "Bash",
    input: { command: "true", run_in_background: "no" },
    answer: "blocks",
    says: "'run_in_background'",
  },
  { what: "an input that is no object", tool: "Bash", input: "true", answer: "blocks", says: "'tool_input'" },
  { what: "a read", tool: "Read", input: { file_path: "src/main.ts" }, answer: "passes" },
  {
    what: "a read of a key",
    tool: "Read",
    input: { file_path: "~/.ssh/id_rsa" },
    answer: "deny",
    says: "$HOME/.ssh",
  },
  {
    what: "a read by an input of a wrong type",
    tool: "Read",
    input: { file_path: 7 },
    answer: "blocks",
    says: "'file_path'",
  },
  { what: "a read of nothing", tool: "Read", input: {}, answer: "blocks", says: "'file_path'" },
  {
    what: "a write",
    tool: "Write",
    input: { file_path: "src/new.ts", content: "x".repeat(1_000_000) },
    answer: "passes",
  },
  {
    what: "a write outside",
    tool: "Write",
    input: { file_path: "/etc/hook-test", content: "x" },
    answer: "deny",
    says: "fs.write",
  },
  {
    what: "an edit of a denied name",
    tool: "Edit",
    input: { file_path: "locked" },
    answer: "deny",
    says: "fs.deny_write",
  },
  {
    what: "a notebook outside",
    tool: "NotebookEdit",
    input: { notebook_path: "/etc/a.ipynb" },
    answer: "deny",
    says: "fs.write",
  },
  {
    what: "a search of the folder with a hidden file",
    tool: "Grep",
    input: { pattern: "x" },
    answer: "deny",
    says: "secret",
  },
  { what: "a search beside it", tool: "Grep", input: { pattern: "x", path: "src" }, answer: "passes" },
  { what: "a list of names", tool: "Glob", input: { pattern: "**/*" }, answer: "passes" },
  {
    what: "code for the agent's own interpreter",
    tool: "REPL",
    input: { code: "1" },
    answer: "blocks",
    says: "REPL runs code",
  },
  {
    what: "a page to publish",
    tool: "Artifact",
    input: { file_path: "secret/key" },
    answer: "deny",
    says: "secret",
  },
  {
    what: "a watch of a WebSocket",
    tool: "Monitor",
    input: { ws: { url: "wss://example.org" } },
    answer: "blocks",
    says: "'command'",
  },
  { what: "a tool without files", tool: "TodoWrite", input: { todos: [] }, answer: "passes" },
  { what: "a tool named as a property of every object", tool: "constructor", input: {}, answer: "passes" },
  {
    what: "a command in opencode, in the form that its plugin sends",
    agent: "opencode",
    tool: "Bash",
    input: { command: "echo hello" },
    answer: "allow",
    says: " exec --agent opencode ",
  },
  {
    what: "a command in Gemini",
    agent: "gemini",
    tool: "run_shell_command",
    input: { command: "true", dir_path: "src", is_background: true },
    answer: "allow",
    says: " --keep -- ",
  },
  {
    what: "a denied command in Gemini",
    agent: "gemini",
    tool: "run_shell_command",
    input: { command: "sudo id" },
    answer: "deny",
    says: "sudo *",
  },
  {
    what: "a folder in Gemini that is not there",
    agent: "gemini",
    tool: "run_shell_command",
    input: { command: "true", dir_path: "none" },
    answer: "deny",
    says: "none",
  },
  {
    what: "a read of a file that a command may have written to its world's /tmp",
    tool: "Read",
    input: { file_path: "/tmp/substrate-test-none/out.log" },
    answer: "deny",
    says: "'/tmp/substrate-test-none/out.log' is not on this machine",
  },
  {
    what: "a list of a folder there",
    tool: "LS",
    input: { path: "/var/tmp/none" },
    answer: "deny",
    says: "a command reads",
  },
  {
    what: "a write to /tmp",
    tool: "Write",
    input: { file_path: "/tmp/substrate-test-none" },
    answer: "deny",
    says: "fs.write",
  },
  { what: "a read of /tmp", tool: "LS", input: { path: "/tmp/" }, answer: "passes" },
  ...CODEX_AND_GEMINI_CASES,
  ...CURSOR_AND_COPILOT_CASES,
];

/** Commands that the rewritten command must run to the last byte. */
export const RAN_ALIKE: readonly { readonly what: string; readonly command: string }[] = [
  {
    what: "quotes of every kind",
    command: `printf '%s|' 'a b' "c \\"d\\" $((1+1))" e\\ f $'g\\n\\x41' "it's" '"' \\' "\`echo h\`" ''; echo`,
  },
  {
    what: "a here-document",
    command: "cat <<'END' - <<<ignored\nit's \"$HOME\" \\n `x`\nEND\ncat <<END\n$((2 * 3)) 'q'\nEND",
  },
  {
    what: "lines, comments and blanks at the end",
    command: "# a comment\n\n  echo one \\\n  two\t\n\nif true; then\n  echo three\nfi\n# end \\",
  },
  { what: "bash", command: 'a=(x "y z"); [[ ${a[1]} == y* ]] && echo "${#a[@]}" "${a[1]@Q}"; echo {1..3}' },
  { what: "text beyond ASCII", command: "echo 'ü 漢 🚀 \u2028' | wc -c; exit 7" },
  { what: "what looks like options", command: "--json" },
  { what: "100 KB", command: `printf %s ${"0123456789".repeat(10_000)} | sha256sum` },
  { what: "100 KB with quotes", command: `printf %s '${'it"s '.repeat(20_000)}' "it's" | sha256sum` },
];
