/** What a rule that says `git *` covers, and `make *`. */
import { describe, expect, test } from "vitest";
import { decide, readShell } from "../../broker/policy/index.ts";
import { COVERED, NOT_COVERED, policyOf, verdicts, WHERE } from "./allowing.ts";

describe("git *", () => {
  test.each([
    "git -C nested status",
    "git -Cnested status",
    "git --git-dir=n/.git status",
    "git --git-dir n/.git status",
    "git --work-tree=n status",
    "git -c core.pager=x log",
    "git --config-env=core.pager=X log",
    "git --exec-path=. status",
    "git --bare log",
    "git --namespace=x log",
    "git $x status",
    "git $x",
    "git config alias.z '!id'",
    "git config --global core.editor id",
    "git config set core.pager id",
    "git config --unset core.pager",
    "git config -e",
    "git config user.name get",
    "git config --get user.name --unset",
    "git remote add x ext::id",
    "git remote -v add x y",
    "git remote set-url origin x",
    "git submodule add ./n",
    "git submodule update --init",
    "git submodule foreach id",
    "git clone -c core.fsmonitor=id x",
    "git clone x",
    "git init n",
    "git worktree add list",
    "git push ./n",
    "git bisect run id",
    "git difftool -x id",
    "git filter-branch x",
    "git update-index --cacheinfo 160000,x,n",
    "git maintenance start",
    "git hook run x",
    "git grep -Oid x",
    "git grep --open-files=id x",
    "git log --outp=x",
    "git fetch --upload-pack=id .",
    "cd $x && git status",
    "cd - && git status",
  ])("does not cover what loads or writes other settings: %s", (line) => {
    expect(verdicts(line)).toEqual(NOT_COVERED);
  });

  test.each([
    "git status",
    "git --no-pager log -n 3",
    "git log -C --stat",
    "git rev-parse --git-dir",
    "git commit -m 'a: b'",
    "git add .",
    "git fetch origin",
    "git rebase main",
    "git config --get user.name",
    "git config --global user.name",
    "git config --list --show-origin",
    "git remote",
    "git remote -v",
    "git remote get-url origin",
    "git submodule status",
    "git worktree list",
    "cd src && git diff",
  ])("covers %s", (line) => {
    expect(verdicts(line)).toEqual(COVERED);
  });

  test("holds in no folder where another repository's settings do", () => {
    const where = { isForeignGit: (folder: string) => folder.startsWith("/projects/app/n") };
    expect(verdicts("git status", {}, where)).toEqual(COVERED);
    expect(verdicts("cd n && git status", {}, where)).toEqual(NOT_COVERED);
    expect(verdicts("git status", {}, { ...where, cwd: "/projects/app/n" })).toEqual(NOT_COVERED);
    expect(verdicts("cd n && ls -l", {}, where)).toEqual(COVERED);
  });

  test("is not covered by a pattern for one setting that stands beside another", () => {
    const policy = policyOf('commands: { allowed: ["git -c color.ui=never *"] }');
    const line = "git -c core.fsmonitor=id -c color.ui=never status";
    expect(decide(policy, readShell(line), WHERE).verdict).toBe("deny");
  });

  test.each([
    ["git -C *", "git -C nested status"],
    ["git clone *", "git clone x"],
    ["git config *", "git config user.name x"],
    ["git -c color.ui=never *", "git -c color.ui=never log"],
    ["*", "FOO=1 git -C nested config x.y z"],
  ])("leaves to a pattern that spells them: %s", (pattern, line) => {
    const policy = policyOf(`commands: { allowed: ["${pattern}"] }`);
    expect(decide(policy, readShell(line), WHERE).verdict).toBe("allow");
  });
});

test("make * covers no beginning of an option that loads code", () => {
  const policy = policyOf('commands: { allowed: ["make *"] }');
  for (const line of ["make --ev='$(shell id)'", "make --eval=x", "make -f x", "make --dir=n"])
    expect(decide(policy, readShell(line), WHERE).verdict, line).toBe("deny");
  expect(decide(policy, readShell("make -j4 --keep-going all"), WHERE).verdict).toBe("allow");
});
