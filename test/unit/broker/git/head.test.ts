import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { GitHeads } from "../../../../broker/git/head.ts";
import { type Actor, currentUser } from "../../../support/users/users.ts";
import { hostGit } from "../../../support/git/git.ts";

const ME: Actor = { ...currentUser(), kind: "root" };

let folder: string;
let heads: GitHeads;
const git = (...words: readonly string[]): string => hostGit(ME, folder, ...words);
const commit = (name: string): string => {
  writeFileSync(join(folder, name), name);
  git("add", name);
  git("commit", "-q", "-m", name);
  return git("rev-parse", "HEAD");
};

beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), "substrate-head-")));
  heads = new GitHeads(process.getuid?.() ?? 0);
});
afterEach(() => rmSync(folder, { recursive: true }));

describe("the commit of a folder", () => {
  test("is none without git, none before the first commit, and then each as it comes", () => {
    expect(heads.of(folder)).toBe(null);
    git("init", "-q", "-b", "main");
    expect(heads.of(folder)).toBe(null);
    for (const name of ["one", "two"]) {
      const hash = commit(name);
      expect([heads.of(folder), heads.of(folder)]).toEqual([hash, hash]);
    }
  });

  test("is found in packed refs, on a branch with a slash, and when HEAD is detached", () => {
    git("init", "-q", "-b", "main");
    const first = commit("one");
    git("checkout", "-q", "-b", "topic/deep");
    const second = commit("two");
    git("pack-refs", "--all");
    expect(heads.of(folder)).toBe(second);
    git("checkout", "-q", "--detach", first);
    expect(heads.of(folder)).toBe(first);
    git("checkout", "-q", "main");
    expect(heads.of(folder)).toBe(first);
  });

  test("of a worktree is its own", () => {
    git("init", "-q", "-b", "main");
    const first = commit("one");
    git("worktree", "add", "-q", "tree", "-b", "side");
    const second = commit("two");
    expect([heads.of(join(folder, "tree")), heads.of(folder)]).toEqual([first, second]);
  });

  test("around a file is that of the nearest repository", () => {
    git("init", "-q", "-b", "main");
    const hash = commit("one");
    mkdirSync(join(folder, "a/b"), { recursive: true });
    expect(heads.around(join(folder, "a/b/policy.yaml"))).toBe(hash);
  });

  test("is never what a link or a strange file says", () => {
    git("init", "-q", "-b", "main");
    commit("one");
    writeFileSync(join(folder, ".git/HEAD"), "ref: refs/../../secret\n");
    expect(heads.of(folder)).toBe(null);
    writeFileSync(join(folder, "elsewhere"), "0123456789012345678901234567890123456789\n");
    rmSync(join(folder, ".git/HEAD"));
    symlinkSync("../elsewhere", join(folder, ".git/HEAD"));
    expect(heads.of(folder)).toBe(null);
    rmSync(join(folder, ".git/HEAD"));
    writeFileSync(join(folder, ".git/HEAD"), "x".repeat(10_000));
    expect(heads.of(folder)).toBe(null);
  });
});
