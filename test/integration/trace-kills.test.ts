import { spawn } from "node:child_process";
import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { verifyTrace } from "../../broker/spans/verify.ts";
import { bundled } from "../corpus/bundle.mjs";
import { Random } from "../faults/random.ts";
import { type TestTrace, testTrace } from "../support/trace/traces.ts";

const { seed } = inject("faults");

/** A spawn of Node takes 50 ms on an idle machine; a line comes before the kill in any case. */
const FIRST_LINE_MS = 20_000;

const WAYS = [
  { way: "log", rounds: 15, longestMs: 40, what: "in or between rotations" },
  { way: "trace", rounds: 5, longestMs: 1200, what: "while it rotates, indexes and drops" },
] as const;

let writer: string;

beforeAll(async () => {
  writer = await bundled(join(import.meta.dirname, "../faults/trace-writer.ts"), import.meta.dirname);
});

afterAll(() => rmSync(writer, { force: true }));

/** Runs a writer from a number on and kills it at a moment; what it acknowledged. */
async function killed(at: TestTrace, way: string, first: number, ms: number): Promise<readonly string[]> {
  const child = spawn(process.execPath, [writer, at.folder, way, String(first)], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  let text = "";
  const begun = new Promise<void>((resolve) => {
    child.stdout.on("data", (bytes: Buffer) => {
      text += bytes.toString("latin1");
      resolve();
    });
  });
  const gone = new Promise<void>((resolve) => child.once("close", () => resolve()));
  await Promise.race([begun, gone, sleep(FIRST_LINE_MS)]);
  await sleep(ms);
  child.kill("SIGKILL");
  await gone;
  // A line without its end was not acknowledged.
  return text.split("\n").slice(0, -1);
}

/** The spans whose first lines the files hold, by their numbers. */
function numbersIn(at: TestTrace): readonly number[] {
  return at.files().flatMap((name) => {
    const text = readFileSync(join(at.folder, name), "utf8");
    return [...text.matchAll(/"command_start","session_id":"ses_1","span_id":"spn_(\d+)"/g)].map((match) =>
      Number(match[1]),
    );
  });
}

describe.each(WAYS)("a writer that is killed $what", ({ way, rounds, longestMs }) => {
  test(`loses no span that it acknowledged, and the chain verifies, ${rounds} times from seed ${seed}`, async () => {
    const at = testTrace();
    const random = new Random(seed);
    const started = new Set<number>();
    const ended = new Set<number>();
    let first = 0;
    let most = 0;
    try {
      for (let round = 0; round < rounds; round += 1) {
        const from = first;
        for (const line of await killed(at, way, first, random.below(longestMs))) {
          const [number, what] = line.split(" ");
          (what === "ended" ? ended : started).add(Number(number));
        }
        // The one after the last that was acknowledged may be written too: no number comes twice.
        first = Math.max(first, ...started) + 2;
        const before = await verifyTrace(at.path, []);
        expect(before, `round ${round}`).toMatchObject({ ok: true });
        const trace = await at.open();
        // Of those of earlier rounds some: whatever loses one loses what is newest, or a whole file.
        const looked = [...started].filter((number) => number >= from || random.below(20) === 0);
        const missing = looked.filter((number) => trace.find(`spn_${number}`) === undefined);
        for (const number of looked) {
          const outcome = trace.find(`spn_${number}`)?.outcome ?? "missing";
          expect(ended.has(number) ? ["ended", "missing"] : ["ended", "lost", "missing"]).toContain(outcome);
        }
        await trace.end();
        const after = await verifyTrace(at.path, [trace.head]);
        expect(after, `round ${round}`).toMatchObject({ ok: true });
        if (missing.length > 0) {
          expect(after, `round ${round}: ${missing.length} are lost`).toMatchObject({
            dropped: { reason: "size" },
          });
          const kept = numbersIn(at);
          expect(Math.max(...missing), `round ${round}`).toBeLessThan(Math.min(...kept));
          for (const number of missing) started.delete(number);
        }
        most = Math.max(most, at.files().length);
      }
      expect(at.faults).toEqual([]);
      expect(most).toBeGreaterThan(1);
      expect(first).toBeGreaterThan(rounds);
    } finally {
      at.remove();
    }
  }, 600_000);
});
