/** Files of a project that run outside because a link in the home, or a PATH, leads to them. */
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { actors } from "../support/users/users.ts";
import { TestBroker } from "../support/broker/broker.ts";

describe.each(actors())("what the home links to in a project, as $kind", (actor) => {
  let broker: TestBroker;
  let folder: string;
  const changed = async (cmd: string): Promise<readonly string[] | undefined> =>
    (await broker.run(cmd)).fs_diff?.autorun;
  beforeAll(async () => {
    folder = mkdtempSync(join(actor.home, "sb-linked-"));
    const person = join(folder, "person");
    mkdirSync(join(person, ".config"), { recursive: true });
    mkdirSync(join(person, ".local/bin"), { recursive: true });
    const project = join(folder, "project");
    symlinkSync(join(project, "bashrc"), join(person, ".bash_aliases"));
    symlinkSync("../../project/nvim", join(person, ".config/nvim"));
    symlinkSync("../../../project/lib/step", join(person, ".local/bin/tool"));
    symlinkSync(folder, join(person, ".everything"));
    broker = await TestBroker.start(actor, {
      folder,
      policies: { default: "id: default\nname: x\nmode: enforce\n" },
      environment: { HOME: person, PATH: `${process.env["PATH"]}:${join(project, "tools")}` },
    });
    broker.write(join(project, "lib/tool"), "#!/bin/sh\n");
    mkdirSync(join(project, ".git"));
    symlinkSync("tool", join(project, "lib/step"));
    spawnSync("chown", ["-Rh", `${actor.uid}:${actor.gid}`, project, person]);
  });
  afterAll(async () => {
    await broker.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  test.each([
    ["a file that a link in the home leads to", "bashrc"],
    ["one in a folder of settings that is a link", "nvim/lua/x.lua"],
    ["a program behind two links", "lib/tool"],
    ["the second of these links", "lib/step"],
    ["a program in a folder on PATH", "tools/git"],
  ])("%s is told as autorun, changed or new or gone", async (_what, path) => {
    const make = `mkdir -p $(dirname ${path}); echo x >> ${path}`;
    const isLink = path === "lib/step";
    expect(await changed(isLink ? "ln -sfn other lib/step" : make)).toEqual([path]);
    expect(await changed(`rm ${path}`)).toEqual([path]);
    expect(await changed(isLink ? "ln -s tool lib/step" : make)).toEqual([path]);
  });

  test("its twin: other files are not, and a link to what holds the project says nothing", async () => {
    expect(
      await changed("mkdir -p lib nvim2; echo x > lib/other; echo x > nvim2/x; echo x > bashrc2"),
    ).toEqual([]);
  });

  test("a link that comes later counts from then on", async () => {
    expect(await changed("echo x > later")).toEqual([]);
    symlinkSync(join(broker.project, "later"), join(folder, "person/.zshrc"));
    expect(await changed("echo y > later")).toEqual(["later"]);
  });
});
