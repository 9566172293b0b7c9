import { randomUUID } from "node:crypto";
import { existsSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { ErrorReply, ExecuteReply } from "../../schemas/generated/types.ts";
import { actors } from "../support/users/users.ts";
import { Person } from "../support/broker/approvals.ts";
import { eventually, TestBroker } from "../support/broker/broker.ts";
import { withBroker } from "../support/broker/budgets.ts";

const POLICY = `id: default
name: Again
mode: enforce
commands:
  denied: ["touch forbidden"]
`;

type Call = Readonly<Record<string, unknown>>;

describe.each(actors())("a call that is made again, as $kind", (actor) => {
  let broker: TestBroker;
  beforeAll(async () => {
    broker = await TestBroker.start(actor, { policies: { default: POLICY } });
  });
  afterAll(() => broker.stop());

  /** A command that leaves one byte for each time it ran, under a key of its own. */
  function counted(more: Call = {}): { readonly body: Call; readonly times: (at?: TestBroker) => number } {
    const name = `runs-${randomUUID()}`;
    const body = { cmd: `printf x >> ${name}; date +%N`, idempotency_key: randomUUID(), ...more };
    const times = (at = broker): number => {
      const path = join(at.project, name);
      return existsSync(path) ? statSync(path).size : 0;
    };
    return { body, times };
  }

  test("runs once and gets the first reply, whatever the order of its fields", async () => {
    const { body, times } = counted();
    const first = await broker.run(body);
    const reversed = Object.fromEntries(Object.entries(body).reverse());
    for (const retry of [body, reversed]) expect(await broker.run(retry)).toEqual(first);
    expect(times()).toBe(1);
    const other = { ...body, idempotency_key: randomUUID() };
    expect((await broker.run(other)).span_id).not.toBe(first.span_id);
    expect(times()).toBe(2);
  });

  test("waits for the first while that runs, and 20 at once are one", async () => {
    const { body, times } = counted();
    const slow = { ...body, cmd: `${String(body["cmd"])}; sleep 0.5` };
    const replies = await Promise.all(Array.from({ length: 20 }, () => broker.run(slow)));
    expect(new Set(replies.map((reply) => reply.span_id)).size).toBe(1);
    expect(times()).toBe(1);
  });

  test.each([
    ["another command", { cmd: "true" }],
    ["another variable", { env: { A: "1" } }],
    ["another time-out", { timeout_ms: 5 }],
  ])("with %s under the same key is a conflict, and nothing runs", async (_what, change) => {
    const { body, times } = counted();
    const { span_id: span } = await broker.run(body);
    const error = await broker.refused({ ...body, ...change });
    expect(error).toMatchObject({ status: 409, code: "idempotency_conflict", span_id: span });
    expect(times()).toBe(1);
  });

  test("with another command while the first one runs is a conflict at once, and never gets the first one's output", async () => {
    const { body, times } = counted();
    const slow = { ...body, cmd: `${String(body["cmd"])}; sleep 2; echo of the first` };
    const first = broker.run(slow);
    expect(await eventually(() => times() === 1, 5000)).toBe(true);
    const error = await broker.refused({ ...slow, cmd: "echo of the second" });
    expect(error).toMatchObject({ status: 409, code: "idempotency_conflict" });
    expect(JSON.stringify(error)).not.toContain("of the first");
    expect(await broker.run(slow)).toEqual(await first);
    expect(times()).toBe(1);
  });

  test("a key is its agent's own", async () => {
    const { body, times } = counted();
    const first = await broker.run(body);
    const other = await broker.run({ ...body, agent_id: "other" });
    expect(other.span_id).not.toBe(first.span_id);
    expect(times()).toBe(2);
    expect(await broker.run({ ...body, agent_id: "other" })).toEqual(other);
  });

  test("what was refused is not kept: once it may run, it runs", async () => {
    const body = { idempotency_key: randomUUID(), cmd: "echo ran" };
    expect(await broker.refused({ ...body, cmd: "touch forbidden" })).toMatchObject({
      code: "policy_denied",
    });
    expect(await broker.refused({ ...body, budget: { max_execs: 0 }, agent_id: "poor" })).toMatchObject({
      status: 429,
    });
    await broker.operator("DELETE", "/v1/budgets/poor");
    expect(await broker.run(body)).toMatchObject({ stdout: "ran\n" });
    expect(await broker.run({ ...body, agent_id: "poor" })).toMatchObject({ stdout: "ran\n" });
  });

  test("a retry is not charged, and leaves no span", async () => {
    const { body } = counted({ agent_id: "thrifty", budget: { max_execs: 1 } });
    const first = await broker.run(body);
    expect(await broker.run(body)).toEqual(first);
    const spans = broker.spans().filter(({ agent_id }) => agent_id === "thrifty");
    expect(spans.filter(({ event_type }) => event_type !== "exec")).toHaveLength(2);
    expect(spans.filter(({ event_type }) => event_type === "exec")).toHaveLength(1);
  });

  test("a client that goes away ends its command, and the retry is told how it ended", async () => {
    const { body, times } = counted();
    const endless = { ...body, cmd: `${String(body["cmd"])}; sleep 600` };
    const leaving = new AbortController();
    const gone = broker.post(endless, leaving.signal).catch(() => "gone");
    expect(await eventually(() => times() === 1, 5000)).toBe(true);
    leaving.abort();
    expect(await gone).toBe("gone");
    expect(await broker.run(endless)).toMatchObject({ signal: "SIGTERM", timed_out: false });
    expect(times()).toBe(1);
  });

  test("a retry is known where its first run moved the session below another profile, also by a later broker", async () => {
    const other = POLICY.replace("id: default", "id: other").replace("mode:", "selectable: true\nmode:");
    await withBroker(actor, { policies: { default: POLICY, other } }, async (own, again) => {
      own.write(join(own.project, ".git/HEAD"), "ref: refs/heads/main\n");
      own.write(join(own.project, "sub/.substrate-profile"), "other\n");
      const call = (name: string, cwd = "sub"): Call => ({
        ...{ cmd: `printf x >> "$HOME_OF/${name}"; cd ${cwd}`, env: { HOME_OF: own.project } },
        ...{ session_key: "moves", idempotency_key: randomUUID() },
      });
      const size = (name: string): number => statSync(join(own.project, name)).size;
      const moving = call("moving");
      const first = await own.run(moving);
      expect(await own.run(moving)).toEqual(first);
      // Begins below the other profile, and leaves it.
      const leaving = call("leaving", "..");
      const second = await own.run(leaving);
      expect(second.policy_hash).not.toBe(first.policy_hash);
      expect(await own.run(leaving)).toEqual(second);
      await own.kill("SIGKILL");
      const later = await again();
      for (const one of [moving, leaving]) await later.post(one);
      expect([size("moving"), size("leaving")]).toEqual([1, 1]);
      // Its twin has a key of its own.
      await later.run({ ...moving, idempotency_key: randomUUID() });
      expect(size("moving")).toBe(2);
    });
  });

  test("a key stands in no span in clear", async () => {
    const key = `secret-${randomUUID()}`;
    await broker.run({ cmd: "true", idempotency_key: key });
    expect(readFileSync(join(broker.home, "trace/trace.jsonl"), "utf8")).not.toContain(key);
  });

  test("a changed policy frees the key; while the first runs under the old one, the retry is told so", async () => {
    const own = await TestBroker.start(actor, { policies: { default: POLICY } });
    try {
      const { body, times } = counted();
      const first = await own.run(body);
      const slow = { cmd: "sleep 2", idempotency_key: randomUUID() };
      const running = own.run(slow);
      expect(await eventually(() => own.spans().some((span) => span.cmd === "sleep 2"), 5000)).toBe(true);
      own.write(join(own.home, "policies/default.yaml"), POLICY.replace("forbidden", "elsewhere"));
      expect(await own.refused(slow)).toMatchObject({ status: 409, code: "policy_changed" });
      const again = await own.run(body);
      expect(again.policy_hash).not.toBe(first.policy_hash);
      expect(times(own)).toBe(2);
      expect(await own.run(body)).toEqual(again);
      await running;
    } finally {
      await own.stop();
    }
  });

  test("a retry that waited for a call that was refused is decided by the policy of that moment", async () => {
    const asking = POLICY.replace("denied:", 'ask: ["tee *"]\n  denied:');
    await withBroker(actor, { policies: { default: asking } }, async (own) => {
      const person = new Person(own);
      const call = { cmd: "echo x | tee late", idempotency_key: randomUUID(), approval_wait_ms: 20_000 };
      const first = own.post(call);
      const { approval_id: id } = await person.waitedFor();
      const second = own.post(call);
      await sleep(200);
      own.write(join(own.home, "policies/default.yaml"), asking.replace("touch forbidden", "tee *"));
      await person.answer(id, "deny");
      for (const answer of [await first, await second]) expect(answer.status).toBeGreaterThanOrEqual(400);
      expect(((await second).document as ErrorReply).error.code).toBe("policy_denied");
      expect(existsSync(join(own.project, "late"))).toBe(false);
    });
  });

  test.each(["SIGTERM", "SIGKILL"] as const)(
    "after %s of the broker the first reply is still there",
    async (signal) => {
      await withBroker(actor, { policies: { default: POLICY } }, async (first, again) => {
        const { body, times } = counted();
        const reply = await first.run(body);
        if (signal === "SIGKILL") await sleep(1500);
        await first.kill(signal);
        const second = await again();
        expect(await second.run(body)).toEqual(reply);
        expect(times(first)).toBe(1);
      });
    },
  );

  test("killed at any moment, the broker never runs a key twice: the retry gets the reply or the lost span", async () => {
    let current = await TestBroker.start(actor, { policies: { default: POLICY } });
    try {
      for (const wait of [0, 5, 20, 60, 150, 400, 900]) {
        const { body, times } = counted();
        const slow = { ...body, cmd: `${String(body["cmd"])}; sleep 0.05` };
        const answer = current.post(slow).catch(() => "broken off");
        if (wait > 0) await sleep(wait);
        await current.kill("SIGKILL");
        await answer;
        const before = times(current);
        const known = startedSpans(current).length;
        current = await current.again();
        const retry = await current.post(slow);
        const { error } = retry.document as ErrorReply;
        if (retry.status === 409) {
          expect(error.code).toBe("idempotency_conflict");
          expect((await current.span(error.span_id ?? "")).event_type).toBe("command_complete");
          expect(times(current)).toBe(before);
        } else {
          expect(retry.status).toBe(200);
          expect((retry.document as ExecuteReply).exit).toBe(0);
          expect(times(current)).toBe(1);
        }
        // One start for each key in all: a second one would be a second run.
        const starts = startedSpans(current);
        expect(new Set(starts).size).toBe(starts.length);
        expect(starts.length - known).toBe(before === 0 && retry.status === 200 ? 1 : 0);
      }
    } finally {
      await current.stop();
    }
  });
});

/** The keys of the commands that began. */
function startedSpans(broker: TestBroker): readonly (string | undefined)[] {
  return broker
    .spans()
    .filter((span) => span.event_type === "command_start")
    .map((span) => span.idempotency?.key);
}
