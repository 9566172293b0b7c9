import { mkdirSync, mkdtempSync, renameSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setImmediate as nextTurn, setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, expect, test } from "vitest";
import { MovedFolders } from "../../../../broker/project/moved-folders.ts";

const FOLDERS = 800;

let base: string;
let made: Set<string>;
let moved: MovedFolders;
/** Runs once, when the search has read every folder but the deepest one and has its last pass before it. */
let meanwhile: (() => void) | undefined;
const at = (path: string): string => join(base, path);

beforeEach(async () => {
  base = mkdtempSync(join(tmpdir(), "substrate-moved-"));
  for (let each = 0; each < FOLDERS; each += 1) mkdirSync(at(`big/${each}`), { recursive: true });
  mkdirSync(at("big/n/.git"), { recursive: true });
  made = new Set([at("big/n/.git")]);
  meanwhile = undefined;
  moved = new MovedFolders((folder) => {
    meanwhile?.();
    meanwhile = undefined;
    return made.has(folder);
  });
  // The clock of files may stand still for a moment, and what has just changed is read twice.
  await sleep(20);
});
afterEach(() => rmSync(base, { recursive: true, force: true }));

test("a folder in which commands made all repositories may be moved", async () => {
  expect(await moved.mayMove(at("big"))).toBe(true);
});

test.each([
  ["a git folder", () => mkdirSync(at("big/0/.git"))],
  [
    "a git folder of another name",
    () => ["HEAD", "objects", "refs"].forEach((name) => mkdirSync(at(`big/0/${name}`))),
  ],
  ["a git folder below a new folder", () => mkdirSync(at("big/0/new/.git"), { recursive: true })],
  ["a choice of a policy", () => writeFileSync(at("big/0/.substrate-profile"), "x")],
  [
    "a folder that brings its git folder along",
    () => {
      mkdirSync(at("other/.git"), { recursive: true });
      renameSync(at("other"), at("big/other"));
      utimesSync(at("big"), 1, 1);
    },
  ],
])("%s that a person puts where a look has been already keeps the folder where it is", async (_what, put) => {
  meanwhile = put;
  expect(await moved.mayMove(at("big"))).toBe(false);
  expect(meanwhile).toBeUndefined();
});

test("files that are written meanwhile do not keep a folder from being moved", async () => {
  meanwhile = () => {
    for (let each = 0; each < 50; each += 1) writeFileSync(at(`big/${each}/file`), "x");
  };
  expect(await moved.mayMove(at("big"))).toBe(true);
});

test("a refusal holds no longer than what it was about", async () => {
  mkdirSync(at("big/1/.git"));
  expect(await moved.mayMove(at("big"))).toBe(false);
  expect(await moved.mayMove(at("big"))).toBe(false);
  renameSync(at("big/1/.git"), at("git"));
  expect(await moved.mayMove(at("big"))).toBe(true);
});

test("many questions about large folders leave others their turns", async () => {
  // Each spelling of the folder is a search of its own, so that there are many turns on a fast machine too.
  const asked = Array.from({ length: 12 }, (_, each) => moved.mayMove(at("big") + "/.".repeat(each)));
  const waits: number[] = [];
  let done = false;
  const all = Promise.all(asked).finally(() => {
    done = true;
  });
  while (!done) {
    const since = performance.now();
    await nextTurn();
    waits.push(performance.now() - since);
  }
  expect(await all).toEqual(asked.map(() => true));
  expect(waits.length).toBeGreaterThan(3);
});
