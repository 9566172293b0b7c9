import { join } from "node:path";
import { describe, expect, test } from "vitest";
import {
  DENIED_READS,
  DENIED_WRITES,
  deniedInGitFolder,
  pathsOf,
  SEALED_WRITES,
  sealedInGitFolder,
} from "../../../../../broker/policy/files/default-denials.ts";
import { fileLists } from "../../../../../broker/policy/files/file-lists.ts";
import { loadPolicy, parsePolicy } from "../../../../../broker/policy/index.ts";
import type { Site } from "../../../../../broker/model/site.ts";
import { WarmSpecs, worldSpec } from "../../../../../broker/worlds/world-spec.ts";

const SHIPPED = join(import.meta.dirname, "../../../../../policies");

const AROUND = {
  home: "/home/ann",
  hidden: [],
  installation: [],
  agents: { ssh: undefined, gpg: [], gpgInside: "/run/user/1/gnupg/S.gpg-agent" },
  fileProgram: "/usr/lib/substrate-init",
};
/** Sealed whatever the lists say: who could rewrite one would choose the rules of later commands. */
const PROFILE = "/home/ann/work/**/.substrate-profile";
const SITE: Site = { project: "/home/ann/work", identity: "1:2", profiles: [], git: undefined };

function compiled(text: string) {
  const load = parsePolicy(`id: a\nname: A\n${text}`, "a.yaml");
  if ("problems" in load) throw new Error(load.problems.map((problem) => problem.text).join("\n"));
  return load.ok;
}

function filesOf(text: string, site: Site = SITE, ...more: readonly string[]) {
  const policies = [text, ...more].map(compiled);
  return worldSpec(policies, site, { kind: "direct" }, AROUND).files;
}

describe("the default lists", () => {
  test("name each path once, with a reason", () => {
    for (const rows of [DENIED_READS, DENIED_WRITES, SEALED_WRITES]) {
      expect(new Set(pathsOf(rows)).size).toBe(rows.length);
      for (const { path, reason } of rows) expect([path, reason.length > 10]).toEqual([path, true]);
    }
  });

  test.each(["default", "strict", "tour"])("hold in the shipped policy '%s'", (name) => {
    const load = loadPolicy(join(SHIPPED, `${name}.yaml`), SHIPPED);
    if ("problems" in load) throw new Error(load.problems.map((problem) => problem.text).join("\n"));
    const lists = fileLists(load.ok.document);
    expect(lists.deny_read).toEqual(expect.arrayContaining([...pathsOf(DENIED_READS)]));
    expect(lists.deny_write).toEqual(expect.arrayContaining([...pathsOf(DENIED_WRITES)]));
  });

  test("are written out in the policy that people start from, and nothing else", () => {
    const load = loadPolicy(join(SHIPPED, "default.yaml"), SHIPPED);
    const fs = "ok" in load ? load.ok.document.fs : undefined;
    expect(new Set(fs?.deny_read)).toEqual(new Set(pathsOf(DENIED_READS)));
    expect(new Set(fs?.deny_write)).toEqual(new Set(pathsOf(DENIED_WRITES)));
  });
});

describe("a world is told", () => {
  test("the default lists where the policy has none", () => {
    const files = filesOf("");
    expect(files.denyRead).toContain("/home/ann/.ssh");
    expect(files.denyRead).toHaveLength(DENIED_READS.length);
    expect(files.seal).toContain("/home/ann/work/**/*.git/hooks");
  });

  test("to keep the rows of the project's own git folder as denials where changes are held", () => {
    const files = filesOf("", SITE);
    expect(files.denyWrite).toEqual([]);
    expect(filesOf('fs: { deny_write: ["$PROJECT/.git"] }').denyWrite).toEqual(["/home/ann/work/.git"]);
    const warm = new WarmSpecs(AROUND, 0);
    const tried = warm.isolated("hash", [compiled("")], SITE, "/layers", []);
    expect(tried.files.denyWrite).toContain("/home/ann/work/.git/hooks");
    expect(tried.files.judged).toBeUndefined();
    expect(tried.files.held).toBeUndefined();
  });

  test("to leave open what tools run later where changes are held, and no row that is written otherwise", () => {
    const rows = ["$PROJECT/.git/config", "$PROJECT/.envrc", "$PROJECT/{.zed,.fleet,.nova}"];
    const others = ["**/.envrc", "$PROJECT/.vscode/tasks.json", "$PROJECT/{.zed,secret}", "$PROJECT/.git"];
    const policy = compiled(`fs: { deny_write: ${JSON.stringify([...rows, ...others])} }`);
    const site = { ...SITE, gitNamed: ["/home/ann/work/.envrc", "/home/ann/work/tools/run"] };
    const warm = new WarmSpecs(AROUND, 0);
    const { files } = warm.isolated("hash", [policy], site, "/layers", ["a"]);
    const absolute = (list: readonly string[]) =>
      list.map((row) => row.replace("$PROJECT", "/home/ann/work").replace(/^\*\*/, "/**"));
    expect(files.held).toEqual(absolute(rows));
    expect(files.denyWrite).toEqual([...absolute(others), "/home/ann/work/tools/run"]);
    expect(files.seal).toContain("/home/ann/work/**/*.git/config");
    const other = { ...compiled('fs: { deny_write: ["$PROJECT/.envrc"] }'), id: "b" };
    const both = warm.isolated("hash-of-both", [policy, other], site, "/layers", ["a"]).files;
    expect(both.held).not.toContain("/home/ann/work/.envrc");
    expect(both.denyWrite).toContain("/home/ann/work/.envrc");
    const plain = warm.of("hash", [policy], site).files;
    expect(plain.denyWrite).toContain("/home/ann/work/.envrc");
    expect(plain.held).toBeUndefined();
  });

  test("to judge what a command makes of settings of git, and of nothing else", () => {
    const { judged = [], seal } = filesOf("");
    expect(judged).toContain("/home/ann/work/**/*.git/config");
    expect(judged).toContain("/home/ann/work/**/*.git/modules/**/config.worktree");
    expect(judged.every((pattern) => seal.includes(pattern) && /config(?:[.]worktree)?$/.test(pattern))).toBe(
      true,
    );
    expect(filesOf("fs: { deny_write: [] }").judged).toEqual([]);
  });

  test("nothing to deny where the lists are empty", () =>
    expect(filesOf("fs: { deny_read: [], deny_write: [] }")).toMatchObject({
      denyRead: [],
      denyWrite: [],
      seal: [PROFILE],
    }));

  test("to seal what stands in every repository of the project, its worktrees and submodules, as long as git's own folder is denied", () => {
    expect(filesOf("").seal).toContain("/home/ann/work/**/*.git/worktrees/*/commondir");
    expect(filesOf('fs: { deny_write: ["$PROJECT/.git/hooks"] }').seal).toHaveLength(
      SEALED_WRITES.length + 1,
    );
    expect(filesOf('fs: { deny_write: ["**/.git/hooks"] }').seal).toHaveLength(SEALED_WRITES.length + 1);
    expect(filesOf('fs: { deny_write: ["$PROJECT/locked"] }').seal).toEqual([PROFILE]);
  });

  test("of two policies the denials of both", () => {
    const files = filesOf('fs: { deny_read: ["/x"], deny_write: [] }', SITE, "");
    expect(files.denyRead).toContain("/x");
    expect(files.denyRead).toContain("/home/ann/.aws");
    expect(files.seal).toContain("/home/ann/work/**/*.git/config");
  });
});

