import type { RootDatabase } from "lmdb";
import { describe, expect, test } from "vitest";
import { termsOf } from "../../../../broker/budgets/budgets.ts";
import { exceeded } from "../../../../broker/budgets/exceeded.ts";
import { LimitSpans } from "../../../../broker/budgets/limit-spans.ts";
import { allowanceOf, lowest } from "../../../../broker/budgets/limits.ts";
import { eventSpan } from "../../../../broker/spans/event-span.ts";
import type { SpanRecord } from "../../../../broker/spans/trace.ts";
import { Day, HOUR, NAMED, START, giving } from "../../../support/broker/budget-day.ts";

describe("what a policy gives", () => {
  const base = { id: "a", name: "A" };

  test.each([
    [undefined, 24 * HOUR],
    ["90s", 90_000],
    ["30m", 30 * 60_000],
    ["2h", 2 * HOUR],
    ["7d", 7 * 24 * HOUR],
    ["999999999999999d", 36_500 * 24 * HOUR],
  ])("a window of %s has %d ms", (window, windowMs) => {
    const budgets = window === undefined ? {} : { window };
    expect(allowanceOf({ ...base, budgets })).toEqual({ windowMs, own: {}, shared: {} });
  });

  test("of two limits the lower one holds, and an absent one is no limit", () => {
    expect(lowest({ max_execs: 3 }, { max_execs: 2, max_runtime_ms: 5 })).toEqual({
      max_execs: 2,
      max_runtime_ms: 5,
    });
    expect(lowest({}, {})).toEqual({});
    expect(lowest({ max_execs: 0 }, {})).toEqual({ max_execs: 0 });
  });
});

describe("reserving", () => {
  test("lowers a time-out to what is left, and refuses when less than a millisecond is", () => {
    const day = new Day();
    const allowances = [giving({ max_runtime_ms: 1500 })];
    expect(day.reserve({ span: "spn_1", allowances })).toMatchObject({ timeoutMs: 1000, cut: undefined });
    expect(day.reserve({ span: "spn_2", allowances })).toMatchObject({
      timeoutMs: 500,
      cut: { spent: { limit: 1500 } },
    });
    expect(day.reserve({ span: "spn_3", allowances })).toMatchObject({
      kind: "short",
      shortage: { retryAfterMs: 1000 },
    });
    day.start("spn_1");
    day.end("spn_1", { duration_ms: 0.5 });
    expect(day.reserve({ span: "spn_4", allowances })).toMatchObject({ kind: "reserved", timeoutMs: 999 });
  });

  test("one that never started is not counted, also when a restart came between its lines", () => {
    const [before, after] = [new Day(), new Day()];
    before.reserve({ span: "spn_1" });
    before.start("spn_1");
    const kept = before.budgets.ledger.account("ann").meters();
    expect(kept[0]?.used.max_execs).toBe(1);
    const rows = [{ key: "ann", value: kept }];
    after.budgets.open({ openDB: () => ({ getRange: () => rows }) } as unknown as RootDatabase);
    after.now += 700;
    after.reserve({ span: "spn_1" });
    after.end("spn_1", { outcome: "failed", code: "invalid_request", duration_ms: 700 });
    expect(after.budgets.ledger.account("ann").meters()[0]?.used.max_execs).toBe(0);
  });

  test("one that failed by a bug is counted: nobody knows what of it ran", () => {
    const day = new Day();
    const allowances = [giving({ max_execs: 1 })];
    day.reserve({ span: "spn_1", allowances });
    day.start("spn_1");
    day.end("spn_1", { outcome: "failed", code: "internal", duration_ms: 700 });
    expect(day.budgets.ledger.account("ann").meters()[0]?.used).toMatchObject({
      max_execs: 1,
      max_runtime_ms: 700,
    });
    expect(day.reserve({ span: "spn_2", allowances }).kind).toBe("short");
  });

  test("says when the window ends", () => {
    const day = new Day();
    const allowances = [giving({ max_execs: 1 })];
    day.reserve({ span: "spn_1", allowances });
    day.start("spn_1");
    day.now += HOUR / 4;
    const resets_at = new Date(START + HOUR).toISOString();
    expect(day.reserve({ span: "spn_2", allowances })).toEqual({
      kind: "short",
      shortage: {
        lowered: false,
        retryAfterMs: (HOUR * 3) / 4,
        spent: { name: "max_execs", limit: 1, used: 1, shared: false, resets_at },
      },
    });
    day.now = START + HOUR;
    expect(day.reserve({ span: "spn_3", allowances }).kind).toBe("reserved");
  });

  test("a clock that is set back gives nothing again, and one that was years ahead does not lock a budget for years", () => {
    const day = new Day();
    const allowances = [giving({ max_execs: 1 })];
    day.reserve({ span: "spn_1", allowances });
    day.start("spn_1");
    day.now = START - HOUR / 2;
    expect(day.reserve({ span: "spn_2", allowances }).kind).toBe("short");
    day.now = START - 9000 * HOUR;
    expect(day.reserve({ span: "spn_3", allowances }).kind).toBe("reserved");
  });

  test("a lost command counts with what it is charged, and one that never started not at all", () => {
    const day = new Day();
    for (const span of ["spn_1", "spn_2"]) {
      day.reserve({ span });
      day.start(span);
    }
    day.end("spn_1", { outcome: "lost", charged_ms: 700 });
    day.end("spn_2", { outcome: "failed", code: "invalid_request", duration_ms: 0 });
    expect(day.budgets.ledger.account("ann").meters()[0]?.used).toEqual({
      max_execs: 1,
      max_runtime_ms: 700,
      max_egress_bytes: 0,
    });
  });

  test("a limit that a call named holds in the policy's window and ends with it", () => {
    const day = new Day();
    const order = { allowances: [giving({ max_execs: 9 })] };
    expect(day.reserve({ span: "spn_1", ...order, named: { max_execs: 1 } }).kind).toBe("reserved");
    expect(day.reserve({ span: "spn_2", ...order, named: { max_execs: 5 } }).kind).toBe("short");
    day.start("spn_1");
    day.end("spn_1", { duration_ms: 1 });
    day.now = START + HOUR;
    expect(day.reserve({ span: "spn_3", ...order }).kind).toBe("reserved");
    expect(day.reserve({ span: "spn_4", ...order }).kind).toBe("reserved");
  });

  test("a new label beyond all that are counted is refused; one that is known is not, nor an agent with a socket", () => {
    const day = new Day();
    for (let number = 0; number < 100_000; number += 1)
      day.budgets.ledger.account(`name-${number}`).charge("max_execs", 1, START, [HOUR]);
    expect(day.reserve({ span: "spn_1", agent: "one-more" }).kind).toBe("crowded");
    expect(day.reserve({ span: "spn_2", agent: "name-7" }).kind).toBe("reserved");
    expect(day.reserve({ span: "spn_4", agent: NAMED }).kind).toBe("reserved");
    day.now += HOUR;
    expect(day.reserve({ span: "spn_3", agent: "one-more" }).kind).toBe("reserved");
  });
});

