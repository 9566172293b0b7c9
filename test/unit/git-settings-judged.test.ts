import { mkdtempSync, lstatSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { JudgedSettings } from "../../broker/git-settings.ts";

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