describe("writes that stay in the world", () => {
  const keeps = (...texts: readonly [string, ...string[]]) => {
    const { scratch, write } = filesOf(texts[0], SITE, ...texts.slice(1));
    return { scratch, write };
  };
  const [cache, config] = ["/home/ann/.cache/**", "/home/ann/.config/**"];

  test("are those that fs.scratch names, and none without it", () => {
    expect(keeps('fs: { scratch: ["~/.cache/**", "$HOME/.config/**"] }').scratch).toEqual([cache, config]);
    expect(keeps("").scratch).toEqual([]);
  });

  test("of two policies are those that both keep, and those that one keeps and the other lets reach the host", () => {
    const kept = 'fs: { write: [], scratch: ["$HOME/.cache/**"] }';
    expect(keeps(kept, 'fs: { scratch: ["$HOME/.config/**"] }').scratch).toEqual([]);
    expect(keeps(kept, 'fs: { write: ["$HOME/**"] }')).toEqual({ scratch: [cache], write: [] });
    expect(keeps('fs: { write: ["$HOME/**"] }', kept)).toEqual({ scratch: [cache], write: [] });
    const opened = 'fs: { write: ["$HOME/.cache/**"] }';
    expect(keeps(opened, opened)).toEqual({ scratch: [], write: [cache] });
  });
});

describe("the git folder of a worktree", () => {
  const folder = {
    path: "/home/ann/main/.git",
    identity: "3:4",
    shared: true,
    others: ["/home/ann/main/.git/worktrees/other"],
  };
  const site: Site = { ...SITE, git: { file: "/home/ann/work/.git", folder } };

  test("is written where the project is, but for what runs code and for a rebase of others", () => {
    const files = filesOf("fs: { deny_write: [] }", site);
    expect(files.write).toEqual(["/home/ann/work/**", "/home/ann/main/.git/**"]);
    expect(files.denyWrite).toEqual([...deniedInGitFolder(folder.path, folder), "/home/ann/work/.git"]);
    const denied = ["rebase-merge", "modules", "info/attributes", "worktrees/other/rebase-merge"];
    expect(files.denyWrite).toEqual(
      expect.arrayContaining(denied.map((name) => `/home/ann/main/.git/${name}`)),
    );
    const settings = ["config", "config.worktree"].map((name) => `${folder.path}/${name}`);
    expect(files.seal).toEqual([...settings, ...sealedInGitFolder(folder.path), PROFILE]);
    expect(files.judged).toEqual(expect.arrayContaining(settings));
    expect(deniedInGitFolder(folder.path, { shared: false, others: [] })).not.toContain(
      "/home/ann/main/.git/rebase-merge",
    );
  });

  test.each([
    ["the project cannot be written", "fs: { write: [] }"],
    ["only a part of the project can be written", 'fs: { write: ["$PROJECT/src/**"] }'],
    ["the policy denies writes there", 'fs: { deny_write: ["/home/ann/main"] }'],
  ])("is not written where %s", (_claim, text) =>
    expect(filesOf(text, site).write).not.toContain("/home/ann/main/.git/**"),
  );

  test("is read where only the project may be", () =>
    expect(filesOf('fs: { read: ["$PROJECT/**"] }', site).read).toContain("/home/ann/main/.git/**"));

  test("makes another world when it is another folder", () => {
    const spec = (identity: string) =>
      worldSpec(
        [compiled("")],
        { ...site, git: { file: "/home/ann/work/.git", folder: { ...folder, identity } } },
        { kind: "direct" },
        AROUND,
      );
    expect(spec("3:4")).toEqual(spec("3:4"));
    expect(spec("3:4")).not.toEqual(spec("3:5"));
  });
});
