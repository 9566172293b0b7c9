import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { open, type RootDatabase } from "lmdb";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { BoundedOutput } from "../../../../broker/worlds/output.ts";
import { compareChanges } from "../../../../broker/replay/compare-changes.ts";
import { OutputSamples, SAMPLE_BOUNDS, sampleOf } from "../../../../broker/replay/output-samples.ts";
import { textDiff } from "../../../../broker/replay/compare-outputs.ts";
import type { FsDiff } from "../../../../schemas/generated/types.ts";
import { NO_CHANGES } from "../../../../world/model/fs-diff.ts";
import { leastCpuMs } from "../../../support/processes/cost.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "substrate-replay-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

describe("comparing changes", () => {
  const HASH = { tree_hash: `sha256:${"1".repeat(64)}` };
  const OTHER = { tree_hash: `sha256:${"2".repeat(64)}` };

  test.each<[string, Partial<FsDiff> | null, Partial<FsDiff> | null, boolean | null]>([
    ["nothing and nothing", {}, {}, true],
    ["the same with the same hash", { writes: ["a"], ...HASH }, { writes: ["a"], ...HASH }, true],
    ["the same paths with another hash", { writes: ["a"], ...HASH }, { writes: ["a"], ...OTHER }, false],
    ["another kind", { writes: ["a"], ...HASH }, { mods: ["a"], ...HASH }, false],
    ["something and nothing", { writes: ["a"], ...HASH }, {}, false],
    [
      "a cut list with its hash",
      { writes: ["a"], truncated: true, ...HASH },
      { writes: ["a"], truncated: true, ...HASH },
      true,
    ],
    [
      "a cut list with another hash",
      { writes: ["a"], truncated: true, ...HASH },
      { writes: ["a"], truncated: true, ...OTHER },
      false,
    ],
    ["the same paths without a hash", { writes: ["a"] }, { writes: ["a"] }, null],
    ["a list that is not whole, then", { truncated: true, summary: "not measured" }, {}, null],
    ["a list that is not whole, now", {}, { truncated: true }, null],
    ["none at all", null, {}, null],
  ])("%s: never equal when it is not known", (_what, recorded, now, matches) => {
    const compared = compareChanges(
      recorded && { ...NO_CHANGES, ...recorded },
      now && { ...NO_CHANGES, ...now },
    );
    expect(compared.matches).toBe(matches);
    if (matches === null) expect(compared.notes).toHaveLength(1);
  });
});

test("files that a direct command opened for writing, and its replay left alone, may be as they were: not known", () => {
  const recorded = { ...NO_CHANGES, mods: [".git/index"], tree_hash: "sha256:1" };
  expect(compareChanges(recorded, NO_CHANGES, true)).toMatchObject({
    matches: null,
    apart: { only_recorded: [{ kind: "mod", path: ".git/index" }], only_now: [] },
    notes: [expect.stringContaining("perhaps to write the same bytes again")],
  });
  expect(compareChanges(recorded, NO_CHANGES)).toMatchObject({ matches: false });
  expect(compareChanges({ ...recorded, writes: ["new"] }, NO_CHANGES, true)).toMatchObject({
    matches: false,
  });
  expect(
    compareChanges(recorded, { ...NO_CHANGES, writes: ["new"], tree_hash: "sha256:1" }, true),
  ).toMatchObject({
    matches: false,
  });
});

function outputOf(text: string | Buffer): BoundedOutput {
  const output = new BoundedOutput(1024 * 1024);
  output.push(Buffer.from(text as string));
  return output;
}

