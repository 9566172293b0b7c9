/** Worlds in a virtual machine that Lima manages, with a stand-in for `limactl`: no Lima and no second kernel run here. */
import { chownSync, existsSync, mkdirSync, mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { eventually, TestBroker } from "../support/broker/broker.ts";
import { StreamClient } from "../support/broker/stream.ts";
import { actors } from "../support/users/users.ts";
import { TestLima, untilReady } from "../support/world/lima.ts";

const POLICY = `id: default
name: Lima
mode: enforce
commands: { isolated: ["touch held"] }
`;

describe.each(actors())("a broker whose worlds are in a virtual machine, as $kind", (actor) => {
  let lima: TestLima;
  let broker: TestBroker;
  beforeAll(async () => {
    lima = await TestLima.make(actor);
    const folder = mkdtempSync(join(actor.uid === 0 ? tmpdir() : actor.home, "sb-"));
    broker = await TestBroker.start(actor, {
      folder,
      config: `projects: ["${folder}/project"]\n`,
      policies: { default: POLICY },
      environment: lima.environment,
    });
  });
  afterAll(async () => {
    await broker.stop();
    lima.stop();
  });

  test("has the machine made and started at its start, and runs commands in it", async () => {
    await untilReady(broker);
    const quoted = `it's "two  words" $HOME \\ \n end`;
    const ran = await broker.run({ argv: ["printf", "%s|", quoted, ""] });
    expect(ran).toMatchObject({ exit: 0, stdout: `${quoted}||`, isolation: { backend: "lima:linux" } });
    expect(lima.verbs).toEqual(["create", "start"]);
    const description = readFileSync(join(broker.home, "run/lima.yaml"), "utf8");
    expect(description).toContain(`hostSocket: ${broker.home}/sock/lima-agent.sock`);
  });

  test("shows, applies and undoes changes that the machine holds", async () => {
    const { span_id: span } = await broker.run("touch held");
    const shown = await broker.operator("GET", `/v1/diff/${span}`);
    expect(shown.document).toMatchObject({ changes: [{ path: "held", kind: "write" }] });
    expect((await broker.operator("POST", `/v1/apply/${span}`, {})).document).toMatchObject({
      done: ["held"],
    });
    expect((await broker.operator("POST", `/v1/undo/${span}`, {})).document).toMatchObject({
      done: ["held"],
    });
  });

  test("closes the spans of a machine that dies, and starts it again for the next command", async () => {
    const running = await StreamClient.open(broker, { cmd: "echo begun; sleep 600" });
    await running.shows("begun\n");
    lima.kill("SIGKILL");
    expect(await running.ended()).toMatchObject({ type: "exit", signal: "SIGKILL" });
    expect(running.err.toString()).toContain("the connection to its world agent was lost");
    await untilReady(broker);
    expect(await broker.run("echo again")).toMatchObject({ exit: 0, stdout: "again\n" });
    expect(lima.verbs).toEqual(["create", "start", "start"]);
  });

  test("refuses a project that was named after the machine's start, until it is started again", async () => {
    const late = join(broker.folder, "late");
    mkdirSync(late);
    chownSync(late, actor.uid, actor.gid);
    await broker.run("true");
    broker.write(join(broker.home, "config.yaml"), `projects: ["${broker.project}", "${late}"]\n`);
    const refused = await broker.refused({ cmd: "touch made", cwd: late });
    expect(refused).toMatchObject({ status: 503, code: "isolation_unavailable" });
    expect(refused.message).toContain(`does not let commands write '${late}' yet`);
    expect(refused.hint).toContain("'limactl stop substrate'");
    lima.kill("SIGTERM");
    await eventually(
      async () => (await broker.post({ cmd: "touch made", cwd: late })).status === 200,
      30_000,
    );
    expect(existsSync(join(late, "made"))).toBe(true);
  });

  test("says in doctor and world status which backend it is", async () => {
    const doctor = await broker.cli(["world", "doctor", "--json"], { env: lima.environment });
    expect(JSON.parse(doctor.stdout)).toMatchObject({
      checks: expect.arrayContaining([
        expect.objectContaining({ name: "lima", verdict: "ok" }),
        expect.objectContaining({ name: "agent", verdict: "ok" }),
      ]),
    });
    expect((await broker.cli(["world", "status"])).stdout).toMatch(/^Backend lima:linux/m);
  });

  test("says in doctor what is missing before there is a machine, and makes none", async () => {
    const other = await TestLima.make(actor);
    try {
      const asked = { env: { ...other.environment, SUBSTRATE_HOME: join(other.folder, "none") } };
      const before = await broker.cli(["world", "doctor"], asked);
      expect(before.stdout).toMatch(/^weaker +lima .*\n +The virtual machine 'substrate' is not made yet/m);
      expect(before.stdout).toMatch(/^weaker +agent .*\n +Not asked/m);
      expect(other.verbs).toEqual([]);
      const without = { env: { ...asked.env, PATH: "/usr/local/bin:/usr/bin:/bin" } };
      const missing = await broker.cli(["world", "doctor"], without);
      expect(missing.stdout).toMatch(/^missing +lima .*\n.*\n +mend: .*brew install lima/m);
      expect(missing.code).toBe(1);
    } finally {
      other.remove();
    }
  });
});
