import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { namesCode } from "../../../../broker/git/commands.ts";
import { gitSettings, treeSettings } from "../../../../broker/git/config.ts";
import { runsCode } from "../../../../broker/git/harmless-settings.ts";
import { growthOverSixtyFour, MOST_GROWTH } from "../../../support/processes/cost.ts";

const base = mkdtempSync(join(tmpdir(), "substrate-config-"));
const file = join(base, "config");

afterAll(() => rmSync(base, { recursive: true }));

describe("git's config is read as git reads it:", () => {
  test.each([
    ["[core]\n\tworktree = ../x\n"],
    ["[CORE]worktree=../x"],
    ['[core]\nworktree = "a b" ; note\n'],
    ['[core] worktree = a"#;"b # note\n'],
    ["[core]\nworktree = one\\\n two\n[core]\nbare\n"],
    ["[core]\nworktree = one\n[other]\nworktree = two\n[core]\nWorkTree = three   \r\n"],
    ["[core]\r\nworktree = a\r\n[other]\r\nbare\r\n"],
    ["[core]\r\nworktree = one\\\r\n two\r\n"],
    ['[core]\r\nworktree = "a b"  ; note\r\n'],
    ["[core]\nbare\r\r\nworktree = a\n"],
    ["[core]\nworktree = a\\"],
    ["\uFEFF[core]\r\nworktree = a\r\n"],
    ['[other\r"x"]\nx = 1\n[core]\nworktree = a\n'],
    ['[core "sub"]\nworktree = ../x\n'],
    ['[core]\nworktree = a\\tb\\\\c\\"d\n'],
    ["; worktree = no\n[core]\n# worktree = no\nbare = true\n"],
    ['[core]\nworktree = ../x\nbroken = "no end\n'],
    ["[core]\nworktree = ../x\nbad = \\q\n"],
    ["worktree = ../x\n"],
    ["[core]\nworktree ../x\n"],
    ["[core\nworktree = ../x\n"],
  ])("%j", (text) => {
    writeFileSync(file, text);
    const git = spawnSync("git", ["config", "--file", file, "core.worktree"], { encoding: "utf8" });
    const expected = git.status === 0 ? git.stdout.replace(/\n$/, "") : undefined;
    expect(treeSettings(text)?.worktree).toBe(expected);
  });

  test.each(["[core]\n", "a=b\n", '[core] a = "\\\n', "#\n"])(
    "64 times as much of %j takes about 64 times the work",
    (part) => {
      const reading = (bytes: number) => {
        const text = `[core]\n${part.repeat(Math.floor(bytes / part.length))}`;
        return () => treeSettings(text);
      };
      expect(growthOverSixtyFour(16 * 1024, reading)).toBeLessThan(MOST_GROWTH);
    },
  );
});

/** The names of settings in a text that count as code. */
function code(text: string): readonly string[] {
  return (gitSettings(text) ?? []).filter(runsCode).map(({ name }) => name);
}

describe("in a repository that a command made, git may run", () => {
  test.each([
    ["a hook of its settings", '[hook "lint"]\n\tcommand = evil', "hook.command"],
    ["one by its event", '[hook "lint"]\n\tevent = pre-commit', "hook.event"],
    ["git-svn's program for authors", "[svn]\n\tauthorsprog = evil", "svn.authorsprog"],
    ["Subversion's settings", "[svn]\n\tconfig-dir = evil", "svn.config-dir"],
    ["a tunnel of Subversion", '[svn-remote "svn"]\n\turl = svn+evil://x/y', "svn-remote.url"],
    [
      "a host that is an option",
      '[svn-remote "svn"]\n\turl = svn+ssh://-oProxyCommand=x/y',
      "svn-remote.url",
    ],
    ["a folder of hooks of git-flow", '[gitflow "path"]\n\thooks = evil', "gitflow.hooks"],
    ["an agent of git-lfs", '[lfs "customtransfer.x"]\n\tpath = evil', "lfs.path"],
    ["one of git-lfs by name", "[lfs]\n\tstandalonetransferagent = x", "lfs.standalonetransferagent"],
    ["what fills packs for a server", "[uploadpack]\n\tpackObjectsHook = evil", "uploadpack.packobjectshook"],
    ["a merge strategy", '[branch "a"]\n\tmergeOptions = --strategy=evil', "branch.mergeoptions"],
    ["one of a pull", "[pull]\n\ttwohead = evil", "pull.twohead"],
    ["a template of hooks", "[init]\n\ttemplateDir = evil", "init.templatedir"],
    ["another git folder of a submodule", '[submodule "a"]\n\tgitdir = ../evil', "submodule.gitdir"],
    ["refs elsewhere", "[extensions]\n\trefStorage = files:///evil", "extensions.refstorage"],
    ["an option in a group of remotes", "[remotes]\n\tdefault = --upload-pack=evil", "remotes.default"],
    ["an address for bundles", "[fetch]\n\tbundleURI = ext::evil", "fetch.bundleuri"],
    ["what a layout tells vim", '[mergetool "vimdiff"]\n\tlayout = evil', "mergetool.layout"],
    ["what nobody knows", "[core]\n\tnewInTheNextRelease = evil", "core.newinthenextrelease"],
    ["what nobody knows of a tool", "[sometool]\n\tkey = value", "sometool.key"],
    ["the old way of a sub-section", "[remote.origin]\n\turl = x", "remote.origin.url"],
    ["a sub-section that is an option", '[remote "--upload-pack=x"]\n\tfetch = y', "remote.fetch"],
  ])("%s", (_what, text, name) => expect(code(text)).toEqual([name]));
});