describe("samples of outputs", () => {
  const SECRET = "ghp_0123456789abcdefghijABCDEFGHIJ012345";

  test("hold short texts whole, secrets replaced, and nothing that is no text", () => {
    expect(sampleOf(outputOf("one\ntwo"))).toBe("one\ntwo");
    expect(sampleOf(outputOf(`x ${SECRET} y`))).toBe("x [redacted:github-token] y");
    expect(sampleOf(outputOf("pw is hunter2$& !"), { PW: "hunter2$&", A: "is" })).toBe(
      "pw is [redacted:env.PW] !",
    );
    expect(
      sampleOf(outputOf("it is kestrel-of-the-north"), { A: "kestrel", B: "kestrel-of-the-north" }),
    ).toBe("it is [redacted:env.B]");
    const known = new Map([["TOKEN", "correct horse"]]);
    expect(sampleOf(outputOf("it is correct horse."), {}, known)).not.toContain("correct horse");
    expect(sampleOf(outputOf(Buffer.from([1, 0, 2])))).toBeNull();
  });

  test("hold whole lines of the beginning and the end of a long one, so that no half of a secret looks like none", () => {
    const filler = Array.from({ length: 3000 }, (_, line) => `line ${line}`).join("\n");
    for (let cut = -45; cut < 45; cut += 1) {
      const before = `${"y".repeat(20)}\n`.repeat(390).slice(0, 8192 - 20 + cut);
      const sample = sampleOf(outputOf(`${before}\ntoken ${SECRET}\n${filler}\nlast`)) ?? "";
      expect(sample).not.toMatch(/ghp_|hijABC/);
      expect(sample).toContain("the middle is left out");
      expect(sample.endsWith("last")).toBe(true);
    }
    for (let cut = 1; cut < 40; cut += 1) {
      const line = `${"z,".repeat(20_000)}"token":"${SECRET}"${",z".repeat(4096).slice(0, 8192 - 1 - cut)}`;
      expect(sampleOf(outputOf(line))).not.toMatch(/ABCDEF|456789|hijABC/);
    }
    const key = `-----BEGIN PRIVATE KEY-----\n${`${"A1b2".repeat(16)}\n`.repeat(120)}-----END PRIVATE KEY-----\n`;
    const sample = sampleOf(outputOf(`${"x\n".repeat(9000)}${key}done\n`)) ?? "";
    expect(sample).not.toContain("A1b2A1b2");
    expect(sample).toContain("done");
    // The last line of a key is shorter than the others.
    const short = `${`${"A1b2".repeat(16)}\n`.repeat(140)}c3RyaXA0OQ==\n-----END PRIVATE KEY-----\n`;
    const other = sampleOf(outputOf(`${"x\n".repeat(9000)}${short}done\n`)) ?? "";
    expect(other).not.toContain("c3RyaXA0OQ");
    expect(other).toContain("done");
  });

  test("hold what is there: nothing of a stream that was only counted, and both ends of one that came in pieces", () => {
    const counted = new BoundedOutput(0);
    counted.push(Buffer.from("some"));
    expect(sampleOf(counted)).toBeNull();
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 40 }), fc.array(fc.string({ maxLength: 30 })), (most, pieces) => {
        const output = new BoundedOutput(1000);
        for (const piece of pieces) output.push(Buffer.from(piece));
        const bytes = output.bytes();
        const { head, tail } = output.ends(most);
        const first = Math.min(most, Math.ceil(bytes.length / 2));
        const last = Math.min(most, bytes.length - first);
        expect(head.equals(bytes.subarray(0, first))).toBe(true);
        expect(tail.equals(bytes.subarray(bytes.length - last))).toBe(true);
      }),
    );
  });

  test("are bounded in number, size and age, outlive the broker, and one that is dropped is gone", async () => {
    const database = open({ path: join(folder, "db"), overlappingSync: false, maxDbs: 8 });
    const samples = new OutputSamples(() => true, { ...SAMPLE_BOUNDS, count: 3 });
    samples.open(database);
    for (const number of [1, 2, 3, 4])
      samples.keepLater(`spn_${number}`, { stdout: outputOf(`${number}`), stderr: outputOf("") });
    expect(await samples.find("spn_4")).toEqual({ stdout: "4", stderr: "" });
    expect(await samples.find("spn_1")).toBeUndefined();
    await commit(samples);
    const next = new OutputSamples(() => true, { ...SAMPLE_BOUNDS, all: 300 });
    next.open(database);
    expect(await next.find("spn_3")).toEqual({ stdout: "3", stderr: "" });
    await commit(next);
    expect(await next.find("spn_2")).toBeUndefined();
    expect(names(database)).toEqual(["spn_3", "spn_4"]);
    const old = new OutputSamples(() => true, { ...SAMPLE_BOUNDS, ageMs: -1 });
    old.open(database);
    await commit(old);
    expect(names(database)).toEqual([]);
  });

  test("are kept by nobody who does not want them, and those that were kept go", async () => {
    const database = open({ path: join(folder, "db"), overlappingSync: false, maxDbs: 8 });
    let isWanted = true;
    const samples = new OutputSamples(() => isWanted);
    samples.open(database);
    samples.keepLater("spn_1", { stdout: outputOf("1"), stderr: outputOf("") });
    expect(await samples.find("spn_1")).toEqual({ stdout: "1", stderr: "" });
    await commit(samples);
    isWanted = false;
    samples.keepLater("spn_2", { stdout: outputOf("2"), stderr: outputOf("") });
    await commit(samples);
    expect([await samples.find("spn_1"), await samples.find("spn_2")]).toEqual([undefined, undefined]);
    expect(names(database)).toEqual([]);
    await database.close();
  });

  async function commit(samples: OutputSamples): Promise<void> {
    const changes = samples.changes();
    await Promise.all(changes.write());
    changes.committed();
  }

  function names(database: RootDatabase): readonly unknown[] {
    return [...database.openDB({ name: "output-samples" }).getKeys()];
  }

  test("are told apart in lines, and not at any price", () => {
    expect(textDiff("a\nb\n", "a\nc\n")).toContain("-b\n+c\n");
    expect(textDiff("a\n", "a\n")).toBeUndefined();
    const noise = (): string => Array.from({ length: 4000 }, () => randomBytes(2).toString("hex")).join("\n");
    expect(leastCpuMs(() => textDiff(noise(), noise()))).toBeLessThan(5000);
  });
});
