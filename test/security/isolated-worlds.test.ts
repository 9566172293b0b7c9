/** Worlds of isolated commands: one each, over the project as it is when the command begins, and nothing left of them. */
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { actors } from "../support/users/users.ts";
import { eventually, type Ran, TestBroker } from "../support/broker/broker.ts";
import { checkOf, overlayOf, reportOf } from "../support/broker/doctor-report.ts";
import { descendants } from "../support/processes/processes.ts";

const policy = (more = ""): string =>
  `id: default\nname: Isolated\nmode: enforce\nfs: { deny_read: ["**/.env"${more}] }\ncommands: { isolated: [": held"] }\n`;

describe.each(actors())("the world of an isolated command, as $kind", (actor) => {
  let broker: TestBroker | undefined;
  afterEach(async () => {
    await broker?.stop();
    broker = undefined;
  });

  const started = async (): Promise<TestBroker> => {
    broker = await TestBroker.start(actor, { policies: { default: policy() } });
    return broker;
  };

  test("is its own, and sees nothing of the one before", async () => {
    const of = await started();
    const ids = new Set<string>();
    for (let round = 0; round < 4; round += 1) {
      const ran = await of.run(": held; ls /tmp/trace; ls; echo x >/tmp/trace; touch trace");
      expect(ran).toMatchObject({ exit: 0, stdout: "", fs_diff: { writes: ["trace"], held: true } });
      ids.add(ran.world_id);
      expect(existsSync(join(of.project, "trace"))).toBe(false);
    }
    expect(ids.size).toBe(4);
  });

  test("has the project as it is when the command comes: an edit, a new file, and a denied name made since", async () => {
    const of = await started();
    of.write(join(of.project, "edited"), "before");
    await of.run(": held; cat edited");
    of.write(join(of.project, "edited"), "after");
    of.write(join(of.project, "new"), "new");
    of.write(join(of.project, "below/.env"), "secret");
    of.write(join(of.project, ".env"), "secret");
    const ran = await of.run(
      ": held; cat edited new; cat .env below/.env; echo x >.env; mv below other; true",
    );
    expect(ran.stdout).toBe("afternew");
    expect(ran.stdout + ran.stderr).not.toContain("secret");
    expect(readFileSync(join(of.project, ".env"), "utf8")).toBe("secret");
    const { isolation } = await of.run(": held; true");
    expect(isolation).toEqual(ran.isolation);
  });

  test("is made by the policy as it is when the command comes", async () => {
    const of = await started();
    of.write(join(of.project, "plain"), "plain");
    expect(await of.run(": held; cat plain")).toMatchObject({ exit: 0, stdout: "plain" });
    writeFileSync(join(of.home, "policies/default.yaml"), policy(', "plain"'));
    const ran = await of.run(": held; cat plain");
    expect(ran.exit).not.toBe(0);
    expect(ran.stdout).toBe("");
  });

  test("is one of 16 at once, and none of them sees another", async () => {
    const of = await started();
    const run = (at: number): Promise<Ran> =>
      of.run(`: held; echo ${at} >mine-${at}; sleep 0.5; ls; cat mine-*`);
    const all = await Promise.all(Array.from({ length: 16 }, (_, at) => run(at)));
    for (const [at, ran] of all.entries()) {
      expect(ran).toMatchObject({ exit: 0, stdout: `mine-${at}\n${at}\n` });
      expect(ran.fs_diff).toMatchObject({ writes: [`mine-${at}`], held: true });
    }
    expect(new Set(all.map(({ world_id }) => world_id)).size).toBe(16);
    expect(readdirSync(of.project)).toEqual([]);
  });

  test("leaves no process, no layer and no cgroup when its broker is killed", async () => {
    const of = await started();
    await of.run(": held; true");
    const all = descendants(of.process.pid ?? 0);
    expect(await eventually(() => readdirSync(overlayOf(of)).length === 0, 5000)).toBe(true);
    await of.kill("SIGKILL");
    expect(await eventually(() => all.every((pid) => !existsSync(`/proc/${pid}`)), 3000)).toBe(true);
    // Of all brokers of this user: what another test has just killed is on its way.
    const left = async (): Promise<readonly string[]> => {
      const report = reportOf(await of.cli(["world", "doctor", "--json"]));
      const names = ["left-processes", "left-layers", "left-cgroups"];
      return names.filter((name) => checkOf(report, name).verdict !== "ok");
    };
    await eventually(async () => (await left()).length === 0, 10_000);
    expect(await left()).toEqual([]);
  });
});
