import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { open, type RootDatabase } from "lmdb";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { callIdentity } from "../../../../broker/idempotency/call-identity.ts";
import { Idempotency } from "../../../../broker/idempotency/idempotency.ts";
import type { Outcome } from "../../../../broker/model/outcome.ts";
import { refusal } from "../../../../broker/model/refusal.ts";
import { eventSpan } from "../../../../broker/spans/event-span.ts";
import type { SpanRecord } from "../../../../broker/spans/trace.ts";
import type { ExecuteReply, ExecuteRequest } from "../../../../schemas/generated/types.ts";

const DAY = 86_400_000;

let now = Date.parse("2026-01-01T00:00:00.000Z");
let runs = 0;
let folder: string;
let database: RootDatabase;

beforeEach(() => {
  runs = 0;
  folder = mkdtempSync(join(tmpdir(), "substrate-keys-"));
  database = open({ path: folder, maxDbs: 8, overlappingSync: false });
});

afterEach(async () => {
  await database.close();
  rmSync(folder, { recursive: true, force: true });
});

function identityOf(key: string, request: Partial<ExecuteRequest> = { cmd: "true" }, cwd = "/work") {
  const identity = callIdentity("ann", { agent_id: "ann", idempotency_key: key, ...request }, cwd);
  if (identity === undefined) throw new Error("Expected an identity of a call with a key");
  return identity;
}

/** Makes one call as the broker does: its lines, then its outcome. */
async function ask(
  calls: Idempotency,
  key: string,
  { policy = "p1", output = "", agent = "ann", body = "true" } = {},
): Promise<Outcome> {
  const identity = identityOf(key, { cmd: body });
  const outcome = await calls.once({ identity, agent, policy }, async () => {
    runs += 1;
    const span = `spn_${runs}`;
    const facts = { span_id: span, agent_id: agent, idempotency: identity, policy_hash: policy };
    write(calls, { event_type: "command_start", ...facts });
    await Promise.resolve();
    write(calls, { event_type: "command_complete", outcome: "ended", ...facts });
    return { kind: "ran", reply: { span_id: span, stdout_b64: output } as ExecuteReply };
  });
  return outcome ?? (await ask(calls, key, { policy, output, agent, body }));
}

function write(calls: Idempotency, facts: Pick<SpanRecord, "event_type"> & Partial<SpanRecord>): void {
  calls.note(eventSpan({ ts: new Date(now).toISOString(), ...facts }));
}

async function flush(calls: Idempotency): Promise<void> {
  const changes = calls.changes();
  await Promise.all(changes.write());
  changes.committed();
}

function opened(): Idempotency {
  const bounds = { all: 128 * 1024, one: 32 * 1024, waiting: 64 * 1024 };
  const calls = new Idempotency(ownerOf, () => now, bounds);
  calls.open(database);
  return calls;
}

function ownerOf(agent: string): string {
  return agent === "named" ? agent : "+shared";
}

describe("the identity of a call", () => {
  const values = fc.record({
    cmd: fc.string(),
    env: fc.dictionary(fc.string(), fc.string()),
    timeout_ms: fc.nat(),
  });

  test("is the same in whatever order its fields came", () => {
    fc.assert(
      fc.property(values, (request) => {
        const { cmd, env, timeout_ms } = request;
        const turned = Object.fromEntries(Object.entries(env).reverse());
        expect(identityOf("k", { timeout_ms, env: turned, cmd })).toEqual(identityOf("k", request));
      }),
    );
  });

  test("is another one when anything differs", () => {
    fc.assert(
      fc.property(values, values, (one, other) => {
        const isSame = JSON.stringify(sortedEnv(one)) === JSON.stringify(sortedEnv(other));
        expect(identityOf("k", one).body === identityOf("k", other).body).toBe(isSame);
      }),
    );
    expect(identityOf("k", {}, "/work").body).not.toBe(identityOf("k", {}, "/work2").body);
    expect(identityOf("k").key).not.toBe(identityOf("l").key);
    expect(callIdentity("ann", { agent_id: "ann", cmd: "true" }, "/work")).toBeUndefined();
  });
});