describe("git runs nothing by what is written there by", () => {
  test.each([
    [
      "git init --bare --shared and another format of objects",
      "[core]\n\trepositoryformatversion = 1\n\tfilemode = true\n\tbare = true\n\tsharedrepository = 1\n[extensions]\n\tobjectformat = sha256\n\trefstorage = reftable\n\trelativeWorktrees = true\n[receive]\n\tdenyNonFastforwards = true",
    ],
    [
      "git clone --filter, and branches with any letters",
      '[remote "origin"]\n\turl = git@example.org:a/b.git\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n\tpromisor = true\n\tpartialclonefilter = blob:none\n[branch "föö/(bär)!"]\n\tremote = origin\n\tmerge = refs/heads/föö\n\tmergeOptions = --no-ff --no-edit\n[extensions]\n\tpartialClone = origin',
    ],
    [
      "submodules and worktrees",
      '[submodule]\n\tactive = .\n[submodule "libs/My Lib"]\n\turl = https://example.org/x.git\n\tactive = true\n\tupdate = merge\n[core]\n\tworktree = ../../../lib\n[extensions]\n\tworktreeConfig = true',
    ],
    [
      "git sparse-checkout, maintenance and scalar",
      '[core]\n\tsparseCheckout = true\n\tsparseCheckoutCone = true\n\tfsmonitor = true\n\tmultiPackIndex = true\n\tFSCache = true\n\tautoCRLF = false\n[index]\n\tsparse = true\n\tthreads = true\n[maintenance]\n\tauto = false\n\tstrategy = incremental\n[maintenance "commit-graph"]\n\tenabled = true\n[pack]\n\tuseSparse = true\n\tuseBitmaps = false\n[credential]\n\tvalidate = false\n[credential "https://dev.azure.com"]\n\tuseHttpPath = true\n[commitGraph]\n\tgenerationVersion = 1\n[gui]\n\tGCWarning = false\n[log]\n\texcludeDecoration = refs/prefetch/*\n[receive]\n\tautoGC = false',
    ],
    [
      "git lfs install and track",
      '[filter "lfs"]\n\tclean = git-lfs clean -- %f\n\tsmudge = git-lfs smudge -- %f\n\tprocess = git-lfs filter-process\n\trequired = true\n[lfs]\n\trepositoryformatversion = 0\n\turl = https://example.org/lfs\n[lfs "https://example.org/a.git/info/lfs"]\n\taccess = basic\n\tlocksverify = true\n[lfs "transfer"]\n\tmaxretries = 3',
    ],
    [
      "git flow init",
      '[gitflow "branch"]\n\tmaster = main\n\tdevelop = develop\n[gitflow "prefix"]\n\tfeature = feature/\n\tversiontag = v',
    ],
    [
      "git svn clone",
      '[svn-remote "svn"]\n\turl = https://svn.example.org/repo\n\tfetch = trunk:refs/remotes/origin/trunk\n\tbranches = branches/*:refs/remotes/origin/*\n\ttags = tags/*:refs/remotes/origin/tags/*\n\tignore-paths = ^x\n[svn]\n\tauthorsfile = ../authors.txt\n\tnoMetadata = true',
    ],
    [
      "gh, editors and CI",
      '[remote "upstream"]\n\turl = https://github.com/a/b.git\n\tgh-resolved = base\n[branch "a"]\n\tvscode-merge-base = origin/main\n\tgithub-pr-owner-number = "a#b#1"\n\tgk-last-accessed = x\n\tgh-merge-base = main\n[http "https://github.com/"]\n\textraheader = AUTHORIZATION: basic x\n[gc]\n\tauto = 0\n[safe]\n\tdirectory = *\n[url "https://github.com/"]\n\tinsteadOf = git@github.com:',
    ],
    [
      "people, in every repository",
      '[user]\n\tname = A\n\tsigningkey = ~/.ssh/id.pub\n[gpg]\n\tformat = ssh\n[gpg "ssh"]\n\tallowedSignersFile = x\n[commit]\n\ttemplate = .gitmessage\n\tgpgsign = true\n[core]\n\teditor = vim\n\tpager = less\n\texcludesFile = ~/.ignore\n[pager]\n\tbranch = false\n[merge "ours"]\n\tname = ours\n\tdriver = true\n[merge]\n\ttool = vimdiff\n\tconflictStyle = zdiff3\n[diff "md"]\n\txfuncname = ^#\n[blame]\n\tignoreRevsFile = .git-blame-ignore-revs\n[alias]\n\tst = status -s\n[push]\n\tdefault = current\n[pull]\n\trebase = true\n[rerere]\n\tenabled = true\n[fetch]\n\tall = true\n[fetch "fsck"]\n\tbadTimezone = ignore\n[color "status"]\n\tadded = green\n[advice]\n\tdetachedHead = false\n[pretty]\n\tshort = %h %s\n[remotes]\n\tall = origin upstream',
    ],
  ])("%s", (_what, text) => {
    expect(gitSettings(text)).toBeDefined();
    expect(code(text)).toEqual([]);
  });
});

test("of a file that may belong to another program, only git's own names count", () => {
  const names = (text: string): readonly boolean[] => (gitSettings(text) ?? []).map(namesCode);
  expect(names("[server]\n\tport = 1\n[manifest]\n\tpath = x\n[core]\n\teditor = vim")).toEqual([
    false,
    false,
    false,
  ]);
  expect(names('[core]\n\tfsmonitor = evil\n[hook "x"]\n\tcommand = y')).toEqual([true, true]);
});
