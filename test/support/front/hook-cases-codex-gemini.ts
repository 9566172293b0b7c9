/** Events of Codex and Gemini CLI: their patches, and how each reads the name of a file. */
import type { HookCase } from "./hook-cases.ts";

const PATCH = "*** Begin Patch\n*** Update File: src/main.ts\n@@\n-a\n+b\n*** End Patch\n";

export const CODEX_AND_GEMINI_CASES: readonly HookCase[] = [
  { what: "a patch", agent: "codex", tool: "apply_patch", input: { command: PATCH }, answer: "passes" },
  {
    what: "a patch that moves a file outside",
    agent: "codex",
    tool: "apply_patch",
    input: { command: PATCH.replace("@@", "*** Move to: ../../outside.ts\n@@") },
    answer: "deny",
    says: "outside.ts",
  },
  // Rust's trim, which Codex reads a patch with, cuts off every blank of Unicode.
  ...["\u00a0", "\u2003", " \u3000 ", "\u0085", "x\u2028", "x\r", "\u001c"].map(
    (before): HookCase => ({
      what: `a patch of a file outside, behind ${JSON.stringify(before)}`,
      agent: "codex",
      tool: "apply_patch",
      input: { command: PATCH.replace("@@", `${before}*** Add File: /etc/outside.ts\n@@`) },
      answer: "deny",
      says: "outside.ts",
    }),
  ),
  ...["locked\u0085", "\u2003locked", "locked:x"].map(
    (path): HookCase => ({
      what: `a patch of a denied name written as ${JSON.stringify(path)}`,
      agent: "codex",
      tool: "apply_patch",
      input: { command: PATCH.replace("@@", `*** Add File: ${path}\n@@`) },
      answer: "deny",
      says: "locked",
    }),
  ),
  {
    what: "a patch whose text names a file outside",
    agent: "codex",
    tool: "apply_patch",
    input: { command: PATCH.replace("+b", "+b *** Add File: /etc/outside.ts\n+*** Add File: /etc/other.ts") },
    answer: "passes",
  },
  {
    what: "a patch of more files than one question has",
    agent: "codex",
    tool: "apply_patch",
    input: { command: "\n*** Delete File: a".repeat(101) },
    answer: "blocks",
    says: "more than 100 files",
  },
  {
    what: "a patch of a path that no file has",
    agent: "codex",
    tool: "apply_patch",
    input: { command: `*** Add File: ${"\r*** Add File:x".repeat(10_000)}` },
    answer: "blocks",
    says: "4095 bytes",
  },
  {
    what: "a patch of heads behind text, and of a path with blanks",
    agent: "codex",
    tool: "apply_patch",
    input: { command: `${PATCH}+${"x*** Add File:".repeat(70_000)}\n*** Add File: a${" ".repeat(400_000)}b` },
    answer: "blocks",
    says: "4095 bytes",
  },
  {
    what: "a patch of many lines without a letter, and a NUL in its text",
    agent: "codex",
    tool: "apply_patch",
    input: { command: `${PATCH}+\0${"\n".repeat(500_000)}${"\u6f22".repeat(200_000)}` },
    answer: "passes",
  },
  {
    what: "a patch of nothing",
    agent: "codex",
    tool: "apply_patch",
    input: { command: "x" },
    answer: "blocks",
    says: "names no file",
  },
  {
    what: "a read in Gemini",
    agent: "gemini",
    tool: "read_file",
    input: { absolute_path: "/x/../proc/1/environ" },
    answer: "deny",
    says: "/proc",
  },
  {
    what: "many files in Gemini",
    agent: "gemini",
    tool: "read_many_files",
    input: { include: ["src/*.ts", "secret*"] },
    answer: "deny",
    says: "secret",
  },
  ...["%6Cocked", "@locked", "@/locked", "file:locked", " @%6cocked"].map(
    (file_path): HookCase => ({
      what: `a denied name that Gemini decodes, ${JSON.stringify(file_path)}`,
      agent: "gemini",
      tool: "write_file",
      input: { file_path },
      answer: "deny",
      says: "locked",
    }),
  ),
  {
    what: "a name with a NUL",
    agent: "gemini",
    tool: "write_file",
    input: { file_path: "lo\0cked" },
    answer: "blocks",
    says: "NUL",
  },
  {
    what: "a replacement in a file that Gemini would look for",
    agent: "gemini",
    tool: "replace",
    input: { file_path: "ocked" },
    answer: "deny",
    says: "absolute path",
  },
  ...["SECRET", "sec\\ret", "sec+(r)et"].map(
    (include): HookCase => ({
      what: `a pattern that Gemini reads otherwise, ${JSON.stringify(include)}`,
      agent: "gemini",
      tool: "read_many_files",
      input: { include: [include] },
      answer: "deny",
      says: "fs.deny_read",
    }),
  ),
  {
    what: "a name with a percent sign and one with an at sign",
    agent: "gemini",
    tool: "write_file",
    input: { file_path: "@100%/x%zz" },
    answer: "passes",
  },
  {
    what: "a replacement in Gemini",
    agent: "gemini",
    tool: "replace",
    input: { file_path: "./" },
    answer: "passes",
  },
];
