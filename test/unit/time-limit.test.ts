import { describe, expect, test } from "vitest";
import { SLICE_MS } from "../../broker/budgets/budgets.ts";
import { timeLimitOf } from "../../broker/budgets/time-limit.ts";
import { parsePolicy } from "../../broker/policy/index.ts";
import { Day, HOUR } from "../budget-day.ts";

describe("how long a command may run", () => {
  const policy = (timeout: string) => {
    const loaded = parsePolicy(`id: p\nname: P\ncommands:\n  timeout: ${timeout}\n`, "p.yaml");
    if ("problems" in loaded) throw new Error(JSON.stringify(loaded.problems));
    return loaded.ok;
  };

  test.each([
    ["nothing is said", {}, [], 120_000, "default"],
    ["the call says it", { timeout_ms: 5 }, [], 5, "call"],
    ["the call wants no limit", { no_time_limit: true }, [], Number.POSITIVE_INFINITY, "nobody"],
    ["a policy says null", { no_time_limit: true }, ["null"], Number.POSITIVE_INFINITY, "nobody"],
    ["a policy says less than the default", {}, ["90s"], 90_000, "policy"],
    ["a policy says more than the default", {}, ["30m"], 120_000, "default"],
    ["a policy says more than the call", { timeout_ms: 5 }, ["500ms"], 5, "call"],
    ["a policy limits a call without limit", { no_time_limit: true }, ["2h"], 7_200_000, "policy"],
    ["two policies say different things", { no_time_limit: true }, ["2h", "30m"], 1_800_000, "policy"],
    ["a policy and the call say the same", { timeout_ms: 1000 }, ["1s"], 1000, "policy"],
    ["a policy says days", { no_time_limit: true }, ["40d"], 40 * 24 * HOUR, "policy"],
  ] as const)("when %s", (_what, request, timeouts, ms, by) => {
    expect(timeLimitOf(request, timeouts.map(policy))).toMatchObject({ ms, by });
  });

  test.each([
    ["500ms", "500 ms"],
    ["1500ms", "1500 ms"],
    ["1s", "1 s"],
    ["90s", "90 s"],
    ["2m", "2 min"],
    ["30m", "30 min"],
    ["24h", "24 h"],
  ])("%s is told as %s, with the policy's line", (text, words) => {
    const { ended } = timeLimitOf({ no_time_limit: true }, [policy(text)]);
    expect(ended).toBe(
      `The command was ended after ${words}: policy 'p' limits every command (commands.timeout: ${text}, p.yaml:4)`,
    );
  });
});

describe("run time of a command without a limit", () => {
  const allowances = [{ windowMs: 24 * HOUR, own: { max_runtime_ms: 2.5 * SLICE_MS }, shared: {} }];
  const unlimited = { allowances, timeoutMs: Number.POSITIVE_INFINITY };

  test("is held a slice at a time, until the budget has none left, which is named", () => {
    const day = new Day();
    expect(day.reserve({ span: "spn_1", ...unlimited })).toMatchObject({
      timeoutMs: SLICE_MS,
      cut: undefined,
    });
    expect(day.budgets.extend("spn_1")).toBe(SLICE_MS);
    expect(day.budgets.extend("spn_1")).toBe(SLICE_MS / 2);
    expect(day.budgets.extend("spn_1")).toMatchObject({
      spent: { name: "max_runtime_ms", limit: 2.5 * SLICE_MS },
    });
    expect(day.reserve({ span: "spn_2", ...unlimited })).toMatchObject({ kind: "short" });
    day.budgets.giveBack("spn_1");
    expect(day.reserve({ span: "spn_2", ...unlimited })).toMatchObject({ timeoutMs: SLICE_MS });
    expect(day.budgets.extend("spn_1")).toBe(0);
  });

  test("without a budget there is always another slice, and all of it is given back", () => {
    const day = new Day();
    day.reserve({ span: "spn_1", timeoutMs: Number.POSITIVE_INFINITY });
    for (let hour = 0; hour < 100; hour += 1) expect(day.budgets.extend("spn_1")).toBe(SLICE_MS);
    day.budgets.giveBack("spn_1");
    expect(day.budgets.ledger.account("ann").reserved.max_runtime_ms).toBe(0);
  });
});
