import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { open } from "lmdb";
import { afterEach, beforeEach, expect, test } from "vitest";
import { AgentSessions } from "../../../../broker/project/agent-sessions.ts";
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

test("an agent's flood evicts its own sessions, the labels' one those of labels, and the evicted are told of", async () => {
  const database = open({ path: folder, maxDbs: 8, overlappingSync: false });
  const gone: string[] = [];
  const isLabel = (agent: string): boolean => agent !== "listed";
  const sessions = new Sessions(database, fail, isLabel, (id) => gone.push(id));
  const [listed, label, first] = ["listed", "label", "flood"].map(
    (agent) => sessions.of(agent, "/work/a", "key").id,
  );
  await database.flushed;
  for (let count = 0; count < 2000; count += 1) sessions.of("flood", "/work/a", `flood-${count}`);
  expect(gone).toEqual([first]);
  for (let count = 0; count < 8000; count += 1) sessions.of(`label-${count}`, "/work/a", "key");
  expect(gone).toEqual([first, label]);
  expect(sessions.of("listed", "/work/a", "key").id).toBe(listed);
  await database.flushed;
  expect(sessions.of("label", "/work/a", "key").id).not.toBe(label);
  await database.flushed;
  await database.close();
}, 30_000);

test("an agent's flood of events leaves another agent's session known", async () => {
  const database = open({ path: folder, maxDbs: 8, overlappingSync: false });
  const sessions = new AgentSessions(database, fail, () => true);
  const moment = { event: "prompt", span: "spn_1", at: "2026-01-01", id: null } as const;
  sessions.note("me", "key", moment);
  for (let count = 0; count < 1500; count += 1) sessions.note("flood", `key-${count}`, moment);
  expect(sessions.of("me", "key")).toMatchObject({ parent: "spn_1" });
  expect(sessions.of("flood", "key-0")).toBeUndefined();
  expect(sessions.of("flood", "key-1499")).toMatchObject({ parent: "spn_1" });
  await database.flushed;
  await database.close();
});
