import { existsSync, mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { HealthReply } from "../../schemas/generated/types.ts";
import { ownCgroup } from "../../world/doctor/cgroups.ts";
import { type Actor, type Ended, actors, runAs } from "../support/users/users.ts";
import { settings, TestBroker } from "../support/broker/broker.ts";
import { checkOf, overlayOf, reportOf } from "../support/broker/doctor-report.ts";
import { installationFor } from "../support/broker/installation.ts";
import { processesWith } from "../support/processes/processes.ts";
import { skip } from "../support/run/skips.ts";

const POLICY = 'id: default\nname: Doctor\nmode: enforce\ncommands:\n  isolated: ["sleep *", "touch *"]\n';

/** Enters a user namespace in which nobody may make another, and has no privilege left there. */
const NO_USER_NAMESPACES = [
  "unshare",
  "--user",
  "--map-current-user",
  "--keep-caps",
  "sh",
  "-c",
  'echo 0 > /proc/sys/user/max_user_namespaces && exec setpriv --ambient-caps=-all --inh-caps=-all --bounding-set=-all -- "$@"',
  "sh",
];

describe.each(actors())("the doctor, as $kind", (actor) => {
  let broker: TestBroker;
  beforeAll(async () => {
    broker = await TestBroker.start(actor, { policies: { default: POLICY } });
  });
  afterAll(() => broker.stop());

  const doctor = (...words: readonly string[]): Promise<Ended> => broker.cli(["world", "doctor", ...words]);

  test("finds here all that the tests rest on, and every line has a verdict", async () => {
    const { code, stdout } = await doctor();
    expect(code, stdout).toBe(0);
    const lines = stdout.split("\n");
    const names = reportOf(await doctor("--json")).checks.map(({ name }) => name);
    expect(names.length).toBeGreaterThan(20);
    for (const name of names)
      expect(
        lines.filter((line) => new RegExp(`^(ok|weaker|missing) +${name} `).test(line)),
        name,
      ).toHaveLength(1);
    expect(stdout).toContain("This host has everything that the default policy needs");
  });

  test("calls what worlds are made of needed, and what is weaker or missing has a mend or a reason", async () => {
    const report = reportOf(await doctor("--json"));
    expect(report.ok).toBe(true);
    for (const name of [
      "mount-namespace",
      "pid-namespace",
      "overlay",
      "whiteouts",
      "seccomp-filter",
      "world",
    ])
      expect(checkOf(report, name), name).toMatchObject({ needed: true });
    expect(checkOf(report, "user-namespace")).toMatchObject({ needed: actor.uid !== 0, verdict: "ok" });
    // What a whole world lacks has its mend at the check that is about it alone.
    for (const { verdict, mend, seen, name } of report.checks)
      expect(verdict === "ok" || mend.length > 0 || /is '(off|degraded)/.test(seen), name).toBe(true);
  });

  test("leaves nothing behind, and a running broker as it was", async () => {
    const overlay = overlayOf(broker);
    const before = readdirSync(overlay);
    const { world_id: world } = await broker.run("true");
    await doctor("--mend");
    expect(readdirSync(overlay)).toEqual(before);
    expect(readdirSync(broker.home).filter((name) => name.startsWith(".substrate-doctor"))).toEqual([]);
    expect((await broker.run("true")).world_id).toBe(world);
    expect(processesWith("wld_doctor")).toEqual([]);
  });

  test("leaves no cgroup, and removes those of doctors that were killed", async () => {
    const here = ownCgroup();
    if (here === undefined || actor.uid !== 0)
      return skip("cgroups of killed doctors", "nobody but root writes the hierarchy of version 2 here");
    const left = (): readonly string[] =>
      readdirSync(here).filter((name) => name.startsWith("substrate-doctor-"));
    // Longer than any process number (PID_MAX_LIMIT, include/linux/threads.h).
    mkdirSync(join(here, "substrate-doctor-99999999"));
    await doctor();
    expect(left()).toEqual([]);
  });

  test("health says what isolated commands get: an overlay, where one can be made", async () => {
    const { document } = await broker.operator("GET", "/v1/health");
    const [isolated] = reportOf(await doctor("--json")).checks.filter(({ name }) => name === "overlay");
    expect(isolated?.verdict).toBe("ok");
    expect((document as HealthReply).isolation.overlay).toBe("on");
  });

  test("works where no broker runs and no home is, and makes none", async () => {
    const home = join(broker.folder, "fresh");
    const { code, stdout } = await broker.cli(["world", "doctor"], { env: { SUBSTRATE_HOME: home } });
    expect(code, stdout).toBe(0);
    expect(existsSync(home)).toBe(false);
  });

  test("says which file of the home others can read, and which policy part is not there", async () => {
    const policy = "id: default\nname: Strict\nworld:\n  require: [exec_gate, cgroup]\n";
    const home = join(broker.folder, "strict");
    broker.write(join(home, "policies/default.yaml"), policy);
    const ended = await broker.cli(["world", "doctor", "--json"], { env: { SUBSTRATE_HOME: home } });
    const report = reportOf(ended);
    expect(checkOf(report, "home")).toMatchObject({ verdict: "weaker", mend: [`chmod 700 '${home}'`] });
    const world = checkOf(report, "world");
    if (/exec_gate is/.test(world.seen)) {
      expect(world.verdict).toBe("missing");
      expect(ended.code).toBe(1);
    } else {
      expect(world.seen).not.toContain("requires exec_gate");
    }
  });

  test("where nobody may make a user namespace it says so, prints the mend, and exits with 1", async () => {
    const { node, launcher } = await installationFor(actor);
    const inside = (...words: readonly string[]): Promise<Ended> =>
      runAs(actor, [...NO_USER_NAMESPACES, ...words], {
        cwd: broker.project,
        env: { SUBSTRATE_HOME: join(broker.folder, "locked") },
      });
    await skipUnlessLocked(actor, inside);
    const plain = await inside(node, launcher, "world", "doctor");
    expect(plain.code, plain.stdout + plain.stderr).toBe(1);
    expect(plain.stdout).toMatch(/mend: (sudo )?sysctl -w user\.max_user_namespaces=\d+/);
    expect(plain.stdout).toMatch(/The default policy needs what is missing here: .*user-namespace/);
    const report = reportOf(await inside(node, launcher, "world", "doctor", "--json"));
    expect(report.ok).toBe(false);
    expect(checkOf(report, "user-namespace")).toMatchObject({ verdict: "missing", needed: true });
    expect(checkOf(report, "user-namespace").seen).toContain("ENOSPC");
    expect(checkOf(report, "world")).toMatchObject({ verdict: "missing" });
    for (const name of ["node", "home", "kernel", "init"])
      expect(checkOf(report, name), name).toMatchObject({ verdict: "ok" });
  });

  test("a broker that cannot make a world sends whoever asked to the doctor", async () => {
    const { node, launcher } = await installationFor(actor);
    const env = { SUBSTRATE_HOME: join(broker.folder, "helpless") };
    const inside = (...words: readonly string[]): Promise<Ended> =>
      runAs(actor, [...NO_USER_NAMESPACES, ...words], { cwd: broker.project, env });
    await skipUnlessLocked(actor, inside);
    broker.write(join(broker.folder, "helpless/config.yaml"), settings(broker.folder));
    expect((await inside(node, launcher, "broker", "start")).code).toBe(0);
    try {
      const ran = await broker.cli(["exec", "--", "true"], { env });
      expect(ran.code).toBe(125);
      expect(ran.stderr).toContain("substrate world doctor");
    } finally {
      await broker.cli(["broker", "stop"], { env });
    }
  });
});

/** Some machines have no way to make such a place: then nothing here is proved. */
async function skipUnlessLocked(
  actor: Actor,
  inside: (...words: readonly string[]) => Promise<Ended>,
): Promise<void> {
  const looked = await inside("cat", "/proc/sys/user/max_user_namespaces");
  if (looked.code !== 0 || looked.stdout.trim() !== "0")
    skip(`the doctor without user namespaces, as ${actor.kind}`, looked.stderr.trim() || "unshare(1) cannot");
}
