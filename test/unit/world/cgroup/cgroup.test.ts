import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { type CgroupHost, dropBase, findBase } from "../../../../world/cgroup/base.ts";
import { groupName, isOrphan, thisMaker } from "../../../../world/cgroup/names.ts";
import { groupFiles, initLimits, pidsOfCommand } from "../../../../world/cgroup/plan.ts";
import { sweep } from "../../../../world/cgroup/sweep.ts";
import {
  folderOf,
  isKernelAtLeast,
  ownGroup,
  startTime,
  unifiedMount,
} from "../../../../world/cgroup/where.ts";
import { cgroupWord, heldLimits, limitViolations } from "../../../../world/cgroup/words.ts";
import { roomOf } from "../../../../world/plan/room.ts";

const HYBRID = `31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime shared:9 - cgroup2 cgroup2 rw
`;

const root = mkdtempSync(join(tmpdir(), "substrate-cgroup-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));

describe("what the kernel says about cgroups", () => {
  test("the v2 mount is found beside v1 ones, and where none is there is none", () => {
    expect(unifiedMount(HYBRID)).toEqual({ folder: "/sys/fs/cgroup/unified", root: "/" });
    expect(unifiedMount(HYBRID.split("\n").slice(0, 2).join("\n"))).toBeUndefined();
    expect(unifiedMount("1 2 0:3 /a\\040b /x\\011y rw - cgroup2 none rw")).toEqual({
      folder: "/x\ty",
      root: "/a b",
    });
  });

  test("the own group is hierarchy 0, whatever v1 says", () => {
    expect(ownGroup("9:name=systemd:/a\n4:memory:/b\n0::/user.slice/x.service\n")).toBe(
      "/user.slice/x.service",
    );
    expect(ownGroup("4:memory:/b\n")).toBeUndefined();
  });

  test("a group outside of what is mounted has no folder", () => {
    expect(folderOf({ folder: "/cg", root: "/" }, "/a/b")).toBe("/cg/a/b");
    expect(folderOf({ folder: "/cg", root: "/docker/1" }, "/docker/1/b")).toBe("/cg/b");
    expect(folderOf({ folder: "/cg", root: "/docker/1" }, "/docker/12")).toBeUndefined();
    expect(folderOf({ folder: "/cg", root: "/" }, "/../b")).toBeUndefined();
  });

  test.each([
    ["6.14.0", true],
    ["6.18.44-fc", true],
    ["7.0.1", true],
    ["6.9.12", false],
    ["5.15.0-91-generic", false],
    ["nonsense", false],
  ])("pid_max of a kernel %s belongs to the namespace: %s", (release, expected) => {
    expect(isKernelAtLeast(release, 6, 14)).toBe(expected);
  });

  test("a process's start is read past a name with brackets and spaces", () => {
    expect(startTime(`7 (a) b (c) S ${Array.from({ length: 30 }, (_, at) => at + 4).join(" ")}`)).toBe("22");
  });
});

/** A cgroup's files, as far as the kernel's own answers can be played by plain ones. */
function fakeGroup(folder: string, controllers: string, processes: string): void {
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "cgroup.controllers"), `${controllers}\n`);
  writeFileSync(join(folder, "cgroup.subtree_control"), `${controllers}\n`);
  writeFileSync(join(folder, "cgroup.procs"), processes);
}

function hostAt(folder: string, own: string): CgroupHost {
  return {
    mountinfo: `41 31 0:38 / ${folder} rw - cgroup2 cgroup2 rw\n`,
    cgroups: `0::${own}\n`,
    pid: 4711,
    trial: "trial",
  };
}

describe("where a broker may make groups", () => {
  test("a folder that is no cgroup gives none, and the trial leaves nothing", () => {
    const folder = join(root, "plain");
    fakeGroup(folder, "memory cpu pids", "");
    const base = findBase(hostAt(folder, "/"));
    expect(base).toMatchObject({ kind: "off" });
    expect(cgroupWord(base)).toMatch(/^off: cannot make a group in '.*\/substrate': .*cgroup\.kill/);
    expect(existsSync(join(folder, "substrate/trial"))).toBe(false);
  });

  test("without any mount the word says so", () => {
    expect(cgroupWord(findBase({ mountinfo: "", cgroups: "", pid: 1, trial: "t" }))).toBe(
      "off: cgroup v2 is not mounted here",
    );
  });

  test("the word names exactly the controllers that are missing", () => {
    const word = (...controllers: readonly ("memory" | "cpu" | "pids")[]): string =>
      cgroupWord({ kind: "usable", folder: "/x", controllers });
    expect(word("memory", "cpu", "pids")).toBe("on");
    expect(word("cpu", "pids")).toBe("degraded: no memory controller");
    expect(word()).toBe("degraded: no memory, cpu, pids controller");
  });
});

