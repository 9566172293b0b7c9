import { rmSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Follower } from "../../../../broker/spans/follower.ts";
import { SpanIndex } from "../../../../broker/spans/span-index.ts";
import type { SpanQuery } from "../../../../broker/spans/span-lists.ts";
import type { Trace } from "../../../../broker/spans/trace.ts";
import { TraceLog } from "../../../../broker/spans/trace-log.ts";
import { verifyTrace } from "../../../../broker/spans/verify.ts";
import { endOf, record, type TestTrace, testTrace } from "../../../support/trace/traces.ts";

let at: TestTrace;

beforeEach(() => {
  at = testTrace();
});

afterEach(() => at.remove());

/** Three files: a span that goes over the first border and one over both, a failure, children, one that never ends. */
function write(): void {
  const ts = new Date(Date.now() - 1000).toISOString();
  const log = new TraceLog(at.path);
  log.append(record("spn_long", { ts, agent_id: "ben" }));
  log.append(record("spn_never", { ts }));
  log.append(record("spn_first", { ts, parent_span: "spn_long" }));
  log.append(endOf("spn_first", { ts, parent_span: "spn_long", outcome: "failed" }));
  log.append(record("spn_border", { ts }));
  log.rotate();
  log.append(endOf("spn_border", { ts }));
  log.append(
    record("spn_second", { ts, parent_span: "spn_long", event_type: "violation", outcome: "refused" }),
  );
  log.rotate();
  log.append(endOf("spn_long", { ts, agent_id: "ben", outcome: "timed_out" }));
  log.append(record("spn_third", { ts, parent_span: "spn_long" }));
  log.append(endOf("spn_third", { ts, parent_span: "spn_long" }));
  log.close();
}

/** Commands of one agent, with one failure among the oldest. */
function writeMany(commands: number): void {
  const log = new TraceLog(at.path);
  for (let number = 0; number < commands; number += 1) {
    const span = spanName(number);
    const lines = [record(span), endOf(span, number === 3 ? { outcome: "failed" } : {})];
    log.appendAll(lines);
  }
  log.close();
}

function spanName(number: number): string {
  return `spn_${String(number).padStart(6, "0")}`;
}

const QUERY = { agent: undefined, session: undefined, before: undefined, limit: 50 };

function idsOf(trace: Trace, change: Partial<SpanQuery> = {}): readonly string[] {
  return trace.list({ ...QUERY, ...change }).spans.map(({ span_id: id }) => id);
}

/** Counts the lines that it is told of, over all brokers. */
function counting(): { readonly follower: Follower; readonly lines: () => number } {
  let lines = 0;
  const note = (): void => {
    lines += 1;
  };
  const changes = () => ({ write: () => [], committed: () => {} });
  return { follower: { open: () => {}, note, changes, needs: () => 0 }, lines: () => lines };
}

describe("an index that is lost", () => {
  test("is whole when the broker has started, with spans that go over several files", async () => {
    write();
    const trace = await at.open();
    expect(idsOf(trace)).toEqual([
      "spn_third",
      "spn_second",
      "spn_border",
      "spn_first",
      "spn_never",
      "spn_long",
    ]);
    expect(idsOf(trace, { agent: "ben" })).toEqual(["spn_long"]);
    expect(idsOf(trace, { outcome: "failed" })).toEqual(["spn_first"]);
    expect(idsOf(trace, { outcome: "lost" })).toEqual(["spn_never"]);
    expect(idsOf(trace, { outcome: "running" })).toEqual([]);
    expect(trace.childrenOf("spn_long").map(({ span_id: id }) => id)).toEqual([
      "spn_first",
      "spn_second",
      "spn_third",
    ]);
    expect(trace.find("spn_long")?.outcome).toBe("timed_out");
    await trace.end();
    expect(await verifyTrace(at.path, [trace.head])).toMatchObject({ ok: true, lines: 11 });
    expect(at.faults).toEqual([]);
  });

  test("is made again before old files are dropped", async () => {
    write();
    const trace = await at.open({ limits: { maxBytes: 0 } });
    await expect.poll(() => at.files().length, { timeout: 10_000 }).toBe(1);
    await trace.end();
    expect(await verifyTrace(at.path, [trace.head])).toMatchObject({ ok: true, dropped: { last_seq: 7 } });
  });

  test("says how far it is", async () => {
    writeMany(6000);
    const said: [number, number][] = [];
    const trace = await at.open({ onProgress: (read, all) => said.push([read, all]) });
    await trace.end();
    expect(said.length).toBeGreaterThan(0);
    for (const [read, all] of said) expect(read).toBeLessThan(all);
  });

  test("tells followers no line twice that they know, also when a broker is killed while it is made again", async () => {
    writeMany(6000);
    const { follower, lines } = counting();
    const first = await at.open({ followers: [follower] });
    await first.end();
    expect(lines()).toBe(12_000);
    const index = new SpanIndex(join(at.folder, "db"));
    await index.root.openDB<unknown, string>({ name: "state" }).put("form", 0);
    await index.close();
    const killed = (): void => {
      throw new Error("killed");
    };
    await expect(at.open({ followers: [follower], onProgress: killed })).rejects.toThrow("killed");
    const second = await at.open({ followers: [follower] });
    expect(lines()).toBe(12_000);
    await second.start(record("spn_new"));
    expect(lines()).toBe(12_001);
    await second.end();
  });

  test("with its database tells followers every line", async () => {
    write();
    const before = await at.open();
    await before.end();
    rmSync(join(at.folder, "db"), { recursive: true });
    const { follower, lines } = counting();
    const trace = await at.open({ followers: [follower] });
    expect(lines()).toBe(11);
    await trace.end();
  });
});

test("the pages of a rare kind lead on until it is found, and each holds at most what one look allows", async () => {
  writeMany(6000);
  const trace = await at.open();
  const found: string[] = [];
  let pages = 0;
  for (let before: number | null | undefined; before !== null; pages += 1) {
    const page = trace.list({ ...QUERY, outcome: "failed", before });
    found.push(...page.spans.map(({ span_id: id }) => id));
    before = page.next;
  }
  expect(found).toEqual([spanName(3)]);
  expect(pages).toBeGreaterThan(1);
  await trace.end();
});

test("a command is on the first page however many programs it started, and they are on their own", async () => {
  const trace = await at.open();
  await trace.start(record("spn_build"));
  const programs = Array.from({ length: 3000 }, (_, number) =>
    record(`spn_p${number}`, { event_type: "exec", parent_span: "spn_build", outcome: "ended" }),
  );
  trace.addAll(programs);
  const look = (where: Trace): void => {
    expect(idsOf(where)).toEqual(["spn_build"]);
    expect(idsOf(where, { programs: true, limit: 2 })).toEqual(["spn_p2999", "spn_p2998"]);
  };
  look(trace);
  trace.close(endOf("spn_build"));
  await trace.end();
  const again = await at.open();
  look(again);
  await again.end();
});
