import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { Ledger } from "../../broker/budgets/ledger.ts";
import { byLength, Day, giving, isLabel, NAMED } from "../support/broker/budget-day.ts";

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