describe("keys", () => {
  test("are known for a day, and then free", async () => {
    const calls = opened();
    await ask(calls, "k");
    now += DAY - 1;
    await ask(calls, "k");
    expect(runs).toBe(1);
    now += 1;
    await ask(calls, "k");
    expect(runs).toBe(2);
  });

  test("are known after a restart with what they were answered; free ones are not", async () => {
    const calls = opened();
    const first = await ask(calls, "k", { output: "x" });
    await ask(calls, "old");
    await flush(calls);
    await ask(calls, "old", { policy: "p2" });
    await flush(calls);
    const again = opened();
    expect(await ask(again, "k")).toEqual(first);
    expect(runs).toBe(3);
    expect(await ask(again, "old", { policy: "p2" })).toMatchObject({ reply: { span_id: "spn_3" } });
    expect(runs).toBe(3);
  });

  test("whose end or reply is not known run nothing, and name the span", async () => {
    const calls = opened();
    const identity = identityOf("k");
    const facts = { span_id: "spn_9", agent_id: "ann", idempotency: identity, policy_hash: "p1" };
    write(calls, { event_type: "command_start", ...facts });
    for (const outcome of ["lost", "ended"] as const) {
      write(calls, { event_type: "command_complete", ...facts, outcome });
      expect(await ask(calls, "k")).toMatchObject({
        error: { code: "idempotency_conflict", span_id: "spn_9" },
      });
    }
    expect(runs).toBe(0);
  });

  test("of a command that the kernel refused are free again", async () => {
    const calls = opened();
    const facts = { span_id: "spn_9", agent_id: "ann", idempotency: identityOf("k"), policy_hash: "p1" };
    write(calls, { event_type: "command_start", ...facts });
    write(calls, { event_type: "command_complete", ...facts, outcome: "failed", code: "invalid_request" });
    expect((await ask(calls, "k")).kind).toBe("ran");
  });

  test("wait for a call that is refused one after the other, until one runs", async () => {
    const calls = opened();
    const call = { identity: identityOf("k"), agent: "ann", policy: "p1" };
    const error = refusal("busy", "No", "Wait");
    const refusing = calls.once(call, async () => {
      await Promise.resolve();
      return { kind: "refused", error };
    });
    const [first, ...others] = await Promise.all([
      refusing,
      ask(calls, "k"),
      ask(calls, "k"),
      ask(calls, "k"),
    ]);
    expect(first).toEqual({ kind: "refused", error });
    expect(others.map(({ kind }) => kind)).toEqual(["ran", "ran", "ran"]);
    expect(runs).toBe(1);
  });

  test("beyond the limit are refused, for labels together and not for an agent with a socket", async () => {
    const calls = opened();
    for (let number = 0; number < 50_000; number += 1) {
      const identity = { key: String(number), body: "b" };
      write(calls, {
        event_type: "command_start",
        span_id: "spn_0",
        agent_id: `a${number}`,
        idempotency: identity,
      });
    }
    expect(await ask(calls, "one more")).toMatchObject({ error: { code: "busy" } });
    expect(await ask(calls, "of its own", { agent: "named" })).toMatchObject({ kind: "ran" });
    now += DAY;
    expect(await ask(calls, "one more")).toMatchObject({ kind: "ran" });
  });
});

test("replies have a bound: the oldest go, their keys stay, and a huge one is not kept", async () => {
  const calls = opened();
  const MANY = 31 * 1024;
  for (const key of ["a", "b", "c", "d", "e"]) {
    await ask(calls, key, { output: "x".repeat(MANY) });
    await flush(calls);
  }
  expect(await ask(calls, "a")).toMatchObject({ error: { code: "idempotency_conflict", span_id: "spn_1" } });
  expect(await ask(calls, "e")).toMatchObject({ kind: "ran", reply: { span_id: "spn_5" } });
  await ask(calls, "huge", { output: "x".repeat(33 * 1024) });
  expect(await ask(calls, "huge")).toMatchObject({ error: { code: "idempotency_conflict" } });
  expect(await ask(opened(), "e")).toMatchObject({ kind: "ran", reply: { span_id: "spn_5" } });
  expect(runs).toBe(6);
});

function sortedEnv({
  cmd,
  env,
  timeout_ms,
}: {
  cmd: string;
  env: Record<string, string>;
  timeout_ms: number;
}): unknown {
  return [cmd, Object.entries(env).sort(([one], [other]) => (one < other ? -1 : 1)), timeout_ms];
}
