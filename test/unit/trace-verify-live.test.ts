import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { TraceLog } from "../../broker/spans/trace-log.ts";
import { verifyTrace } from "../../broker/spans/verify.ts";
import type { TraceDropped } from "../../schemas/generated/types.ts";
import { record, type TestTrace, testTrace } from "../support/trace/traces.ts";

const FIRST = "trace-0000000000000001.jsonl";
const SECOND = "trace-0000000000000004.jsonl";

let at: TestTrace;
let log: TraceLog;

/** Two files of three lines, and a live one of two. */
beforeEach(() => {
  at = testTrace();
  log = new TraceLog(at.path);
  for (let number = 1; number <= 8; number += 1) {
    log.append(record(`spn_${number}`));
    if (number === 3 || number === 6) log.rotate();
  }
});

afterEach(() => {
  log.close();
  at.remove();
});

/** What the broker's line says when it drops both old files. */
function bothDropped(): TraceDropped {
  const files = [FIRST, SECOND].map((file, index) => ({
    file,
    first_seq: 1 + 3 * index,
    last_seq: 3 + 3 * index,
    last_hash: hashAtEnd(file),
    bytes: readFileSync(join(at.folder, file)).length,
  }));
  const bytes = files.reduce((sum, file) => sum + file.bytes, 0);
  const last_hash = hashAtEnd(SECOND);
  return { reason: "size", first_seq: 1, last_seq: 6, lines: 6, bytes, prev: null, last_hash, files };
}

function hashAtEnd(name: string): string {
  const last = readFileSync(join(at.folder, name), "utf8").trimEnd().split("\n").at(-1) ?? "";
  return (JSON.parse(last) as { hash: string }).hash;
}

/** Does something when the first lines are checked, and counts how often lines were. */
function meanwhile(act: () => void): { readonly onProgress: () => void; readonly times: () => number } {
  let times = 0;
  const onProgress = (): void => {
    times += 1;
    if (times === 1) act();
  };
  return { onProgress, times: () => times };
}

describe("a trace that its broker goes on with while it is verified", () => {
  test.each([0, 1, 3])("holds when a new file is begun meanwhile, of %d lines so far", async (lines) => {
    const known = log.head;
    const { onProgress } = meanwhile(() => {
      log.rotate();
      for (let number = 0; number < lines; number += 1) log.append(record(`spn_new_${number}`));
    });
    const result = await verifyTrace(at.path, [known], onProgress);
    expect(result).toMatchObject({ ok: true, lines: 8 + lines, files: 4, head: log.head.hash });
  });

  test("does not hold when the new file's turn shows that lines are gone", async () => {
    const { onProgress } = meanwhile(() => {
      log.rotate();
      rmSync(join(at.folder, "trace-0000000000000007.jsonl"));
    });
    const result = await verifyTrace(at.path, [log.head], onProgress);
    expect(result).toMatchObject({ ok: false, file: "trace.jsonl", seq: 7 });
  });

  test("holds when old files are dropped meanwhile, as a line of it says", async () => {
    const dropped = bothDropped();
    const { onProgress, times } = meanwhile(() => {
      log.append(record("spn_dropped", { event_type: "world", outcome: "ended", dropped }));
      for (const name of [FIRST, SECOND]) rmSync(join(at.folder, name));
    });
    const result = await verifyTrace(at.path, [log.head], onProgress);
    expect(result).toMatchObject({ ok: true, lines: 3, dropped: { last_seq: 6 } });
    expect(times()).toBe(2);
  });

  test("does not hold when an old file goes meanwhile that no line names", async () => {
    const { onProgress } = meanwhile(() => rmSync(join(at.folder, SECOND)));
    const result = await verifyTrace(at.path, [log.head], onProgress);
    expect(result).toMatchObject({
      ok: false,
      file: "trace.jsonl",
      wrong: expect.stringContaining("spans 4 to 6 are missing"),
    });
  });
});
