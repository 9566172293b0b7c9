/** Worlds behind a world agent: what the shared cases (backends.test.ts) cannot ask of other backends. */
import { randomBytes } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, rmSync, statSync } from "node:fs";
import { createServer, request } from "node:http";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { call } from "../../api/client/client.ts";
import type { AgentHealth } from "../../world/wire/protocol.ts";
import { eventually, TestBroker } from "../support/broker/broker.ts";
import { StreamClient } from "../support/broker/stream.ts";
import { processesWith } from "../support/processes/processes.ts";
import { actors, currentUser } from "../support/users/users.ts";
import { TestAgent } from "../support/world/agent.ts";
import { skip } from "../support/run/skips.ts";

const POLICY = `id: default
name: Agent
mode: enforce
commands: { isolated: ["touch held"] }
`;

const marked = (): string => `marked-${randomBytes(6).toString("hex")}`;

describe.each(actors())("a world agent, as $kind", (actor) => {
  let agent: TestAgent;
  let broker: TestBroker;
  beforeAll(async () => {
    agent = await TestAgent.start(actor);
    broker = await TestBroker.start(actor, {
      policies: { default: POLICY },
      environment: agent.environment,
    });
  });
  afterAll(async () => {
    await broker.stop();
    await agent.stop();
  });
  const health = async (): Promise<AgentHealth> =>
    (await call(agent.socket, "GET", "/v1/health")).document as AgentHealth;

  test("its socket is its owner's alone, and its health names protocol, version, backend and worlds", async () => {
    await broker.run("true");
    expect(statSync(agent.socket).mode & 0o777).toBe(0o600);
    expect(await health()).toEqual({
      protocol: 1,
      version: expect.stringMatching(/^\d+\.\d+\.\d+/),
      state: "serving",
      backend: "linux",
      brokers: 1,
      worlds: 1,
    });
  });

  test("doctor and world status name it", async () => {
    const doctor = await broker.cli(["world", "doctor", "--json"], { env: agent.environment });
    expect(JSON.parse(doctor.stdout)).toMatchObject({
      checks: expect.arrayContaining([
        expect.objectContaining({
          name: "agent",
          verdict: "ok",
          seen: expect.stringMatching(/^agent:linux makes worlds/),
        }),
      ]),
    });
    expect((await broker.cli(["world", "status"])).stdout).toMatch(/^Backend agent:linux/m);
  });

  test("its own home is not to be seen in a world", async () => {
    expect(await broker.run(`ls -A ${agent.folder}/home; true`)).toMatchObject({ stdout: "" });
  });

  test("killed in the middle of a command: the span is closed with the cause, nothing is left, the next command runs", async () => {
    const marker = marked();
    const running = await StreamClient.open(broker, { cmd: `echo begun; : ${marker}; sleep 600` });
    await running.shows("begun\n");
    const span = await running.started();
    await agent.kill("SIGKILL");
    const lost = await running.ended();
    expect(lost).toMatchObject({ type: "exit", signal: "SIGKILL" });
    expect(running.err.toString()).toContain("the connection to its world agent was lost");
    expect(lost.fs_diff).toMatchObject({ truncated: true, summary: expect.stringContaining("not known") });
    expect(await broker.span(span)).toMatchObject({ event_type: "command_complete" });
    expect(await eventually(() => processesWith(marker).length === 0, 2000)).toBe(true);
    const refused = await broker.refused({ cmd: "touch never" });
    expect(refused).toMatchObject({ status: 503, code: "isolation_unavailable" });
    expect(refused.message).toContain(`No world agent answers on '${agent.socket}'`);
    expect(refused.hint).toContain("substrate agent");
    await agent.again();
    const next = await broker.run("echo again");
    expect(next.stdout).toBe("again\n");
    expect(next.world_id).not.toBe(lost.world_id);
    expect(existsSync(join(broker.project, "never"))).toBe(false);
  });

  test("a cut in the middle of an isolated command keeps its changes, which can be shown after the connection is back", async () => {
    const client = await StreamClient.open(broker, { cmd: "touch held; echo begun; sleep 600" });
    await client.shows("begun\n");
    await agent.kill("SIGKILL");
    const lost = await client.ended();
    expect(lost.fs_diff).toMatchObject({ held: true, summary: expect.stringContaining("not known yet") });
    for (const [method, path] of [
      ["GET", `/v1/diff/${lost.span_id}`],
      ["POST", `/v1/apply/${lost.span_id}`],
    ] as const)
      expect(await broker.operator(method, path, {})).toMatchObject({
        status: 503,
        document: {
          error: {
            code: "isolation_unavailable",
            message: expect.stringContaining(`No world agent answers on '${agent.socket}'`),
            hint: expect.stringContaining("substrate agent"),
          },
        },
      });
    await agent.again();
    const shown = await broker.operator("GET", `/v1/diff/${lost.span_id}`);
    expect(shown.document).toMatchObject({ changes: [{ path: "held", kind: "write" }] });
    const discarded = await broker.operator("POST", `/v1/discard/${lost.span_id}`, {});
    expect(discarded.document).toMatchObject({ done: ["held"] });
  });

  test("an agent that hangs loses its commands within half a minute, not never", async () => {
    const marker = marked();
    const running = broker.run(`: ${marker}; sleep 600`);
    expect(await eventually(() => processesWith(marker).length > 0, 10_000)).toBe(true);
    process.kill(agent.pid, "SIGSTOP");
    try {
      expect((await running).stderr).toContain("the other end is silent");
    } finally {
      process.kill(agent.pid, "SIGCONT");
    }
    expect(await eventually(() => processesWith(marker).length === 0, 5000)).toBe(true);
    expect(await broker.run("echo on")).toMatchObject({ stdout: "on\n" });
  });

  test("its worlds end with their broker, and another broker's stay", async () => {
    const other = await TestBroker.start(actor, {
      policies: { default: POLICY },
      environment: agent.environment,
    });
    try {
      const [ours, theirs] = [marked(), marked()];
      const keeps = broker.run(`: ${ours}; until [ -e over ]; do sleep 0.05; done; echo kept`);
      const cut = other.post({ cmd: `: ${theirs}; sleep 600` }).catch(() => "cut");
      for (const marker of [ours, theirs])
        expect(await eventually(() => processesWith(marker).length > 0, 10_000)).toBe(true);
      await other.kill("SIGKILL");
      expect(await cut).toBe("cut");
      expect(await eventually(() => processesWith(theirs).length === 0, 2000)).toBe(true);
      broker.write(join(broker.project, "over"), "");
      expect(await keeps).toMatchObject({ stdout: "kept\n", exit: 0 });
      // The agent counts a broker until its worlds' folders are removed too, which is after their last process.
      expect(await eventually(async () => (await health()).brokers === 1, 10_000)).toBe(true);
    } finally {
      rmSync(join(broker.project, "over"), { force: true });
      await other.stop();
    }
  });

  test("held changes of one broker are not another's to sweep, and go with the folder that stands for them", async () => {
    const { span_id: span } = await broker.run("touch held");
    const other = await TestBroker.start(actor, { environment: agent.environment });
    await other.run("true");
    await other.stop();
    expect((await broker.operator("GET", `/v1/diff/${span}`)).document).toMatchObject({
      changes: [{ path: "held" }],
    });
    await broker.kill("SIGTERM");
    broker = await broker.again();
    const applied = await broker.operator("POST", `/v1/apply/${span}`, {});
    expect(applied.document).toMatchObject({ done: ["held"] });
    rmSync(join(broker.project, "held"));
  });

  test("git settings are judged by the broker: harmless ones are written, those that run code are not", async () => {
    const settings = join(broker.project, ".git/config");
    broker.write(join(broker.project, ".git/HEAD"), "ref: refs/heads/main\n");
    broker.write(settings, "[core]\n\trepositoryformatversion = 0\n");
    mkdirSync(join(broker.project, ".git/hooks"), { recursive: true });
    broker.write(join(broker.project, ".git/refs/keep"), "");
    broker.write(join(broker.project, ".git/objects/keep"), "");
    await broker.operator("POST", "/v1/world/restart", { agent_id: "test", cwd: broker.project });
    const set = (name: string): Promise<{ exit: number; notices: unknown }> =>
      broker.run(`git config ${name} x 2>/dev/null`);
    expect(await set("user.name")).toMatchObject({ exit: 0, notices: [] });
    expect((await set("core.hooksPath")).exit).not.toBe(0);
    const { stdout } = await broker.run("git config --get user.name; git config --get core.hooksPath; true");
    expect(stdout).toBe("x\n");
    rmSync(join(broker.project, ".git"), { recursive: true });
  });

  test("SIGTERM: running commands finish, new worlds are refused, then it ends with 0", async () => {
    const client = await StreamClient.open(broker, { cmd: "echo begun; sleep 1; echo finished" });
    await client.shows("begun\n");
    const gone = agent.kill("SIGTERM");
    const refused = await broker.refused({ cmd: "true", agent_id: "late" });
    expect(refused).toMatchObject({ status: 503, code: "isolation_unavailable" });
    expect(await client.ended()).toMatchObject({ exit: 0 });
    expect(client.screen).toBe("begun\nfinished\n");
    expect(await gone).toBe(0);
    expect(existsSync(agent.socket)).toBe(false);
    await agent.again();
    expect(await broker.run("echo back")).toMatchObject({ stdout: "back\n" });
  });

  test("another protocol is refused with both numbers and what to do", async () => {
    const answer = await new Promise<{ status: number; text: string }>((resolve, reject) => {
      const asked = request({
        createConnection: () => connect(agent.socket),
        path: "/v1/connect",
        headers: {
          ...{ connection: "Upgrade", upgrade: "websocket", "sec-websocket-version": "13" },
          ...{ "sec-websocket-key": randomBytes(16).toString("base64"), "substrate-protocol": "0" },
          "substrate-version": "0.0.1",
        },
      });
      asked.on("response", (response) => {
        let text = "";
        response.on("data", (bytes: Buffer) => (text += bytes.toString()));
        response.on("end", () => resolve({ status: response.statusCode ?? 0, text }));
      });
      asked.on("error", reject);
      asked.end();
    });
    expect(answer.status).toBe(426);
    expect(answer.text).toMatch(/speaks protocol 1, and the broker \(substrate 0\.0\.1\) protocol 0/);
    expect(answer.text).toContain("Install the same version");
  });

  test("a second one with its home, and a broker in it, are refused", async () => {
    const home = { SUBSTRATE_HOME: join(agent.folder, "home") };
    const second = await broker.cli(["agent", "--socket", join(agent.folder, "second.sock")], { env: home });
    expect(second).toMatchObject({
      code: 125,
      stderr: expect.stringContaining("runs with this SUBSTRATE_HOME"),
    });
    expect(readdirSync(agent.folder)).not.toContain("second.sock");
  });
});

