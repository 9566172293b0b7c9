import { constants } from "node:fs";
import { expect, test } from "vitest";
import {
  changeKind,
  contentDigest,
  type HashedChange,
  treeHash,
} from "../../../../world/overlay/tree-hash.ts";

const FILE = constants.S_IFREG | 0o644;
const FOLDER = constants.S_IFDIR | 0o755;
const LINK = constants.S_IFLNK | 0o777;
const same = (): boolean => true;
const other = (): boolean => false;

function change(path: string, more: Partial<HashedChange> = {}): HashedChange {
  return { path, kind: "write", mode: FILE, content: contentDigest(Buffer.from(path)), ...more };
}

test("nothing has no hash", () => {
  expect(treeHash([])).toBeNull();
});

test("equal changes hash alike in whatever order they were found", () => {
  const changes = [change("b"), change("a/b"), change("a"), change("a-b")];
  expect(treeHash(changes.toReversed())).toBe(treeHash(changes));
  expect(treeHash(changes)).toMatch(/^sha256:[0-9a-f]{64}$/);
});

test("kind, path, mode and content each change the hash, and the mode of what is gone does not", () => {
  const all = [
    [change("a")],
    [change("b")],
    [change("a", { kind: "mod" })],
    [change("a", { mode: FILE | 0o111 })],
    [change("a", { mode: LINK })],
    [change("a", { content: contentDigest(Buffer.from("other")) })],
    [change("a"), change("b")],
    [change("a\0b".replace("\0", "\n"))],
  ].map(treeHash);
  expect(new Set(all).size).toBe(all.length);
  const gone = { kind: "delete", content: "" } as const;
  expect(treeHash([change("a", { ...gone, mode: 0 })])).toBe(treeHash([change("a", gone)]));
});

test("one byte in file 1,001 of many changes the hash", () => {
  const many = Array.from({ length: 2000 }, (_, at) => change(`file-${at}`));
  const edited = many.with(1000, change("file-1000", { content: contentDigest(Buffer.from("file-100O")) }));
  expect(treeHash(edited)).not.toBe(treeHash(many));
});

test("a path is what it became: new, other, gone, a folder, or nothing at all", () => {
  expect(changeKind(undefined, FILE, other)).toBe("write");
  expect(changeKind(undefined, LINK, other)).toBe("write");
  expect(changeKind(undefined, FOLDER, other)).toBe("dir");
  expect(changeKind(FILE, FOLDER, other)).toBe("dir");
  expect(changeKind(FOLDER, FILE, same)).toBe("mod");
  expect(changeKind(FILE, LINK, same)).toBe("mod");
  expect(changeKind(FILE, FILE | 0o111, same)).toBe("mod");
  expect(changeKind(FOLDER, FOLDER | 0o7, same)).toBe("mod");
  expect(changeKind(FILE, FILE, other)).toBe("mod");
  expect(changeKind(FILE, undefined, same)).toBe("delete");
  expect(changeKind(FILE, FILE, same)).toBeUndefined();
  expect(changeKind(FOLDER, FOLDER, other)).toBeUndefined();
  expect(changeKind(undefined, undefined, same)).toBeUndefined();
});
