import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { ErrorReply, HealthReply, PublishedPort, Span } from "../../schemas/generated/types.ts";
import { validateHealthReply, validateSpan } from "../../schemas/generated/validators.js";
import { actors } from "../support/users/users.ts";
import { eventually, TestBroker } from "../support/broker/broker.ts";
import { freePort, holdPort, keepServer, talk } from "../support/broker/published.ts";

/** `more` goes below `world`. */
function policy(ports: readonly number[], more = ""): string {
  return `id: default\nname: Published\nmode: enforce\nworld:\n  publish: [${ports.join(", ")}]\n${more}`;
}

describe.each(actors())("ports that a policy publishes, as $kind", (actor) => {
  let broker: TestBroker;
  let port: number;
  let other: number;

  beforeEach(async () => {
    [port, other] = [await freePort(), await freePort()];
    const narrow = policy([other, port + 1]).replace("id: default", "id: narrow\nselectable: true");
    const alone = "id: alone\nname: Alone\nselectable: true\nworld:\n  reuse_session: false\n";
    broker = await TestBroker.start(actor, { policies: { default: policy([port]), narrow, alone } });
  });
  afterEach(() => broker.stop());

  function edit(text: string): void {
    broker.write(`${broker.home}/policies/default.yaml`, text);
  }

  async function ports(
    agent: string,
    by: "operator" | "call" = "operator",
  ): Promise<readonly PublishedPort[]> {
    const { document } = await broker[by]("GET", "/v1/health");
    expect(validateHealthReply(document)).toBe(true);
    const world = (document as HealthReply).worlds.find(({ agent_id: whose }) => whose === agent);
    return world?.published ?? [];
  }

  function happened(event: string, hostPort = port): readonly Span[] {
    const spans = broker.spans().filter(({ published }) => published !== undefined);
    for (const span of spans) expect(validateSpan(span)).toBe(true);
    return spans.filter(({ published }) => published?.event === event && published.host_port === hostPort);
  }

  async function restart(): Promise<void> {
    const { status } = await broker.operator("POST", "/v1/world/restart", {
      agent_id: "test",
      cwd: broker.project,
    });
    expect(status).toBe(200);
  }

  async function publish(body: object): Promise<number> {
    const asked = { agent_id: "test", cwd: broker.project, ...body };
    return (await broker.operator("POST", "/v1/world/publish", asked)).status;
  }

  test("are open when the session's first command runs, on record, and closed again when the world is gone", async () => {
    expect(await talk(port)).toBe("ECONNREFUSED");
    await keepServer(broker, "test", port, "served");
    expect(await talk(port)).toBe("served 5");
    expect(await ports("test")).toEqual([
      { port, host_port: port, by: "policy", connections: 0, problem: null },
    ]);
    expect(happened("opened")).toHaveLength(1);
    const { document } = await broker.operator("GET", "/v1/health");
    const [world] = (document as HealthReply).worlds;
    process.kill(world?.pid ?? 0, "SIGKILL");
    expect(await eventually(async () => (await talk(port)) === "ECONNREFUSED", 5000)).toBe(true);
    await eventually(() => happened("closed").length > 0, 5000);
    expect(happened("closed").map(({ message }) => message)).toEqual(["its world has ended"]);
    await keepServer(broker, "test", port, "again");
    expect(await talk(port)).toBe("again 5");
  });

  test("are open before any command when the world is warmed, and a restart opens them in the new world", async () => {
    const spot = { agent_id: "test", cwd: broker.project };
    expect((await broker.operator("POST", "/v1/world/warm", spot)).status).toBe(200);
    expect(await talk(port)).toBe("ECONNRESET");
    await keepServer(broker, "test", port, "old");
    expect(await publish({ port: other })).toBe(200);
    await restart();
    expect(await talk(port)).toBe("ECONNRESET");
    expect(await talk(other), "an operator's port closes with its world").toBe("ECONNREFUSED");
    await keepServer(broker, "test", port, "new");
    expect(await talk(port)).toBe("new 5");
  });

  test("a restart says which ports closed with the world, and how each opens again", async () => {
    await broker.run("true");
    expect(await publish({ port, host_port: other })).toBe(200);
    const { stdout } = await broker.cli(["world", "restart", "--agent", "test"]);
    expect(stdout.split("\n").filter((line) => line.includes("closed port"))).toEqual([
      `  closed port 127.0.0.1:${other}, which led to port ${port} there: 'substrate world publish ${port} --host-port ${other} --agent test' opens it again`,
    ]);
    expect((await ports("test")).map(({ host_port: open }) => open)).toEqual([port]);
    const all = await broker.cli(["world", "restart", "--all"]);
    expect(all.stdout).toContain(
      `  closed port 127.0.0.1:${port}, which led to port ${port} there: its policy opens it again with the next command\n`,
    );
  });

  test("follow an edit with the next command, and only what changed is touched", async () => {
    await keepServer(broker, "test", port, "kept");
    edit(policy([port, other]));
    expect(await talk(other)).toBe("ECONNREFUSED");
    await keepServer(broker, "test", other, "second");
    expect([await talk(port), await talk(other)]).toEqual(["kept 5", "second 5"]);
    expect(happened("opened")).toHaveLength(1);
    edit(policy([other]));
    await broker.run("true");
    expect([await talk(port), await talk(other)]).toEqual(["ECONNREFUSED", "second 5"]);
    edit("id: default\nname: None\nmode: enforce\n");
    await broker.run("true");
    expect(await talk(other)).toBe("ECONNREFUSED");
    expect(await ports("test")).toEqual([]);
  });

  test("go over to the world that replaces theirs, with those of an operator", async () => {
    const before = await keepServer(broker, "test", port, "before");
    expect(await publish({ port, host_port: other })).toBe(200);
    edit(policy([port], "  limits: { pids: 200 }\n"));
    const after = await keepServer(broker, "test", port, "after");
    expect(after.world_id).not.toBe(before.world_id);
    expect([await talk(port), await talk(other)]).toEqual(["after 5", "after 5"]);
    expect(happened("closed")).toEqual([]);
  });

  test("are those of both policies where a profile narrows", async () => {
    edit(policy([port, other]));
    await broker.run({ cmd: "true", profile: "narrow" });
    expect((await ports("test")).map(({ host_port: open }) => open)).toEqual([other]);
    expect(await talk(port)).toBe("ECONNREFUSED");
  });

  test("are not of a world that ends with its command", async () => {
    await broker.run({ cmd: "true", profile: "alone" });
    expect(await talk(port)).toBe("ECONNREFUSED");
  });

  test("that a program of the host has fail no command, are on record once, and open when it is gone", async () => {
    const { free } = await holdPort(port);
    expect(await broker.run("echo ran")).toMatchObject({ exit: 0, stdout: "ran\n" });
    await broker.run("true");
    expect(await eventually(() => happened("failed").length > 0, 5000)).toBe(true);
    const whose = actor.uid === process.getuid?.() ? `process ${process.pid} (` : "a program of user 0";
    expect(happened("failed").map(({ message, agent_id: agent }) => [message, agent])).toEqual([
      [expect.stringContaining(`Port ${port} of the host is taken by ${whose}`), null],
    ]);
    expect((await ports("test"))[0]?.problem).toContain(whose);
    const told = (await ports("test", "call"))[0]?.problem;
    expect(told).toBe("the host's port is taken");
    expect((await broker.cli(["world", "status"])).stdout).toContain("not open");
    free();
    await sleep(1100);
    await keepServer(broker, "test", port, "served");
    expect(await talk(port)).toBe("served 5");
    expect(happened("failed")).toHaveLength(1);
  });

  test("are the session's that came first, and the next one's when that has no world", async () => {
    await keepServer(broker, "first", port, "first");
    await keepServer(broker, "second", port, "second");
    expect(await talk(port)).toBe("first 5");
    expect((await ports("second"))[0]?.problem).toContain("agent 'first'");
    expect((await ports("second", "call"))[0]?.problem).not.toContain("first");
    const body = { all: true };
    expect((await broker.operator("POST", "/v1/world/restart", body)).status).toBe(200);
    await keepServer(broker, "second", port, "second");
    expect(await talk(port)).toBe("second 5");
  });

  test("are not an operator's to close, and the refusal says where", async () => {
    await broker.run("true");
    const asked = { agent_id: "test", cwd: broker.project, port, close: true };
    const alone = await broker.operator("POST", "/v1/world/publish", asked);
    expect(alone.status).toBe(400);
    expect((alone.document as ErrorReply).error.hint).toContain("world.publish");
    expect(await publish({ port })).toBe(200);
    const both = await broker.operator("POST", "/v1/world/publish", asked);
    expect(both.document).toMatchObject({ state: "kept" });
    expect(await talk(port)).toBe("ECONNRESET");
  });

  test("are free when the broker has stopped, and when it was killed", async () => {
    await keepServer(broker, "test", port, "served");
    await broker.kill("SIGTERM");
    (await holdPort(port)).free();
    broker = await broker.again();
    await keepServer(broker, "test", port, "served");
    expect(await talk(port)).toBe("served 5");
    await broker.kill("SIGKILL");
    (await holdPort(port)).free();
    broker = await broker.again();
  });
});
