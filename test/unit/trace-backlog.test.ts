import { join } from "node:path";
import { rmSync } from "node:fs";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { SpanIndex } from "../../broker/spans/span-index.ts";
import type { Trace } from "../../broker/spans/trace.ts";
import { TraceLog } from "../../broker/spans/trace-log.ts";
import { verifyTrace } from "../../broker/spans/verify.ts";
import type { Span } from "../../schemas/generated/types.ts";
import { endOf, record, type TestTrace, testTrace } from "../traces.ts";

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

/** What a start leaves that had to read the newest file only: the others are for later. */
async function indexNewest(): Promise<void> {
  const log = new TraceLog(at.path);
  const index = new SpanIndex(join(at.folder, "db"));
  const newest = log.files().at(-1) ?? 1;
  for await (const { file, lines } of log.lines({ file: newest, offset: 0 })) {
    for (const { offset, length, bytes } of lines) {
      const span = JSON.parse(bytes.toString("utf8")) as Span;
      const extent = { file, offset, length };
      if (index.find(span.span_id) === undefined)
        index.addStart(span, span.seq, extent, span.event_type !== "command_start");
      else index.addEnd(span, extent);
    }
  }
  await index.flush({ end: log.end, head: log.head });
  await index.state.putBacklog(log.files().slice(0, -1));
  await index.close();
  log.close();
}

function seen(trace: Trace): unknown {
  const query = { agent: undefined, session: undefined, before: undefined, limit: 50 };
  const ids = (change: object): readonly string[] =>
    trace.list({ ...query, ...change }).spans.map(({ span_id: id }) => id);
  return {
    all: ids({}),
    ben: ids({ agent: "ben" }),
    failed: ids({ outcome: "failed" }),
    timedOut: ids({ outcome: "timed_out" }),
    lost: ids({ outcome: "lost" }),
    running: ids({ outcome: "running" }),
    children: trace.childrenOf("spn_long").map(({ span_id: id }) => id),
    long: trace.find("spn_long")?.outcome,
    never: trace.find("spn_never")?.outcome,
  };
}

async function whole(trace: Trace): Promise<void> {
  await expect.poll(() => trace.indexing, { timeout: 10_000 }).toBeNull();
}

describe("an index that is made again behind the start", () => {
  test("says that it is not whole, and is the same as one that was made at once when it is", async () => {
    write();
    await indexNewest();
    const trace = await at.open();
    expect(trace.indexing).not.toBeNull();
    await whole(trace);
    const behind = seen(trace);
    await trace.end();
    expect(await verifyTrace(at.path, [trace.head])).toMatchObject({ ok: true, lines: 11 });

    rmSync(join(at.folder, "db"), { recursive: true });
    const other = await at.open();
    expect(other.indexing).toBeNull();
    expect(seen(other)).toEqual(behind);
    await other.end();
    expect(behind).toMatchObject({
      all: ["spn_third", "spn_second", "spn_border", "spn_first", "spn_never", "spn_long"],
      children: ["spn_first", "spn_second", "spn_third"],
      failed: ["spn_first"],
      timedOut: ["spn_long"],
      lost: ["spn_never"],
      running: [],
      long: "timed_out",
    });
    expect(at.faults).toEqual([]);
  });

  test("is gone on with by the next broker, and by one after that, when each ends in between", async () => {
    write();
    await indexNewest();
    for (let start = 0; start < 3; start += 1) {
      const trace = await at.open();
      await trace.end();
    }
    const trace = await at.open();
    await whole(trace);
    expect(seen(trace)).toMatchObject({ lost: ["spn_never"], failed: ["spn_first"], timedOut: ["spn_long"] });
    await trace.end();
    expect(await verifyTrace(at.path, [trace.head])).toMatchObject({ ok: true, lines: 11 });
  });

  test("drops no old file before it is whole", async () => {
    write();
    await indexNewest();
    const trace = await at.open({ limits: { maxBytes: 0 } });
    expect(at.files()).toHaveLength(3);
    await whole(trace);
    await expect.poll(() => at.files().length, { timeout: 10_000 }).toBe(1);
    await trace.end();
    expect(await verifyTrace(at.path, [trace.head])).toMatchObject({ ok: true, dropped: { last_seq: 7 } });
  });
});