describe("the socket of a world agent", () => {
  const folder = join(tmpdir(), `sb-foreign-${process.pid}`);
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  test("without one named, a broker does not start, in words", async () => {
    const actor = { ...currentUser(), kind: "root" } as const;
    const broker = await TestBroker.start(actor);
    try {
      await broker.kill("SIGTERM");
      const { code, stderr } = await broker.cli(["broker", "start"], { env: { SUBSTRATE_BACKEND: "agent" } });
      expect(code).toBe(125);
      expect(stderr).toContain("SUBSTRATE_BACKEND=agent needs SUBSTRATE_AGENT_SOCKET");
    } finally {
      await broker.stop();
    }
  });

  test("of a server that is none, or of another user, it is not used, and nothing runs", async () => {
    if (currentUser().uid !== 0) skip("a socket of another user", "only root can give a file away");
    mkdirSync(folder, { mode: 0o755 });
    const path = join(folder, "a.sock");
    const server = createServer((_request, response) => response.writeHead(200).end("{}"));
    await new Promise<void>((resolve) => server.listen(path, resolve));
    const actor = actors().find(({ uid }) => uid !== 0) ?? actors()[0];
    if (actor === undefined) return;
    const broker = await TestBroker.start(actor, {
      environment: { SUBSTRATE_BACKEND: "agent", SUBSTRATE_AGENT_SOCKET: path },
    });
    try {
      const refused = await broker.refused({ cmd: "true" });
      expect(refused).toMatchObject({ status: 503, code: "isolation_unavailable" });
      expect(refused.message).toMatch(/is no world agent|No world agent answers/);
    } finally {
      await broker.stop();
      server.close();
    }
  });
});
