import { randomBytes } from "node:crypto";
import { existsSync, renameSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type {
  ErrorReply,
  HealthReply,
  WorldRestartReply,
  WorldWarmReply,
} from "../../schemas/generated/types.ts";
import {
  validateHealthReply,
  validateWorldRestartReply,
  validateWorldWarmReply,
} from "../../schemas/generated/validators.js";
import { actors } from "../support/users/users.ts";
import { eventually, TestBroker } from "../support/broker/broker.ts";
import { processesWith } from "../support/processes/processes.ts";

const POLICIES = {
  default: 'id: default\nname: Worlds\nmode: enforce\ncommands:\n  isolated: ["tail *"]\n',
  alone: "id: alone\nname: Alone\nselectable: true\nworld:\n  reuse_session: false\n",
};

describe.each(actors())("an operator's worlds, as $kind", (actor) => {
  let broker: TestBroker;
  beforeAll(async () => {
    broker = await TestBroker.start(actor, { policies: POLICIES });
  });
  afterAll(() => broker.stop());

  const marker = (): string => `operated-${randomBytes(6).toString("hex")}`;
  const spot = (agent: string): { agent_id: string; cwd: string } => ({
    agent_id: agent,
    cwd: broker.project,
  });

  async function warm(body: object): Promise<WorldWarmReply> {
    const { status, document } = await broker.operator("POST", "/v1/world/warm", body);
    expect(status, JSON.stringify(document)).toBe(200);
    expect(validateWorldWarmReply(document)).toBe(true);
    return document as WorldWarmReply;
  }

  async function restart(body: object): Promise<WorldRestartReply> {
    const { status, document } = await broker.operator("POST", "/v1/world/restart", body);
    expect(status, JSON.stringify(document)).toBe(200);
    expect(validateWorldRestartReply(document)).toBe(true);
    return document as WorldRestartReply;
  }

  async function refused(
    path: string,
    body: object,
  ): Promise<{ status: number; code: string; message: string }> {
    const { status, document } = await broker.operator("POST", path, body);
    const { code, message } = (document as ErrorReply).error;
    return { status, code, message };
  }

  test("the next command runs in the world that was warmed, and warming again makes no other", async () => {
    const { world } = await warm(spot("early"));
    expect(world).toMatchObject({ agent_id: "early", project: broker.project, was_warm: false });
    expect(world.mounts).toBeGreaterThan(10);
    const ran = await broker.run({ agent_id: "early", cmd: "true" });
    expect(ran).toMatchObject({ world_id: world.world_id, session_id: world.session_id });
    expect((await warm(spot("early"))).world).toMatchObject({ world_id: world.world_id, was_warm: true });
    expect((await broker.run({ agent_id: "late", cmd: "true" })).world_id).not.toBe(world.world_id);
  });

  test("a restarted world is another one, and what was kept in it is listed and gone", async () => {
    const mark = marker();
    const cmd = `sh -c ': ${mark}; sleep 600' & echo left > /tmp/left`;
    const before = await broker.run({ agent_id: "keeper", cmd, background: "keep" });
    expect(processesWith(mark).length).toBeGreaterThan(0);
    const { ended, world } = await restart(spot("keeper"));
    expect(ended).toHaveLength(1);
    expect(ended[0]).toMatchObject({ world_id: before.world_id, agent_id: "keeper", commands: 0 });
    expect(ended[0]?.processes.some(({ argv }) => argv.includes(mark))).toBe(true);
    expect(processesWith(mark)).toEqual([]);
    const after = await broker.run({ agent_id: "keeper", cmd: "ls /tmp/left" });
    expect(after.world_id).toBe(world?.world_id);
    expect(after.world_id).not.toBe(before.world_id);
    expect(after.exit).not.toBe(0);
    expect(after.session_id).toBe(before.session_id);
  });

  test("what was kept may tidy up after itself before its world ends", async () => {
    const cmd =
      "(trap 'sleep 0.4; rm kept; exit' TERM; touch kept; while :; do sleep 0.05; done) & until [ -e kept ]; do sleep 0.05; done";
    await broker.run({ agent_id: "tidy", cmd, background: "keep" });
    expect(existsSync(join(broker.project, "kept"))).toBe(true);
    await restart(spot("tidy"));
    expect(existsSync(join(broker.project, "kept"))).toBe(false);
  });

  test("a command that still runs may tidy up too, and its reply tells of the world's end", async () => {
    const cmd = "trap 'sleep 0.4; rm running; exit' TERM; touch running; while :; do sleep 0.05; done";
    const running = broker.run({ agent_id: "runs", cmd });
    expect(await eventually(() => existsSync(join(broker.project, "running")), 5000)).toBe(true);
    await restart({ ...spot("runs"), force: true });
    expect(existsSync(join(broker.project, "running"))).toBe(false);
    const { exit, signal, stderr } = await running;
    expect([exit, signal]).toEqual([137, "SIGKILL"]);
    expect(stderr).toContain("an operator restarted it");
  });

  test("restarting where nothing is warm makes a world", async () => {
    const { ended, world } = await restart(spot("fresh"));
    expect(ended).toEqual([]);
    expect((await broker.run({ agent_id: "fresh", cmd: "true" })).world_id).toBe(world?.world_id);
  });

  test("a world with a running command is not restarted, and the command ends as it would have", async () => {
    const mark = marker();
    const running = broker.run({ agent_id: "busy", cmd: `: ${mark}; sleep 1; echo done` });
    expect(await eventually(() => processesWith(mark).length > 0, 5000)).toBe(true);
    const no = await refused("/v1/world/restart", spot("busy"));
    expect(no).toMatchObject({ status: 503, code: "busy" });
    expect(no.message).toContain("1 command runs");
    expect(await running).toMatchObject({ exit: 0, stdout: "done\n" });
  });

  test("by force the command is ended, and its reply says that an operator did it", async () => {
    const mark = marker();
    const running = broker.run({ agent_id: "forced", cmd: `: ${mark}; sleep 600` });
    expect(await eventually(() => processesWith(mark).length > 0, 5000)).toBe(true);
    const { ended, world } = await restart({ ...spot("forced"), force: true });
    const reply = await running;
    expect(reply).toMatchObject({ exit: 137, signal: "SIGKILL", world_id: ended[0]?.world_id });
    expect(reply.stderr).toContain("an operator restarted it");
    expect(processesWith(mark)).toEqual([]);
    expect(ended[0]).toMatchObject({ commands: 1 });
    expect((await broker.span(reply.span_id)).outcome).toBe("lost");
    expect((await broker.run({ agent_id: "forced", cmd: "true" })).world_id).toBe(world?.world_id);
  });

  test("another agent's command does not make a world busy, nor is it ended", async () => {
    const mark = marker();
    const running = broker.run({ agent_id: "bystander", cmd: `: ${mark}; sleep 1; echo mine` });
    expect(await eventually(() => processesWith(mark).length > 0, 5000)).toBe(true);
    await restart({ ...spot("other"), force: true });
    expect(await running).toMatchObject({ exit: 0, stdout: "mine\n" });
  });

  test("all worlds end, isolated ones too, and only by force while something runs", async () => {
    await warm(spot("one"));
    const mark = marker();
    const running = broker.run({ agent_id: "two", cmd: `tail -f /dev/null # ${mark}` });
    expect(await eventually(() => processesWith(mark).length > 0, 5000)).toBe(true);
    expect(await refused("/v1/world/restart", { all: true })).toMatchObject({ status: 503, code: "busy" });
    const { ended, world } = await restart({ all: true, force: true });
    expect(world).toBeNull();
    expect(ended.filter(({ agent_id: agent }) => agent === "one")).toHaveLength(1);
    expect(ended.filter(({ session_id: session }) => session === null)).toHaveLength(1);
    expect((await running).stderr).toContain("an operator restarted it");
    expect(processesWith(mark)).toEqual([]);
    const { document } = await broker.operator("GET", "/v1/health");
    expect((document as HealthReply).worlds).toEqual([]);
  });

  test("a policy that gives every command a world of its own has none to warm", async () => {
    const no = await refused("/v1/world/warm", { ...spot("alone"), profile: "alone" });
    expect(no).toMatchObject({ status: 400, code: "invalid_request" });
    expect(await refused("/v1/world/warm", { ...spot("alone"), profile: "none-such" })).toMatchObject({
      code: "unknown_profile",
    });
  });

  test("a call without a body is for the operator in the folder where the broker was started", async () => {
    const { status, document } = await broker.operator("POST", "/v1/world/warm");
    expect(status).toBe(200);
    expect((document as WorldWarmReply).world).toMatchObject({ agent_id: "human", project: broker.project });
  });

  test("only the operator's socket has these calls, and unknown fields are named", async () => {
    for (const path of ["/v1/world/warm", "/v1/world/restart"]) {
      const { status, document } = await broker.call("POST", path, spot("agent"));
      expect(status).toBe(404);
      expect((document as ErrorReply).error).toMatchObject({ code: "not_found" });
      expect((document as ErrorReply).error.hint).not.toContain("/v1/world/");
      const strange = await refused(path, { ...spot("agent"), cmd: "ls" });
      expect(strange).toMatchObject({ status: 400, code: "invalid_request" });
      expect(strange.message).toContain("cmd");
    }
    expect(await refused("/v1/world/restart", { all: true, cwd: broker.project })).toMatchObject({
      status: 400,
    });
  });

  test("health says since when a world is there, and how much runs in it", async () => {
    await warm(spot("healthy"));
    const { document } = await broker.operator("GET", "/v1/health");
    expect(validateHealthReply(document)).toBe(true);
    const world = (document as HealthReply).worlds.find(({ agent_id: agent }) => agent === "healthy");
    expect(world).toMatchObject({ running: 0 });
    expect(Date.parse(world?.started_at ?? "")).toBeGreaterThan(Date.now() - 60_000);
  });

  test("the command line warms, restarts and shows worlds in plain words", async () => {
    const mark = marker();
    const warmed = await broker.cli(["world", "warm", "--agent", "cli"]);
    expect(warmed).toMatchObject({ code: 0 });
    const id = /wld_[0-9a-f-]+/.exec(warmed.stdout)?.[0] ?? "none";
    expect(warmed.stdout).toMatch(/is warm, ready after [\d.]+ ms with \d+ mounts/);
    const kept = { agent_id: "cli", cmd: `sh -c ': ${mark}; sleep 600' &`, background: "keep" };
    expect((await broker.run(kept)).world_id).toBe(id);
    const status = await broker.cli(["world", "status"]);
    expect(status.stdout).toContain(id);
    expect(status.stdout).toMatch(/agent +cli\n/);
    expect(status.stdout).toContain(mark);
    expect(status.stdout).not.toMatch(/ (bind|tmpfs) \//);
    expect(status.stdout).not.toMatch(/^ +seccomp +on$/m);
    expect((await broker.cli(["world", "status", "--mounts"])).stdout).toMatch(/ (bind|tmpfs) \//);
    const json = JSON.parse((await broker.cli(["world", "status", "--json"])).stdout) as HealthReply;
    expect(json.worlds.map(({ world_id: known }) => known)).toContain(id);
    const restarted = await broker.cli(["world", "restart", "--agent", "cli"]);
    expect(restarted.code).toBe(0);
    expect(restarted.stdout).toMatch(new RegExp(`${id} of agent cli in .* is ended`));
    expect(restarted.stdout).toMatch(new RegExp(`ended process \\d+ .*${mark}`));
    const again = await broker.cli(["world", "restart", "--agent", "cli", "--json"]);
    expect(validateWorldRestartReply(JSON.parse(again.stdout))).toBe(true);
    const all = await broker.cli(["world", "restart", "--all", "--json"]);
    expect(JSON.parse(all.stdout)).toMatchObject({ world: null });
  });

  test("exec --keep says what goes on, and how to see, reach and end it; nothing where nothing does", async () => {
    const kept = await broker.cli([
      "exec",
      "--agent",
      "kept",
      "--keep",
      "--",
      "sleep 600 & sleep 600 & echo on",
    ]);
    expect(kept).toMatchObject({ code: 0, stdout: "on\n" });
    expect(kept.stderr).toMatch(
      /^substrate: 2 processes are still running in this folder's world: 'substrate world status' .* 'substrate world publish PORT --agent kept' .* 'substrate world restart --agent kept' ends them\n$/,
    );
    expect((await broker.cli(["world", "restart", "--agent", "kept"])).code).toBe(0);
    const again = (): ReturnType<TestBroker["cli"]> =>
      broker.cli(["exec", "--agent", "kept", "--keep", "--", "true"]);
    expect(await again()).toMatchObject({ code: 0, stderr: "" });
    // Whoever reaches an agent's socket alone has run the command all the same.
    const control = join(broker.home, "sock/control.sock");
    renameSync(control, `${control}.aside`);
    try {
      expect(await again()).toMatchObject({
        code: 0,
        stderr: expect.stringContaining("background processes are still running"),
      });
    } finally {
      renameSync(`${control}.aside`, control);
    }
  });

  test("without a broker, and with words that contradict each other, the exit code is 125", async () => {
    const nowhere = { env: { SUBSTRATE_HOME: join(broker.folder, "none") } };
    // 'world warm' would start a broker: there is nothing to restart or to show without one.
    for (const verb of ["restart", "status"]) {
      const ended = await broker.cli(["world", verb], nowhere);
      expect(ended.code).toBe(125);
      expect(ended.stderr).toContain("substrate broker start");
    }
    expect(await broker.cli(["world", "restart", "--all", "--agent", "x"])).toMatchObject({ code: 125 });
  });
});
