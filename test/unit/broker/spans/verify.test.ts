import { createHash } from "node:crypto";
import { readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { TraceLog } from "../../../../broker/spans/trace-log.ts";
import { verifyTrace } from "../../../../broker/spans/verify.ts";
import type { TraceDropped } from "../../../../schemas/generated/types.ts";
import { type TestTrace, endOf, record, testTrace } from "../../../support/trace/traces.ts";

let at: TestTrace;
let head: string;

beforeEach(() => {
  at = testTrace();
  head = write(at);
});

afterEach(() => at.remove());

const FIRST = "trace-0000000000000001.jsonl";
const SECOND = "trace-0000000000000007.jsonl";

/** Nine spans in three files of six lines; the head. */
function write(trace: TestTrace, cmd = "true"): string {
  const log = new TraceLog(trace.path);
  for (let number = 1; number <= 9; number += 1) {
    log.append(record(`spn_${number}`, { cmd }));
    log.append(endOf(`spn_${number}`, { cmd, message: "ein Ümlaut, ein \ufffd" }));
    if (number === 3 || number === 6) log.rotate();
  }
  log.close();
  return log.head.hash ?? "";
}

function lines(name: string): string[] {
  return readFileSync(join(at.folder, name), "utf8").trimEnd().split("\n");
}

function put(name: string, changed: readonly string[]): void {
  writeFileSync(join(at.folder, name), `${changed.join("\n")}\n`);
}

function without(all: readonly string[], index: number): string[] {
  return all.filter((_line, place) => place !== index);
}

function swapped(all: readonly string[], one: number, other: number): string[] {
  return all.map((line, place) => all[place === one ? other : place === other ? one : place] ?? line);
}

/** A line that says another thing, with the number, the `prev` and the hash that it should have. */
function forged(line: string): string {
  const body = line.slice(0, line.lastIndexOf(',"hash":')).replace('"true"', '"trUe"');
  return `${body},"hash":"sha256:${createHash("sha256").update(body).digest("hex")}"}`;
}

function swapFiles(): void {
  const paths = [FIRST, SECOND].map((name) => join(at.folder, name)) as [string, string];
  const [first, second] = paths.map((path) => readFileSync(path));
  writeFileSync(paths[0], second ?? "");
  writeFileSync(paths[1], first ?? "");
}

/** What was done, where the first bad line is, and what is said of it. */
const CRIMES: readonly (readonly [string, () => void, object])[] = [
  [
    "a letter changed in the middle file",
    () =>
      put(
        SECOND,
        lines(SECOND).map((line, place) => (place === 2 ? line.replace('"true"', '"trUe"') : line)),
      ),
    { file: SECOND, line: 3, seq: 9, wrong: expect.stringContaining("edited") },
  ],
  [
    "a line changed and given its own new hash: the next one does not follow it",
    () =>
      put(
        SECOND,
        lines(SECOND).map((line, place) => (place === 2 ? forged(line) : line)),
      ),
    { file: SECOND, line: 4, seq: 10, wrong: expect.stringContaining("does not follow") },
  ],
  [
    "the last line of a file changed and given its own new hash",
    () =>
      put(
        FIRST,
        lines(FIRST).map((line, place) => (place === 5 ? forged(line) : line)),
      ),
    { file: SECOND, line: 1, seq: 7 },
  ],
  [
    "a line removed from the oldest file",
    () => put(FIRST, without(lines(FIRST), 2)),
    { file: FIRST, line: 3, seq: 3, wrong: expect.stringContaining("does not follow") },
  ],
  [
    "the first line of a file removed",
    () => put(SECOND, without(lines(SECOND), 0)),
    {
      file: SECOND,
      line: 1,
      seq: 7,
      offset: 0,
      wrong: expect.stringContaining("by its name the file begins with span 7"),
    },
  ],
  [
    "the last line of a rotated file removed",
    () => put(FIRST, without(lines(FIRST), 5)),
    { file: SECOND, line: 1, seq: 6, wrong: expect.stringContaining("spans 6 to 6 are missing") },
  ],
  [
    "two lines swapped",
    () => put("trace.jsonl", swapped(lines("trace.jsonl"), 1, 2)),
    { file: "trace.jsonl", line: 2, seq: 14, wrong: expect.stringContaining("does not follow") },
  ],
  [
    "the tail cut",
    () => put("trace.jsonl", lines("trace.jsonl").slice(0, -1)),
    { file: "trace.jsonl", line: 6, seq: 18, wrong: expect.stringContaining("its end was cut") },
  ],
  [
    "the live file removed",
    () => rmSync(at.path),
    { file: SECOND, line: 7, seq: 13, wrong: expect.stringContaining("its end was cut") },
  ],
  [
    "an empty line added",
    () => put(FIRST, ["", ...lines(FIRST)]),
    { file: FIRST, line: 1, seq: 1, offset: 0, wrong: expect.stringContaining("not a span") },
  ],
  [
    "the oldest file removed",
    () => rmSync(join(at.folder, FIRST)),
    {
      file: SECOND,
      line: 1,
      seq: 7,
      wrong: expect.stringContaining("the trace does not record that they were dropped"),
    },
  ],
  [
    "a file in the middle removed",
    () => rmSync(join(at.folder, SECOND)),
    { file: "trace.jsonl", line: 1, seq: 7, wrong: expect.stringContaining("spans 7 to 12 are missing") },
  ],
  [
    "two files swapped",
    swapFiles,
    { file: FIRST, line: 1, seq: 1, wrong: expect.stringContaining("files were swapped") },
  ],
  [
    "a file of another trace in the place of one",
    () => {
      const other = testTrace();
      write(other, "false");
      renameSync(join(other.folder, SECOND), join(at.folder, SECOND));
      other.remove();
    },
    { file: SECOND, line: 1, seq: 7, wrong: expect.stringContaining("from another trace") },
  ],
  [
    "a rotated file cut within a line",
    () => writeFileSync(join(at.folder, FIRST), readFileSync(join(at.folder, FIRST)).subarray(0, -10)),
    { file: FIRST, line: 6, seq: 6, wrong: expect.stringContaining("has no end") },
  ],
];

describe("verify names the first bad line:", () => {
  test.each(CRIMES)("%s", async (_name, commit, wanted) => {
    commit();
    expect(await verifyTrace(at.path, [head])).toMatchObject({ ok: false, ...wanted });
  });

  test("its byte offset is where it begins", async () => {
    const before = lines(SECOND);
    put(
      SECOND,
      before.map((line, place) => (place === 2 ? line.replace('"true"', '"trUe"') : line)),
    );
    const result = await verifyTrace(at.path, [head]);
    const offset = Buffer.byteLength(`${before.slice(0, 2).join("\n")}\n`);
    expect(result).toMatchObject({ ok: false, offset });
  });

  test("a head that a person kept and that the trace never had", async () => {
    const strange = `sha256:${"1".repeat(64)}`;
    expect(await verifyTrace(at.path, [head, strange])).toMatchObject({
      ok: false,
      wrong: expect.stringContaining(strange),
    });
  });

  test("and of any one bit that is flipped anywhere: at the line in which it is, or where that line meets the next", async () => {
    const files = at.files();
    const originals = files.map((name) => readFileSync(join(at.folder, name)));
    const sizes = originals.map(({ length }) => length);
    const all = sizes.reduce((sum, size) => sum + size, 0);
    const flip = fc.tuple(fc.nat({ max: all - 1 }), fc.nat({ max: 7 }));
    await fc.assert(
      fc.asyncProperty(flip, async ([place, bit]) => {
        let index = 0;
        let offset = place;
        while (offset >= (sizes[index] ?? 0)) offset -= sizes[index++] ?? 0;
        const name = files[index] ?? "";
        const bytes = Buffer.from(originals[index] ?? "");
        bytes[offset] = (bytes[offset] ?? 0) ^ (1 << bit);
        writeFileSync(join(at.folder, name), bytes);
        const result = await verifyTrace(at.path, [head]);
        writeFileSync(join(at.folder, name), originals[index] ?? "");
        const line =
          (originals[index] ?? Buffer.alloc(0)).subarray(0, offset).filter((byte) => byte === 0x0a).length +
          1;
        expect(result).toMatchObject({ ok: false, file: name, line });
      }),
      { numRuns: 400 },
    );
  }, 120_000);
});

describe("and says nothing against", () => {
  test("an untouched one, with its head", async () => {
    expect(await verifyTrace(at.path, [head])).toEqual({
      ok: true,
      lines: 18,
      files: 3,
      head,
      dropped: null,
      torn: 0,
    });
  });

  test("one that has grown since a head was kept", async () => {
    const log = new TraceLog(at.path);
    log.append(record("spn_more"));
    log.rotate();
    log.close();
    expect(await verifyTrace(at.path, [head])).toMatchObject({ ok: true, lines: 19, files: 4 });
  });

  test("a line that the broker was killed in, and tells how long it is", async () => {
    writeFileSync(at.path, Buffer.concat([readFileSync(at.path), Buffer.from('{"ts":"2026')]));
    expect(await verifyTrace(at.path, [head])).toMatchObject({ ok: true, lines: 18, torn: 11 });
  });

  test("one of a single file", async () => {
    const other = testTrace();
    const log = new TraceLog(other.path);
    log.append(record("spn_1"));
    log.close();
    expect(await verifyTrace(other.path, [log.head])).toMatchObject({ ok: true, lines: 1, files: 1 });
    other.remove();
  });
});

const FROM_FOUR = "trace-0000000000000004.jsonl";

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
    const files = [FIRST, FROM_FOUR].map((file, index) => ({
      file,
      first_seq: 1 + 3 * index,
      last_seq: 3 + 3 * index,
      last_hash: hashAtEnd(file),
      bytes: readFileSync(join(at.folder, file)).length,
    }));
    const bytes = files.reduce((sum, file) => sum + file.bytes, 0);
    const last_hash = hashAtEnd(FROM_FOUR);
    return { reason: "size", first_seq: 1, last_seq: 6, lines: 6, bytes, prev: null, last_hash, files };
  }

  function hashAtEnd(name: string): string {
    const last = readFileSync(join(at.folder, name), "utf8").trimEnd().split("\n").at(-1) ?? "";
    return (JSON.parse(last) as { hash: string }).hash;
  }

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
      for (const name of [FIRST, FROM_FOUR]) rmSync(join(at.folder, name));
    });
    const result = await verifyTrace(at.path, [log.head], onProgress);
    expect(result).toMatchObject({ ok: true, lines: 3, dropped: { last_seq: 6 } });
    expect(times()).toBe(2);
  });

  test("does not hold when an old file goes meanwhile that no line names", async () => {
    const { onProgress } = meanwhile(() => rmSync(join(at.folder, FROM_FOUR)));
    const result = await verifyTrace(at.path, [log.head], onProgress);
    expect(result).toMatchObject({
      ok: false,
      file: "trace.jsonl",
      wrong: expect.stringContaining("spans 4 to 6 are missing"),
    });
  });
});
