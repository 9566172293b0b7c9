import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import {
  ANYBODYS,
  AS_PLAIN_USER,
  AT_LENGTH,
  NAMED_FILES,
  NOT_AT_LANDING,
  SLOW_AS_ROOT,
  SLOW_FILES,
} from "../../lanes/choice.mjs";

const ROOT = fileURLToPath(new URL("../../..", import.meta.url));

function filesOf(folder: string): string[] {
  return readdirSync(join(ROOT, "test", folder))
    .filter((name) => name.endsWith(".test.ts"))
    .map((name) => `test/${folder}/${name}`);
}

function filesBelow(folder: string): string[] {
  return readdirSync(join(ROOT, folder), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".test.ts"))
    .map((name) => `${folder}/${name}`);
}

describe("the lanes of the whole run", () => {
  test("name no file that has gone, and none twice", () => {
    expect(NAMED_FILES.filter((file) => !existsSync(join(ROOT, file)))).toEqual([]);
    expect(SLOW_FILES.length).toBe(new Set(SLOW_FILES).size);
  });

  test("run at length whatever 'npm test' runs shorter", () => {
    const shorter = ["unit/broker", "integration", "security", "golden", "fidelity"]
      .flatMap((folder) => filesBelow(`test/${folder}`))
      .filter((file) => /numRuns: atLength|isNewcomersRun/.test(readFileSync(join(ROOT, file), "utf8")));
    expect(shorter.sort()).toEqual([...AT_LENGTH].sort());
  });

  test("leave no file with a broker out, and repeat each file about attacks on walls as root and as a plain user", () => {
    const quick = ["integration", "security", "golden", "fidelity"]
      .flatMap(filesOf)
      .filter((file) => !SLOW_FILES.includes(file));
    const asRoot = new Set([...quick, ...SLOW_AS_ROOT]);
    const asUser = new Set(AS_PLAIN_USER);
    const all = [...quick, ...SLOW_FILES];
    expect(all.filter((file) => !asRoot.has(file) && !asUser.has(file))).toEqual([]);
    const walls = filesOf("security").filter((file) => !ANYBODYS.includes(file));
    expect(walls.length).toBeGreaterThan(80);
    expect(walls.filter((file) => !asRoot.has(file) || !asUser.has(file))).toEqual([]);
    expect(NOT_AT_LANDING.filter((file) => !asUser.has(file) || !ANYBODYS.includes(file))).toEqual([]);
  });
});
