import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { actors } from "../support/users/users.ts";
import { TestBroker } from "../support/broker/broker.ts";

describe.each(actors())("git in a project with the default denials, as $kind", (actor) => {
  let broker: TestBroker;
  const at = (name: string): string => join(broker.project, name);
  const identity = "-c user.name=a -c user.email=a@example.org";
  beforeAll(async () => {
    broker = await TestBroker.start(actor, {
      policies: { default: "id: default\nname: x\nmode: enforce\n" },
    });
  });
  afterAll(() => broker.stop());

  test("a command can make a repository, but brings no hook into it and no setting that names a program", async () => {
    const ran = await broker.run(
      `git init -q && echo 'touch ran' > .git/hooks/post-commit && chmod +x .git/hooks/post-commit; git config core.pager evil; git add -A && git ${identity} commit -q --allow-empty -m one && git log --oneline | wc -l`,
    );
    expect(ran.stdout).toBe("1\n");
    expect(existsSync(at(".git/hooks/post-commit"))).toBe(false);
    expect(existsSync(at(".git/config"))).toBe(false);
    expect(existsSync(at(".git/HEAD"))).toBe(true);
  });

  test("a command can add a worktree and commit in it, and cannot change the one that was there", async () => {
    const added = await broker.run(
      `git worktree add -q wt && cd wt && git ${identity} commit -q --allow-empty -m two && git log --oneline | wc -l`,
    );
    expect(added).toMatchObject({ exit: 0, stdout: "2\n" });
    expect(existsSync(at(".git/worktrees/wt/commondir"))).toBe(true);
    const tried = await broker.run({
      cmd: "echo /evil > .git/worktrees/wt/commondir; mv .git/worktrees/wt .git/worktrees/x; git -C wt log --oneline | wc -l",
      agent_id: "later",
    });
    expect(readFileSync(at(".git/worktrees/wt/commondir"), "utf8")).toBe("../..\n");
    expect(tried.stdout).toBe("2\n");
  });
});
