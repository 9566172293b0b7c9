import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { checkC } from "../../../check/c-source.mjs";
import { membersOfCycles } from "../../../check/cycles.mjs";
import { commentsOf, englishOf } from "../../../check/english.mjs";
import { checkLayering } from "../../../check/layering.mjs";
import { checkLength } from "../../../check/length.mjs";
import { checkLinks } from "../../../check/links.mjs";
import { checkEnglish } from "../../../check/plain-english.mjs";
import { checkReadmes } from "../../../check/readmes.mjs";
import { checkRooms } from "../../../check/rooms.mjs";
import { checkTopLevel } from "../../../check/top-level.mjs";

const ROOT = fileURLToPath(new URL("../../../..", import.meta.url));
let tree: string;

beforeEach(() => {
  tree = mkdtempSync(join(tmpdir(), "substrate-tree-"));
});

afterEach(() => {
  rmSync(tree, { recursive: true, force: true });
});

describe("layering", () => {
  test.each([
    ["schemas/a.ts", 'import { b } from "../broker/b.ts";'],
    ["world/a.ts", 'import type { B } from "../broker/b.ts";'],
    ["world/a.ts", 'export { b } from "../api/b.ts";'],
    ["broker/a.ts", 'import { b } from "../world/linux/backend.ts";'],
    ["broker/a.ts", 'type B = import("../world/linux/world.ts").B;'],
    ["broker/deep/a.ts", 'export * from "../../world/plan/mounts.ts";'],
    ["broker/a.ts", 'await import("../api/b.ts");'],
    ["lima/a.ts", 'import { b } from "../world/linux/backend.ts";'],
    ["lima/a.ts", 'import { b } from "../broker/b.ts";'],
    ["shim/a.ts", 'import { b } from "../api/errors.ts";'],
    ["api/a.ts", 'import { b } from "../world/linux/backend.ts";'],
    ["api/a.ts", 'import { b } from "../test/b.ts";'],
    ["api/main.ts", 'import { b } from "../test/b.ts";'],
    ["broker/a.ts", 'import express from "express";'],
    ["world/a.ts", 'import { request } from "node:http";'],
    ["broker/a.ts", 'import { Command } from "commander";'],
    ["api/setup/a.mjs", 'import { execa } from "execa";'],
    ["api/bin/a.mjs", 'import "../main.ts";'],
  ])("%s may not say %s", (path, line) => {
    write(path, line);
    expect(checkLayering(tree)).toEqual([expect.stringContaining(`${path}:1: `)]);
  });

  test.each([
    'import { x } from "../a/x.ts";',
    'import type { X } from "../a/x.ts";',
    'export type * from "../a/x.ts";',
    'type X = import("../a/x.ts").X;',
  ])("no folder leads back to itself by %s", (line) => {
    write("broker/a/x.ts", 'import { y } from "../b/y.ts";');
    write("broker/b/y.ts", 'import { z } from "../c/z.ts";');
    write("broker/c/z.ts", "");
    expect(checkLayering(tree)).toEqual([]);
    write("broker/c/z.ts", line);
    expect(checkLayering(tree)).toEqual([
      expect.stringMatching(/^broker\/a\/x\.ts:1: broker\/a imports broker\/b, and broker\/b leads back/),
      expect.stringMatching(/^broker\/b\/y\.ts:1: /),
      expect.stringMatching(/^broker\/c\/z\.ts:1: /),
    ]);
  });

  test.each([
    [
      "broker/a.ts",
      'import type { B } from "../world/backend.ts"; import "./b.ts"; import { parse } from "yaml";',
    ],
    ["lima/a.ts", 'import type { B } from "../world/backend.ts";'],
    ["world/linux/a.ts", 'import { b } from "../../schemas/generated/frames.ts";'],
    ["api/http/a.ts", 'import { b } from "../../broker/b.ts"; import express from "express";'],
    ["api/main.ts", 'import { b } from "../world/linux/backend.ts"; process.env;'],
    ["shim/a.ts", 'import { b } from "../api/client/client.ts";'],
    ["test/a.ts", 'import { b } from "../world/linux/backend.ts"; process.env["A"];'],
  ])("%s may say %s", (path, line) => {
    write(path, line);
    expect(checkLayering(tree)).toEqual([]);
  });

  test.each([
    "const a = process.env;",
    'const a = process["env"]["A"];',
    "const { env } = process;",
    "const a = globalThis.process.env;",
    'import { env } from "node:process";',
  ])("below an entry point nothing may read the environment by %s", (line) => {
    write("broker/a.ts", line);
    expect(checkLayering(tree)).toEqual(["broker/a.ts:1: only an entry point reads process.env"]);
  });

  test("a word in a comment or a string is no import", () => {
    write(
      "schemas/a.ts",
      '// import "../broker/b.ts"\nexport const a = "import \\"../broker/b.ts\\" process.env";',
    );
    expect(checkLayering(tree)).toEqual([]);
  });
});

