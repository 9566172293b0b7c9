/** A person's submodules: commands move them as git does, and lead git to no other folder. */
import { existsSync, mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { TestBroker } from "../support/broker/broker.ts";
import { hostGit } from "../support/git/git.ts";
import { actors } from "../support/users/users.ts";

const POLICY = "id: default\nname: x\nmode: enforce\ncommands:\n  opaque: allow\n";

describe.each(actors())("submodules, as $kind", (actor) => {
  let broker: TestBroker;
  const host = (...words: readonly string[]): string => hostGit(actor, broker.project, ...words);
  const tree = (): string =>
    host("config", "--file", ".git/modules/lib/config", "--default", "", "core.worktree");

  beforeEach(async () => {
    broker = await TestBroker.start(actor, { policies: { default: POLICY } });
    for (const name of [".", "app"]) {
      host("init", "-q", name);
      host("-C", name, "commit", "-q", "--allow-empty", "-m", "first");
    }
    host(
      "-c",
      "protocol.file.allow=always",
      "submodule",
      "--quiet",
      "add",
      join(broker.project, "app"),
      "lib",
    );
    rmSync(join(broker.project, "app"), { recursive: true });
    host("commit", "-qm", "submodule");
  });
  afterEach(() => broker.stop());

  test("are moved, and the person's git works on in them", async () => {
    expect(await broker.run("mkdir deep && git mv lib deep/moved")).toMatchObject({
      exit: 0,
      stderr: "",
      notices: [],
    });
    expect(tree()).toBe("../../../deep/moved");
    expect(host("submodule", "status")).toContain(" deep/moved ");
    expect(host("-C", "deep/moved", "rev-parse", "--show-toplevel")).toBe(join(broker.project, "deep/moved"));
    expect(host("status", "--short")).toMatch(/^M {2}\.gitmodules\nR {2}lib -> deep\/moved$/);
  });

  test("work in no folder that does not lead back, or that a link leads to", async () => {
    mkdirSync(join(broker.folder, "other"));
    const to = (path: string, option = ""): string =>
      `git config --file .git/modules/lib/config ${option} core.worktree ${path}; true`;
    for (const command of [
      to("../../.."),
      to(join(broker.folder, "other")),
      `mkdir free; ${to("../../../free")}`,
      `mkdir there; cp lib/.git there/.git; ln -s there link; ${to("../../../link")}`,
      `mkdir second; cp lib/.git second/.git; ${to("../../../second")}; rm -r second`,
      "git config --file .git/modules/lib/config --unset core.worktree; true",
    ]) {
      const { notices } = await broker.run(command);
      expect(JSON.stringify(notices), command).toContain("'core.worktree' is not among the settings");
      expect(tree(), command).toBe("../../../lib");
    }
  });

  test("are led to no folder by a '.git' that is away meanwhile", async () => {
    const ran = await broker.run(`mkdir second; cp lib/.git second/.git; mv lib/.git away
      git config --file .git/modules/lib/config core.worktree ../../../second; mv away lib/.git; true`);
    expect(JSON.stringify(ran.notices)).toContain("lib/.git' was made although");
    expect(existsSync(join(broker.project, "lib/.git"))).toBe(false);
  });
});
