import { copyFileSync, existsSync, readFileSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Follower } from "../../../../broker/spans/follower.ts";
import type { Trace } from "../../../../broker/spans/trace.ts";
import { TraceLog } from "../../../../broker/spans/trace-log.ts";
import { verifyTrace } from "../../../../broker/spans/verify.ts";
import { endOf, ranSpan, record, type TestTrace, testTrace } from "../../../support/trace/traces.ts";

let at: TestTrace;

const DAY = 24 * 60 * 60 * 1000;
const FIRST = "trace-0000000000000001.jsonl";
const SECOND = "trace-0000000000000007.jsonl";
const THIRD = "trace-0000000000000013.jsonl";

beforeEach(() => {
  at = testTrace();
  write();
});

afterEach(() => at.remove());

/** Three files of three spans each, 30, 20 and 10 days old, and a live one of now. */
function write(): void {
  const log = new TraceLog(at.path);
  for (let number = 1; number <= 10; number += 1) {
    const file = Math.floor((number - 1) / 3);
    const ts = new Date(Date.now() - (30 - 10 * file) * DAY).toISOString();
    const failed = number === 2 ? { outcome: "failed" as const } : {};
    log.append(record(`spn_${number}`, { ts, parent_span: number === 1 ? null : "spn_1" }));
    log.append(endOf(`spn_${number}`, { ts, parent_span: number === 1 ? null : "spn_1", ...failed }));
    if (number % 3 === 0) log.rotate();
  }
  log.close();
}

/** Opens the trace, lets it drop what it may, and closes it. */
async function drop(options: Parameters<TestTrace["open"]>[0]): Promise<void> {
  const trace = await at.open(options);
  await settled(trace);
  await trace.end();
}

/** What is begun at the start is done when the trace ends; a turn later it has begun. */
function settled(_trace: Trace): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 300));
}

async function idsIn(): Promise<readonly string[]> {
  const trace = await at.open();
  const { spans } = trace.list({ agent: undefined, session: undefined, before: undefined, limit: 100 });
  await trace.end();
  return spans.filter(({ dropped }) => dropped === undefined).map(({ span_id: id }) => id);
}

function names(...numbers: number[]): readonly string[] {
  return numbers.map((number) => `spn_${number}`);
}

describe("old files", () => {
  test("stay as long as no limit says otherwise", async () => {
    await drop({});
    expect(at.files()).toEqual([FIRST, SECOND, THIRD, "trace.jsonl"]);
  });

  test("go for their age, and a line says which, up to where, and with which hashes", async () => {
    const before = new TraceLog(at.path);
    before.close();
    await drop({ limits: { maxAgeMs: 15 * DAY } });
    expect(at.files()).toEqual([THIRD, "trace.jsonl"]);
    const line = JSON.parse(readFileSync(at.path, "utf8").trimEnd().split("\n").at(-1) ?? "") as object;
    const third = JSON.parse(readFileSync(join(at.folder, THIRD), "utf8").split("\n")[0] ?? "") as {
      prev: string;
    };
    expect(line).toMatchObject({
      event_type: "world",
      component: "broker",
      dropped: {
        reason: "age",
        first_seq: 1,
        last_seq: 12,
        lines: 12,
        prev: null,
        last_hash: third.prev,
        files: [
          { file: FIRST, first_seq: 1, last_seq: 6 },
          { file: SECOND, first_seq: 7, last_seq: 12, last_hash: third.prev },
        ],
      },
    });
    const verified = await verifyTrace(at.path, [before.head]);
    expect(verified).toMatchObject({ ok: true, lines: 9, dropped: { last_seq: 12, reason: "age" } });
    expect(await idsIn()).toEqual(names(10, 9, 8, 7));
    expect(at.faults).toEqual([]);
  });

  test("go for the size of all, the oldest first and no more than needed", async () => {
    const sizes = at.files().map((name) => statSync(join(at.folder, name)).size);
    const all = sizes.reduce((sum, size) => sum + size, 0);
    await drop({ limits: { maxBytes: all - 10 } });
    expect(at.files()).toEqual([SECOND, THIRD, "trace.jsonl"]);
    expect(await verifyTrace(at.path, [])).toMatchObject({
      ok: true,
      dropped: { last_seq: 6, reason: "size" },
    });
  });

  test("are forgotten by every list and every parent, also when the index is made again", async () => {
    await drop({ limits: { maxAgeMs: 25 * DAY } });
    for (const index of ["kept", "lost"]) {
      if (index === "lost") rmSync(join(at.folder, "db"), { recursive: true });
      const trace = await at.open();
      expect(trace.find("spn_2"), index).toBeUndefined();
      const failed = {
        agent: undefined,
        session: undefined,
        before: undefined,
        limit: 10,
        outcome: "failed",
      };
      expect(trace.list(failed).spans, index).toEqual([]);
      expect(
        trace.childrenOf("spn_1").map(({ span_id: id }) => id),
        index,
      ).toEqual(names(10, 4, 5, 6, 7, 8, 9));
      await trace.end();
    }
  });

  test("dropped twice leave two lines, and the trace begins where the later one says", async () => {
    await drop({ limits: { maxAgeMs: 25 * DAY } });
    await drop({ limits: { maxAgeMs: 15 * DAY } });
    expect(await verifyTrace(at.path, [])).toMatchObject({
      ok: true,
      dropped: { first_seq: 7, last_seq: 12 },
    });
  });

  test("that one broker named and was killed before it removed are removed by the next", async () => {
    for (const name of [FIRST, SECOND]) copyFileSync(join(at.folder, name), join(at.folder, `${name}.copy`));
    await drop({ limits: { maxAgeMs: 15 * DAY } });
    for (const name of [FIRST, SECOND]) copyFileSync(join(at.folder, `${name}.copy`), join(at.folder, name));
    expect(await verifyTrace(at.path, [])).toMatchObject({ ok: true, dropped: null, lines: 21 });
    const trace = await at.open();
    await trace.end();
    expect(at.files()).toEqual([THIRD, "trace.jsonl"]);
    // The same name, and not what was dropped.
    copyFileSync(join(at.folder, THIRD), join(at.folder, FIRST));
    const again = await at.open();
    await again.end();
    expect(existsSync(join(at.folder, FIRST))).toBe(true);
  });

  test("one more than was dropped is missed by verify", async () => {
    await drop({ limits: { maxAgeMs: 25 * DAY } });
    rmSync(join(at.folder, SECOND));
    expect(await verifyTrace(at.path, [])).toMatchObject({
      ok: false,
      file: THIRD,
      line: 1,
      wrong: expect.stringContaining("the trace does not record that they were dropped"),
    });
  });
});

