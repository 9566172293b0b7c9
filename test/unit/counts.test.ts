import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { membersOfCycles } from "../check/cycles.mjs";
import { commentsOf, englishOf } from "../check/english.mjs";

const ROOT = join(import.meta.dirname, "../..");

const graphOf = (edges: Readonly<Record<string, readonly string[]>>): Map<string, Set<string>> =>
  new Map(Object.entries(edges).map(([from, to]) => [from, new Set(to)]));

describe("the counts of the house", () => {
  test.each([
    [{ a: ["b"], b: ["c"], c: [] }, []],
    [{ a: ["b"], b: ["a", "c"], c: [] }, ["a", "b"]],
    [{ a: ["b"], b: ["c"], c: ["a"], d: ["a"], e: ["f"], f: ["e"] }, ["a", "b", "c", "e", "f"]],
  ])("find what lies on a cycle of %j", (edges, members) => {
    expect(membersOfCycles(graphOf(edges))).toEqual(members);
  });

  test("take comments from code and not from strings", () => {
    const typescript = '/** Opens\n * the file. */\nconst a = "// no"; // one\n// two\nlet b; // three\n';
    expect(commentsOf("x.ts", typescript).map((one) => one.trim())).toEqual([
      "Opens\nthe file.",
      "one  two",
      "three",
    ]);
    expect(commentsOf("x.c", '/* Opens. */ char *a = "/* no */"; // one\n')).toEqual([" Opens. ", " one"]);
  });

  test("know a comment that names what it is about from one that does not", () => {
    expect(englishOf(["Candidates for eviction when the quota of an agent is full"])).toEqual({
      pronouns: 0,
      hollow: 0,
    });
    expect(englishOf(["What one has to be for it to be that of those"])).toMatchObject({ hollow: 100 });
    expect(englishOf(["`it` is it"])).toMatchObject({ pronouns: 50 });
  });

  test("are printed for this tree", () => {
    const printed = execFileSync(process.execPath, ["test/check/counts.mjs", "--json"], { cwd: ROOT });
    const counts = JSON.parse(printed.toString()) as Record<string, number>;
    expect(counts["tracked files"]).toBeGreaterThan(1000);
    expect(counts["words of README.md"]).toBeGreaterThan(500);
    expect(counts["pronouns in comments, %"]).toBeGreaterThan(1);
  });
});
