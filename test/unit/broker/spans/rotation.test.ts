import { readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { TraceLog } from "../../../../broker/spans/trace-log.ts";
import { TraceTail } from "../../../../broker/spans/trace-tail.ts";
import { verifyTrace } from "../../../../broker/spans/verify.ts";
import { endOf, ranSpan, record, type TestTrace, testTrace } from "../../../support/trace/traces.ts";

let at: TestTrace;

beforeEach(() => {
  at = testTrace();
});

afterEach(() => at.remove());

/** Spans `from` to `to`, with a new file after each of `cuts`. */
function write(from: number, to: number, cuts: readonly number[]): void {
  const log = new TraceLog(at.path);
  for (let number = from; number <= to; number += 1) {
    log.append(record(`spn_${number}`));
    log.append(endOf(`spn_${number}`));
    if (cuts.includes(number)) log.rotate();
  }
  log.close();
}

const ROTATED = ["trace-0000000000000001.jsonl", "trace-0000000000000007.jsonl", "trace.jsonl"];

describe("a rotated trace", () => {
  test("is one chain over files that are named for their first line", async () => {
    write(1, 8, [3, 6]);
    expect(at.files()).toEqual(ROTATED);
    expect(
      JSON.parse(readFileSync(join(at.folder, ROTATED[1] ?? ""), "utf8").split("\n")[0] ?? ""),
    ).toMatchObject({
      seq: 7,
    });
    expect(await verifyTrace(at.path, [])).toMatchObject({ ok: true, lines: 16, files: 3, dropped: null });
  });

  test("is found, listed and gone on with as one, with its index and with that lost", async () => {
    write(1, 8, [3, 6]);
    for (const index of ["made", "kept", "lost"]) {
      if (index === "lost") rmSync(join(at.folder, "db"), { recursive: true });
      const trace = await at.open();
      for (const number of [1, 3, 4, 8])
        expect(trace.find(`spn_${number}`), index).toMatchObject({ exit: 0 });
      const { spans } = trace.list({ agent: "ann", session: undefined, before: undefined, limit: 100 });
      expect(
        spans.map(({ span_id: id }) => id),
        index,
      ).toEqual([8, 7, 6, 5, 4, 3, 2, 1].map((number) => `spn_${number}`));
      await trace.end();
    }
    expect(at.faults).toEqual([]);
  });

  test("begins a new file by itself when the live one is large, and a span may begin in one and end in the next", async () => {
    const trace = await at.open({ limits: { fileBytes: 4000 } });
    await trace.start(record("spn_long"));
    for (let number = 0; number < 8; number += 1) await ranSpan(trace, `spn_${number}`);
    await expect.poll(() => at.files().length, { timeout: 5000 }).toBe(2);
    trace.close(endOf("spn_long", { exit: 7 }));
    expect(trace.find("spn_long")).toMatchObject({ exit: 7 });
    expect(trace.find("spn_0")).toMatchObject({ exit: 0 });
    await trace.end();
    const again = await at.open();
    expect(again.find("spn_long")).toMatchObject({ exit: 7 });
    await again.end();
    expect(await verifyTrace(at.path, [again.head])).toMatchObject({ ok: true, lines: 18 });
  });

  test("of which everything but the live file's lines is old has no line twice and none left out by its index", async () => {
    write(1, 6, [3, 6]);
    expect(readFileSync(at.path, "utf8")).toBe("");
    const trace = await at.open();
    await ranSpan(trace, "spn_7");
    await trace.end();
    const again = await at.open();
    expect(again.find("spn_7")).toMatchObject({ seq: 14 });
    await again.end();
    expect(at.faults).toEqual([]);
    expect(await verifyTrace(at.path, [again.head])).toMatchObject({ ok: true, lines: 14, files: 3 });
  });
});

describe("a broker that is killed in a rotation leaves", () => {
  const steps: readonly (readonly [string, () => void])[] = [
    ["the next file made", () => writeFileSync(`${at.path}.next`, "")],
    [
      "the live file renamed, and none in its place",
      () => {
        writeFileSync(`${at.path}.next`, "");
        renameSync(at.path, join(at.folder, "trace-0000000000000007.jsonl"));
      },
    ],
    [
      "the new live file empty",
      () => {
        renameSync(at.path, join(at.folder, "trace-0000000000000007.jsonl"));
        writeFileSync(at.path, "");
      },
    ],
    [
      "the first line of the new live file cut",
      () => {
        renameSync(at.path, join(at.folder, "trace-0000000000000007.jsonl"));
        writeFileSync(at.path, '{"ts":"2026');
      },
    ],
  ];
  test.each(steps)("%s, and the next one goes on with the chain", async (_name, kill) => {
    write(1, 6, [3]);
    const before = await at.open();
    await before.end();
    kill();
    const trace = await at.open();
    for (const number of [1, 4, 6]) expect(trace.find(`spn_${number}`)).toMatchObject({ exit: 0 });
    await ranSpan(trace, "spn_7");
    await trace.end();
    expect(at.faults).toEqual([]);
    expect(await verifyTrace(at.path, [before.head, trace.head])).toMatchObject({ ok: true, lines: 14 });
    expect(at.files()).not.toContain("trace.jsonl.next");
  });

  test("nothing that is written over: a file with the number is a reason not to rotate", () => {
    write(1, 3, []);
    writeFileSync(join(at.folder, "trace-0000000000000001.jsonl"), "mine\n");
    const log = new TraceLog(at.path);
    expect(() => log.rotate()).toThrow(/exists already/);
    log.append(record("spn_more"));
    log.close();
    expect(readFileSync(join(at.folder, "trace-0000000000000001.jsonl"), "utf8")).toBe("mine\n");
  });
});

describe("a tail", () => {
  test("shows each line once, in order, over rotations that it saw and ones that it slept through", async () => {
    const log = new TraceLog(at.path);
    const append = (...numbers: number[]): void => {
      for (const number of numbers) log.append(record(`spn_${number}`));
    };
    append(1, 2, 3);
    const tail = new TraceTail(at.path);
    const seen: string[] = [];
    const note = (lines: readonly string[]): void => {
      for (const line of lines) seen.push((JSON.parse(line) as { span_id: string }).span_id);
    };
    note(tail.last(2, () => true));
    append(4);
    note(tail.next());
    log.rotate();
    append(5);
    note(tail.next());
    append(6);
    log.rotate();
    append(7);
    log.rotate();
    append(8, 9);
    note(tail.next());
    await sleep(1);
    note(tail.next());
    tail.close();
    log.close();
    expect(seen).toEqual([2, 3, 4, 5, 6, 7, 8, 9].map((number) => `spn_${number}`));
  });

  test("of a file that has just begun has the last lines of those before", () => {
    write(1, 6, [3, 6]);
    const tail = new TraceTail(at.path);
    const ids = tail.last(8, () => true).map((line) => (JSON.parse(line) as { seq: number }).seq);
    expect(ids).toEqual([5, 6, 7, 8, 9, 10, 11, 12]);
    tail.close();
  });

  test("asked for the last lines of one kind looks further back for them", () => {
    const log = new TraceLog(at.path);
    log.append(record("spn_wanted"));
    for (let number = 0; number < 3000; number += 1) log.append(record(`spn_${number}`));
    log.close();
    const tail = new TraceTail(at.path);
    expect(tail.last(5, (line) => line.includes("spn_wanted"))).toHaveLength(1);
    expect(tail.last(0, () => true)).toEqual([]);
    expect(tail.next()).toEqual([]);
    tail.close();
  });
});
