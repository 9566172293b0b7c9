import { existsSync, lchownSync, readdirSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { actors } from "../support/users/users.ts";
import { TestBroker } from "../support/broker/broker.ts";
import { GIT, hostGit } from "../support/git/git.ts";

describe.each(actors())("a person's git folder under another name, as $kind", (actor) => {
  let broker: TestBroker;
  const at = (path: string): string => join(broker.project, path);
  beforeAll(async () => {
    broker = await TestBroker.start(actor, {
      policies: { default: "id: default\nname: x\nmode: enforce\n" },
    });
  });
  afterAll(() => broker.stop());

  const MAKES: readonly (readonly [string, () => void])[] = [
    ["file", () => hostGit(actor, broker.project, "init", "-q", "--separate-git-dir", "gitdata")],
    [
      "link",
      () => {
        hostGit(actor, broker.project, "init", "-q", "--separate-git-dir", "gitdata");
        rmSync(at(".git"));
        symlinkSync("gitdata", at(".git"));
        lchownSync(at(".git"), actor.uid, actor.gid);
      },
    ],
  ];

  describe.each(MAKES)("where .git is a %s", (_kind, make) => {
    beforeEach(async () => {
      for (const name of readdirSync(broker.project)) rmSync(at(name), { recursive: true, force: true });
      make();
      broker.write(at("gitdata/hooks/pre-push"), "#!/bin/sh\necho mine\n");
      hostGit(actor, broker.project, "config", "remote.origin.url", "https://example.invalid/x");
      await broker.operator("POST", "/v1/world/restart", { all: true, force: true });
    });

    test.each([
      ["sets hooks", "git config core.hooksPath .husky"],
      ["writes settings", "printf '[core]\\n\\tfsmonitor = id\\n' >> gitdata/config"],
      ["writes a hook", "echo id >> gitdata/hooks/pre-push"],
      ["makes a hook", "echo id > gitdata/hooks/post-commit"],
      ["leads git elsewhere", "mkdir e; echo ../e > gitdata/commondir"],
      ["takes its settings away", "rm -f gitdata/config; mv gitdata/hooks gone"],
      ["takes it away", "mv gitdata gone; rm -rf gitdata"],
    ])("it stays as the person left it when a command %s", async (_claim, cmd) => {
      const [settings, hooks] = [
        readFileSync(at("gitdata/config"), "utf8"),
        readdirSync(at("gitdata/hooks")),
      ];
      await broker.run(`${cmd}; true`);
      expect(readFileSync(at("gitdata/config"), "utf8")).toBe(settings);
      expect(readFileSync(at("gitdata/hooks/pre-push"), "utf8")).toBe("#!/bin/sh\necho mine\n");
      expect(readdirSync(at("gitdata/hooks"))).toEqual(hooks);
      expect(existsSync(at("gitdata/commondir"))).toBe(false);
    });

    test("its twin: a command adds a worktree, and later commands and the person work there", async () => {
      hostGit(actor, broker.project, "commit", "-q", "--allow-empty", "-m", "one");
      expect(await broker.run("git worktree add -q feature")).toMatchObject({ exit: 0, stderr: "" });
      expect(await broker.run("git -C feature log --format=%s")).toMatchObject({ exit: 0, stdout: "one\n" });
      expect(hostGit(actor, at("feature"), "log", "--format=%s")).toBe("one");
    });

    test("a command commits, stashes and sets what runs nothing", async () => {
      const cmd = `echo 1 > f && git add f && ${GIT} commit -qm one && echo 2 > f && ${GIT} stash -q && ${GIT} stash pop -q && git config user.name Ann && git config user.name && git log --format=%s`;
      expect(await broker.run(cmd)).toMatchObject({ exit: 0, stdout: "Ann\none\n" });
      expect(hostGit(actor, broker.project, "config", "--local", "remote.origin.url")).toBe(
        "https://example.invalid/x",
      );
    });
  });

  test("one that a command makes is its own to take away", async () => {
    for (const name of readdirSync(broker.project)) rmSync(at(name), { recursive: true, force: true });
    expect((await broker.run("git init -q --separate-git-dir made")).exit).toBe(0);
    await broker.run("rm -rf made");
    expect(existsSync(at("made/config"))).toBe(false);
  });
});