describe("the other parts find", () => {
  test("a file longer than 400 lines, unless it is generated", () => {
    write("world/a.ts", "\n".repeat(401));
    write("world/b.ts", "\n".repeat(400));
    write("schemas/generated/types.ts", "\n".repeat(1000));
    expect(checkLength(tree)).toEqual(["world/a.ts has 401 lines, the longest allowed is 400"]);
  });

  test("comments that name nothing, and not those that do", () => {
    write("world/a.ts", "/** Candidates for eviction when the quota of an agent is full. */\n");
    expect(checkEnglish(tree)).toEqual([]);
    write("world/b.ts", "/** What one has to be for it to be that of those. */\n");
    expect(checkEnglish(tree)).toEqual([
      expect.stringContaining("are pronouns, at most 7 % may be"),
      expect.stringContaining("are mostly function words, at most 5 % may be"),
    ]);
  });

  test("a folder without a README", () => {
    write("broker/README.md", "The broker");
    write("api/README.md", "");
    expect(checkReadmes(tree)).toContain("api/README.md is missing or empty");
    expect(checkReadmes(tree)).not.toContain("broker/README.md is missing or empty");
  });

  test("a link of a page to a file that is not there, and none to one that is, or to another host", () => {
    write(
      "world/README.md",
      "[a](b.ts) [c](../test/d.test.ts#x) [e](https://example.org/x) [f](#here) [g](gone.ts)",
    );
    write("world/b.ts", "");
    write("test/d.test.ts", "");
    expect(checkLinks(tree)).toEqual(["world/README.md: the link to 'gone.ts' leads nowhere"]);
  });

  test("a stranger at the top level", () => {
    write("package.json", "{}");
    write(".gitignore", "");
    write("src/a.ts", "");
    expect(checkTopLevel(tree)).toEqual(["'src' does not belong at the top level"]);
  });

  test("a stranger that git holds, and none that it does not", () => {
    write("NOTES.md", "");
    write("package.json", "{}");
    for (const argv of [
      ["init", "-q"],
      ["add", "package.json"],
    ])
      spawnSync("git", argv, { cwd: tree });
    expect(checkTopLevel(tree)).toEqual([]);
    spawnSync("git", ["add", "."], { cwd: tree });
    expect(checkTopLevel(tree)).toEqual(["'NOTES.md' does not belong at the top level"]);
  });

  test("a C warning", async () => {
    write("world/native/main.c", "int main(void) { int unused; return 0; }");
    expect(await checkC(tree)).toEqual([expect.stringContaining("unused")]);
    write("world/native/main.c", "int main(void) { return 0; }");
    expect(await checkC(tree)).toEqual([]);
  });
});

