import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { call } from "../../api/client/client.ts";
import type { ErrorReply } from "../../schemas/generated/types.ts";
import { validateErrorReply, validateSpan } from "../../schemas/generated/validators.js";
import { actors } from "../actors.ts";
import { eventually } from "../broker.ts";
import { begun, budgetOf, giving, stateOf, withBroker } from "../budgets.ts";

describe.each(actors())("budgets, as $kind", (actor) => {
  test("32 parallel requests against max_execs: 10 run exactly 10", async () => {
    await withBroker(actor, giving("{ default: { max_execs: 10 } }"), async (broker) => {
      const answers = await Promise.all(
        Array.from({ length: 32 }, (_unused, number) => broker.post({ cmd: `echo x > ran-${number}` })),
      );
      expect(answers.filter(({ status }) => status === 200)).toHaveLength(10);
      const refused = answers.filter(({ status }) => status === 429);
      expect(refused).toHaveLength(22);
      for (const { document } of refused) {
        expect(validateErrorReply(document)).toBe(true);
        const { error } = document as ErrorReply;
        expect(error).toMatchObject({
          code: "budget_exceeded",
          policy_id: "default",
          budget: { name: "max_execs", limit: 10, used: 10, shared: false },
        });
      }
      expect(begun(broker)).toBe(10);
      expect((await broker.run({ cmd: "ls | wc -l", agent_id: "other" })).stdout.trim()).toBe("10");
      const limited = broker.spans().filter((span) => span.event_type === "rate_limit");
      expect(limited).toHaveLength(22);
      for (const span of limited) expect(validateSpan(span), JSON.stringify(validateSpan.errors)).toBe(true);
    });
  });

  test("what is denied or refused costs nothing, and neither does a check", async () => {
    const denying =
      'commands: { denied: ["sudo *"] }\nfs: { read: ["/usr/**", "/bin/**", "/lib/**", "/lib64/**"] }\n';
    await withBroker(actor, giving("{ default: { max_execs: 1 } }", denying), async (broker) => {
      expect(await broker.refused({ cmd: "sudo id" })).toMatchObject({ code: "policy_denied" });
      expect(await broker.refused({ cmd: "true", session_id: "ses_none" })).toMatchObject({ status: 404 });
      expect(
        await broker.refused({ argv: ["true"], env: { BIG: "x".repeat(131_000), ...bigEnvironment() } }),
      ).toMatchObject({
        status: 400,
      });
      await broker.call("POST", "/v1/check", { agent_id: "test", cmd: "true", cwd: broker.project });
      expect(await stateOf(broker, "test", "max_execs")).toMatchObject({ used: 0, reserved: 0 });
      expect(await broker.run("exit 3")).toMatchObject({ exit: 3 });
      expect(await broker.refused({ cmd: "true" })).toMatchObject({ status: 429 });
      expect(await stateOf(broker, "test", "max_execs")).toMatchObject({ used: 1, reserved: 0, limit: 1 });
    });
  });

  test("run time is what commands took; one that would pass the budget is ended at it and says so", async () => {
    await withBroker(actor, giving("{ default: { max_runtime_ms: 700 } }"), async (broker) => {
      expect(await broker.run("sleep 0.2")).toMatchObject({ timed_out: false });
      const cut = await broker.run("echo begun; sleep 60");
      expect(cut).toMatchObject({ timed_out: true, stdout: "begun\n" });
      expect(cut.stderr).toMatch(/^substrate: .*agent 'test' had used up 700 milliseconds of run time/);
      expect(await broker.span(cut.span_id)).toMatchObject({
        outcome: "timed_out",
        violation: { kind: "limit", subject: "max_runtime_ms" },
      });
      const error = await broker.refused({ cmd: "true" });
      expect(error).toMatchObject({ status: 429, budget: { name: "max_runtime_ms", limit: 700 } });
      expect(error.retry_after_ms).toBeGreaterThan(60_000);
      const state = await stateOf(broker, "test", "max_runtime_ms");
      expect(state.used).toBeGreaterThanOrEqual(700);
      expect(state.reserved).toBe(0);
    });
  });

  test("a time-out of the caller's own is not blamed on a budget", async () => {
    await withBroker(actor, giving("{ default: { max_runtime_ms: 60000 } }"), async (broker) => {
      const reply = await broker.run({ cmd: "sleep 60", timeout_ms: 200 });
      expect(reply).toMatchObject({ timed_out: true, stderr: "" });
    });
  });

  test("run time that a running command holds is not had twice, and comes back when it ends", async () => {
    await withBroker(actor, giving("{ default: { max_runtime_ms: 5000 } }"), async (broker) => {
      const long = broker.run({ cmd: "sleep 1", timeout_ms: 5000 });
      expect(await eventually(() => begun(broker) === 1, 5000)).toBe(true);
      expect(await broker.refused({ cmd: "true" })).toMatchObject({
        status: 429,
        retry_after_ms: 1000,
        budget: { used: 5000 },
      });
      await long;
      expect(await broker.run("true")).toMatchObject({ exit: 0 });
    });
  });

  test("a new label is no new budget, and an agent with a socket of its own has its own", async () => {
    const options = {
      ...giving("{ default: { max_execs: 3 }, shared: { max_execs: 5 } }"),
      config: "agents: { own: {} }\n",
    };
    await withBroker(actor, options, async (broker) => {
      const answers: number[] = [];
      for (let number = 0; number < 8; number += 1)
        answers.push((await broker.post({ cmd: "true", agent_id: `label-${number}` })).status);
      expect(answers).toEqual([200, 200, 200, 200, 200, 429, 429, 429]);
      const error = await broker.refused({ cmd: "true", agent_id: "constructor" });
      expect(error).toMatchObject({ budget: { shared: true, limit: 5, used: 5 } });
      expect(error.hint).toContain("another agent_id has the same budget");
      const socket = join(broker.home, "sock/agents/own.sock");
      const own = async () =>
        (await call(socket, "POST", "/v1/execute", { cmd: "true", cwd: broker.project })).status;
      expect([await own(), await own(), await own(), await own()]).toEqual([200, 200, 200, 429]);
      expect((await budgetOf(broker, "own")).shared).toBeNull();
      expect((await budgetOf(broker, "label-0")).shared?.windows[0]?.budgets[0]).toMatchObject({
        used: 5,
        limit: 5,
      });
      expect(await stateOf(broker, "+shared", "max_execs")).toMatchObject({ used: 5, limit: 5 });
    });
  });

  test("a call may name less than the policy gives: the least that was named binds, more does not lift it", async () => {
    await withBroker(actor, giving("{ default: { max_execs: 5 } }"), async (broker) => {
      const ask = (max_execs: number) => broker.post({ cmd: "true", budget: { max_execs } });
      expect((await ask(2)).status).toBe(200);
      expect((await ask(100)).status).toBe(200);
      expect((await ask(100)).status).toBe(429);
      expect((await broker.post({ cmd: "true" })).status).toBe(429);
      expect(await stateOf(broker, "test", "max_execs")).toMatchObject({ limit: 2, used: 2, lowered: true });
      expect(await broker.run({ cmd: "true", agent_id: "unbound" })).toMatchObject({ exit: 0 });
    });
  });

  test("budgets hold in observe mode too, with what a call names alone", async () => {
    await withBroker(actor, {}, async (broker) => {
      expect((await broker.post({ cmd: "true", budget: { max_execs: 1 } })).status).toBe(200);
      expect(await broker.refused({ cmd: "true" })).toMatchObject({ status: 429, budget: { limit: 1 } });
      expect(await broker.refused({ cmd: "true", agent_id: "none", budget: { max_execs: 0 } })).toMatchObject(
        { status: 429 },
      );
    });
  });

  test("of an assigned policy and one that narrows it, the lower limits hold, each in its window", async () => {
    const policies = {
      ...giving("{ default: { max_execs: 4 } }").policies,
      narrow: "id: narrow\nname: n\nselectable: true\nbudgets: { window: 1h, default: { max_execs: 2 } }\n",
    };
    await withBroker(actor, { policies }, async (broker) => {
      const statuses = async (profile?: string) =>
        (await broker.post({ cmd: "true", ...(profile === undefined ? {} : { profile }) })).status;
      expect([await statuses("narrow"), await statuses("narrow"), await statuses("narrow")]).toEqual([
        200, 200, 429,
      ]);
      expect([await statuses(), await statuses(), await statuses()]).toEqual([200, 200, 429]);
    });
  });

  test("a window ends after its length, and then everything may be used again", async () => {
    await withBroker(actor, giving("{ window: 2s, default: { max_execs: 1 } }"), async (broker) => {
      expect((await broker.post({ cmd: "true", budget: { max_execs: 1 } })).status).toBe(200);
      const error = await broker.refused({ cmd: "true" });
      expect(error.retry_after_ms).toBeLessThanOrEqual(2000);
      expect(Date.parse(error.budget?.resets_at ?? "")).toBeGreaterThan(0);
      await sleep((error.retry_after_ms ?? 0) + 50);
      expect((await broker.post({ cmd: "true" })).status).toBe(200);
    });
  });
});

/** More than the kernel takes beside an argv: 2 MiB is the most of all together. */
function bigEnvironment(): Record<string, string> {
  return Object.fromEntries(
    Array.from({ length: 30 }, (_unused, number) => [`BIG_${number}`, "x".repeat(130_000)]),
  );
}
