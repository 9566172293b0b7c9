import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pino } from "pino";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { recoverChanges } from "../../../../api/serve/held-changes.ts";
import type { Broker } from "../../../../broker/broker.ts";
import { changeDone, changeRefused, changeStarted } from "../../../../broker/held/change-spans.ts";
import { listingOf } from "../../../../broker/held/change.ts";
import { wordsOfPast } from "../../../../broker/held/past.ts";
import { refusal } from "../../../../broker/model/refusal.ts";
import { eventSpan } from "../../../../broker/spans/event-span.ts";
import { type SpanRecord, Trace } from "../../../../broker/spans/trace.ts";
import { validateSpan } from "../../../../schemas/generated/validators.js";

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "spans-"));
});

afterEach(() => rmSync(folder, { recursive: true, force: true }));

describe("the lines of an apply", () => {
  test("are one span: what it was asked for before, and what it did", async () => {
    const trace = await open();
    const started = changeStarted(command(), "apply", "operator", ["a"]);
    await trace.start(started);
    expect(trace.find(started.span_id)).toMatchObject({
      outcome: null,
      held_changes: { paths: ["a"], done: null },
    });
    trace.close(changeDone(started, performance.now(), { done: 1, left: 2 }, listingOf([], [], true)));
    const span = trace.find(started.span_id);
    expect(span).toMatchObject({ outcome: "ended", held_changes: { paths: ["a"], done: 1, left: 2 } });
    expect(validateSpan(span), JSON.stringify(validateSpan.errors)).toBe(true);
    await trace.end();
  });

  test("say that it is lost when its broker was killed between them, also when the index is made anew", async () => {
    const killed = await open();
    const started = changeStarted(command(), "undo", "agent", null);
    await killed.start(started);
    const whole = changeStarted(command(), "apply", "policy", null);
    await killed.start(whole);
    killed.close(
      changeRefused(whole, performance.now(), refusal("apply_conflict", "Nothing was applied", "Look")),
    );
    await killed.end();
    rmSync(join(folder, "db"), { recursive: true });
    const trace = await open();
    expect(trace.find(started.span_id)).toMatchObject({
      event_type: "world",
      outcome: "lost",
      held_changes: { action: "undo", by: "agent", done: null },
    });
    expect(trace.find(whole.span_id)).toMatchObject({ outcome: "refused", code: "apply_conflict" });
    // What was cut off may have been done: whoever asks is not told that the changes have expired.
    const past = { fs_diff: listingOf([], [], true) };
    expect(wordsOfPast(past, trace.childrenOf("spn_of-a-command"))).toContain("an undo was interrupted");
    expect(wordsOfPast(past, [])).toBe("the changes have expired");
    expect(wordsOfPast({ fs_diff: listingOf([], [], false) }, [])).toBe("the command changed nothing");
    expect(wordsOfPast({ fs_diff: null }, [])).toBe("the changes were lost with the command's world");
    expect(trace.childrenOf("spn_of-a-command").map(({ span_id: id }) => id)).toEqual([
      started.span_id,
      whole.span_id,
    ]);
    await trace.end();
  });
});

test("a listing holds what was done of what was held, and says when it is cut", () => {
  const change = (path: string, kind: "write" | "dir") =>
    ({ path, kind, autorun: path === "Makefile", size: 0, mode: 0, links: 1, attributes: [] }) as const;
  const all = [change("Makefile", "write"), change("d", "dir"), change("left", "write")];
  expect(listingOf(all, ["Makefile", "d"], true)).toMatchObject({
    writes: ["Makefile"],
    dirs: ["d"],
    autorun: ["Makefile"],
    held: true,
    truncated: false,
  });
  const many = Array.from({ length: 1001 }, (_, index) => change(`f${index}`, "write"));
  const paths = many.map(({ path }) => path);
  expect(listingOf(many, paths, false)).toMatchObject({
    truncated: true,
    summary: expect.stringContaining("1001 files") as unknown,
  });
});

function open(): Promise<Trace> {
  return Trace.open(join(folder, "trace.jsonl"), join(folder, "db"), false, (what, error) => {
    throw new Error(what, { cause: error });
  });
}

function command(): SpanRecord {
  return eventSpan({
    event_type: "command_complete",
    span_id: "spn_of-a-command",
    agent_id: "ann",
    outcome: "ended",
  });
}

test("what became of an apply that was cut off is found below the command whose changes they are", async () => {
  const trace = await Trace.open(join(folder, "trace.jsonl"), join(folder, "db"), false, (what, error) => {
    throw new Error(what, { cause: error });
  });
  trace.event(eventSpan({ event_type: "world", span_id: "spn_of-a-command", agent_id: "ann" }));
  const settled = [{ span: "spn_of-a-command", message: "An apply that was interrupted is finished" }];
  const recover = (): Promise<typeof settled> => Promise.resolve(settled);
  const broker = { backend: { held: { recover } }, home: { overlay: folder }, trace } as unknown as Broker;
  await recoverChanges(broker, pino({ enabled: false }));
  expect(trace.childrenOf("spn_of-a-command")).toMatchObject([
    { event_type: "world", agent_id: "ann", outcome: "ended", message: settled[0]?.message },
  ]);
  await trace.end();
});
