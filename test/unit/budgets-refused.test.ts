import { describe, expect, test } from "vitest";
import { exceeded } from "../../broker/budgets/exceeded.ts";
import { Day, giving, HOUR } from "../budget-day.ts";

describe("a call that a budget does not reach for", () => {
  test.each([
    [
      "held, before the window began",
      [giving({ max_execs: 1 })],
      undefined,
      true,
      /^Try again when the commands that reserve it/,
    ],
    [
      "spent",
      [giving({ max_execs: 1 })],
      undefined,
      false,
      /^Wait until 2026-01-01T01:00:00.000Z, .* and raise or reset it$/,
    ],
    [
      "named by a call",
      [giving({ max_execs: 9 })],
      { max_execs: 1 },
      false,
      /^Wait until .* and reset it \(a call named/,
    ],
    [
      "given as none",
      [giving({ max_execs: 0 })],
      undefined,
      false,
      /^This budget is zero: ask .* raise or reset it$/,
    ],
  ])("a budget that is %s is refused with what helps", (_what, allowances, named, isHeld, hint) => {
    const day = new Day();
    day.reserve({ span: "spn_1", allowances, named });
    if (!isHeld) day.start("spn_1");
    const next = day.reserve({ span: "spn_2", allowances, named });
    if (next.kind !== "short") throw new Error(`Expected a shortage, received ${next.kind}`);
    expect(exceeded("ann", "default", next.shortage).hint).toMatch(hint);
  });

  test("of two windows that are spent, says the end of the later one", () => {
    const day = new Day();
    const allowances = [giving({ max_execs: 1 }), giving({ max_execs: 1 }, {}, 5 * HOUR)];
    day.reserve({ span: "spn_1", allowances });
    day.start("spn_1");
    for (const order of [allowances, [...allowances].reverse()])
      expect(day.reserve({ span: "spn_2", allowances: order })).toMatchObject({
        shortage: { retryAfterMs: 5 * HOUR },
      });
  });
});
