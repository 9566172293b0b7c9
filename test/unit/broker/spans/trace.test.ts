import { appendFileSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { verifyTrace } from "../../../../broker/spans/verify.ts";
import type { SpanQuery } from "../../../../broker/spans/span-lists.ts";
import type { Trace } from "../../../../broker/spans/trace.ts";
import { endOf, ranSpan, record, type TestTrace, testTrace } from "../../../support/trace/traces.ts";

let at: TestTrace;
let path: string;

beforeEach(() => {
  at = testTrace();
  path = at.path;
});

afterEach(() => at.remove());

async function fill(spans: number): Promise<void> {
  const trace = await at.open();
  for (let number = 0; number < spans; number += 1) await ranSpan(trace, `spn_${number}`);
  await trace.end();
}

describe("the trace", () => {
  test("a span that was not closed is closed as lost by the next broker, and the chain holds", async () => {
    const first = await at.open();
    await first.start(record("spn_open"));
    await first.end();
    const second = await at.open();
    expect(second.find("spn_open")).toMatchObject({
      event_type: "command_complete",
      outcome: "lost",
      replayable: false,
    });
    await second.end();
    expect(await verifyTrace(path, [])).toMatchObject({ ok: true, lines: 2 });
  });

  test("a last line cut by a crash is set aside, and what is acknowledged stays", async () => {
    await fill(3);
    appendFileSync(path, '{"ts":"2026-01-01T0');
    const trace = await at.open();
    expect(trace.find("spn_2")).toMatchObject({ exit: 0 });
    await trace.end();
    expect(await verifyTrace(path, [])).toMatchObject({ ok: true, lines: 6 });
    expect(readFileSync(`${path}.torn`, "utf8")).toContain('{"ts":"2026-01-01T0');
  });

  test("an index that is lost is made again from the file", async () => {
    await fill(5);
    rmSync(join(at.folder, "db"), { recursive: true });
    const trace = await at.open();
    expect(trace.find("spn_4")).toMatchObject({ outcome: "ended" });
    const page = trace.list({ agent: "ann", session: undefined, before: undefined, limit: 10 });
    expect(page.spans).toHaveLength(5);
    await trace.end();
  });

  test("pages go from the newest to the oldest without a gap", async () => {
    await fill(7);
    const trace = await at.open();
    const seen: string[] = [];
    let before: number | undefined;
    do {
      const page = trace.list({ agent: undefined, session: "ses_1", before, limit: 3 });
      seen.push(...page.spans.map((span) => span.span_id));
      before = page.next ?? undefined;
    } while (before !== undefined);
    expect(seen).toEqual([6, 5, 4, 3, 2, 1, 0].map((number) => `spn_${number}`));
    await trace.end();
  });

  test("is listed by agent, session, verdict, outcome and time, with what is not committed yet and after", async () => {
    const decision = (verdict: "allow" | "deny") => ({ verdict, mode: "enforce" as const, rule: null });
    const early = { ts: "2026-01-01T00:00:00.000Z" };
    const late = { ts: "2026-01-03T00:00:00.000Z" };
    const trace = await at.open();
    await ranSpan(trace, "spn_0", { ...early, decision: decision("allow") });
    await ranSpan(trace, "spn_1", {
      ...early,
      agent_id: "ben",
      session_id: "ses_2",
      decision: decision("allow"),
    });
    trace.event(
      record("spn_2", { ...late, event_type: "violation", outcome: "refused", decision: decision("deny") }),
    );
    await trace.start(record("spn_3", { ...late, decision: decision("allow") }));
    await ranSpan(trace, "spn_4", { ...late, agent_id: "ben", session_id: "ses_2", outcome: "timed_out" });
    const asked: readonly (readonly [Partial<SpanQuery>, readonly number[]])[] = [
      [{}, [4, 3, 2, 1, 0]],
      [{ agent: "ben" }, [4, 1]],
      [{ session: "ses_2" }, [4, 1]],
      [{ session: "ses_2", agent: "ann" }, []],
      [{ verdict: "deny" }, [2]],
      [{ verdict: "allow" }, [3, 1, 0]],
      [{ verdict: "deny", agent: "ben" }, []],
      [{ outcome: "timed_out" }, [4]],
      [{ outcome: "refused", agent: "ann" }, [2]],
      [{ outcome: "ended" }, [1, 0]],
      [{ outcome: "running" }, [3]],
      [{ outcome: "running", agent: "ben" }, []],
      [{ since: Date.parse("2026-01-02") }, [4, 3, 2]],
      [{ since: Date.parse("2026-01-02"), agent: "ben" }, [4]],
    ];
    const look = (where: Trace, when: string): void => {
      for (const [query, wanted] of asked) {
        const { spans } = where.list({
          agent: undefined,
          session: undefined,
          before: undefined,
          limit: 10,
          ...query,
        });
        expect(
          spans.map(({ span_id: id }) => id),
          `${JSON.stringify(query)} ${when}`,
        ).toEqual(wanted.map((number) => `spn_${number}`));
      }
    };
    look(trace, "before it is committed");
    await new Promise((resolve) => setTimeout(resolve, 800));
    look(trace, "when it is committed");
    trace.close(endOf("spn_3", { ...late, outcome: "cancelled" }));
    const { spans } = trace.list({
      agent: undefined,
      session: undefined,
      before: undefined,
      limit: 10,
      outcome: "cancelled",
    });
    expect(spans, "before its end is committed").toHaveLength(1);
    await trace.end();
    const again = await at.open();
    expect(
      again.list({ agent: undefined, session: undefined, before: undefined, limit: 10, outcome: "cancelled" })
        .spans,
    ).toHaveLength(1);
    expect(
      again.list({ agent: undefined, session: undefined, before: undefined, limit: 10, outcome: "running" })
        .spans,
    ).toEqual([]);
    await again.end();
  });

  test("lists since a time what ended since, also when it began long before, and nothing that ended before", async () => {
    const trace = await at.open();
    const hour = (hours: number): string =>
      new Date(Date.parse("2026-01-01") + hours * 3_600_000).toISOString();
    await trace.start(record("spn_long", { ts: hour(0) }));
    await trace.start(record("spn_early", { ts: hour(1) }));
    trace.close(endOf("spn_early", { ts: hour(4) }));
    for (let number = 0; number < 1500; number += 1) await ranSpan(trace, `spn_${number}`, { ts: hour(5) });
    trace.close(endOf("spn_long", { ts: hour(11) }));
    await ranSpan(trace, "spn_late", { ts: hour(12) });
    const look = (where: Trace): readonly string[] => {
      const query = {
        agent: undefined,
        session: undefined,
        before: undefined,
        limit: 10,
        since: Date.parse(hour(10)),
      };
      return where.list(query).spans.map(({ span_id: id }) => id);
    };
    expect(look(trace)).toEqual(["spn_late", "spn_long"]);
    await trace.end();
    const again = await at.open();
    expect(look(again)).toEqual(["spn_late", "spn_long"]);
    await again.end();
  });
});
