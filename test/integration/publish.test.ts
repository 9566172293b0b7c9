import { readFileSync } from "node:fs";
import { connect } from "node:net";
import { networkInterfaces } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { ErrorReply, WorldPublishReply } from "../../schemas/generated/types.ts";
import { validateWorldPublishReply } from "../../schemas/generated/validators.js";
import { call } from "../../api/client/client.ts";
import { actors } from "../support/users/users.ts";
import { TestBroker } from "../support/broker/broker.ts";
import { freePort, holdPort, keepServer, talk } from "../support/broker/published.ts";
import { skip } from "../support/run/skips.ts";

const POLICIES = {
  default: "id: default\nname: Plain\nmode: enforce\n",
  alone: "id: alone\nname: Alone\nselectable: true\nworld:\n  reuse_session: false\n",
};
const CONFIG = "agents:\n  named:\n    policy: default\n";

describe.each(actors())("a port that an operator publishes, as $kind", (actor) => {
  let broker: TestBroker;
  beforeAll(async () => {
    broker = await TestBroker.start(actor, { policies: POLICIES, config: CONFIG });
  });
  afterAll(() => broker.stop());

  async function publish(agent: string, body: object): Promise<WorldPublishReply> {
    const asked = { agent_id: agent, cwd: broker.project, ...body };
    const { status, document } = await broker.operator("POST", "/v1/world/publish", asked);
    expect(status, JSON.stringify(document)).toBe(200);
    expect(validateWorldPublishReply(document)).toBe(true);
    return document as WorldPublishReply;
  }

  async function refused(agent: string, body: object): Promise<{ status: number } & ErrorReply["error"]> {
    const asked = { agent_id: agent, cwd: broker.project, ...body };
    const { status, document } = await broker.operator("POST", "/v1/world/publish", asked);
    return { status, ...(document as ErrorReply).error };
  }

  /** A server in an agent's world, and its port on the host. */
  async function published(agent: string, host = "127.0.0.1"): Promise<number> {
    const port = await freePort();
    await keepServer(broker, agent, port, agent, host);
    expect(await publish(agent, { port })).toMatchObject({ state: "opened", port, host_port: port });
    return port;
  }

  test("leads from the host's 127.0.0.1 to a server that a command left in the world", async () => {
    const port = await published("dev");
    expect(await talk(port)).toBe("dev 5");
    expect(await publish("dev", { port })).toMatchObject({ state: "was_open" });
  });

  test("leads to a server that listens on ::1 alone", async () => {
    expect(await talk(await published("six", "::1"))).toBe("six 5");
  });

  test("is reached by no other address of the host, while 127.0.0.1 answers", async () => {
    const port = await published("narrow");
    const others = Object.values(networkInterfaces())
      .flatMap((found) => found ?? [])
      .filter(({ address, internal }) => !internal && !address.startsWith("fe80"))
      .map(({ address }) => address);
    for (const host of ["127.0.0.2", "::1", ...others])
      expect(await talk(port, "hello", host), host).toMatch(/^E(CONNREFUSED|ADDRNOTAVAIL|NETUNREACH)$/);
    expect(await talk(port)).toBe("narrow 5");
  });

  test("passes 32 MiB, the client's end and what is said after it", async () => {
    const port = await published("long");
    expect(await talk(port, "x".repeat(32 << 20))).toBe(`long ${32 << 20}`);
  });

  test("passes a reset on, and one who finds nobody inside is reset", async () => {
    const port = await published("rude");
    expect(await talk(port, "reset")).toBe("ECONNRESET");
    const empty = await freePort();
    await publish("rude", { port: empty });
    expect(await talk(empty)).toBe("ECONNRESET");
    expect(await talk(port)).toBe("rude 5");
  });

  test("sends a client that does not read no more than a little, and the broker does not grow", async () => {
    const port = await published("flood");
    const resident = (): number =>
      Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${broker.process.pid}/status`, "utf8"))?.[1]);
    const before = resident();
    const clients = Array.from({ length: 4 }, () => connect({ host: "127.0.0.1", port }).pause());
    for (const client of clients) client.write("flood");
    await sleep(1500);
    expect(resident() - before).toBeLessThan(64 * 1024);
    for (const client of clients) client.destroy();
  });

  test("has no more than 512 connections at once, and takes others when those are over", async () => {
    const port = await published("many");
    const clients = Array.from({ length: 520 }, () => connect({ host: "127.0.0.1", port }));
    let reset = 0;
    for (const client of clients) client.on("error", () => reset++);
    for (const client of clients) client.write("x");
    await expect.poll(() => reset, { timeout: 10_000 }).toBe(8);
    for (const client of clients) client.destroy();
    await expect.poll(() => talk(port), { timeout: 10_000 }).toBe("many 5");
  });

  test("can be another port of the host, and is closed by the same words", async () => {
    const [port, hostPort] = [await freePort(), await freePort()];
    await keepServer(broker, "moved", port, "moved");
    await publish("moved", { port, host_port: hostPort });
    expect(await talk(hostPort)).toBe("moved 5");
    expect(await talk(port)).toBe("ECONNREFUSED");
    expect(await refused("moved", { port, close: true })).toMatchObject({ status: 404, code: "not_found" });
    const closed = await publish("moved", { port, host_port: hostPort, close: true });
    expect(closed.state).toBe("closed");
    expect(await talk(hostPort)).toBe("ECONNREFUSED");
  });

  test("is refused when a program has it, which is named, and when another agent has it, which is too", async () => {
    const { port, free } = await holdPort(0);
    const taken = await refused("late", { port });
    expect(taken).toMatchObject({ status: 503, code: "busy" });
    expect(taken.message).toContain(
      actor.uid === process.getuid?.() ? `process ${process.pid} (` : "of user 0",
    );
    free();
    await publish("late", { port });
    const owned = await refused("later", { port });
    expect(owned).toMatchObject({ status: 503, code: "busy" });
    expect(owned.message).toContain(`agent 'late' in '${broker.project}'`);
    const other = await freePort();
    expect((await refused("late", { port: other, host_port: port })).message).toContain(
      `leads to port ${port}`,
    );
    expect(await refused("later", { port, close: true })).toMatchObject({ status: 404 });
  });

  test("below 1024 is the kernel's to refuse, and the refusal says what to do", async () => {
    const lowest = Number(readFileSync("/proc/sys/net/ipv4/ip_unprivileged_port_start", "utf8"));
    if (actor.uid === 0 || lowest <= 1) return skip("a refused low port", "here anybody may have one");
    const no = await refused("low", { port: 3000, host_port: 1 });
    expect(no).toMatchObject({ status: 400, code: "invalid_request" });
    expect(no.message).toContain("below 1024");
    expect(no.hint).toContain("--host-port");
  });

  test.each([
    {},
    { port: 0 },
    { port: 65_536 },
    { port: 1.5 },
    { port: 80, host_port: -1 },
    { port: 80, x: 1 },
  ])("is not %j", async (body) => {
    expect(await refused("odd", body)).toMatchObject({ status: 400, code: "invalid_request" });
  });

  test("needs a world that lasts", async () => {
    const no = await refused("alone", { port: 3000, profile: "alone" });
    expect(no).toMatchObject({ status: 400, code: "invalid_request" });
  });

  test("is not to be had on an agent's sockets, and nothing of it is told there", async () => {
    const port = await freePort();
    const body = { cwd: broker.project, port };
    for (const socket of ["sock/agent.sock", "sock/agents/named.sock"]) {
      const answer = await call(`${broker.home}/${socket}`, "POST", "/v1/world/publish", body);
      expect(answer.status).toBe(404);
      expect((answer.document as ErrorReply).error.hint).not.toContain("/v1/world/");
    }
    expect(await talk(port)).toBe("ECONNREFUSED");
  });

  test("leads in and never out: the world's localhost is not the host's", async () => {
    let reached = 0;
    const { port, free } = await holdPort(0, (socket) => {
      reached += 1;
      socket.destroy();
    });
    const cmd = `exec 3<>/dev/tcp/127.0.0.1/${port}`;
    expect((await broker.run({ agent_id: "dev", cmd, shell: "bash" })).exit).not.toBe(0);
    expect(reached).toBe(0);
    free();
    await keepServer(broker, "dev", port, "mine");
    expect((await broker.run({ agent_id: "dev", cmd, shell: "bash" })).exit).toBe(0);
    expect((await broker.run({ agent_id: "bystander", cmd, shell: "bash" })).exit).not.toBe(0);
  });

  test("in plain words, from the command line", async () => {
    const port = await freePort();
    await keepServer(broker, "cli", port, "cli");
    const opened = await broker.cli(["world", "publish", String(port), "--agent", "cli"]);
    expect(opened, opened.stderr).toMatchObject({ code: 0 });
    expect(opened.stdout).toContain(`127.0.0.1:${port} leads to port ${port} of the world of agent cli`);
    expect(await talk(port)).toBe("cli 5");
    const status = await broker.cli(["world", "status"]);
    expect(status.stdout).toContain(`published  127.0.0.1:${port} to port ${port}, by an operator`);
    const close = ["world", "publish", String(port), "--agent", "cli", "--close", "--json"];
    const closed = JSON.parse((await broker.cli(close)).stdout) as WorldPublishReply;
    expect(closed).toMatchObject({ state: "closed", agent_id: "cli" });
    for (const words of [["70000"], ["http"], ["80", "--host-port", "x"]]) {
      const odd = await broker.cli(["world", "publish", ...words]);
      expect(odd.code).toBe(125);
      expect(odd.stderr).toContain("1 to 65535");
    }
  });
});