describe("the rooms of the C part", () => {
  test.each([
    ["lib/a.c", "run/b.h"],
    ["lib/a.h", "notify/b.h"],
    ["mount/a.c", "deny/b.h"],
    ["deny/a.c", "run/b.h"],
    ["deny/a.c", "notify/writes/b.h"],
    ["notify/a.c", "notify/starts/b.h"],
    ["notify/starts/a.c", "notify/writes/b.h"],
    ["seals/a.c", "run/b.h"],
    ["changes/a.c", "run/b.h"],
    ["run/a.c", "changes/b.h"],
    ["run/a.c", "main.h"],
  ])("%s may not include %s", (path, name) => {
    write(`world/native/${path}`, `#include <stdio.h>\n#include "${name}"\n`);
    expect(checkRooms(tree)).toEqual([expect.stringContaining(`world/native/${path}:2: `)]);
  });

  test.each([
    ["run/a.c", "notify/starts/b.h"],
    ["seals/a.c", "notify/writes/b.h"],
    ["notify/writes/a.c", "deny/b.h"],
    ["deny/a.c", "deny/b.h"],
    ["main.c", "run/b.h"],
  ])("%s may include %s", (path, name) => {
    write(`world/native/${path}`, `#include "${name}"\n`);
    expect(checkRooms(tree)).toEqual([]);
  });

  test.each([
    ["client/a.c", "../program.h"],
    ["client/a.c", "../front/b.h"],
    ["client/a.c", "../stream/b.h"],
    ["stream/a.c", "../front/b.h"],
    ["front/a.c", "../program.h"],
    ["a.c", "front/b.h"],
  ])("shim/%s may not include %s: the client of both programs knows neither", (path, name) => {
    write(`shim/${path}`, `#include "${name}"\n`);
    expect(checkRooms(tree)).toEqual([expect.stringContaining(`shim/${path}:1: `)]);
    write(`shim/${path}`, '#include "x.h"\n');
    expect(checkRooms(tree)).toEqual([]);
  });

  test("no module leads back to itself by what it includes", () => {
    write("world/native/run/a.c", '#include "run/a.h"\n#include "run/b.h"\n');
    write("world/native/run/b.h", '#include "run/c.h"\n');
    write("world/native/run/c.c", '#include "lib/d.h"\n');
    expect(checkRooms(tree)).toEqual([]);
    write("world/native/run/c.c", '#include "run/a.h"\n');
    expect(checkRooms(tree)).toEqual([
      expect.stringMatching(/^world\/native\/run\/a\.c:2: .* includes world\/native\/run\/b, /),
      expect.stringMatching(/^world\/native\/run\/b\.h:1: /),
      expect.stringMatching(/^world\/native\/run\/c\.c:1: /),
    ]);
  });

  test("a room is listed, and holds no more files than a person takes in", () => {
    write("world/native/cellar/a.c", "");
    expect(checkRooms(tree)).toEqual(["world/native/cellar/a.c: no rule says what this room may include"]);
    rmSync(join(tree, "world"), { recursive: true });
    for (let file = 0; file < 40; file += 1) write(`world/native/run/f${file}.c`, "");
    expect(checkRooms(tree)).toEqual([]);
    write("world/native/run/g.h", "");
    expect(checkRooms(tree)).toEqual(["world/native/run has 41 files, the most allowed is 40"]);
  });
});

describe("npm run check", () => {
  test("ends with 0 when its parts find nothing", () => {
    write("api/README.md", "");
    expect(check("length", "top level")).toMatchObject({
      status: 0,
      stdout: expect.stringContaining("check: ok"),
    });
  });

  test.each([
    ["types", "api/a.ts", 'export const a: number = "text";\n', "TS2322"],
    ["lint", "api/a.ts", "export function a(): void {\n  Promise.resolve();\n}\n", "no-floating-promises"],
    ["format", "api/a.ts", "export   const a = 1\n", "api/a.ts"],
    ["generated", "schemas/generate.mjs", 'console.error("drifted"); process.exit(1);\n', "drifted"],
    ["layering", "schemas/a.ts", 'import "../api/a.ts";\n', "may not import"],
    ["rooms", "world/native/lib/a.c", '#include "run/b.h"\n', "may not include"],
    ["c", "world/native/main.c", "int main(void) { return x; }\n", "undeclared"],
    ["no such part", "api/a.ts", "", "No part of the check"],
  ])("exits with 1 when %s fails", (part, path, content, expected) => {
    for (const name of ["package.json", "tsconfig.json", ".oxlintrc.json", ".biome.json"]) {
      cpSync(join(ROOT, name), join(tree, name));
    }
    symlinkSync(join(ROOT, "node_modules"), join(tree, "node_modules"));
    write(path, content);
    const { status, stdout, stderr } = check(part);
    expect(stdout + stderr).toContain(expected);
    expect(stdout).toContain(`FAILED ${part}`);
    expect(status).toBe(1);
  });
});

function write(path: string, content: string): void {
  mkdirSync(dirname(join(tree, path)), { recursive: true });
  writeFileSync(join(tree, path), content);
}

function check(...parts: string[]): { status: number | null; stdout: string; stderr: string } {
  if (parts[0] === "length") mkdirSync(join(tree, "node_modules"));
  return spawnSync(process.execPath, [join(ROOT, "test/check/all.mjs"), "--root", tree, ...parts], {
    encoding: "utf8",
  });
}

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
