import { spawnSync } from "node:child_process";
import {
  appendFileSync,
  chownSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { GitFolders } from "../../../../broker/git/folder.ts";
import type { ProjectRules } from "../../../../broker/project/projects.ts";
import { skip } from "../../../support/run/skips.ts";

let base: string;
let rules: ProjectRules;
let folders: GitFolders;

const at = (path: string): string => join(base, path);

beforeEach(() => {
  base = realpathSync(mkdtempSync(join(tmpdir(), "substrate-git-")));
  mkdirSync(at("ann/.substrate"), { recursive: true });
  rules = {
    home: at("ann"),
    hidden: [at("ann/.substrate")],
    uid: process.getuid?.() ?? 0,
    installation: "/opt/substrate",
    roots: [],
  };
  folders = new GitFolders();
  worktree("ann/app", "ann/tree");
  submodule("ann/app/.git/modules/lib/one", "ann/app/lib/one", "../../../../lib/one");
});

afterEach(() => rmSync(base, { recursive: true, force: true }));

function gitFolder(path: string): void {
  for (const part of ["objects", "refs"]) mkdirSync(join(at(path), part), { recursive: true });
  writeFileSync(join(at(path), "HEAD"), "ref: refs/heads/main\n");
}

function worktree(main: string, tree: string, common = `${main}/.git`): void {
  gitFolder(common);
  mkdirSync(at(`${common}/worktrees/tree`), { recursive: true });
  mkdirSync(at(tree), { recursive: true });
  writeFileSync(at(`${common}/worktrees/tree/gitdir`), `${at(tree)}/.git\n`);
  writeFileSync(at(`${common}/worktrees/tree/commondir`), "../..\n");
  writeFileSync(at(`${tree}/.git`), `gitdir: ${at(common)}/worktrees/tree\n`);
}

function submodule(own: string, tree: string, back: string): void {
  gitFolder(own);
  mkdirSync(at(tree), { recursive: true });
  writeFileSync(at(`${own}/config`), `[core]\n\tbare = false\n\tworktree = ${back}\n`);
  writeFileSync(at(`${tree}/.git`), `gitdir: ${at(own)}\n`);
}

function found(project: string, change: Partial<ProjectRules> = {}): string | undefined {
  return folders.of(at(project), () => ({ ...rules, ...change }))?.folder?.path.slice(base.length + 1);
}

describe("a git folder belongs to a project when", () => {
  test("it is what a worktree's own folder leads to, and that names the worktree", () =>
    expect(found("ann/tree")).toBe("ann/app/.git"));
  test("it is a submodule's, and its core.worktree names the submodule", () =>
    expect(found("ann/app/lib/one")).toBe("ann/app/.git/modules/lib/one"));
  test("a submodule lies in a worktree", () => {
    submodule("ann/app/.git/worktrees/tree/modules/sub", "ann/tree/sub", at("ann/tree/sub"));
    expect(found("ann/tree/sub")).toBe("ann/app/.git/worktrees/tree/modules/sub");
  });
  test("the repository is bare", () => {
    worktree("ann/bare", "ann/other", "ann/bare/store");
    expect(found("ann/other")).toBe("ann/bare/store");
  });
  test("both pointers are relative", () => {
    writeFileSync(at("ann/app/.git/worktrees/tree/gitdir"), "../../../../tree/.git\n");
    writeFileSync(at("ann/tree/.git"), "gitdir: ../app/.git/worktrees/tree\n");
    expect(found("ann/tree")).toBe("ann/app/.git");
  });
  test("core.worktree stands in config.worktree, where the config says that this counts", () => {
    const own = at("ann/app/.git/modules/lib/one");
    writeFileSync(join(own, "config.worktree"), `[core] worktree = "${at("ann/app/lib/one")}"\n`);
    writeFileSync(join(own, "config"), "[core]\n\tbare = false\n");
    expect(found("ann/app/lib/one")).toBeUndefined();
    appendFileSync(join(own, "config"), "[extensions]\n\tworktreeConfig = true\n");
    expect(found("ann/app/lib/one")).toBe("ann/app/.git/modules/lib/one");
  });
});

describe("no git folder belongs to a project", () => {
  const own = "ann/app/.git/worktrees/tree";
  const cases: readonly (readonly [string, () => void])[] = [
    ["whose file leads to a repository that knows nothing of it", () => point(at("ann/app/.git"))],
    ["whose file leads to another one's worktree folder", () => write(`${own}/gitdir`, at("ann/x/.git"))],
    ["whose worktree folder is missing", () => rmSync(at(own), { recursive: true })],
    ["whose worktree folder has no commondir", () => rmSync(at(`${own}/commondir`))],
    ["whose commondir leads to another repository", () => write(`${own}/commondir`, at("ann/app/lib"))],
    ["whose file names what does not exist", () => point("/none/of/this")],
    ["whose file names a name that is too long", () => point(`/${"a".repeat(300)}/.git/modules/x`)],
    ["whose file says nothing", () => write("ann/tree/.git", "")],
    ["whose file has a second line", () => write("ann/tree/.git", `gitdir: ${at(own)}\ngitdir: /etc\n`)],
    ["whose file has blank lines before", () => write("ann/tree/.git", `\ngitdir: ${at(own)}\n`)],
    ["whose file holds a NUL", () => write("ann/tree/.git", `gitdir: ${at(own)}\0/x\n`)],
    ["whose file has ten megabytes", () => write("ann/tree/.git", `gitdir: ${at(own)}${"\n".repeat(1e7)}`)],
    ["whose worktree folder is reached by a link", () => relink(own)],
    ["whose repository is reached by a link", () => relink("ann/app")],
    ["whose back pointer is a link", () => relink(`${own}/gitdir`)],
    ["whose repository has no HEAD", () => rmSync(at("ann/app/.git/HEAD"))],
    ["whose repository has its objects elsewhere", () => relink("ann/app/.git/objects")],
    ["whose repository is that of the home folder", () => worktree("ann", "ann/tree")],
    ["whose repository is bare, and a settings folder", () => worktree("ann", "ann/tree", "ann/.store")],
    ["whose repository lies in SUBSTRATE_HOME", () => worktree("ann/.substrate/x", "ann/tree")],
    ["whose repository's name is a pattern", () => worktree("ann/a*", "ann/tree")],
  ];
  test.each(cases)("%s", (_claim, change) => {
    expect(found("ann/tree")).toBe("ann/app/.git");
    change();
    expect(new GitFolders().of(at("ann/tree"), () => rules)?.folder).toBeUndefined();
  });

  test("which lies in that repository", () => {
    worktree("ann/b", "ann/b/store/tree", "ann/b/store");
    expect(found("ann/b/store/tree")).toBeUndefined();
  });

  test("whose file is a pipe or a link: it is not opened, and nobody waits", () => {
    for (const program of [["mkfifo"], ["ln", "-s", at("ann/app/.git/worktrees/tree/gitdir")]] as const) {
      rmSync(at("ann/tree/.git"));
      expect(spawnSync(program[0], [...program.slice(1), at("ann/tree/.git")]).status).toBe(0);
      expect(folders.of(at("ann/tree"), () => rules)).toBeUndefined();
    }
  });

  test("where a pipe stands for the file that points back", () => {
    rmSync(at("ann/app/.git/worktrees/tree/gitdir"));
    spawnSync("mkfifo", [at("ann/app/.git/worktrees/tree/gitdir")]);
    expect(found("ann/tree")).toBeUndefined();
  });

  test("whose repository is outside the configured roots", () => {
    expect(found("ann/tree", { roots: [at("ann/tree"), at("ann/app")] })).toBe("ann/app/.git");
    expect(found("ann/tree", { roots: [at("ann/tree")] })).toBeUndefined();
  });

  test("that lies in a plain folder called worktrees: two files do not make the folder above it a repository", () => {
    mkdirSync(at("ann/code/worktrees/mine/sub"), { recursive: true });
    write("ann/code/worktrees/mine/commondir", "../..\n");
    write("ann/code/worktrees/mine/gitdir", `${at("ann/code/worktrees/mine/sub/.git")}\n`);
    write("ann/code/worktrees/mine/sub/.git", `gitdir: ${at("ann/code/worktrees/mine")}\n`);
    expect(found("ann/code/worktrees/mine/sub")).toBeUndefined();
  });

  test("when somebody else owns the repository, or the file that points back", () => {
    if (process.getuid?.() !== 0) return skip("git folders of other users", "only root can make one");
    for (const path of ["ann/app/.git", "ann/app/.git/worktrees/tree/gitdir", "ann/tree/.git"]) {
      chownSync(at(path), 12345, 12345);
      expect([path, new GitFolders().of(at("ann/tree"), () => rules)?.folder]).toEqual([path, undefined]);
      chownSync(at(path), 0, 0);
    }
    expect(found("ann/tree")).toBe("ann/app/.git");
  });

  test("when another submodule's folder is named, whatever it includes", () => {
    write("ann/app/evil/.git", `gitdir: ${at("ann/app/.git/modules/lib/one")}\n`);
    expect(found("ann/app/evil")).toBeUndefined();
    appendFileSync(at("ann/app/.git/modules/lib/one/config"), `[include]\n\tpath = ${at("ann/more")}\n`);
    write("ann/more", `[core]\n\tworktree = ${at("ann/app/evil")}\n`);
    expect(found("ann/app/evil")).toBeUndefined();
  });
});

describe("what was found is forgotten when", () => {
  const own = "ann/app/.git/worktrees/tree";
  test.each([
    ["the project's file changes", () => point(at("ann/app/.git"))],
    ["the file that points back changes", () => write(`${own}/gitdir`, at("ann/x/.git"))],
    ["the commondir changes", () => write(`${own}/commondir`, at("ann/app/lib"))],
    ["the worktree's folder goes", () => rmSync(at(own), { recursive: true })],
    ["the repository becomes a link to itself", () => relink("ann/app")],
  ])("%s", (_claim, change) => {
    expect(found("ann/tree")).toBe("ann/app/.git");
    change();
    expect(found("ann/tree")).toBeUndefined();
  });

  test("a submodule's config changes", () => {
    expect(found("ann/app/lib/one")).toBe("ann/app/.git/modules/lib/one");
    write("ann/app/.git/modules/lib/one/config", "[core]\n\tworktree = ../../../../lib/two\n");
    expect(found("ann/app/lib/one")).toBeUndefined();
  });
});

test("a repository that was made anew under the same name is another one", () => {
  const first = folders.of(at("ann/tree"), () => rules)?.folder;
  renameSync(at("ann/app"), at("ann/old"));
  worktree("ann/app", "ann/tree");
  const second = folders.of(at("ann/tree"), () => rules)?.folder;
  expect(second?.path).toBe(first?.path);
  expect(second?.identity).not.toBe(first?.identity);
});

function write(path: string, text: string): void {
  mkdirSync(join(at(path), ".."), { recursive: true });
  writeFileSync(at(path), text);
}

function point(path: string): void {
  write("ann/tree/.git", `gitdir: ${path}\n`);
}

/** Moves what is there and puts a link to it in its place. */
function relink(path: string): void {
  renameSync(at(path), at("ann/moved"));
  symlinkSync(at("ann/moved"), at(path));
}
