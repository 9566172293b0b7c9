import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { actors } from "../support/users/users.ts";
import { eventually, TestBroker } from "../support/broker/broker.ts";
import { groupFolder, initsOf } from "../support/processes/neighbour.ts";
import { processesWith } from "../support/processes/processes.ts";
import { skip } from "../support/run/skips.ts";

describe.each(actors())("the groups of worlds, as $kind", (actor) => {
  test.each([["the broker"], ["init"], ["both"]])("are gone soon after kill -9 of %s", async (victim) => {
    const broker = await TestBroker.start(actor);
    try {
      const { stdout, isolation } = await broker.run("grep ^0:: /proc/self/cgroup");
      if (isolation.cgroup.startsWith("off"))
        skip(`removing groups after kill -9, as ${actor.kind}`, `cgroup is '${isolation.cgroup}'`);
      const world = join(groupFolder(stdout), "../..");
      const marker = `group-${process.pid}-${victim.replace(" ", "-")}`;
      const waiting = broker.post({ cmd: `: ${marker}; sleep 600` }).catch(() => "cut");
      expect(await eventually(() => processesWith(marker).length > 0, 5000)).toBe(true);
      const init = initsOf(broker.process.pid ?? 0);
      expect(init).toHaveLength(1);
      if (victim !== "the broker") for (const pid of init) process.kill(pid, "SIGKILL");
      if (victim !== "init") await broker.kill("SIGKILL");
      await waiting;
      if (victim === "both") {
        const next = await broker.again();
        await next.run("true");
        await next.kill("SIGTERM");
      }
      expect(await eventually(() => !existsSync(world), 3000)).toBe(true);
    } finally {
      await broker.stop();
    }
  });

  test("its command's group is what a command is in, beside init's", async () => {
    const broker = await TestBroker.start(actor);
    try {
      const { isolation, stdout } = await broker.run({ cmd: "grep ^0:: /proc/self/cgroup" });
      if (isolation.cgroup.startsWith("off"))
        skip(`a cgroup for each command, as ${actor.kind}`, `cgroup is '${isolation.cgroup}'`);
      expect(stdout).toMatch(/\/\d+-\d+-\d+-\d+\/commands\/\d+\n$/);
      const folder = groupFolder(stdout);
      expect(existsSync(join(folder, "../../init"))).toBe(true);
      expect(await eventually(() => groupIsEmpty(folder), 2000)).toBe(true);
    } finally {
      await broker.stop();
    }
  });
});

function groupIsEmpty(folder: string): boolean {
  return !existsSync(folder) || readFileSync(join(folder, "cgroup.procs"), "utf8") === "";
}