test("counts that could not be committed are handed out again, and those that were are not", async () => {
  const day = new Day();
  day.reserve({ span: "spn_1" });
  day.start("spn_1");
  const written: string[] = [];
  const database = {
    getRange: () => [],
    put: (name: string) => written.push(name),
    remove: (name: string) => written.push(`-${name}`),
  };
  day.budgets.open({ openDB: () => database } as unknown as RootDatabase);
  await Promise.all(day.budgets.changes().write());
  expect(written.splice(0)).toEqual(["ann", "+shared"]);
  const again = day.budgets.changes();
  await Promise.all(again.write());
  expect(written.splice(0)).toEqual(["ann", "+shared"]);
  day.end("spn_1", { duration_ms: 1 });
  again.committed();
  await Promise.all(day.budgets.changes().write());
  expect(written.splice(0)).toEqual(["ann", "+shared"]);
  day.now += 25 * HOUR;
  day.budgets.ledger.sweep();
  const last = day.budgets.changes();
  await Promise.all(last.write());
  last.committed();
  expect(written.splice(0)).toEqual(["-ann", "-+shared"]);
  await Promise.all(day.budgets.changes().write());
  expect(written).toEqual([]);
});

describe("bytes", () => {
  const sent = (id: string, egress_bytes: number): SpanRecord =>
    eventSpan({
      event_type: "connection",
      span_id: id,
      agent_id: "ann",
      ts: new Date(START).toISOString(),
      budget: termsOf({ allowances: [giving({})], named: undefined }),
      usage: { cpu_ms: null, memory_peak_bytes: null, egress_bytes, ingress_bytes: 0, processes: null },
    });

  test("are granted up to the limit, across connections, and come back when they were not sent", () => {
    const day = new Day();
    const allowances = [giving({ max_egress_bytes: 100 })];
    for (const id of ["spn_1", "spn_2"]) day.budgets.openConnection(id, "ann", () => allowances);
    expect(day.budgets.reserveBytes("spn_1", 70)).toBe(70);
    expect(day.budgets.reserveBytes("spn_2", 70)).toBe(30);
    expect(day.budgets.reserveBytes("spn_1", 1)).toBe(0);
    day.budgets.settleBytes("spn_2", 30, 10);
    expect(day.budgets.reserveBytes("spn_1", 70)).toBe(20);
    day.budgets.note(sent("spn_1", 90));
    expect(day.budgets.reserveBytes("spn_2", 5)).toBe(0);
    day.budgets.note(sent("spn_2", 10));
    expect(day.budgets.ledger.account("ann").meters()[0]?.used.max_egress_bytes).toBe(100);
    expect(day.budgets.ledger.account("ann").reserved.max_egress_bytes).toBe(0);
    expect(day.budgets.reserveBytes("spn_2", 1)).toBe(0);
  });

  test("that are used up stop no command; whether there are any left is known of an agent and of all labels", () => {
    const day = new Day();
    const allowances = [giving({ max_egress_bytes: 100 })];
    day.budgets.openConnection("spn_1", "ann", () => allowances);
    expect(day.budgets.hasSentAll("ann", allowances)).toBe(false);
    day.budgets.reserveBytes("spn_1", 100);
    day.budgets.note(sent("spn_1", 100));
    expect(day.budgets.hasSentAll("ann", allowances)).toBe(true);
    expect(day.budgets.hasSentAll("ann", [giving({ max_egress_bytes: 101 })])).toBe(false);
    expect(day.budgets.hasSentAll("bob", allowances)).toBe(false);
    expect(day.reserve({ span: "spn_2", allowances }).kind).toBe("reserved");
  });

  test("a connection that ends without a line gives back what it held", () => {
    const day = new Day();
    day.budgets.openConnection("spn_1", "ann", () => [giving({ max_egress_bytes: 100 })]);
    expect(day.budgets.reserveBytes("spn_1", 100)).toBe(100);
    day.budgets.giveBack("spn_1");
    expect(day.budgets.ledger.account("ann").reserved.max_egress_bytes).toBe(0);
    expect(day.budgets.reserveBytes("spn_1", 1)).toBe(0);
  });

  test("count for a connection that had sent nothing when its window ended; an account that nobody holds is dropped", () => {
    const day = new Day();
    const allowances = [giving({ max_egress_bytes: 100 })];
    day.budgets.openConnection("spn_1", "ann", () => allowances);
    day.budgets.ledger.sweep();
    expect(day.budgets.reserveBytes("spn_1", 80)).toBe(80);
    expect(day.budgets.reserveBytes("spn_1", 80)).toBe(20);
    expect(day.budgets.hasSentAll("ann", allowances)).toBe(true);
    day.budgets.giveBack("spn_1");
    day.budgets.ledger.sweep();
    expect(day.budgets.ledger.find("ann")).toBeUndefined();
  });

  test("without a limit are granted as wanted, and none at all stops no command", () => {
    const day = new Day();
    day.budgets.openConnection("spn_1", "ann", () => []);
    expect(day.budgets.reserveBytes("spn_1", 1e9)).toBe(1e9);
    expect(day.reserve({ span: "spn_2", agent: "bob", named: { max_egress_bytes: 0 } }).kind).toBe(
      "reserved",
    );
    day.budgets.openConnection("spn_3", "bob", () => []);
    expect(day.budgets.reserveBytes("spn_3", 1)).toBe(0);
  });
});

test("of a flood, 256 spans are written at once, then one a second, and each call is counted", () => {
  let now = START;
  const written: SpanRecord[] = [];
  const spans = new LimitSpans({
    write: (span) => written.push(span),
    onFault: () => undefined,
    now: () => now,
  });
  const flood = (source: string, calls: number): void => {
    for (let call = 0; call < calls; call += 1)
      spans.record(source, () => eventSpan({ event_type: "rate_limit" }));
  };
  flood("one", 300);
  flood("other", 1);
  expect(written).toHaveLength(257);
  now += 1000;
  flood("one", 2);
  expect(written).toHaveLength(258);
  expect(written.at(-1)?.left_out).toBe(44);
  spans.end();
  expect(written).toHaveLength(259);
  expect(written.reduce((sum, span) => sum + 1 + (span.left_out ?? 0), 0)).toBe(303);
});

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
