import { spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { HealthReply } from "../../schemas/generated/types.ts";
import { cgroupMount } from "../../world/doctor/cgroups.ts";
import { SHARED } from "../../world/cgroup/base.ts";
import { groupName, thisMaker } from "../../world/cgroup/names.ts";
import { readProcess } from "../../world/doctor/processes.ts";
import { actors } from "../support/users/users.ts";
import { eventually, TestBroker } from "../support/broker/broker.ts";
import { checkOf, overlayOf, reportOf } from "../support/broker/doctor-report.ts";
import { processesWith } from "../support/processes/processes.ts";
import { skip } from "../support/run/skips.ts";

const POLICY = 'id: default\nname: Doctor\nmode: enforce\ncommands:\n  isolated: ["sleep *", "touch *"]\n';

describe.each(actors())("what a killed broker leaves, as $kind", (actor) => {
  test("its sockets, its claim and the layers of a lost command are found and mended; what is held stays", async () => {
    const mark = `left-${randomBytes(6).toString("hex")}`;
    const broker = await TestBroker.start(actor, { policies: { default: POLICY } });
    try {
      const held = await broker.run("touch held");
      expect(held.fs_diff?.held).toBe(true);
      const lost = broker.post({ cmd: `sleep 600 # ${mark}` }).catch(() => "cut");
      expect(await eventually(() => processesWith(mark).length > 0, 5000)).toBe(true);
      await broker.kill("SIGKILL");
      expect(await lost).toBe("cut");
      expect(await eventually(() => processesWith(mark).length === 0, 2000)).toBe(true);
      const overlay = overlayOf(broker);
      const [left] = readdirSync(overlay).filter((name) => name !== held.span_id);
      const found = await broker.cli(["world", "doctor", "--json"]);
      expect(found.code).toBe(0);
      const report = reportOf(found);
      expect(checkOf(report, "left-layers")).toMatchObject({ verdict: "weaker" });
      expect(checkOf(report, "left-layers").seen).toContain(left);
      expect(checkOf(report, "left-layers").seen).not.toContain(held.span_id);
      for (const name of ["agent.sock", "control.sock", "broker.json", "start.lock"])
        expect(checkOf(report, "left-files").seen).toContain(name);
      expect(readdirSync(overlay)).toHaveLength(2);

      expect((await broker.cli(["world", "doctor", "--mend"])).code).toBe(0);
      expect(readdirSync(overlay)).toEqual([held.span_id]);
      expect(existsSync(join(broker.home, "sock/agent.sock"))).toBe(false);
      const clean = reportOf(await broker.cli(["world", "doctor", "--json"]));
      for (const name of ["left-layers", "left-files", "left-processes"])
        expect(checkOf(clean, name), name).toMatchObject({ verdict: "ok", seen: "none" });
      const next = await broker.again();
      expect(await next.run("echo again")).toMatchObject({ stdout: "again\n" });
      await next.kill("SIGTERM");
    } finally {
      await broker.stop();
    }
  });

  test("the stray writes of a dead broker's worlds are found and mended, and those of a living one are not", async () => {
    const broker = await TestBroker.start(actor);
    try {
      await broker.run("true");
      const layers = (): readonly string[] =>
        readdirSync(overlayOf(broker)).filter((name) => name.startsWith("wld_"));
      const [left] = layers();
      const living = reportOf(await broker.cli(["world", "doctor", "--mend", "--json"]));
      expect(checkOf(living, "left-layers")).toMatchObject({ verdict: "ok", seen: "none" });
      expect(layers()).toEqual([left]);
      await broker.kill("SIGKILL");
      expect(
        checkOf(reportOf(await broker.cli(["world", "doctor", "--json"])), "left-layers").seen,
      ).toContain(left);
      await broker.cli(["world", "doctor", "--mend"]);
      expect(layers()).toEqual([]);
    } finally {
      await broker.stop();
    }
  });

  test("the layers of a command that runs are no left-overs", async () => {
    const mark = `runs-${randomBytes(6).toString("hex")}`;
    const broker = await TestBroker.start(actor, { policies: { default: POLICY } });
    try {
      const running = broker.run({ cmd: `touch made; sleep 3 # ${mark}` });
      expect(await eventually(() => processesWith(mark).length > 0, 5000)).toBe(true);
      const report = reportOf(await broker.cli(["world", "doctor", "--mend", "--json"]));
      for (const name of ["left-layers", "left-files", "left-processes"])
        expect(checkOf(report, name), name).toMatchObject({ verdict: "ok", seen: "none" });
      const { span_id: span, exit, fs_diff: diff } = await running;
      expect({ exit, writes: diff?.writes }).toEqual({ exit: 0, writes: ["made"] });
      expect(readdirSync(overlayOf(broker))).toEqual([span]);
    } finally {
      await broker.stop();
    }
  });

  test("a world that did not end with its broker is found and ended; those of a living broker are not", async () => {
    const mark = `stuck-${randomBytes(6).toString("hex")}`;
    const [dead, living] = [await TestBroker.start(actor), await TestBroker.start(actor)];
    let first: number | undefined;
    try {
      const cmd = `sh -c ': ${mark}; sleep 600' &`;
      const { world_id: other } = await living.run("true");
      await dead.run({ cmd, background: "keep" });
      first = await firstProcess(dead);
      // Only so does a world outlive its broker: its first process cannot see that the channel has closed.
      process.kill(first, "SIGSTOP");
      await dead.kill("SIGKILL");
      const report = reportOf(await dead.cli(["world", "doctor", "--json"]));
      expect(checkOf(report, "left-processes")).toMatchObject({ verdict: "weaker" });
      expect(processesWith(mark).length).toBeGreaterThan(0);
      const mended = reportOf(await dead.cli(["world", "doctor", "--mend", "--json"]));
      expect(checkOf(mended, "left-processes").seen).toMatch(/^removed process \d+/);
      expect(await eventually(() => processesWith(mark).length === 0, 2000)).toBe(true);
      expect((await living.run("true")).world_id).toBe(other);
    } finally {
      if (first !== undefined && readProcess(first)?.name === "substrate-init")
        process.kill(first, "SIGKILL");
      await Promise.all([dead.stop(), living.stop()]);
    }
  });
});

/** PID 1 of a broker's only world, as the host calls it. */
async function firstProcess(broker: TestBroker): Promise<number> {
  const { document } = await broker.operator("GET", "/v1/health");
  const outer = (document as HealthReply).worlds[0]?.pid ?? 0;
  return Number(readFileSync(`/proc/${outer}/task/${outer}/children`, "utf8").trim());
}

describe.each(actors().filter(({ uid }) => uid === 0))("cgroups of dead worlds, as $kind", (actor) => {
  test("an empty one of a process that is gone is removed; one of a living process is not", async () => {
    const mount = cgroupMount();
    if (mount === undefined) return skip("left-over cgroups", "cgroup2 is not mounted");
    const gone = spawnSync("true").pid;
    const [here, shared] = [thisMaker(), join(mount, SHARED)];
    // Not in the shared one: a broker itself sweeps where its own worlds have theirs.
    const dead = [join(mount, `substrate-doctor-${gone}`), join(mount, groupName({ ...here, pid: gone }, 1))];
    // Of processes that live, and of another pid namespace.
    const alive = [
      join(mount, `substrate-doctor-${process.pid}`),
      join(shared, groupName(here, 9_999_999)),
      join(shared, groupName({ ...here, space: "1", pid: gone }, 1)),
    ];
    const remove = (): void => {
      for (const path of [...dead.map((each) => join(each, "below")), ...dead, ...alive])
        if (existsSync(path)) rmdirSync(path);
    };
    try {
      for (const path of dead) mkdirSync(join(path, "below"), { recursive: true });
      // The shared one is there only once some broker has made a world.
      for (const path of alive) mkdirSync(path, { recursive: true });
    } catch (error) {
      remove();
      return skip("left-over cgroups", `no cgroup can be made: ${String(error)}`);
    }
    const broker = await TestBroker.start(actor);
    try {
      const found = checkOf(reportOf(await broker.cli(["world", "doctor", "--json"])), "left-cgroups");
      expect(found).toMatchObject({ verdict: "weaker" });
      for (const path of dead) expect(found.seen).toContain(`'${path}'`);
      for (const path of [...alive, shared]) expect(found.seen).not.toContain(`'${path}'`);
      await broker.cli(["world", "doctor", "--mend"]);
      expect([...dead, ...alive, shared].filter((path) => existsSync(path))).toEqual([...alive, shared]);
    } finally {
      await broker.stop();
      remove();
    }
  });
});
