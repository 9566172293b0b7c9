import { mkdtempSync, lstatSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { JudgedSettings } from "../../broker/git/settings.ts";

test("a judged file whose bytes were changed, and its size and time not, is judged no more", () => {
  const folder = mkdtempSync(join(tmpdir(), "substrate-judged-"));
  try {
    const [path, judged] = [join(folder, "config"), new JudgedSettings()];
    writeFileSync(path, "good");
    utimesSync(path, 1000, 1000);
    judged.accepted(path, lstatSync(path, { bigint: true }), Buffer.from("good"));
    expect(judged.has(path)).toBe(true);
    writeFileSync(path, "evil");
    utimesSync(path, 1000, 1000);
    expect(judged.has(path)).toBe(false);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test("four times as many settings that run code take about four times the work", () => {
  const work = (count: number): number => {
    const lines = Array.from({ length: count }, (_each, at) => `[alias]\n\ta${at} = !x\n`);
    const [before, after] = [lines, lines.toReversed()].map((all) => Buffer.from(all.join("")));
    const judge = (): string | undefined =>
      new JudgedSettings().judge({
        path: "/work/.git/config",
        before: before ?? Buffer.of(),
        after: after ?? Buffer.of(),
      })?.message;
    expect(judge()).toContain("would change their order");
    return Math.min(...Array.from({ length: 3 }, () => workOf(judge)));
  };
  // What grows with the square would take sixteen times as much.
  expect(work(16_000) / work(4000)).toBeLessThan(10);
});

/** Microseconds of processor time: a busy machine does not count. */
function workOf(run: () => void): number {
  const before = process.cpuUsage();
  run();
  const { user, system } = process.cpuUsage(before);
  return Math.max(user + system, 1);
}
