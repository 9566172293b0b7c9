import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { SLICE_MS } from "../../../../broker/budgets/budgets.ts";
import { Ledger } from "../../../../broker/budgets/ledger.ts";
import { timeLimitOf } from "../../../../broker/budgets/time-limit.ts";
import { parsePolicy } from "../../../../broker/policy/index.ts";
import { Day, HOUR, NAMED, byLength, giving, isLabel } from "../../../support/broker/budget-day.ts";

describe("interleavings", () => {
  const step = fc.record({
    what: fc.constantFrom("reserve", "start", "end", "give back", "fail", "wait"),
    agent: fc.constantFrom("ann", "bob", NAMED),
    which: fc.nat(20),
    ms: fc.nat(1500),
  });

  test("never use or hold more than a limit within one window, and end with nothing held", () => {
    fc.assert(
      fc.property(
        fc.array(step, { maxLength: 120 }),
        fc.nat(6),
        fc.nat(8),
        fc.nat(4000),
        (steps, own, shared, runtime) => {
          const day = new Day();
          const allowances = [
            giving({ max_execs: own, max_runtime_ms: runtime }, { max_execs: shared }, 5000),
          ];
          const open: { span: string; agent: string; timeoutMs: number; startedAt?: number }[] = [];
          let windowOf: Record<string, { begunAt: number; execs: number; ms: number }> = {};
          const count = (name: string, execs: number, ms: number): void => {
            const known = windowOf[name];
            const live =
              known !== undefined && day.now < known.begunAt + 5000
                ? known
                : { begunAt: day.now, execs: 0, ms: 0 };
            windowOf = { ...windowOf, [name]: { ...live, execs: live.execs + execs, ms: live.ms + ms } };
          };
          const accountsOf = (agent: string): string[] => (agent === NAMED ? [agent] : [agent, "all"]);
          for (const [number, { what, agent, which, ms }] of steps.entries()) {
            const chosen = open[which % Math.max(1, open.length)];
            if (what === "wait") day.now += ms;
            else if (what === "reserve") {
              const span = `spn_${number}`;
              const reserved = day.reserve({ span, agent, allowances, timeoutMs: ms + 1 });
              if (reserved.kind === "reserved") open.push({ span, agent, timeoutMs: reserved.timeoutMs });
            } else if (chosen !== undefined && what === "start" && chosen.startedAt === undefined) {
              day.start(chosen.span);
              chosen.startedAt = day.now;
              for (const name of accountsOf(chosen.agent)) count(name, 1, 0);
            } else if (chosen !== undefined && (what === "end" || what === "give back")) {
              if (chosen.startedAt === undefined) day.budgets.giveBack(chosen.span);
              else {
                const ran = Math.min(chosen.timeoutMs, ms);
                day.end(chosen.span, { duration_ms: ran });
                for (const name of accountsOf(chosen.agent)) count(name, 0, ran);
              }
              open.splice(open.indexOf(chosen), 1);
            }
            for (const [name, used] of Object.entries(windowOf)) {
              expect(used.execs).toBeLessThanOrEqual(name === "all" ? shared : own);
              if (name !== "all") expect(used.ms).toBeLessThanOrEqual(runtime);
            }
          }
          for (const { span } of open) day.budgets.giveBack(span);
          for (const name of ["ann", "bob", NAMED, "+shared"])
            expect(Object.values(day.budgets.ledger.account(name).reserved)).toEqual([0, 0, 0]);
        },
      ),
      { numRuns: 300 },
    );
  });

  test("what is counted again from the lines is what was counted when they were written", () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.constantFrom("ann", NAMED), fc.nat(900), fc.boolean()), { maxLength: 40 }),
        (calls) => {
          const day = new Day();
          calls.forEach(([agent, ms, fails], number) => {
            const span = `spn_${number}`;
            day.reserve({
              span,
              agent,
              allowances: [giving({})],
              named: number === 3 ? { max_execs: 99 } : undefined,
            });
            day.start(span);
            day.now += ms;
            day.end(span, fails ? { outcome: "failed", code: "invalid_request" } : { duration_ms: ms });
          });
          const again = new Ledger(isLabel, () => day.now);
          for (const line of day.lines) again.note(line);
          for (const name of ["ann", NAMED, "+shared"])
            expect(byLength(again, name)).toEqual(byLength(day.budgets.ledger, name));
        },
      ),
    );
  });
});

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
