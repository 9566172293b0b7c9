import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { chosenOf, namedPaths } from "../../../../broker/held/choose.ts";
import { denialsFor } from "../../../../broker/held/denied-paths.ts";
import { KeyedMutex } from "../../../../world/model/keyed-mutex.ts";
import type { SpecOfFiles } from "../../../../broker/worlds/world-spec.ts";
import { coverOf, type HeldChange, type HeldKind } from "../../../../world/backend.ts";

let project: string;

beforeEach(() => {
  project = realpathSync(mkdtempSync(join(tmpdir(), "held-")));
});

afterEach(() => rmSync(project, { recursive: true, force: true }));

describe("the paths of a call", () => {
  test.each(["../up", "a/../b", "a//b", "./a", '"a', "a/\0"])("are refused when one is %j", (path) => {
    expect(namedPaths(["fine", path])).toMatchObject({ code: "invalid_request" });
  });

  test("may end with a slash, as a shell completes a folder", () => {
    expect(namedPaths(["a/b/"])).toEqual(["a/b"]);
  });

  test("stand for everything below, and not for names that begin alike", () => {
    const chosen = chosenOf([change("src/a"), change("src/b/c"), change("src2/a")], ["src"]);
    expect(chosen).toMatchObject({ changes: [{ path: "src/a" }, { path: "src/b/c" }] });
  });

  test("are refused together when nothing is held at one of them", () => {
    expect(chosenOf([change("a")], ["a", "b"])).toMatchObject({
      code: "invalid_request",
      message: expect.stringContaining("'b'"),
    });
  });

  test("may name a folder and what lies in it", () => {
    expect(chosenOf([change("a/b"), change("c")], ["a", "a/b"])).toMatchObject({
      changes: [{ path: "a/b" }],
    });
  });
});

describe("what nobody's apply writes", () => {
  test("is what a deny list holds, with its list and pattern; its neighbours are free", async () => {
    const denials = await denialsFor(spec({ denyWrite: [`${project}/.git/hooks`] }), [], "operator");
    expect(denials(".git/hooks/pre-commit")).toContain(`fs.deny_write has '${project}/.git/hooks'`);
    expect(denials(".git/hooksmith")).toBeUndefined();
  });

  test("is a link in the place of a folder that a pattern has, and no other link, folder or file", async () => {
    const denyWrite = [`${project}/.claude/settings.json`, "/**/.jj/repo/x", `${project}/packages/*/lock`];
    const links = [".claude", "a/.jj", "a/.jj/repo", "packages/a"];
    const others = ["a/.claude", ".claude2", "repo", "a"];
    const changes = [...links, ...others].map((path) => change(path, "link"));
    const denials = await denialsFor(spec({ denyWrite }), changes, "operator");
    expect(links.filter((path) => denials(path)?.includes("it is a link") !== true)).toEqual([]);
    expect(others.filter((path) => denials(path) !== undefined)).toEqual([]);
    const folders = await denialsFor(
      spec({ denyWrite }),
      [change(".claude", "dir"), change("a/.jj", "write")],
      "operator",
    );
    expect([folders(".claude"), folders("a/.jj")]).toEqual([undefined, undefined]);
  });

  test("is what a denied read could show there, and what lies outside of fs.write", async () => {
    const denials = await denialsFor(
      spec({ denyRead: ["/**/.env"], write: [`${project}/src/**`] }),
      [],
      "operator",
    );
    expect(denials("src/deep/.env")).toContain("fs.deny_read");
    expect(denials("README.md")).toContain("fs.write");
    expect(denials("src/a.ts")).toBeUndefined();
  });

  test("is a folder that goes with a denied name in it, and not one without", async () => {
    for (const folder of ["guarded", "free"]) mkdirSync(join(project, folder, "deep"), { recursive: true });
    writeFileSync(join(project, "guarded/deep/.env"), "");
    writeFileSync(join(project, "free/deep/env"), "");
    const changes = [change("guarded", "delete"), change("free", "delete")];
    const denials = await denialsFor(spec({ denyRead: ["/**/.env"] }), changes, "operator");
    expect(denials("guarded")).toContain("guarded/deep/.env");
    expect(denials("free")).toBeUndefined();
  });

  test("is a folder in which not everything can be looked at", async () => {
    for (const folder of ["closed", "open"]) mkdirSync(join(project, folder));
    // Deeper than a path can be long: what lies there is there all the same.
    const deep = spawnSync(
      "sh",
      ["-c", `i=0; while [ $i -lt 30 ]; do d=$(printf %0200d $i); mkdir $d; cd $d; i=$((i+1)); done`],
      {
        cwd: join(project, "closed"),
      },
    );
    expect(deep.status).toBe(0);
    const changes = [change("closed", "delete"), change("open", "delete")];
    const denials = await denialsFor(spec({ denyRead: ["/**/.env"] }), changes, "operator");
    expect(denials("closed")).toContain("cannot be read (ENAMETOOLONG)");
    expect(denials("open")).toBeUndefined();
    spawnSync("rm", ["-rf", join(project, "closed")]);
  });

  test("is what is sealed where it stands, and not where it does not", async () => {
    mkdirSync(join(project, ".git/modules/one/hooks"), { recursive: true });
    const denials = await denialsFor(spec({ seal: [`${project}/.git/modules/**/hooks`] }), [], "operator");
    expect(denials(".git/modules/one/hooks")).toContain("fs.deny_write");
    expect(denials(".git/modules/one/hooks/post-checkout")).toContain("fs.deny_write");
    expect(denials(".git/modules/two/hooks")).toBeUndefined();
    expect(denials(".git/modules/two/hooks/post-checkout")).toBeUndefined();
  });

  test("is in doubt more than a pattern with brackets says", async () => {
    const denials = await denialsFor(spec({ denyWrite: [`${project}/secret[12]`] }), [], "operator");
    expect(denials("secret1")).toBeDefined();
  });
});

describe("a pattern reaches below a folder", () => {
  test.each([
    ["/p/a/b", "/p/a", true],
    ["/p/a/b", "/p/c", false],
    ["/p/**/x", "/p/anything/deep", true],
    ["/p/a", "/p/a", false],
    ["/p/*/x", "/p/q", true],
    ["/p/*/x", "/p/q/r", false],
  ])("%s below %s: %s", (pattern, path, reaches) => {
    expect(coverOf(pattern).reachesBelow(path)).toBe(reaches);
  });
});

test("what is done in one project waits for what came before, however that ended; another project does not wait", async () => {
  const mutex = new KeyedMutex();
  const told: string[] = [];
  let fail: (error: Error) => void = () => {};
  const first = mutex.run("/a", () => new Promise((_resolve, reject) => (fail = reject)));
  const second = mutex.run("/a", () => Promise.resolve(told.push("second")));
  await mutex.run("/b", () => Promise.resolve(told.push("other")));
  expect(told).toEqual(["other"]);
  fail(new Error("disk"));
  await expect(first).rejects.toThrow("disk");
  await second;
  expect(told).toEqual(["other", "second"]);
});

function change(path: string, kind: HeldKind = "write", more: Partial<HeldChange> = {}): HeldChange {
  return { path, kind, autorun: false, size: 0, mode: 0o100644, links: 1, attributes: [], ...more };
}

function spec(files: Partial<SpecOfFiles["files"]>): SpecOfFiles {
  const all = { read: ["/**"], denyRead: [], write: [`${project}/**`], denyWrite: [], seal: [], ...files };
  return { project, files: all, sealed: [] } as unknown as SpecOfFiles;
}
