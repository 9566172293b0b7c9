import { linkSync, mkdirSync, mkdtempSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { fileId, HardLinks, linkedFile } from "../../../../broker/git/hard-links.ts";

let project: string;
const at = (path: string): string => join(project, path);
beforeEach(() => {
  project = mkdtempSync(join(tmpdir(), "sb-hard-links-"));
});
afterEach(() => rmSync(project, { recursive: true, force: true }));

function file(path: string): void {
  mkdirSync(dirname(at(path)), { recursive: true });
  writeFileSync(at(path), "x");
}

function link(one: string, other: string): void {
  mkdirSync(dirname(at(other)), { recursive: true });
  linkSync(at(one), at(other));
}

/** The names of one file, as a project's are asked for. */
function namesOf(links: HardLinks, path: string): { names: readonly string[]; whole: boolean } {
  const stat = statSync(at(path));
  const { names, whole } = links.in(project, new Map([[fileId(stat), stat]]));
  return { names: names.get(fileId(stat)) ?? [], whole };
}

test("a file of one name is no file to look for", () => {
  file("a");
  expect(linkedFile(at("a"))).toBeUndefined();
  link("a", "b");
  expect(linkedFile(at("a"))?.ino).toBe(statSync(at("b")).ino);
  expect(linkedFile(at("none"))).toBeUndefined();
});

test("all names of a file are found, at any depth, and others are not", () => {
  file("hook");
  file("other");
  link("other", "deep/other");
  link("hook", "deep/er/check");
  expect(namesOf(new HardLinks(), "hook")).toEqual({ names: [at("hook"), at("deep/er/check")], whole: true });
});

test("a name whose folder was renamed is found again", () => {
  file("hook");
  link("hook", "scripts/check");
  const links = new HardLinks();
  namesOf(links, "hook");
  renameSync(at("scripts"), at("tools"));
  expect(namesOf(links, "hook").names).toContain(at("tools/check"));
});

test("a project with more entries than are looked at says that it was not looked through", () => {
  file("hook");
  for (let each = 0; each < 10; each += 1) file(`many/${each}`);
  link("hook", "many/x/y/check");
  expect(namesOf(new HardLinks(8), "hook")).toMatchObject({ names: [at("hook")], whole: false });
  expect(namesOf(new HardLinks(), "hook").whole).toBe(true);
});
