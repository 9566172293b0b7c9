/** A person removes a project and clones it once more, while worlds of the folder before are warm. */
import { chownSync, mkdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { actors } from "../support/users/users.ts";
import { TestBroker } from "../support/broker/broker.ts";
import { hostGit } from "../support/git/git.ts";

const ENFORCE = "id: default\nname: Settings of git\nmode: enforce\n";

describe.each(actors())("a project whose folder is made anew, as $kind", (actor) => {
  test("gets git's settings at once: worlds of the folder before are ended, other agents' too", async () => {
    const broker = await TestBroker.start(actor, { policies: { default: ENFORCE } });
    const repository = (): string => hostGit(actor, broker.project, "init", "-q");
    try {
      repository();
      for (const agent_id of ["one", "two"])
        expect(await broker.run({ agent_id, cmd: "git config user.name Before" })).toMatchObject({ exit: 0 });
      rmSync(broker.project, { recursive: true });
      mkdirSync(broker.project);
      chownSync(broker.project, actor.uid, actor.gid);
      repository();
      const ran = await broker.run({ agent_id: "two", cmd: "git config user.name After" });
      expect(ran).toMatchObject({ exit: 0, stderr: "", notices: [] });
      expect(readFileSync(join(broker.project, ".git/config"), "utf8")).toContain("After");
    } finally {
      await broker.stop();
    }
  });
});
