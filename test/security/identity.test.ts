import { randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import { createConnection } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Answer, call } from "../../api/client/client.ts";
import type {
  ExecuteReply,
  HealthReply,
  SessionsReply,
  SpansReply,
  TraceReply,
} from "../../schemas/generated/types.ts";
import { actors } from "../support/users/users.ts";
import { eventually, settings, TestBroker } from "../support/broker/broker.ts";

const POLICY = "id: default\nname: Identity\nmode: enforce\nbudgets: { shared: { max_execs: 40 } }\n";
const CONFIG = "agents:\n  ann: {}\n  bob:\n";

describe.each(actors())("who is who, as $kind", (actor) => {
  let broker: TestBroker;
  beforeAll(async () => {
    broker = await TestBroker.start(actor, { policies: { default: POLICY }, config: CONFIG });
  });
  afterAll(() => broker.stop());

  /** A call on an agent's own socket. */
  function as(agent: string, method: string, path: string, body?: object): Promise<Answer> {
    return call(join(broker.home, `sock/agents/${agent}.sock`), method, path, body);
  }

  async function run(agent: string, more: object = {}): Promise<ExecuteReply> {
    const { status, document } = await as(agent, "POST", "/v1/execute", {
      cmd: "true",
      cwd: broker.project,
      ...more,
    });
    expect(status, JSON.stringify(document)).toBe(200);
    return document as ExecuteReply;
  }

  async function spansOf(answer: Promise<Answer>): Promise<readonly (string | null)[]> {
    return ((await answer).document as SpansReply).spans.map((span) => span.agent_id);
  }

  test("an agent on its own socket is itself, and can neither be nor be taken for another", async () => {
    expect((await run("ann")).agent_id).toBe("ann");
    for (const claimed of ["bob", "label", "Ann", "ann "])
      expect(
        (await as("ann", "POST", "/v1/execute", { cmd: "true", agent_id: claimed, cwd: broker.project }))
          .status,
      ).toBe(400);
    for (const taken of ["ann", "bob"])
      expect(await broker.refused({ cmd: "true", agent_id: taken })).toMatchObject({ status: 400 });
    expect(await broker.run({ cmd: "echo $SUBSTRATE_AGENT_ID", agent_id: "ann2" })).toMatchObject({
      stdout: "ann2\n",
    });
  });

  test("a label that began its call before an agent of that name was given a socket does not get the name with its body", async () => {
    const body = JSON.stringify({ agent_id: "carol", cmd: "touch by-label", cwd: broker.project });
    const socket = createConnection(join(broker.home, "sock/agent.sock"));
    try {
      let answer = "";
      socket.on("data", (bytes) => {
        answer += bytes.toString();
      });
      socket.write(`POST /v1/execute HTTP/1.1\r\nhost: x\r\ncontent-length: ${body.length}\r\n\r\n`);
      // The broker has read the head once it answers a later call.
      expect((await broker.call("GET", "/v1/health")).status).toBe(200);
      broker.write(join(broker.home, "config.yaml"), settings(broker.folder, `${CONFIG}  carol: {}\n`));
      expect(await eventually(() => existsSync(join(broker.home, "sock/agents/carol.sock")), 10_000)).toBe(
        true,
      );
      socket.write(body);
      expect(await eventually(() => answer.includes("\r\n\r\n"), 10_000)).toBe(true);
      expect(answer).toMatch(/^HTTP\/1\.1 400 /);
      expect(existsSync(join(broker.project, "by-label"))).toBe(false);
    } finally {
      socket.destroy();
    }
    await as("carol", "POST", "/v1/execute", { cmd: "touch by-carol", cwd: broker.project });
    expect(existsSync(join(broker.project, "by-carol"))).toBe(true);
  });

  test("another agent's span, session and sessions' spans are as unknown as what never was", async () => {
    const { span_id: span, session_id: session } = await run("ann");
    const strangers = [(path: string) => as("bob", "GET", path), (path: string) => broker.call("GET", path)];
    for (const ask of strangers) {
      for (const path of [`/v1/trace/${span}`, `/v1/spans?session_id=${session}`])
        expect((await ask(path)).status).toBe(404);
      expect(await spansOf(ask("/v1/spans?limit=1000"))).not.toContain("ann");
    }
    expect(
      (await as("bob", "POST", "/v1/execute", { cmd: "true", cwd: broker.project, session_id: session }))
        .status,
    ).toBe(404);
    expect((await as("ann", "GET", `/v1/trace/${span}`)).status).toBe(200);
    expect(new Set(await spansOf(as("ann", "GET", `/v1/spans?session_id=${session}`)))).toEqual(
      new Set(["ann"]),
    );
    expect((await run("ann", { session_id: session })).session_id).toBe(session);
    expect((await broker.operator("GET", `/v1/trace/${span}`)).status).toBe(200);
  });

  test("an agent tells events of itself, and sees its own sessions alone; one key of two agents is two sessions", async () => {
    const event = { cwd: broker.project, event: "prompt", prompt: "Go", session_key: "same" };
    for (const agent of ["ann", "bob"])
      expect((await as(agent, "POST", "/v1/events", event)).status).toBe(200);
    expect((await as("bob", "POST", "/v1/events", { ...event, agent_id: "ann" })).status).toBe(400);
    expect((await broker.call("POST", "/v1/events", { ...event, agent_id: "ann" })).status).toBe(400);
    const path = "/v1/sessions?session_key=same";
    const agents = async (answer: Promise<Answer>): Promise<readonly string[]> =>
      ((await answer).document as SessionsReply).sessions.map((session) => session.agent_id);
    expect(await agents(as("bob", "GET", path))).toEqual(["bob"]);
    expect(await agents(as("bob", "GET", `${path}&agent_id=ann`))).toEqual([]);
    expect(await agents(broker.call("GET", path))).toEqual([]);
    expect(await agents(broker.operator("GET", path))).toEqual(["bob", "ann"]);
    const { span_id: span } = await run("ann", { session_key: "same" });
    const own = (await as("ann", "GET", `/v1/trace/${span}`)).document as TraceReply;
    const parent = own.span.parent_span;
    expect((await as("ann", "GET", `/v1/trace/${parent}`)).status).toBe(200);
    expect((await as("bob", "GET", `/v1/trace/${parent}`)).status).toBe(404);
  });

  test("what a caller may not see takes no place of its page", async () => {
    const mine = [await run("ann"), await run("ann")].map(({ span_id: span }) => span);
    const label = [await broker.run("true"), await broker.run("true")].map(({ span_id: span }) => span);
    for (let others = 0; others < 3; others += 1) await run("bob");
    const ids = async (answer: Promise<Answer>): Promise<readonly string[]> =>
      ((await answer).document as SpansReply).spans.map((span) => span.span_id);
    expect(await ids(as("ann", "GET", "/v1/spans?limit=2"))).toEqual(mine.toReversed());
    expect(await ids(broker.call("GET", "/v1/spans?limit=2"))).toEqual(label.toReversed());
  });

  test("a child that somebody hangs below another agent's span is shown to its own agent and the operator alone", async () => {
    const { span_id: span } = await run("ann");
    const { span_id: forged } = await run("bob", { parent_span: span });
    const { span_id: own } = await run("ann", { parent_span: span });
    const children = async (answer: Promise<Answer>) =>
      ((await answer).document as TraceReply).children.map((child) => child.span_id);
    expect(await children(as("ann", "GET", `/v1/trace/${span}`))).toEqual([own]);
    expect([...(await children(broker.operator("GET", `/v1/trace/${span}`)))].sort()).toEqual(
      [forged, own].sort(),
    );
    expect((await as("bob", "GET", `/v1/trace/${span}`)).status).toBe(404);
    expect((await as("bob", "GET", `/v1/trace/${forged}`)).status).toBe(200);
  });

  test("nobody sees another agent's world, and two agents never share one", async () => {
    const [ann, bob] = [await run("ann"), await run("bob")];
    expect(ann.world_id).not.toBe(bob.world_id);
    const worlds = async (answer: Promise<Answer>) =>
      ((await answer).document as HealthReply).worlds.map((world) => world.agent_id);
    expect(await worlds(as("ann", "GET", "/v1/health"))).toEqual(["ann"]);
    expect(await worlds(broker.call("GET", "/v1/health"))).not.toContain("ann");
    expect(await worlds(broker.operator("GET", "/v1/health"))).toEqual(
      expect.arrayContaining(["ann", "bob"]),
    );
  });

  test("another agent's idempotency_key gives nobody its reply", async () => {
    const call = { cmd: "echo mine", idempotency_key: randomUUID() };
    const ann = await run("ann", call);
    const bob = await run("bob", call);
    const label = await broker.run({ ...call, agent_id: "label" });
    expect(new Set([ann.span_id, bob.span_id, label.span_id]).size).toBe(3);
    expect((await run("ann", call)).span_id).toBe(ann.span_id);
  });

  test("no number of new names is more than one budget; an agent with a socket is not touched by it", async () => {
    const names = ["constructor", "__proto__", "toString", ...Array.from({ length: 60 }, () => randomUUID())];
    const statuses = await Promise.all(
      names.map(async (agent) => (await broker.post({ cmd: "true", agent_id: agent })).status),
    );
    expect(statuses.filter((status) => status === 200).length).toBeLessThanOrEqual(40);
    expect(statuses).toContain(429);
    const labels = broker
      .spans()
      .filter(
        (span) =>
          span.event_type === "command_start" && !["ann", "bob", "carol"].includes(span.agent_id ?? ""),
      );
    expect(labels).toHaveLength(40);
    expect((await run("ann")).exit).toBe(0);
  });

  test("what an operator does to budgets has no path on an agent's own socket", async () => {
    for (const [method, path] of [
      ["GET", "/v1/budgets"],
      ["GET", "/v1/budgets/ann"],
      ["DELETE", "/v1/budgets/ann"],
      ["DELETE", "/v1/budgets/+shared"],
    ] as const)
      expect([path, (await as("ann", method, path)).status]).toEqual([path, 404]);
    expect((await broker.operator("GET", "/v1/budgets/ann")).status).toBe(200);
  });
});
