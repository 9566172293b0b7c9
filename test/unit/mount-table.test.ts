import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { MountTable, parseMounts } from "../../world/plan/mount-table.ts";

/** Lines of mountinfo from `id parent device root point`. */
function names(lines: readonly string[], path: string): Record<string, string> {
  const text = lines.map((line) => `${line} rw,relatime shared:1 - ext4 /dev/vda rw`).join("\n");
  const found = new MountTable(parseMounts(`${text}\n`)).otherNames(path);
  return Object.fromEntries(found.map(({ path: at, part }) => [at, part]));
}

const ROOT = "1 0 8:1 / /";
const SSH = "/home/ann/.ssh";

describe("other names of a place", () => {
  test("none with one mount of each file system", () => {
    expect(names([ROOT, "2 1 8:2 / /home", "3 1 0:5 / /proc"], SSH)).toEqual({});
  });
  test("a bind of a folder above it, also of everything", () => {
    expect(names([ROOT, "2 1 8:1 / /run/host"], SSH)).toEqual({ [`/run/host${SSH}`]: "" });
    expect(names([ROOT, "2 1 8:1 /home/ann /mnt/x"], SSH)).toEqual({ "/mnt/x/.ssh": "" });
  });
  test("a bind of the place itself, of a folder below it and of a file below it", () => {
    expect(names([ROOT, `2 1 8:1 ${SSH} /mnt/x`], SSH)).toEqual({ "/mnt/x": "" });
    expect(names([ROOT, `2 1 8:1 ${SSH}/keys /mnt/x`], SSH)).toEqual({ "/mnt/x": "keys" });
    expect(names([ROOT, `2 1 8:1 ${SSH}/id /mnt/id`], SSH)).toEqual({ "/mnt/id": "id" });
  });
  test("not a prefix neighbour, not another file system, not what was removed, no namespace file", () => {
    const others = [
      "2 1 8:1 /home/ann/.sshfoo /mnt/a",
      "3 1 8:9 / /mnt/b",
      `4 1 8:1 ${SSH}//deleted /mnt/c`,
      "5 1 0:4 net:[4026531840] /run/netns/x",
    ];
    expect(names([ROOT, ...others], SSH)).toEqual({});
  });
  test("of a home on a file system of its own, and of what is mounted below the place", () => {
    const home = "2 1 8:2 / /home";
    expect(names([ROOT, home, "3 1 8:2 / /mnt/disk"], SSH)).toEqual({ "/mnt/disk/ann/.ssh": "" });
    const keys = `3 2 8:3 / ${SSH}/keys`;
    expect(names([ROOT, home, keys, "4 1 8:3 /a /mnt/a"], SSH)).toEqual({ "/mnt/a": "keys/a" });
  });
  test("a mount inside a second mount: each is what it is, and a name that another mount covers is none", () => {
    const host = "2 1 8:1 / /run/host";
    expect(names([ROOT, host, "3 2 8:9 / /run/host/home"], SSH)).toEqual({});
    expect(names([ROOT, host, "3 2 8:2 / /run/host/home", "4 1 8:2 / /home"], SSH)).toEqual({
      [`/run/host${SSH}`]: "",
    });
  });
  test("a mount over a mount at one point: only the upper one is seen", () => {
    const covered = [ROOT, `2 1 8:1 ${SSH} /mnt/x`, "3 2 0:7 / /mnt/x"];
    expect(names(covered, SSH)).toEqual({});
    // Mounted below before the folder above was covered: the path leads into the cover.
    expect(names([ROOT, `2 1 8:1 ${SSH} /mnt/x/y`, "3 1 0:7 / /mnt/x"], SSH)).toEqual({});
  });
  test("subvolumes of btrfs by the top level, whatever st_dev says", () => {
    const table = ["1 0 0:30 /@ /", "2 1 0:30 /@home /home", "3 1 0:30 / /mnt/top"];
    expect(names(table, SSH)).toEqual({ "/mnt/top/@home/ann/.ssh": "" });
    expect(names(table, "/etc")).toEqual({ "/mnt/top/@/etc": "" });
  });
  test("names with spaces, tabs, line ends, backslashes and number signs", () => {
    const table = [ROOT, String.raw`2 1 8:1 /home/a\040b\134c\011d\012e\043f /mnt/x\040y`];
    expect(names(table, "/home/a b\\c\td\ne#f/.ssh")).toEqual({ "/mnt/x y/.ssh": "" });
  });
  test("a name below the place itself is no other name, and neither is the whole root", () => {
    expect(names([ROOT, "2 1 8:1 /home/ann/work /home/ann/again"], "/home/ann")).toEqual({});
    expect(names(["1 0 8:1 /srv/root /", "2 1 8:1 / /host"], "/host/srv")).toEqual({});
  });
  test("an overlay and a table that begins in the middle are read without an error", () => {
    expect(names(["9 8 0:50 / /", "10 9 0:50 /home /mnt"], SSH)).toEqual({ "/mnt/ann/.ssh": "" });
    expect(names([], SSH)).toEqual({});
    expect(
      new MountTable(parseMounts(readFileSync("/proc/self/mountinfo", "utf8"))).otherNames("/nowhere"),
    ).toEqual([]);
  });
});
