import { expect, test } from "vitest";
import { misspelt } from "../../api/cli/terminal/agent-name.ts";

const LISTED = ["claude", "codex", "bot1"];

test.each([
  ["clade", "claude"],
  ["claud", "claude"],
  ["Claude", "claude"],
  ["codx", "codex"],
])("'%s' was probably meant for '%s'", (name, near) => {
  expect(misspelt(name, LISTED)).toBe(near);
});

test.each(["claude", "claude-2", "claude.review", "claude2", "bot2", "human", "gemini", "reviewer"])(
  "'%s' is a name of its own",
  (name) => {
    expect(misspelt(name, LISTED)).toBeUndefined();
  },
);

test("where nobody is listed every name is one", () => {
  expect(misspelt("clade", [])).toBeUndefined();
});
