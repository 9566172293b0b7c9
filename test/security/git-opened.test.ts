import { chownSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { actors } from "../support/users/users.ts";
import { TestBroker } from "../support/broker/broker.ts";
import { GIT, hostGit, triedGit } from "../support/git/git.ts";

const POLICY = "id: default\nname: x\nmode: enforce\n";

/** A git folder at `$G` whose settings run a program as soon as git looks, and the submodule `sub` that leads there. */
const PLANT =
  'mkdir -p $G/objects $G/refs && echo "ref: refs/heads/x" > $G/HEAD && printf "[core]\\n\\tfsmonitor = \\"touch $CANARY; false\\"\\n\\tworktree = $PWD/sub\\n" > $G/config';
const LEAD =
  'mkdir -p sub && echo "gitdir: $G" > sub/.git && git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),sub';
const HOOKED =
  'mkdir -p $G/objects $G/refs $G/hooks && echo "ref: refs/heads/x" > $G/HEAD && printf "[core]\\n\\tworktree = $PWD/sub\\n" > $G/config && printf "#!/bin/sh\\ntouch $CANARY\\n" > $G/hooks/post-index-change && chmod +x $G/hooks/post-index-change';

describe.each(actors())("git folders that a world opens beside its project, as $kind", (actor) => {
  let broker: TestBroker;
  /** Where no world has a folder of its own, unlike a test's own place below /tmp. */
  let ground: string;
  let canary: string;
  let open: string;

  beforeAll(async () => {
    ground = mkdtempSync(join(actor.home, "sb-git-"));
    chownSync(ground, actor.uid, actor.gid);
    canary = join(ground, "RAN");
    open = join(ground, "open");
    mkdirSync(open);
    chownSync(open, actor.uid, actor.gid);
    broker = await TestBroker.start(actor, {
      policies: { default: `${POLICY}fs:\n  write: ['$PROJECT/**', '${open}/**']\n` },
    });
  });
  afterAll(async () => {
    await broker.stop();
    rmSync(ground, { recursive: true, force: true });
  });

  type Site = { readonly cwd: string; readonly git: string; readonly own: string; readonly looks: string };
  let made = 0;

  function repository(folder: string): void {
    hostGit(actor, join(folder, ".."), "init", "-q", folder);
    hostGit(actor, folder, "commit", "-q", "--allow-empty", "-m", "first");
  }
  function worktree(): Site {
    const [main, cwd] = [join(ground, `main${++made}`), join(ground, `tree${made}`)];
    repository(main);
    hostGit(actor, main, "worktree", "add", "-q", cwd);
    return { cwd, git: join(main, ".git"), own: join(main, `.git/worktrees/tree${made}`), looks: cwd };
  }
  function submodule(): Site {
    const [library, above] = [join(ground, `library${++made}`), join(ground, `above${made}`)];
    repository(library);
    repository(above);
    hostGit(actor, above, "submodule", "--quiet", "add", library, "lib");
    hostGit(actor, above, "commit", "-qm", "with lib");
    const git = join(above, ".git/modules/lib");
    return { cwd: join(above, "lib"), git, own: git, looks: above };
  }
  const SITES = [
    ["worktree", worktree],
    ["submodule", submodule],
  ] as const;

  async function attack(site: Site, folder: string, steps: readonly string[]): Promise<void> {
    rmSync(canary, { force: true });
    for (const cmd of steps)
      await broker.run({ cmd: `${cmd}; true`, cwd: site.cwd, env: { G: folder, CANARY: canary } });
    triedGit(actor, site.looks, ["status"]);
    triedGit(actor, site.cwd, ["status"]);
    expect(existsSync(canary)).toBe(false);
  }

  describe.each(SITES)("of a %s", (_kind, make) => {
    test.each([
      ["among submodules", (site: Site) => join(site.git, "modules/x")],
      ["among its own submodules", (site: Site) => join(site.own, "modules/x")],
      ["among worktrees", (site: Site) => join(site.git, "worktrees/x")],
      ["among objects", (site: Site) => join(site.git, "objects/x")],
      ["beside the others", (site: Site) => join(site.git, "x")],
      ["in another open place", () => join(open, `x${made}`)],
    ])("the person's git status runs nothing of one that a command made %s", async (_where, place) => {
      const site = make();
      await attack(site, place(site), [`${PLANT} && ${LEAD}`]);
      const second = make();
      await attack(second, place(second), [PLANT, LEAD]);
      await attack(site, place(site), [LEAD, PLANT]);
      const other = make();
      await attack(other, place(other), [`${HOOKED} && ${LEAD}`]);
    });

    test("a worktree that a command makes inside reads the repository's settings only", async () => {
      const site = make();
      const cmd = `git worktree add -q sub -b inner && ${GIT} -C sub commit -q --allow-empty -m inner`;
      expect(await broker.run({ cmd, cwd: site.cwd })).toMatchObject({ exit: 0, notices: [] });
      expect(hostGit(actor, join(site.cwd, "sub"), "log", "--format=%s")).toBe("inner\nfirst");
      const G = join(open, `y${made}`);
      const lead = `echo $G > ${site.git}/worktrees/sub/commondir; git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),sub`;
      await attack(site, G, [`mkdir -p $G; ${PLANT}`, lead]);
    });

    test("a command commits, branches, stashes, rebases, merges, fetches and collects garbage", async () => {
      const site = make();
      const cmd = [
        "echo 1 > f && git add f",
        `${GIT} commit -qm one`,
        "git checkout -qb side",
        `echo 2 > f && ${GIT} commit -qam two`,
        "git checkout -q -",
        `${GIT} commit -q --allow-empty -m three`,
        `${GIT} rebase -q --exec true HEAD~1`,
        `${GIT} merge -q -m merged side`,
        `echo 3 > f && ${GIT} stash -q && ${GIT} stash pop -q && git checkout -q f`,
        "git branch -m side aside && git fetch -q . aside && git gc -q && git log -1 --format=%s",
      ].join(" && ");
      const ran = await broker.run({ cmd, cwd: site.cwd });
      expect(ran).toMatchObject({ exit: 0, stdout: "merged\n" });
      expect(hostGit(actor, site.cwd, "log", "-1", "--format=%s")).toBe("merged");
    });
  });

  test("another worktree's unfinished rebase goes on as its person began it", async () => {
    const site = worktree();
    const other = join(ground, `other${made}`);
    hostGit(actor, join(site.git, ".."), "worktree", "add", "-q", other);
    for (const name of ["1", "2"]) hostGit(actor, other, "commit", "-q", "--allow-empty", "-m", name);
    const editor = "sequence.editor=sed -i 1s/pick/edit/";
    hostGit(actor, other, "-c", editor, "rebase", "-q", "-i", "--keep-empty", "HEAD~2");
    const folder = join(site.git, "worktrees", `other${made}`);
    const todo = readFileSync(join(folder, "rebase-merge/git-rebase-todo"), "utf8");
    const cmd = `echo "exec touch ${canary}" >> ${folder}/rebase-merge/git-rebase-todo; echo x > ${folder}/gitdir; mkdir ${folder}/modules ${site.git}/modules; echo "* diff=x" > ${site.git}/info/attributes; true`;
    await broker.run({ cmd, cwd: site.cwd });
    expect(readFileSync(join(folder, "rebase-merge/git-rebase-todo"), "utf8")).toBe(todo);
    expect(readFileSync(join(folder, "gitdir"), "utf8")).toBe(`${other}/.git\n`);
    expect(["modules", "info/attributes"].map((name) => existsSync(join(site.git, name)))).toEqual([
      false,
      false,
    ]);
    hostGit(actor, other, "rebase", "--continue");
    expect(existsSync(canary)).toBe(false);
  });

  test("a submodule that stood is updated, and a new one is added, sealed and works", async () => {
    const site = submodule();
    const library = join(ground, `deeper${made}`);
    repository(library);
    hostGit(actor, site.cwd, "submodule", "--quiet", "add", library, "deep");
    hostGit(actor, site.cwd, "commit", "-qm", "with deep");
    const stood = `rm -rf deep && mkdir deep && ${GIT} submodule --quiet update deep && ${GIT} -C deep commit -q --allow-empty -m in && git -C deep log -1 --format=%s`;
    expect(await broker.run({ cmd: stood, cwd: site.cwd })).toMatchObject({
      exit: 0,
      stdout: "in\n",
      notices: [],
    });
    const cmd = `${GIT} submodule --quiet add ${library} new`;
    expect(await broker.run({ cmd, cwd: site.cwd })).toMatchObject({ exit: 0, notices: [] });
    // By then no command writes its settings.
    await broker.run({
      cmd: `printf '[core]\\n\\tfsmonitor = touch %s; :\\n' ${site.cwd}/RAN >> $(git -C new rev-parse --git-dir)/config`,
      cwd: site.cwd,
    });
    hostGit(actor, site.cwd, "status");
    expect(existsSync(join(site.cwd, "RAN"))).toBe(false);
    expect(hostGit(actor, join(site.cwd, "new"), "log", "--format=%s")).not.toBe("");
  });
});
