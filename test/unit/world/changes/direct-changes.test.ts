import {
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { TOUCHED_HEADER_SIZE } from "../../../../schemas/generated/frames.ts";
import type { FsDiff } from "../../../../schemas/generated/types.ts";
import { CommandRecord } from "../../../../world/changes/command-record.ts";
import { originOf } from "../../../../world/changes/moves.ts";
import { HOW } from "../../../../world/changes/touched.ts";
import { contentDigest, treeHash } from "../../../../world/overlay/tree-hash.ts";

let project: string;
beforeEach(() => {
  project = mkdtempSync(join(tmpdir(), "substrate-changes-"));
});
afterEach(() => rmSync(project, { recursive: true, force: true }));

/** A record as init writes it: with what stands there now, or nothing. */
function record(path: string, how: number, stands: boolean): Buffer {
  const header = Buffer.alloc(TOUCHED_HEADER_SIZE);
  header.writeUInt16LE(Buffer.byteLength(path), 0);
  header.writeUInt8(how, 2);
  header.writeUInt8(stands ? 1 : 0, 3);
  if (stands) {
    const stat = statSync(join(project, path), { bigint: true });
    header.writeUInt32LE(Number(stat.mode), 4);
    header.writeBigUInt64LE(stat.size, 8);
    header.writeBigUInt64LE(stat.ino, 16);
    header.writeBigInt64LE(stat.mtimeNs, 24);
    header.writeBigInt64LE(stat.ctimeNs, 32);
  }
  return Buffer.concat([header, Buffer.from(path)]);
}

function moved(from: string, to: string): Buffer {
  const path = Buffer.from(`${from}\0${to}`);
  const header = Buffer.alloc(TOUCHED_HEADER_SIZE);
  header.writeUInt16LE(path.length, 0);
  header.writeUInt8(3, 3);
  return Buffer.concat([header, path]);
}

const WHOLE = { recorded: true, unread: 0, untold: 0 };

async function diffOf(records: readonly Buffer[], end = WHOLE): Promise<FsDiff> {
  const told = new CommandRecord({ access: { kind: "direct" }, project });
  for (const each of records) told.take(each);
  told.end(end);
  return await told.diff(AbortSignal.timeout(45_000));
}

const write = (path: string, text = path) => writeFileSync(join(project, path), text);

describe("what a command that writes directly changed", () => {
  test("a file that was made, one that was written, one that is gone, and one that was only opened", async () => {
    for (const name of ["old", "gone", "opened"]) write(name);
    const before = [
      record("new", HOW.write | HOW.name, false),
      record("old", HOW.write, true),
      record("gone", HOW.name, true),
      record("opened", HOW.write, true),
      record("never", HOW.name, false),
    ];
    write("new");
    write("old", "other");
    rmSync(join(project, "gone"));
    expect(await diffOf(before)).toMatchObject({
      writes: ["new"],
      mods: ["old"],
      deletes: ["gone"],
      dirs: [],
      held: false,
      truncated: false,
      summary: null,
      tree_hash: expect.stringMatching(/^sha256:[0-9a-f]{64}$/),
    });
  });

  test("one byte in file 1,001 changes the hash, and equal trees made later hash alike", async () => {
    const names = Array.from({ length: 1200 }, (_each, at) => `f${String(at).padStart(4, "0")}`);
    const records = names.map((name) => record(name, HOW.write | HOW.name, false));
    const hashWith = async (last: string): Promise<string | null> => {
      for (const name of names) write(name, name === "f1000" ? last : "same");
      const diff = await diffOf(records);
      expect(diff.writes.length).toBe(1000);
      expect(diff.truncated).toBe(true);
      return diff.tree_hash;
    };
    const first = await hashWith("a");
    expect(first).not.toBeNull();
    expect(await hashWith("b")).not.toBe(first);
    expect(await hashWith("a")).toBe(first);
  });

  test("the tree hash is over the content of each file and link, and has folders without any", async () => {
    const few = Array.from({ length: 60 }, (_each, at) => `h${at}`);
    for (const name of few) write(name, name.repeat(3000));
    symlinkSync("h0", join(project, "link"));
    mkdirSync(join(project, "folder"));
    const names = [...few, "link", "folder"];
    const diff = await diffOf(names.map((name) => record(name, HOW.name, false)));
    const stat = (name: string) => lstatSync(join(project, name)).mode;
    const bytes = (name: string): Uint8Array =>
      name === "link" ? Buffer.from("h0") : readFileSync(join(project, name));
    const hashOf = (all: readonly string[]) =>
      treeHash(
        all.map((path) => {
          const isFolder = (stat(path) & 0o170000) === 0o040000;
          return {
            path,
            kind: isFolder ? "dir" : "write",
            mode: stat(path),
            content: isFolder ? "" : contentDigest(bytes(path)),
          };
        }),
      );
    expect(diff.tree_hash).toBe(hashOf(names));
  });

  test("a folder that was moved: each name below it is gone there and new here", async () => {
    mkdirSync(join(project, "a/b"), { recursive: true });
    write("a/b/x");
    const records = [record("a", HOW.name, true), record("c", HOW.name | HOW.moved, false), moved("a", "c")];
    renameSync(join(project, "a"), join(project, "c"));
    expect(await diffOf(records)).toMatchObject({
      writes: ["c/b/x"],
      deletes: ["a", "a/b", "a/b/x"],
      dirs: ["c", "c/b"],
    });
  });

  test("nothing behind a link that took a folder's place is read", async () => {
    const outside = mkdtempSync(join(tmpdir(), "substrate-outside-"));
    writeFileSync(join(outside, "secret"), "x");
    const records = [record("d", HOW.name, false), record("d/secret", HOW.write | HOW.name, false)];
    symlinkSync(outside, join(project, "d"));
    try {
      expect(await diffOf(records)).toMatchObject({ writes: ["d"], mods: [], dirs: [] });
    } finally {
      rmSync(outside, { recursive: true });
    }
  });

  test.each([
    [{ recorded: false, unread: 0, untold: 0 }, /not measured: the command's writes cannot be observed/],
    [{ recorded: true, unread: 2, untold: 0 }, /2 calls .* could not be read/],
    [{ recorded: true, unread: 0, untold: 3 }, /3 calls touched names beyond the limit/],
  ])("what could not be seen is said: %j", async (end, said) => {
    const diff = await diffOf([record("new", HOW.name, false)], end);
    expect(diff).toMatchObject({ truncated: true, summary: expect.stringMatching(said), tree_hash: null });
  });

  test("a file whose number, size and time were given to another one is changed all the same", async () => {
    write("old", "one");
    const told = record("old", HOW.name | HOW.moved, true);
    const { mtime, ino } = statSync(join(project, "old"));
    await new Promise((resolve) => setTimeout(resolve, 12));
    // As what got the number of the file that it replaced.
    write("old", "two");
    utimesSync(join(project, "old"), mtime, mtime);
    // Node's times are no finer than a microsecond.
    const { mtimeNs } = statSync(join(project, "old"), { bigint: true });
    told.writeBigInt64LE(mtimeNs, 24);
    expect(statSync(join(project, "old")).ino).toBe(ino);
    expect(await diffOf([told])).toMatchObject({ mods: ["old"] });
    // Its twin: only looked for under its name.
    expect(await diffOf([record("old", HOW.name, true)])).toMatchObject({ mods: [] });
  });

  test("a command that touches names without end costs the broker no memory without end, and its diff says so", async () => {
    const payload = Buffer.concat(
      Array.from({ length: 256 }, (_each, at) => record(`${"x".repeat(4000)}${at}`, HOW.name, false)),
    );
    const diff = await diffOf([record("new", HOW.name, false), ...Array.from({ length: 80 }, () => payload)]);
    expect(diff).toMatchObject({
      truncated: true,
      summary: expect.stringContaining("have more than"),
      tree_hash: null,
    });
  });

  test("a large file is read in pieces, so that others are served meanwhile", async () => {
    const told = new CommandRecord({ access: { kind: "direct" }, project });
    told.take(record("large", HOW.write | HOW.name, false));
    told.end(WHOLE);
    const bytes = Buffer.alloc(96 * 1024 * 1024, "large");
    writeFileSync(join(project, "large"), bytes);
    let served = 0;
    const others = setInterval(() => (served += 1), 1);
    const diff = await told.diff(AbortSignal.timeout(10_000));
    clearInterval(others);
    const content = contentDigest(bytes);
    const { mode } = lstatSync(join(project, "large"));
    expect(diff.tree_hash).toBe(treeHash([{ path: "large", kind: "write", mode, content }]));
    expect(served).toBeGreaterThan(3);
  });

  test("a command whose world was lost has a diff that says so", async () => {
    const told = new CommandRecord({ access: { kind: "direct" }, project });
    expect(await told.diff(AbortSignal.timeout(1000))).toMatchObject({
      truncated: true,
      summary: expect.stringContaining("lost"),
    });
  });
});

describe("where something stood before folders were moved", () => {
  const move = (from: string, to: string, exchanged = false) => ({ from, to, exchanged });
  test.each([
    ["x", [], "x"],
    ["b/x", [move("a", "b")], "a/x"],
    ["bb/x", [move("a", "b")], "bb/x"],
    ["a/x", [move("a", "b")], undefined],
    ["c/b/x", [move("a", "b"), move("b", "c/b")], "a/x"],
    ["a/x", [move("a", "b"), move("b", "a")], "a/x"],
    ["a/x", [move("a", "b", true)], "b/x"],
    ["b/x", [move("a", "b", true)], "a/x"],
    ["c/x", [move("a", "b"), move("a", "c")], undefined],
  ])("%s after %j was %s", (path, moves, origin) => expect(originOf(path, moves)).toBe(origin));
});
