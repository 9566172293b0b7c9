import { mkdirSync, mkdtempSync, realpathSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { SecondNames } from "../../../../broker/project/second-names.ts";
import { MountTable, parseMounts } from "../../../../world/plan/mount-table.ts";

let base: string;
const at = (path: string): string => join(base, path);

beforeEach(() => {
  base = realpathSync(mkdtempSync(join(tmpdir(), "substrate-names-")));
  for (const path of ["ann/.substrate", "ann/.ssh", "ann/work", "x/y", "opt"])
    mkdirSync(at(path), { recursive: true });
});
afterEach(() => rmSync(base, { recursive: true, force: true }));

/** What a folder is and holds, with these bind mounts: from a folder, to a folder. */
function names(path: string, binds: readonly (readonly [string, string])[]): readonly string[] {
  const lines = binds.map(([from, to], number) => `${number + 2} 1 8:1 ${at(from)} ${at(to)} rw - ext4 d rw`);
  const table = new MountTable(parseMounts(["1 0 8:1 / / rw - ext4 d rw", ...lines].join("\n")));
  const guarded = { home: at("ann"), hidden: [at("ann/.substrate")], installation: at("opt") };
  const { dev, ino } = statSync(at(path));
  const found = new SecondNames(guarded, { read: () => table }).of(at(path), `${dev}:${ino}`);
  return [...new Set(found.map(({ how, name }) => `${how} ${name.slice(base.length + 1)}`))].sort();
}

describe("another name of a folder is found", () => {
  test("for the home, for what lies in it, and from any depth below the mount", () => {
    expect(names("x", [["ann", "x"]])).toEqual(["holds ann/.substrate", "is ann"]);
    expect(names("x/y", [["ann", "x"]])).toEqual(["is ann/y"]);
    expect(names("x", [["ann/.ssh", "x"]])).toEqual(["is ann/.ssh"]);
  });
  test("for what is mounted below it", () => {
    expect(names("x", [["ann/.ssh", "x/y"]])).toEqual(["holds ann/.ssh"]);
    expect(names("ann/work", [["ann/.ssh", "ann/work/keys"]])).toEqual(["holds ann/.ssh"]);
    expect(names("x", [["opt", "x/y"]])).toEqual(["holds opt"]);
  });
  test("by device and inode where the mount table says nothing", () => {
    const { dev, ino } = statSync("/");
    const names = new SecondNames(
      { home: "/home", hidden: [], installation: "/opt" },
      { read: () => new MountTable([]) },
    );
    expect(names.of("/proc/self/root", `${dev}:${ino}`)).toContainEqual({ how: "holds", name: "/home" });
    expect(names.of("/proc/self/root/home", "any")).toContainEqual({ how: "is", name: "/home" });
  });
  test("and none without a second mount", () => {
    for (const path of ["ann", "ann/work", "x", "opt"]) expect(names(path, []), path).toEqual([]);
  });
});

test("a folder is looked at again when another one has its path, and no sooner than it must be", () => {
  let reads = 0;
  const table = new MountTable([]);
  const read = (): MountTable => {
    reads += 1;
    return table;
  };
  const names = new SecondNames({ home: at("ann"), hidden: [], installation: at("opt") }, { read });
  for (const identity of ["1:1", "1:1", "1:2", "1:2"]) names.of(at("x"), identity);
  expect(reads).toBe(2);
});