describe("a file stays, whatever the limits say,", () => {
  const NOTHING = { maxAgeMs: 0, maxBytes: 0 };

  test("when it is the live one", async () => {
    await drop({ limits: NOTHING });
    expect(at.files()).toEqual(["trace.jsonl"]);
    expect(await verifyTrace(at.path, [])).toMatchObject({ ok: true, lines: 3, dropped: { last_seq: 18 } });
  });

  test("when a command of it runs, and so do the later ones", async () => {
    const limits = { fileBytes: 1, maxAgeMs: Number.POSITIVE_INFINITY, maxBytes: Number.POSITIVE_INFINITY };
    const trace = await at.open({ limits });
    await trace.start(record("spn_long"));
    await expect.poll(() => at.files().length, { timeout: 5000 }).toBe(5);
    limits.maxBytes = 0;
    await ranSpan(trace, "spn_more");
    await expect.poll(() => at.files().length, { timeout: 5000 }).toBe(3);
    expect(at.files()[0]).toBe("trace-0000000000000019.jsonl");
    expect(trace.find("spn_long")).toMatchObject({ event_type: "command_start" });
    await trace.end();
  });

  test("when a span of it holds changes", async () => {
    await drop({ limits: NOTHING, held: () => ["spn_5", "no span"] });
    expect(at.files()).toEqual([SECOND, THIRD, "trace.jsonl"]);
  });

  test("when budgets or keys would need it again", async () => {
    const follower: Follower = {
      open: () => {},
      note: () => {},
      changes: () => ({ write: () => [], committed: () => {} }),
      needs: () => Date.now() - 25 * DAY,
    };
    await drop({ limits: NOTHING, followers: [follower] });
    expect(at.files()).toEqual([SECOND, THIRD, "trace.jsonl"]);
    expect(at.faults.join()).toContain("exceeds its limit");
  });
});

test("a span that began in a dropped file and ended in a later one is found by its end", async () => {
  const log = new TraceLog(at.path);
  log.append(record("spn_long", { ts: new Date(Date.now() - DAY).toISOString() }));
  log.rotate();
  log.append(endOf("spn_long", { ts: new Date().toISOString(), exit: 7 }));
  log.close();
  await drop({ limits: { maxAgeMs: DAY / 2 } });
  expect(at.files()).toEqual(["trace.jsonl"]);
  expect(await idsIn()).toEqual(["spn_long"]);
  rmSync(join(at.folder, "db"), { recursive: true });
  expect(await idsIn()).toEqual(["spn_long"]);
});
