import { randomUUID } from "node:crypto";
import { readFileSync, renameSync, statSync, truncateSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { call } from "../../api/client/client.ts";
import type { ErrorReply } from "../../schemas/generated/types.ts";
import { validateBudgetReply, validateErrorReply, validateSpan } from "../../schemas/generated/validators.js";
import { Person } from "../support/broker/approvals.ts";
import { eventually } from "../support/broker/broker.ts";
import { begun, budgetOf, giving, stateOf, withBroker } from "../support/broker/budgets.ts";
import { actors } from "../support/users/users.ts";

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
    await withBroker(actor, giving("{ default: { max_runtime_ms: 2000 } }"), async (broker) => {
      expect(await broker.run("sleep 0.2")).toMatchObject({ timed_out: false });
      const cut = await broker.run("echo begun; sleep 60");
      expect(cut).toMatchObject({ timed_out: true, stdout: "begun\n" });
      expect(cut.stderr).toMatch(/^substrate: .*agent 'test' had used up 2000 milliseconds of run time/);
      expect(await broker.span(cut.span_id)).toMatchObject({
        outcome: "timed_out",
        violation: { kind: "limit", subject: "max_runtime_ms" },
      });
      const error = await broker.refused({ cmd: "true" });
      expect(error).toMatchObject({ status: 429, budget: { name: "max_runtime_ms", limit: 2000 } });
      expect(error.retry_after_ms).toBeGreaterThan(60_000);
      const state = await stateOf(broker, "test", "max_runtime_ms");
      expect(state.used).toBeGreaterThanOrEqual(2000);
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

const ASKING = 'commands: { ask: ["tee *"] }\n';

describe.each(actors())("budgets, keys and a person who is asked, as $kind", (actor) => {
  test("nobody is asked about a command that no budget reaches for, and a yes is not lost on it", async () => {
    await withBroker(actor, giving("{ default: { max_execs: 1 } }", ASKING), async (broker) => {
      const person = new Person(broker);
      await person.approve({ cmd: "tee once" }, "once");
      await broker.run("true");
      expect(await person.told({ cmd: "tee once" })).toMatchObject({ status: 429 });
      expect(await person.told({ cmd: "tee other" })).toMatchObject({ status: 429 });
      expect((await person.list()).approvals).toEqual([]);
      await broker.operator("DELETE", "/v1/budgets/test");
      expect(await person.told({ cmd: "tee once" })).toMatchObject({ status: 200 });
    });
  });

  test("what waits for a person is held, and given back when the answer is no", async () => {
    await withBroker(actor, giving("{ default: { max_execs: 1 } }", ASKING), async (broker) => {
      const person = new Person(broker);
      const waiting = person.told({ cmd: "tee held", approval_wait_ms: 30_000 });
      const { approval_id: id } = await person.waitedFor();
      expect(await stateOf(broker, "test", "max_execs")).toMatchObject({ used: 0, reserved: 1 });
      expect(await person.told({ cmd: "true" })).toMatchObject({ status: 429 });
      await person.answer(id, "deny");
      expect(await waiting).toMatchObject({ code: "approval_denied" });
      expect(await stateOf(broker, "test", "max_execs")).toMatchObject({ used: 0, reserved: 0 });
      expect(await person.told({ cmd: "true" })).toMatchObject({ status: 200 });
    });
  });

  test("calls with one key wait for one answer and are one run; a refused question keeps no key", async () => {
    await withBroker(actor, giving("{ default: { max_execs: 5 } }", ASKING), async (broker) => {
      const person = new Person(broker);
      const body = { cmd: "printf x | tee -a runs", idempotency_key: randomUUID() };
      expect(await person.told(body)).toMatchObject({ code: "approval_required" });
      const waiting = { ...body, approval_wait_ms: 30_000 };
      const calls = Array.from({ length: 4 }, () => person.told(waiting));
      const { approval_id: id } = await person.waitedFor();
      await person.answer(id, "once");
      for (const told of await Promise.all(calls)) expect(told).toMatchObject({ status: 200, stdout: "x" });
      expect(await person.told(waiting)).toMatchObject({ status: 200, stdout: "x" });
      expect(statSync(join(broker.project, "runs")).size).toBe(1);
      expect(await stateOf(broker, "test", "max_execs")).toMatchObject({ used: 1, reserved: 0 });
    });
  });
});

describe.each(actors())("budgets over time, as $kind", (actor) => {
  test.each(["SIGTERM", "SIGKILL"] as const)("what was used is still used after %s", async (signal) => {
    const budgets = "{ default: { max_execs: 8 }, shared: { max_execs: 100 } }";
    await withBroker(actor, giving(budgets), async (first, again) => {
      for (let number = 0; number < 3; number += 1) await first.run("true");
      await sleep(700);
      await first.run({ cmd: "true", budget: { max_execs: 6 } });
      await first.run("true");
      await first.kill(signal);
      const second = await again();
      expect(await stateOf(second, "test", "max_execs")).toMatchObject({ used: 5, limit: 6, lowered: true });
      expect(await stateOf(second, "+shared", "max_execs")).toMatchObject({ used: 5, limit: 100 });
      expect((await second.post({ cmd: "true" })).status).toBe(200);
      expect((await second.post({ cmd: "true" })).status).toBe(429);
    });
  });

  test.each([
    ["cut", (trace: string) => truncateSync(trace, Math.floor(statSync(trace).size / 2))],
    ["moved away", (trace: string) => renameSync(trace, `${trace}.old`)],
  ])("a trace that was %s gives no budget back and frees no key", async (_what, spoil) => {
    await withBroker(actor, giving("{ default: { max_execs: 4 } }"), async (first, again) => {
      const keyed = { cmd: "printf x >> ran", idempotency_key: "once" };
      const { span_id: span } = await first.run(keyed);
      for (let number = 0; number < 2; number += 1) await first.run("true");
      await first.kill("SIGTERM");
      spoil(join(first.home, "trace/trace.jsonl"));
      const second = await again();
      expect(await stateOf(second, "test", "max_execs")).toMatchObject({ used: 3 });
      expect(await second.run(keyed)).toMatchObject({ span_id: span });
      expect(readFileSync(join(second.project, "ran"), "utf8")).toBe("x");
      expect((await second.post({ cmd: "true" })).status).toBe(200);
      expect((await second.post({ cmd: "true" })).status).toBe(429);
      await second.kill("SIGKILL");
      const third = await again();
      expect(await stateOf(third, "test", "max_execs")).toMatchObject({ used: 4 });
      expect(await third.run(keyed)).toMatchObject({ span_id: span });
    });
  });

  test("a command that was lost with its broker counts, and with the most that it can have run", async () => {
    await withBroker(actor, giving("{ default: { max_runtime_ms: 100000 } }"), async (first, again) => {
      first.post({ cmd: "sleep 60", timeout_ms: 3000 }).catch(() => "broken off");
      expect(await eventually(() => begun(first) === 1, 5000)).toBe(true);
      await first.kill("SIGKILL");
      const second = await again();
      const { used, reserved } = await stateOf(second, "test", "max_runtime_ms");
      expect(used).toBeGreaterThan(0);
      expect(used).toBeLessThanOrEqual(3000);
      expect(reserved).toBe(0);
      expect(await stateOf(second, "test", "max_execs")).toMatchObject({ used: 1 });
    });
  });

  test("killed in the middle of a load, again and again, the broker counts what its trace says", async () => {
    const budgets =
      "{ default: { max_execs: 100000, max_runtime_ms: 86400000 }, shared: { max_execs: 100000 } }";
    await withBroker(actor, giving(budgets), async (first, again) => {
      let current = first;
      for (const wait of [120, 450, 700]) {
        const before = begun(current);
        let posting = true;
        const client = async (agent: string): Promise<void> => {
          while (posting) await current.post({ cmd: "true", agent_id: agent }).catch(() => undefined);
        };
        const clients = ["a", "a", "b", "b"].map(client);
        expect(await eventually(() => begun(current) > before, 20_000)).toBe(true);
        await sleep(wait);
        await current.kill("SIGKILL");
        posting = false;
        await Promise.all(clients);
        current = await again();
        const spans = current.spans();
        const ran = (agents: readonly string[]): number =>
          spans.filter((span) => span.event_type === "command_start" && agents.includes(span.agent_id ?? ""))
            .length;
        for (const agent of ["a", "b"])
          expect((await stateOf(current, agent, "max_execs")).used).toBe(ran([agent]));
        expect(ran(["a", "b"])).toBeGreaterThan(before);
        expect(await stateOf(current, "+shared", "max_execs")).toMatchObject({
          used: ran(["a", "b"]),
          reserved: 0,
        });
        const ms = spans
          .filter((span) => span.event_type === "command_complete" && span.agent_id === "a")
          .reduce((sum, span) => sum + (span.duration_ms ?? span.charged_ms ?? 0), 0);
        const { used } = await stateOf(current, "a", "max_runtime_ms");
        expect(Math.abs(used - ms)).toBeLessThan(1);
      }
    });
  });

  test("the operator sees and resets budgets, on record; nobody else does", async () => {
    const options = giving("{ default: { max_execs: 1 }, shared: { max_execs: 3 } }");
    await withBroker(actor, options, async (broker, again) => {
      await broker.run("true");
      for (const method of ["GET", "DELETE"])
        expect((await broker.call(method, "/v1/budgets/test")).status).toBe(404);
      expect((await broker.call("GET", "/v1/budgets")).status).toBe(404);
      expect((await broker.post({ cmd: "true" })).status).toBe(429);
      const refused = await broker.cli(["exec", "--agent", "test", "--", "true"]);
      expect(refused).toMatchObject({ code: 126, stdout: "" });
      expect(refused.stderr).toMatch(/Budget max_execs is used up: agent 'test' may use 1 commands until 20/);
      const shown = await broker.cli(["budget", "show", "test"]);
      expect(shown.stdout).toMatch(
        /Label test, limits of policy default\n  window of 24h, ends 20.*\n +commands +1 of 1\n +run time +[0-9.m]+s, no limit\n/,
      );
      expect(shown.stdout).toContain("All labels together");
      expect((await broker.cli(["budget", "show"])).stdout).toContain("Label test");
      const reset = await broker.cli(["budget", "reset", "test", "--json"]);
      expect(reset.code).toBe(0);
      expect(validateBudgetReply(JSON.parse(reset.stdout))).toBe(true);
      expect((await broker.post({ cmd: "true" })).status).toBe(200);
      expect(broker.spans().filter((span) => span.budget_reset === "test")).toHaveLength(1);
      await broker.kill("SIGKILL");
      const next = await again();
      expect(await stateOf(next, "test", "max_execs")).toMatchObject({ used: 1 });
      expect(await stateOf(next, "+shared", "max_execs")).toMatchObject({ used: 2 });
      for (const none of ["no agent", ""]) {
        const { code, stderr } = await next.cli(["budget", "show", none]);
        expect(code).toBe(125);
        expect(stderr).toContain(`Cannot look up the budget of '${none}'`);
      }
    });
  });

  test("a flood of refused calls leaves a bounded trace that counts every one of them", async () => {
    await withBroker(actor, giving("{ default: { max_execs: 0 } }"), async (broker) => {
      const FLOOD = 600;
      for (let sent = 0; sent < FLOOD; sent += 50)
        await Promise.all(Array.from({ length: 50 }, () => broker.post({ cmd: "true" })));
      await broker.kill("SIGTERM");
      const spans = broker.spans().filter((span) => span.event_type === "rate_limit");
      expect(spans.length).toBeGreaterThanOrEqual(256);
      expect(spans.length).toBeLessThan(FLOOD / 2);
      expect(spans.reduce((sum, span) => sum + 1 + (span.left_out ?? 0), 0)).toBe(FLOOD);
    });
  });
});
