import { PassThrough } from "node:stream";
import type { IncomingMessage } from "node:http";
import { describe, expect, test } from "vitest";
import { isRefusal } from "../../../../broker/model/refusal.ts";
import { Room } from "../../../../api/http/bounds.ts";
import type { Caller } from "../../../../api/http/caller.ts";
import type { Context } from "../../../../api/http/context.ts";
import { agentBody, body, type Validator } from "../../../../api/http/valid-request.ts";
import type { ExecuteRequest, ReportRequest, WorldWarmRequest } from "../../../../schemas/generated/types.ts";
import {
  validateExecuteRequest,
  validateReportRequest,
  validateWorldWarmRequest,
} from "../../../../schemas/generated/validators.js";

const LABEL: Caller = { kind: "label", reserved: new Set() };

describe("a field of a request that is null", () => {
  test("is as absent as one that is not there, whichever optional field it is", async () => {
    const optional = [
      "argv cwd env pty stdin_b64 profile session_id parent_span scope_token timeout_ms background",
      "max_output_bytes budget approval_wait_ms expect_policy idempotency_key require_approval format shell",
    ];
    const nulls = Object.fromEntries(
      optional.flatMap((names) => names.split(" ")).map((name) => [name, null]),
    );
    expect(await executed({ agent_id: "a", cmd: "true", ...nulls })).toEqual({ agent_id: "a", cmd: "true" });
    expect(await executed({ agent_id: "a", argv: ["true"], cmd: null })).toEqual({
      agent_id: "a",
      argv: ["true"],
    });
  });

  test("does not stand for one that is required, nor for one that the call does not have", async () => {
    expect(await executed({ agent_id: null, cmd: "true" })).toMatchObject({ code: "agent_id_required" });
    expect(await executed({ agent_id: "a", cmd: null })).toMatchObject({
      code: "invalid_request",
      message: expect.stringContaining("exactly one of 'cmd' and 'argv'"),
    });
    for (const name of ["shel", "__proto__"]) {
      const text = `{"agent_id": "a", "cmd": "true", "cwd": null, "${name}": null}`;
      expect(await executed(text)).toMatchObject({ code: "invalid_request", path: name });
    }
    expect(await executed({ agent_id: "a", cmd: "true", cwd: null, timeout_ms: 0 })).toMatchObject({
      path: "timeout_ms",
    });
    expect(await executed({ agent_id: "a", cmd: "true", env: { A: null } })).toMatchObject({ path: "env.A" });
  });

  test("leaves an agent's name to its own socket", async () => {
    const caller: Caller = { kind: "agent", agent: "own" };
    expect(await executed({ agent_id: null, cmd: "true" }, caller)).toEqual({ agent_id: "own", cmd: "true" });
  });

  test("keeps its meaning where null is a value of its own", async () => {
    const ended = { agent_id: "a", span_id: "spn_1", exit: null, signal: 9 };
    const validate: Validator<ReportRequest> = validateReportRequest;
    const read = agentBody(validate);
    expect(await read(requestOf({ ...ended, profile: null }), as(LABEL))).toEqual({ valid: ended });
  });

  test("is absent in an operator's call too", async () => {
    const validate: Validator<WorldWarmRequest> = validateWorldWarmRequest;
    const read = body(validate);
    expect(await read(requestOf({ agent_id: null, profile: null }), as(LABEL))).toEqual({ valid: {} });
  });
});

/** The valid request, or its refusal. */
async function executed(document: object | string, caller: Caller = LABEL): Promise<unknown> {
  const validate: Validator<ExecuteRequest> = validateExecuteRequest;
  const read = await agentBody(validate)(requestOf(document), as(caller));
  return isRefusal(read) ? read : read.valid;
}

/** Reading a body asks the context for the caller, and for room. */
function as(caller: Caller): Context {
  return { caller, bodies: new Room() } as Context;
}

function requestOf(document: object | string): IncomingMessage {
  const text = typeof document === "string" ? document : JSON.stringify(document);
  const stream = new PassThrough();
  stream.end(text);
  return Object.assign(stream, {
    headers: { "content-length": String(Buffer.byteLength(text)) },
  }) as unknown as IncomingMessage;
}
