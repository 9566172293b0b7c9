import { readFileSync, renameSync, statSync, truncateSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { validateBudgetReply } from "../../schemas/generated/validators.js";
import { actors } from "../support/users/users.ts";
import { eventually } from "../support/broker/broker.ts";
import { begun, giving, stateOf, withBroker } from "../support/broker/budgets.ts";

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
