import { accessSync, constants, existsSync } from "node:fs";
import { expect, test } from "vitest";
import { keptByModes } from "../../../../world/linux/host-facts.ts";

const HASHES = ["/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-"];

function canRead(path: string): boolean {
  try {
    accessSync(path, constants.R_OK);
    return true;
  } catch {
    return false;
  }
}

test("modes keep no file of password hashes from uid 0, whose own they would be", () => {
  expect([...keptByModes(0)]).toEqual([]);
});

test("a file of password hashes that this process can read is not kept by its modes; a missing one is", () => {
  const kept = keptByModes(1000);
  for (const path of HASHES) expect(kept.has(path), path).toBe(!existsSync(path) || !canRead(path));
});
