import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { denialWords } from "../../../../world/plan/denials.ts";
import { MountTable, type OtherName, parseMounts } from "../../../../world/plan/mount-table.ts";
import { mountPlan } from "../../../../world/plan/mounts.ts";
import { PROJECT, host, lines, spec } from "../../../support/world/planned.ts";

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

function planned(
  others: Readonly<Record<string, readonly OtherName[]>>,
  change: Partial<Parameters<typeof spec>[0]> = {},
) {
  const facts = { ...host(), otherNames: (path: string) => others[path] ?? [] };
  const plan = mountPlan(spec(change), facts);
  return { lines: lines(plan), denied: plan.denied.map((each) => denialWords(each).join(" ")) };
}

function denying(denyRead: readonly string[]): Parameters<typeof spec>[0] {
  return { files: { ...spec().files, denyRead } };
}

describe("a second mount of a tree", () => {
  test("hides what is denied there too", () => {
    const plan = planned({ [SSH]: [{ path: "/var/x/.ssh", part: "" }] }, denying([SSH]));
    expect(plan.lines).toContain(`hide ${SSH}`);
    expect(plan.lines).toContain("hide /var/x/.ssh");
  });
  test("hides SUBSTRATE_HOME", () => {
    const plan = planned(
      { "/home/ann/.substrate": [{ path: "/var/s", part: "sock" }] },
      { hidden: ["/home/ann/.substrate"] },
    );
    expect(plan.lines).toContain("hide /var/s");
  });
  test("covers it below the project, where a command could write", () => {
    const other = { path: `${PROJECT}/keys`, part: "" };
    expect(planned({ [SSH]: [other] }, denying([SSH])).denied).toContain("r Lhome Lann Lwork Lkeys");
  });
  test("is read-only where it shows the installation", () => {
    const write = [`${PROJECT}/**`, "/srv/**"];
    const plan = planned(
      { "/opt/substrate": [{ path: "/srv/s", part: "" }] },
      { sealed: ["/opt/substrate"], files: { ...spec().files, write } },
    );
    expect(plan.lines).toContain("readonly /srv/s");
  });
});

describe("a pattern at a second mount", () => {
  const pattern = `${PROJECT}/**/.env`;
  const at = (part: string, deny = pattern) =>
    planned({ [PROJECT]: [{ path: "/var/x", part }] }, denying([deny])).denied.filter((words) =>
      words.startsWith("h"),
    );

  test("holds below all of its folder, and below a part of it", () => {
    expect(at("")).toEqual(["h Lvar Lx D L.env"]);
    expect(at("a/b")).toEqual(["h Lvar Lx D L.env"]);
  });
  test("goes on where the part ends", () => {
    expect(at("a", `${PROJECT}/*/x*`)).toEqual(["h Lvar Lx Gx*"]);
    expect(at("a/b", `${PROJECT}/[a]/*/t*`)).toEqual(["h Lvar Lx Gt*"]);
    expect(at("b", `${PROJECT}/a*/t*`)).toEqual([]);
  });
  test("denies the whole mount when it shows what the pattern names, or something in it", () => {
    const plan = planned({ [PROJECT]: [{ path: "/var/x", part: "a/.env/deep" }] }, denying([pattern]));
    expect(plan.lines).toContain("hide /var/x");
  });
});

test("a line of the mount table names its kind of file system, behind any number of optional fields", () => {
  const lines = [
    "30 1 8:1 / /media/a\\040stick rw,nosuid shared:5 master:2 - vfat /dev/sdb1 rw,fmask=0022",
    "31 1 8:2 / /home rw - ext4 /dev/sda2 rw",
  ];
  expect(parseMounts(lines.join("\n")).map(({ point, type }) => [point, type])).toEqual([
    ["/media/a stick", "vfat"],
    ["/home", "ext4"],
  ]);
});
