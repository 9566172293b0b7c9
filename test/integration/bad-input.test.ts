import { readFileSync } from "node:fs";
import { request } from "node:http";
import { connect } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { ErrorReply } from "../../schemas/generated/types.ts";
import { validateErrorReply } from "../../schemas/generated/validators.js";
import { actors } from "../support/users/users.ts";
import { eventually, TestBroker } from "../support/broker/broker.ts";

type Raw = {
  readonly status: number;
  readonly headers: NodeJS.Dict<string | string[]>;
  readonly document: ErrorReply;
};

describe.each(actors().slice(0, 1))("bad input, as $kind", (actor) => {
  let broker: TestBroker;
  beforeAll(async () => {
    broker = await TestBroker.start(actor);
  });
  afterAll(() => broker.stop());

  function raw(
    body: Buffer | string,
    path = "/v1/execute",
    method = "POST",
    more: Record<string, string> = {},
  ): Promise<Raw> {
    return new Promise((resolve, reject) => {
      const outgoing = request(
        {
          socketPath: join(broker.home, "sock/agent.sock"),
          path,
          method,
          headers: { "content-type": "text/plain", ...more },
        },
        (response) => {
          const parts: Buffer[] = [];
          response.on("data", (chunk: Buffer) => parts.push(chunk));
          response.on("end", () => {
            const document = JSON.parse(Buffer.concat(parts).toString("utf8")) as ErrorReply;
            resolve({ status: response.statusCode ?? 0, headers: response.headers, document });
          });
        },
      );
      outgoing.on("error", reject);
      outgoing.end(body);
    });
  }

  async function expectError(
    answer: Promise<Raw>,
    status: number,
    code: string,
    text: RegExp,
  ): Promise<void> {
    const { status: received, headers, document } = await answer;
    expect(validateErrorReply(document), JSON.stringify(document)).toBe(true);
    expect({ status: received, code: document.error.code }).toEqual({ status, code });
    expect(document.error.message).toMatch(text);
    expect(document.error.hint.length).toBeGreaterThan(10);
    expect(headers["x-request-id"]).toMatch(/^[0-9a-f-]{36}$/);
    expect(await broker.run("echo alive")).toMatchObject({ stdout: "alive\n" });
  }

  const good = (): Record<string, unknown> => ({ agent_id: "test", cmd: "true", cwd: broker.project });

  const bodies: readonly (readonly [string, (body: Record<string, unknown>) => unknown, string, RegExp])[] = [
    ["no agent_id", ({ agent_id: _gone, ...rest }) => rest, "agent_id_required", /agent_id/],
    ["an empty agent_id", (body) => ({ ...body, agent_id: "" }), "agent_id_required", /agent_id/],
    ["an agent_id with a slash", (body) => ({ ...body, agent_id: "../x" }), "invalid_request", /agent_id/],
    ["both cmd and argv", (body) => ({ ...body, argv: ["true"] }), "invalid_request", /cmd.*argv|argv.*cmd/],
    ["neither cmd nor argv", ({ cmd: _gone, ...rest }) => rest, "invalid_request", /cmd|argv/],
    ["a number as cmd", (body) => ({ ...body, cmd: 5 }), "invalid_request", /cmd/],
    ["an empty argv", ({ cmd: _gone, ...rest }) => ({ ...rest, argv: [] }), "invalid_request", /argv/],
    [
      "a number in argv",
      ({ cmd: _gone, ...rest }) => ({ ...rest, argv: ["echo", 1] }),
      "invalid_request",
      /argv/,
    ],
    ["a NUL in cmd", (body) => ({ ...body, cmd: "echo \0 x" }), "invalid_request", /cmd/],
    ["an unknown field", (body) => ({ ...body, comand: "x" }), "invalid_request", /comand/],
    ["an unknown field inside env", (body) => ({ ...body, env: { A: 1 } }), "invalid_request", /env/],
    ["an env name with =", (body) => ({ ...body, env: { "A=B": "1" } }), "invalid_request", /env/],
    ["pty", (body) => ({ ...body, pty: true }), "invalid_request", /pty/],
    ["a timeout of 0", (body) => ({ ...body, timeout_ms: 0 }), "invalid_request", /timeout_ms/],
    ["a fractional timeout", (body) => ({ ...body, timeout_ms: 1.5 }), "invalid_request", /timeout_ms/],
    [
      "too much output wanted",
      (body) => ({ ...body, max_output_bytes: 17 * 1024 * 1024 }),
      "invalid_request",
      /max_output_bytes/,
    ],
    [
      "a background that there is not",
      (body) => ({ ...body, background: "maybe" }),
      "invalid_request",
      /background/,
    ],
    ["stdin that is not base64", (body) => ({ ...body, stdin_b64: "%%%" }), "invalid_request", /stdin_b64/],
    ["an unknown profile", (body) => ({ ...body, profile: "nowhere" }), "unknown_profile", /nowhere/],
    [
      "a profile that is a path",
      (body) => ({ ...body, profile: "../../etc/passwd" }),
      "unknown_profile",
      /passwd/,
    ],
    [
      "a policy that is not selectable",
      (body) => ({ ...body, profile: "default" }),
      "unknown_profile",
      /selectable/,
    ],
    ["an unknown session", (body) => ({ ...body, session_id: "ses_nope" }), "not_found", /ses_nope/],
    ["a relative cwd", (body) => ({ ...body, cwd: "project" }), "invalid_request", /cwd/],
    [
      "a cwd that does not exist",
      (body) => ({ ...body, cwd: "/no/such/folder" }),
      "invalid_request",
      /does not exist/,
    ],
    ["a cwd that is a file", (body) => ({ ...body, cwd: "/etc/passwd" }), "invalid_request", /file/],
    [
      "a command longer than the kernel takes",
      (body) => ({ ...body, cmd: `true ${"x".repeat(200_000)}` }),
      "invalid_request",
      /131071/,
    ],
    ["an array", () => [], "invalid_request", /object/],
    ["null", () => null, "invalid_request", /object/],
  ];
  test.each(bodies)(
    "%s is refused with its reason, and the broker goes on",
    async (_name, change, code, text) => {
      await expectError(raw(JSON.stringify(change(good()))), code === "not_found" ? 404 : 400, code, text);
    },
  );

  test.each(["/", "home", "/etc", "/usr", "/proc/self", "/sys"])(
    "'%s' as cwd can never be a project",
    async (cwd) => {
      await expectError(
        raw(JSON.stringify({ ...good(), cwd: cwd === "home" ? actor.home : cwd })),
        403,
        "project_not_allowed",
        /Cannot work in/,
      );
    },
  );

  test("SUBSTRATE_HOME and what contains it can never be a project", async () => {
    for (const cwd of [broker.home, join(broker.home, "sock"), broker.folder]) {
      await expectError(
        raw(JSON.stringify({ ...good(), cwd })),
        403,
        "project_not_allowed",
        /SUBSTRATE_HOME/,
      );
    }
  });

  test("broken JSON, no body and text that is not UTF-8 are refused", async () => {
    await expectError(raw('{"agent_id": "test", '), 400, "invalid_request", /JSON/);
    await expectError(raw(""), 400, "invalid_request", /empty/);
    await expectError(
      raw(Buffer.from([0x7b, 0x22, 0xff, 0xfe, 0x22, 0x7d])),
      400,
      "invalid_request",
      /UTF-8/,
    );
  });

  test("11 MiB are too much, and the answer arrives", async () => {
    const body = JSON.stringify({ ...good(), stdin_b64: "A".repeat(11 * 1024 * 1024) });
    await expectError(raw(body), 413, "too_large", /bytes/);
    // The broker closes such a connection itself, and not while the client still writes.
    const length = { connection: "close", "content-length": String(Buffer.byteLength(body)) };
    for (let time = 0; time < 5; time += 1)
      await expectError(raw(body, "/v1/check", "POST", length), 413, "too_large", /bytes/);
  });

  test("null counts as absent, in a budget too; an unknown field with null stays unknown", async () => {
    const none = { max_execs: null, max_runtime_ms: null, max_egress_bytes: null };
    const sent = (budget: unknown) => raw(JSON.stringify({ ...good(), profile: null, budget }));
    expect((await sent(none)).status).toBe(200);
    await expectError(sent({ ...none, max_x: null }), 400, "invalid_request", /max_x/);
    await expectError(sent({ max_execs: "1", max_runtime_ms: null }), 400, "invalid_request", /max_execs/);
  });

  test.each([[{}], [{ expect: "100-continue" }]])(
    "a length over the limit is refused before a byte of it came, with %j",
    async (more) => {
      const answered = new Promise<{ status: number; continued: boolean }>((resolve, reject) => {
        let continued = false;
        const outgoing = request({
          socketPath: join(broker.home, "sock/agent.sock"),
          path: "/v1/execute",
          method: "POST",
          headers: { "content-length": 11 * 1024 * 1024, ...more },
        });
        outgoing.on("continue", () => {
          continued = true;
        });
        outgoing.on("error", reject);
        outgoing.on("response", ({ statusCode = 0 }) => {
          resolve({ status: statusCode, continued });
          outgoing.off("error", reject).on("error", () => {});
          outgoing.destroy();
        });
        outgoing.flushHeaders();
      });
      expect(await answered).toEqual({ status: 413, continued: false });
      expect(await broker.run("echo alive")).toMatchObject({ stdout: "alive\n" });
    },
  );

  test("the error names the field that is wrong", async () => {
    const pathOf = async (body: object): Promise<string | undefined> =>
      (await raw(JSON.stringify({ agent_id: "test", cwd: broker.project, ...body }))).document.error.path;
    expect(await pathOf({ cmd: "true", timeout_ms: 0 })).toBe("timeout_ms");
    expect(await pathOf({ cmd: "true", env: { A: 1 } })).toBe("env.A");
    expect(await pathOf({ argv: ["a", 2] })).toBe("argv[1]");
    expect(await pathOf({ cmd: "true", pty: true })).toBe("pty");
    expect(await pathOf({ cmd: "true", agent_id: "" })).toBe("agent_id");
  });

  test.each(["/v1/policy/reload", "/v1/approvals/apr_none/preview"])(
    "a field for %s, which takes none, is refused by its name, and no body is a good one",
    async (path) => {
      expect(await broker.operator("POST", path, { policy: "x" })).toMatchObject({
        status: 400,
        document: { error: { code: "invalid_request", message: expect.stringContaining("'policy'") } },
      });
      for (const body of [undefined, {}])
        expect((await broker.operator("POST", path, body)).status).not.toBe(400);
    },
  );

  test("a path that there is not names those there are", async () => {
    await expectError(raw("", "/v1/nothing", "GET"), 404, "not_found", /nothing/);
    await expectError(raw("", "/v1/execute", "GET"), 404, "not_found", /GET/);
    await expectError(raw("", "/v1/trace/spn_nope", "GET"), 404, "not_found", /spn_nope/);
    const { hint } = (await raw("", "/v1/nothing", "GET")).document.error;
    const named = hint.replace("This socket answers ", "").split(", ");
    expect(named).toEqual(
      expect.arrayContaining(["POST /v1/execute", "POST /v1/check", "POST /v1/report", "GET /v1/spans"]),
    );
    expect(named).not.toContain("GET /v1/approvals");
  });

  test.each(["limit=0", "limit=x", "limit=1001", "cursor=x", "since=yesterday", "what=1", "limit=1&limit=2"])(
    "spans?%s is refused",
    async (query) => {
      await expectError(raw("", `/v1/spans?${query}`, "GET"), 400, "invalid_request", /received/);
    },
  );

  test("bytes that are no HTTP end the connection and nothing else", async () => {
    const socket = connect(join(broker.home, "sock/agent.sock"));
    const closed = new Promise((resolve) => socket.once("close", resolve));
    socket.on("error", () => undefined);
    socket.end("\0\x01\x02 not http at all\r\n\r\n");
    socket.resume();
    await closed;
    expect(await broker.run("echo alive")).toMatchObject({ stdout: "alive\n" });
  });

  test.each(["/v1/execute", "/v1/check", "/v1/report", "/v1/request_scopes"])(
    "a client that leaves in the middle of its body to %s is no bug, and the log says what it is",
    async (path) => {
      const lines = (word: string): readonly string[] =>
        readFileSync(join(broker.home, "log/broker.log"), "utf8")
          .split("\n")
          .filter((line) => line.includes(word));
      const before = lines("disconnected before").length;
      const socket = connect(join(broker.home, "sock/agent.sock"));
      socket.write(`POST ${path} HTTP/1.1\r\nhost: x\r\ncontent-length: 1000\r\n\r\n{"agent_id": "te`);
      await new Promise((resolve) => setTimeout(resolve, 200));
      socket.destroy();
      expect(await eventually(() => lines("disconnected before").length > before, 5000)).toBe(true);
      expect(lines("because of a bug")).toEqual([]);
      expect(await broker.run("echo alive")).toMatchObject({ stdout: "alive\n" });
    },
  );

  test("the content type does not matter, and a good body is good", async () => {
    const answer = await raw(JSON.stringify(good()));
    expect(answer.status).toBe(200);
  });
});