describe("groups that are left over", () => {
  const maker = thisMaker();

  test("only those of this pid namespace whose broker is gone are removed", () => {
    const gone = { ...maker, start: "1" };
    const foreign = { ...gone, space: "1" };
    const names = [groupName(maker, 1), groupName(gone, 1), groupName(foreign, 1), "user.slice", "1-2-3"];
    const base = join(root, "left");
    for (const name of names) mkdirSync(join(base, name, "commands/1"), { recursive: true });
    expect(names.filter((name) => isOrphan(name, maker))).toEqual([groupName(gone, 1)]);
    sweep(base, maker);
    expect(names.filter((name) => existsSync(join(base, name)))).toEqual(
      names.filter((name) => name !== groupName(gone, 1)),
    );
  });

  test("this process is its own maker", () => {
    expect(startTime(readFileSync("/proc/self/stat", "utf8"))).toBe(maker.start);
  });
});

describe("a spec's limits", () => {
  const limits = { cpu: 0.5, memory: 2 ** 30, pids: 512, disk: 2 ** 20 };

  test("become what the controllers take, and nothing for one that is not there", () => {
    expect(groupFiles(limits, ["memory", "cpu", "pids"])).toEqual([
      { file: "memory.max", value: "1073741824" },
      { file: "memory.swap.max", value: "0", optional: true },
      { file: "cpu.max", value: "50000 100000" },
      { file: "pids.max", value: "512" },
    ]);
    expect(groupFiles(limits, [])).toEqual([]);
    expect(groupFiles({}, ["memory", "cpu", "pids"])).toEqual([{ file: "pids.max", value: "4096" }]);
  });

  test("pid_max and nproc are asked for only where they are the world's own", () => {
    const nowhere = { pidMaxIsPerNamespace: false, countsPerUserNamespace: false };
    const everywhere = { pidMaxIsPerNamespace: true, countsPerUserNamespace: true };
    expect(initLimits(limits, nowhere, undefined)).toEqual(["nofile=65536"]);
    expect(initLimits(limits, everywhere, { name: "w", controllers: ["memory", "pids"] })).toEqual([
      "cgroup=w",
      "memory=1",
      "pids=448",
      "pid_max=876",
      "nproc=528",
      "nofile=65536",
    ]);
  });

  test("one command leaves room for others, and always has some", () => {
    expect([1, 8, 512, 4096].map((pids) => pidsOfCommand({ pids }))).toEqual([1, 7, 448, 4032]);
  });

  test("only what holds is called a limit", () => {
    const none = { controllers: [], pidMax: false, nproc: false };
    expect(heldLimits(limits, none)).toEqual({ disk: "1048576" });
    expect(heldLimits(limits, { ...none, pidMax: true })).toMatchObject({
      pids: "512 to 876 (pid namespace)",
    });
    expect(heldLimits(limits, { ...none, controllers: ["memory", "cpu", "pids"] })).toEqual({
      cpu: "0.5",
      memory: "1073741824",
      pids: "512",
      disk: "1048576",
    });
  });

  test("what a limit did is said only when something counted it", () => {
    const controlled = { controllers: ["memory", "cpu", "pids"] as const, pidMax: true, nproc: false };
    const bare = { controllers: [], pidMax: true, nproc: false };
    const nothing = { oomKill: undefined, pidsMax: undefined, seen: undefined };
    const subjects = (...words: Parameters<typeof limitViolations>): readonly string[] =>
      limitViolations(...words).map(({ subject }) => subject);
    expect(subjects(limits, bare, nothing)).toEqual([]);
    expect(subjects(limits, controlled, { oomKill: 0, pidsMax: 0, seen: 9999 })).toEqual([]);
    expect(subjects(limits, controlled, { oomKill: 2, pidsMax: 7, seen: 1 })).toEqual(["memory", "pids"]);
    expect(subjects(limits, bare, { ...nothing, seen: 511 })).toEqual([]);
    expect(subjects(limits, bare, { ...nothing, seen: 512 })).toEqual(["pids"]);
    expect(subjects(limits, { ...bare, pidMax: false }, { ...nothing, seen: 9999 })).toEqual([]);
  });

  test("the world's own file systems together hold no more than its disk", () => {
    const folders = ["/tmp", "/dev/shm", "/var/tmp", "/run"];
    const sizes = folders.map((folder) => Number(/size=(\d+),/.exec(roomOf(folder, 2 ** 30))?.[1]));
    expect(sizes.reduce((sum, size) => sum + size)).toBe(2 ** 30);
    const percents = folders.map((folder) => Number(/size=(\d+)%/.exec(roomOf(folder, undefined))?.[1]));
    expect(percents.reduce((sum, size) => sum + size)).toBeLessThanOrEqual(25);
    expect(roomOf("/run", 0)).toBe("size=4096,nr_inodes=1024");
    expect(() => roomOf("/srv", undefined)).toThrow(/'\/srv'/);
  });
});

test("the shared base goes with the last broker, and no other folder does", () => {
  const at = (name: string): string => join(root, "dropped", name);
  for (const name of ["one/substrate", "two/substrate/others", "three/user.slice"])
    mkdirSync(at(name), { recursive: true });
  for (const folder of ["one/substrate", "two/substrate", "three/user.slice"].map(at))
    dropBase({ kind: "usable", folder, controllers: [] });
  dropBase({ kind: "usable", folder: at("none/substrate"), controllers: [] });
  expect(existsSync(at("one/substrate"))).toBe(false);
  expect(existsSync(at("two/substrate/others"))).toBe(true);
  expect(existsSync(at("three/user.slice"))).toBe(true);
});
