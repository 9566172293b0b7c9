import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { open } from "lmdb";
import { afterEach, beforeEach, expect, test } from "vitest";
import { Sessions } from "../../../../broker/project/sessions.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "substrate-sessions-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function fail(what: string, error: unknown): never {
  throw new Error(what, { cause: error });
}

test("a folder that was a project is known as one at once, and to the next broker", async () => {
  const first = open({ path: folder, maxDbs: 8, overlappingSync: false });
  const sessions = new Sessions(first, fail);
  expect(sessions.wasProject("/work/a")).toBe(false);
  sessions.of("ann", "/work/a");
  expect(sessions.wasProject("/work/a")).toBe(true);
  await first.flushed;
  await first.close();
  const second = open({ path: folder, maxDbs: 8, overlappingSync: false });
  const again = new Sessions(second, fail);
  expect(["/work/a", "/work", "/work/a/b"].map((path) => again.wasProject(path))).toEqual([
    true,
    false,
    false,
  ]);
  await second.close();
});
