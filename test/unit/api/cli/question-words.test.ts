import { expect, test } from "vitest";
import { approvalLines } from "../../../../api/cli/words/approval-words.ts";
import { PLAIN } from "../../../../api/cli/words/colours.ts";
import { spanWords } from "../../../../api/cli/words/span-lines.ts";
import type { Approval, ApprovalSubject, Span } from "../../../../schemas/generated/types.ts";
import type { Terminal } from "../../../../api/cli/terminal/terminal.ts";

const questionOf = (subject: ApprovalSubject): string =>
  approvalLines(PLAIN, {
    ...{ subject, agent_id: "claude", cwd: "/projects/app", rule: null, reason: null, notes: [] },
    preview: { state: "none" },
  } as unknown as Approval).join("\n");

test.each([
  ["a Cyrillic letter in a name", { cmd: "git push оrigin main" }, "'о' is U+043E"],
  ["a Greek letter in a variable", { cmd: "make", env: ["ΡATH=x"] }, "'Ρ' is U+03A1"],
  ["a slash that separates nothing", { argv: ["rm", "-r", "build∕out"] }, "'∕' is U+2215"],
  ["a full-width sign", { cmd: "echo a；rm b" }, "'；' is U+FF1B"],
  ["a dash that is no option", { cmd: "ls ‐la" }, "'‐' is U+2010"],
  ["a host", { scopes: ["net:gіthub.com:443"] }, "'і' is U+0456"],
] as const)("%s is named to the person", (_what, subject, words) => {
  expect(questionOf(subject as unknown as ApprovalSubject)).toContain(
    `not the characters that they look like: ${words}`,
  );
});

test("a question in other alphabets names no letters", () => {
  for (const cmd of ["echo 'Grüße, 漢字 👍'", "cat 'файл'", "touch 'Ελλάδα'", "git push origin main"])
    expect(questionOf({ cmd }).includes("look like"), cmd).toBe(false);
});

test("a command of several lines says in a list how many are not shown", () => {
  const terminal = { out: { isTTY: false }, environment: {} } as unknown as Terminal;
  const lineOf = (cmd: string): string =>
    spanWords(terminal, { event_type: "command_start", agent_id: "claude", cmd, exit: 0 } as unknown as Span);
  expect(lineOf("true\nrm -rf build\n")).toContain("true … [1 more line]");
  expect(lineOf("\n\ncat <<E\na\nE\n")).toContain("cat <<E … [2 more lines]");
  expect(lineOf("ls\n")).toMatch(/ls$/);
});
