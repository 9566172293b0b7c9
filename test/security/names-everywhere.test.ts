import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { actors } from "../support/users/users.ts";
import { eventually, TestBroker } from "../support/broker/broker.ts";

const POLICY = `id: default
name: x
mode: enforce
fs: { deny_read: ["**/.env", "**/secrets", "**/*.conf"], write: ["$PROJECT/**"] }
`;

describe.each(actors())("a denied name that holds everywhere, as $kind", (actor) => {
  let broker: TestBroker;
  let folder: string;
  const at = (path: string): string => join(folder, path);
  beforeAll(async () => {
    folder = mkdtempSync(join(actor.home, "sb-everywhere-"));
    broker = await TestBroker.start(actor, { folder, policies: { default: POLICY } });
    for (const path of [
      "work/app/.env",
      "work/app/secrets/key",
      "project/.env",
      "project/sub/.env",
      "project/.git/HEAD",
    ])
      broker.write(at(path), "TOKEN\n");
    for (const path of ["work/app/.env.example", "work/app/main.ts", "work/app/secrets.md"])
      broker.write(at(path), "plain\n");
    // The first world may begin before a busy machine has been searched: it says so, and a later one has all of it.
    const searched = async (): Promise<boolean> => {
      const { isolation } = await broker.run("true");
      if (isolation.mount === "on") return true;
      await broker.operator("POST", "/v1/world/restart", { all: true, force: true });
      return false;
    };
    if (!(await eventually(searched, 40_000)))
      throw new Error("The search of the host's trees took 40 seconds");
  });
  afterAll(async () => {
    await broker.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  test.each([
    ["in another project", "cat ../work/app/.env", "project"],
    ["below a folder of that name", "cat ../work/app/secrets/key", "project"],
    ["in the project itself", "cat .env sub/.env", "project"],
    ["by its whole path", "cat $HERE/work/app/.env", "project"],
    ["through a link", "ln -sf ../work/app l; cat l/.env; rm l", "project"],
    ["above a folder that was made a project", "cat ../.env ../../work/app/.env", "project/s"],
  ])("is not read %s", async (_claim, cmd, cwd) => {
    if (cwd === "project/s") await broker.run("mkdir -p s/.git");
    const ran = await broker.run({
      cmd: `${cmd.replace("$HERE", folder)}; ls ../work/app; true`,
      cwd: at(cwd),
    });
    expect(ran.stdout).not.toContain("TOKEN");
    expect(ran.isolation.mount).toBe("on");
  });

  test("its twin: names beside it are read, and so are the host's own settings", async () => {
    const ran = await broker.run(
      "cat ../work/app/main.ts ../work/app/.env.example ../work/app/secrets.md; ls -A ../work/app",
    );
    expect(ran.stdout).toBe("plain\nplain\nplain\n.env.example\nmain.ts\nsecrets.md\n");
    if (existsSync("/etc/host.conf"))
      expect((await broker.run("cat /etc/host.conf")).stdout).toBe(readFileSync("/etc/host.conf", "utf8"));
  });

  test("the host keeps what is hidden", () => {
    expect(readFileSync(at("work/app/.env"), "utf8")).toBe("TOKEN\n");
    expect(readFileSync(at("project/.env"), "utf8")).toBe("TOKEN\n");
  });
});
