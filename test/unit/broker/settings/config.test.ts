import { describe, expect, test } from "vitest";
import { parseConfig } from "../../../../broker/settings/config.ts";

describe("what is wrong with config.yaml is said at its line and column", () => {
  test.each([
    ["an unknown key, whose value begins below it", "log:\n  level: info\nlgo:\n  level: info\n", 3, 1],
    ["an unknown key with its value beside it", "trace: { sync: true }\nfoo: 1\n", 2, 1],
    ["a wrong value of a key inside", "trace:\n  sync: perhaps\n", 2, 3],
    ["a wrong item of a list", "projects:\n  - /one\n  - 5\n", 3, 5],
    ["a document that is no map", "- one\n", 1, 1],
    ["what is no YAML", "trace: {\n", 2, 1],
  ])("%s", (_what, text, line, column) => {
    const read = parseConfig(text, "config.yaml");
    const problems = "problems" in read ? read.problems.map((problem) => problem.text) : [];
    expect(problems[0]).toContain(`config.yaml:${line}:${column}: `);
  });
});
