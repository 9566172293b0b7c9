import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { everyActor } from "../actors.ts";
import { eventually, TestBroker } from "../broker.ts";
import { recordSkip } from "../skips.ts";
import { runAs } from "../users.ts";
import { buildSockets, HostSockets } from "./host-sockets.ts";

describe.each(everyActor())("Unix sockets, as $kind", (actor) => {
  let host: HostSockets;
  let broker: TestBroker;
  const words = (): readonly string[] => [host.abstract, ...host.paths];
  beforeAll(async () => {
    host = await HostSockets.open(actor);
    broker = await TestBroker.start(actor, {
      policies: { default: "id: default\nname: x\nmode: enforce\n" },
      within: host.enter,
    });
    buildSockets(join(broker.project, "sockets"));
    for (const path of host.left)
      recordSkip({
        what: `a fake service at ${path}, as ${actor.kind}`,
        why: "only root can make it",
      });
  });
  afterAll(async () => {
    await broker.stop();
    await host.close();
  });

  test("of docker, D-Bus, systemd, agents, displays and tmux are not reached, by path, abstract or datagram; on the host they are", async () => {
    expect(host.paths.length).toBeGreaterThan(5);
    const inside = await broker.run({ argv: ["./sockets", "dial", ...words()] });
    expect(inside.stdout).toBe("0\n");
    expect(host.came).toBe(0);
    const program = join(broker.project, "sockets");
    const client = await runAs(actor, [program, "dial", ...words()], { cwd: "/", within: host.enter });
    expect(client.stdout).toBe(`${2 * words().length}\n`);
  });

  test("are not reached by an isolated command, in observe mode, or through a link or /proc either", async () => {
    const observed = await TestBroker.start(actor, {
      policies: { default: "id: default\nname: x\ncommands:\n  isolated: ['touch *']\n" },
      within: host.enter,
    });
    const before = host.came;
    try {
      buildSockets(join(observed.project, "sockets"));
      const links = host.paths.map(
        (path, at) => `ln -s /proc/self/root${path} l${at}; ln -s /proc/1/root${path} m${at}`,
      );
      const cmd = `${links.join("; ")}; ./sockets dial ${words().join(" ")} $(ls -d l* m*); touch held`;
      expect((await observed.run(cmd)).stdout).toBe("0\n");
      expect(host.came).toBe(before);
    } finally {
      await observed.stop();
    }
  });

  test("of a world's own work, and pass descriptors", async () => {
    expect((await broker.run("./sockets own")).stdout).toBe("own own own \n");
  });

  test("of one world are not another's when they are abstract or lie in /tmp", async () => {
    await broker.run({
      cmd: "sleep 3 | ./sockets serve w /tmp/w.sock > listening & while ! [ -s listening ]; do sleep 0.02; done",
      background: "keep",
    });
    const dial = "./sockets dial w /tmp/w.sock";
    expect((await broker.run(dial)).stdout).toBe("4\n");
    expect((await broker.run({ cmd: dial, agent_id: "other" })).stdout).toBe("0\n");
  });
});

test("a fake service of a killed run goes with it, and takes nobody's place", async () => {
  const folder = mkdtempSync(join(tmpdir(), "substrate-sockets-"));
  const program = join(folder, "sockets");
  const mine = join(folder, "new/mine.sock");
  const theirs = join(folder, "theirs.sock");
  try {
    buildSockets(program);
    const words = JSON.stringify(["serve", `substrate-test-killed-${process.pid}`, mine]);
    const run = `const child = require("node:child_process").spawn("${program}", ${words}, { stdio: ["pipe", "pipe", "inherit"] });
child.stdout.once("data", () => process.kill(process.pid, "SIGKILL"));`;
    const killed = spawn(process.execPath, ["-e", run], { stdio: "inherit" });
    expect(await once(killed, "exit")).toEqual([null, "SIGKILL"]);
    expect(await eventually(() => !existsSync(dirname(mine)), 10_000)).toBe(true);
    writeFileSync(theirs, "theirs");
    const taken = spawnSync(program, ["serve", "substrate-test-taken", theirs], { encoding: "utf8" });
    expect(taken).toMatchObject({ status: 1, stderr: expect.stringContaining("Address already in use") });
    expect(readFileSync(theirs, "utf8")).toBe("theirs");
  } finally {
    rmSync(folder, { recursive: true });
  }
});
