import { appendFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { Trace, type SpanRecord } from "../../broker/spans/trace.ts";
import { verifyTrace } from "../../broker/spans/verify.ts";

let folder: string;
let path: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "substrate-trace-"));
  path = join(folder, "trace.jsonl");
});

afterEach(() => rmSync(folder, { recursive: true, force: true }));

function openTrace(): Promise<Trace> {
  return Trace.open(path, join(folder, "db"), false, () => undefined);
}

function record(span: string, change: Partial<SpanRecord> = {}): SpanRecord {
  return {
    ts: "2026-01-01T00:00:00.000Z",
    event_type: "command_start",
    session_id: "ses_1",
    span_id: span,
    parent_span: null,
    component: "world",
    world_id: null,
    policy_id: "default",
    policy_hash: `sha256:${"0".repeat(64)}`,
    policy_commit: null,
    agent_id: "ann",
    cwd: "/work",
    cmd: "true",
    exit: null,
    signal: null,
    timed_out: false,
    outcome: null,
    duration_ms: null,
    scopes_used: [],
    fs_diff: null,
    usage: null,
    isolation: null,
    decision: null,
    stdout_sha256: null,
    stderr_sha256: null,
    redacted: [],
    replayable: true,
    replay_context: null,
    ...change,
  };
}

async function fill(spans: number): Promise<void> {
  const trace = await openTrace();
  for (let number = 0; number < spans; number += 1) {
    await trace.start(record(`spn_${number}`));
    trace.close(record(`spn_${number}`, { event_type: "command_complete", outcome: "ended", exit: 0 }));
  }
  await trace.end();
}

describe("the trace", () => {
  test("a span that was not closed is closed as lost by the next broker, and the chain holds", async () => {
    const first = await openTrace();
    await first.start(record("spn_open"));
    await first.end();
    const second = await openTrace();
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
    const trace = await openTrace();
    expect(trace.find("spn_2")).toMatchObject({ exit: 0 });
    await trace.end();
    expect(await verifyTrace(path, [])).toMatchObject({ ok: true, lines: 6 });
    expect(readFileSync(`${path}.torn`, "utf8")).toContain('{"ts":"2026-01-01T0');
  });

  test("an index that is lost is made again from the file", async () => {
    await fill(5);
    rmSync(join(folder, "db"), { recursive: true });
    const trace = await openTrace();
    expect(trace.find("spn_4")).toMatchObject({ outcome: "ended" });
    const page = trace.list({ agent: "ann", session: undefined, before: undefined, limit: 10 }, undefined);
    expect(page.spans).toHaveLength(5);
    await trace.end();
  });

  test("pages go from the newest to the oldest without a gap", async () => {
    await fill(7);
    const trace = await openTrace();
    const seen: string[] = [];
    let before: number | undefined;
    do {
      const page = trace.list({ agent: undefined, session: "ses_1", before, limit: 3 }, undefined);
      seen.push(...page.spans.map((span) => span.span_id));
      before = page.next ?? undefined;
    } while (before !== undefined);
    expect(seen).toEqual([6, 5, 4, 3, 2, 1, 0].map((number) => `spn_${number}`));
    await trace.end();
  });
});

describe("verify names the first bad line", () => {
  const edits: readonly (readonly [string, (lines: string[]) => string[], number])[] = [
    [
      "one byte changed",
      (lines) => lines.map((line, at) => (at === 3 ? line.replace('"true"', '"trUe"') : line)),
      4,
    ],
    ["one line removed", (lines) => lines.filter((_line, at) => at !== 2), 3],
    ["two lines swapped", ([a, b, c, ...rest]) => [a ?? "", c ?? "", b ?? "", ...rest], 2],
    ["the tail cut", (lines) => lines.slice(0, -1), 6],
    ["an empty line added", (lines) => ["", ...lines], 1],
  ];
  test.each(edits)("%s", async (_name, edit, bad) => {
    await fill(3);
    const trace = await openTrace();
    const { head } = trace;
    await trace.end();
    const lines = readFileSync(path, "utf8").trimEnd().split("\n");
    writeFileSync(path, `${edit(lines).join("\n")}\n`);
    expect(await verifyTrace(path, [head])).toMatchObject({ ok: false, line: bad });
  });

  test("and says nothing against an untouched one", async () => {
    await fill(3);
    expect(await verifyTrace(path, [])).toMatchObject({ ok: true, lines: 6 });
  });
});
