import { existsSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { ExecuteReply } from "../../schemas/generated/types.ts";
import { actors } from "../support/users/users.ts";
import { type Ran, TestBroker } from "../support/broker/broker.ts";
import { hostGit, triedGit } from "../support/git/git.ts";
import { buildProgram } from "../support/programs/programs.ts";
import { REPLACE } from "../support/programs/git-settings.ts";

const ENFORCE = "id: default\nname: Settings of worktrees\nmode: enforce\n";

const EVERYWHERE = `id: everywhere
name: A name in every folder
mode: enforce
fs:
  deny_write:
    - $PROJECT/.git/hooks
    - $PROJECT/.git/config
    - $PROJECT/.git/config.worktree
    - $PROJECT/**/.claude/skills
`;

function refusals(ran: Ran): readonly string[] {
  return ran.notices.filter(({ kind }) => kind === "denied").map(({ message }) => message);
}

describe.each(actors())("settings of a worktree that a person's repository lacks, as $kind", (actor) => {
  let broker: TestBroker;
  const at = (path: string): string => join(broker.project, path);
  const host = (...words: readonly string[]): string => hostGit(actor, broker.project, ...words);

  beforeAll(async () => {
    broker = await TestBroker.start(actor, {
      policies: { default: ENFORCE, everywhere: EVERYWHERE },
      config: "agents:\n  watched: { policy: everywhere }\n",
    });
    host("init", "-q", "-b", "main");
    broker.write(at("src/a"), "a\n");
    broker.write(at("doc/b"), "b\n");
    host("add", ".");
    host("commit", "-qm", "first");
    buildProgram(broker, "replace", REPLACE);
  });
  afterAll(() => broker.stop());

  /** What is left of the new files. */
  function left(): readonly string[] {
    return readdirSync(at(".git/hooks")).filter((name) => name.startsWith("substrate"));
  }

  /** As a person's repository is before anybody has such settings. */
  function without(): void {
    rmSync(at(".git/config.worktree"), { force: true });
    triedGit(actor, broker.project, ["config", "--unset", "extensions.worktreeConfig"]);
  }

  test("are made for `git sparse-checkout`, and the working tree has the folders that were asked for", async () => {
    without();
    const ran = await broker.run(
      "git sparse-checkout init --cone && git sparse-checkout set src && ls -d src doc",
    );
    expect(ran).toMatchObject({ stdout: "src\n", notices: [] });
    expect(ran.fs_diff).toMatchObject({
      writes: expect.arrayContaining([".git/config.worktree"]),
      autorun: [],
    });
    expect(host("sparse-checkout", "list")).toBe("src");
    expect(statSync(at(".git/config.worktree")).mode).toBe(statSync(at(".git/config")).mode);
    const back = await broker.run("git sparse-checkout disable && cat doc/b");
    expect(back).toMatchObject({ exit: 0, stdout: "b\n", notices: [] });
    expect(left()).toEqual([]);
  });

  test("are made under a policy that keeps a name in every folder, and so watches them all", async () => {
    without();
    const watched = async (cmd: string): Promise<ExecuteReply> => {
      const call = { agent_id: "watched", cwd: broker.project, cmd };
      return (await broker.operator("POST", "/v1/execute", call)).document as ExecuteReply;
    };
    const set = await watched("git sparse-checkout set src && ls -d src doc | grep -qx src");
    expect(set).toMatchObject({ exit: 0, notices: [] });
    expect(host("sparse-checkout", "list")).toBe("src");
    const back = await watched("git sparse-checkout disable && cat doc/b");
    expect(back).toMatchObject({ exit: 0, notices: [] });
  });

  test("are made and changed by commands of two worlds", async () => {
    without();
    await broker.run({ agent_id: "two", cmd: "true" });
    const first = await broker.run(
      "git config extensions.worktreeConfig true && git config --worktree user.name One && git config --worktree user.name Two",
    );
    expect(first).toMatchObject({ exit: 0, notices: [] });
    const other = await broker.run({
      agent_id: "two",
      cmd: "git config --worktree user.email x@example.org",
    });
    expect(other).toMatchObject({ exit: 0, notices: [] });
    expect(host("config", "--worktree", "--list")).toBe("user.name=Two\nuser.email=x@example.org");
  });

  test.each([
    ["a program", "git config --worktree core.pager evil"],
    ["an address of the remote that a person has", "git config --worktree remote.kept.url /elsewhere"],
    ["what is written there without git's own way", "echo '[core] pager = evil' > .git/config.worktree"],
    [
      "a link",
      "ln -s ../evil .git/config.worktree.lock; mv -T .git/config.worktree.lock .git/config.worktree",
    ],
  ])("its attack: %s makes none, and the reply says why", async (_what, cmd) => {
    without();
    host("config", "extensions.worktreeConfig", "true");
    host("config", "remote.kept.url", "https://example.org/one.git");
    const ran = await broker.run(`${cmd}; rm -f .git/config.worktree.lock`);
    expect(existsSync(at(".git/config.worktree"))).toBe(false);
    expect(refusals(ran).join()).toContain("config.worktree");
  });

  test("its attack: settings of a person's that do not count yet are not made to count", async () => {
    without();
    broker.write(at(".git/config.worktree"), '[core]\n\tfsmonitor = "touch RAN; false"\n');
    await broker.operator("POST", "/v1/world/restart", { all: true, force: true });
    const ran = await broker.run("git config extensions.worktreeConfig true");
    expect(ran.exit).not.toBe(0);
    host("status");
    expect(existsSync(at("RAN"))).toBe(false);
  });

  test("its attack: who opens the new file as early as it can has nothing of it on the host", async () => {
    for (let round = 0; round < 5; round += 1) {
      rmSync(at(".git/config.worktree"), { force: true });
      const ran = await broker.run("./replace opener 20 .git config.worktree");
      expect(ran.stdout).toBe("1 0\n");
      expect(readFileSync(at(".git/config.worktree"), "utf8")).toContain("name = good");
    }
    expect(left()).toEqual([]);
  });
});
