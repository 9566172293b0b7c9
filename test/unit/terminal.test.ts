import { expect, test } from "vitest";
import { harmless, harmlessLine } from "../../api/cli/terminal.ts";

test("what a program is called cannot move the cursor, and cannot write lines of its own into a list", () => {
  const name = "red\u001b[31m\nwld_other\n  project /";
  expect(harmlessLine(name)).toBe("red\\x1b[31m\\x0awld_other\\x0a  project /");
  expect(harmless("two\nlines")).toBe("two\nlines");
});
