/**
 * What no command may ask the kernel for, written out by number: a row that falls out of the table, or a number that is another
 * call's, fails here. Nothing in the list is computed from the table. Numbers: arch/x86/entry/syscalls/syscall_64.tbl and
 * include/uapi/asm-generic/unistd.h of Linux.
 */
import { constants } from "node:os";
import { describe, expect, test } from "vitest";
import type { Architecture } from "../../world/seccomp/numbers.ts";
import { assembleFilter } from "../../world/seccomp/assemble.ts";
import { type SeccompPrograms, seccompPrograms } from "../../world/seccomp/programs.ts";
import { DENIED, type SeccompRule } from "../../world/seccomp/table.ts";
import { run } from "../support/world/bpf.ts";

const ALLOW = 0x7fff_0000;
const NOTIFY = 0x7fc0_0000;
const NONE = null;

type Answer = "EPERM" | "ENOSYS" | "EAFNOSUPPORT";
type Arguments = readonly bigint[];
/** Call, number on x86_64, number on aarch64 (where there is one), answer, and arguments with which it is refused. */
type Row = readonly [string, number, number | null, Answer, Arguments?];

const REFUSED: readonly Row[] = [
  // Mounts.
  ["mount", 165, 40, "EPERM"],
  ["umount2", 166, 39, "EPERM"],
  ["pivot_root", 155, 41, "EPERM"],
  ["chroot", 161, 51, "EPERM"],
  ["move_mount", 429, 429, "EPERM"],
  ["open_tree", 428, 428, "EPERM"],
  ["fsopen", 430, 430, "EPERM"],
  ["fsconfig", 431, 431, "EPERM"],
  ["fsmount", 432, 432, "EPERM"],
  ["fspick", 433, 433, "EPERM"],
  ["mount_setattr", 442, 442, "EPERM"],
  ["open_tree_attr", 467, 467, "EPERM"],
  // Namespaces.
  ["unshare", 272, 97, "EPERM"],
  ["setns", 308, 268, "EPERM"],
  ["clone", 56, 220, "EPERM", [0x0000_0080n]], // CLONE_NEWTIME
  ["clone", 56, 220, "EPERM", [0x0002_0000n]], // CLONE_NEWNS
  ["clone", 56, 220, "EPERM", [0x0200_0000n]], // CLONE_NEWCGROUP
  ["clone", 56, 220, "EPERM", [0x0400_0000n]], // CLONE_NEWUTS
  ["clone", 56, 220, "EPERM", [0x0800_0000n]], // CLONE_NEWIPC
  ["clone", 56, 220, "EPERM", [0x1000_0000n]], // CLONE_NEWUSER
  ["clone", 56, 220, "EPERM", [0x2000_0000n]], // CLONE_NEWPID
  ["clone", 56, 220, "EPERM", [0x4000_0000n]], // CLONE_NEWNET
  ["clone3", 435, 435, "ENOSYS"],
  // The kernel itself.
  ["bpf", 321, 280, "EPERM"],
  ["perf_event_open", 298, 241, "EPERM"],
  ["userfaultfd", 323, 282, "EPERM"],
  ["io_uring_setup", 425, 425, "ENOSYS"],
  ["io_uring_enter", 426, 426, "ENOSYS"],
  ["io_uring_register", 427, 427, "ENOSYS"],
  ["kexec_load", 246, 104, "EPERM"],
  ["kexec_file_load", 320, 294, "EPERM"],
  ["init_module", 175, 105, "EPERM"],
  ["finit_module", 313, 273, "EPERM"],
  ["delete_module", 176, 106, "EPERM"],
  ["syslog", 103, 116, "EPERM"],
  // Hardware and rarely tested processor state.
  ["iopl", 172, NONE, "EPERM"],
  ["ioperm", 173, NONE, "EPERM"],
  ["modify_ldt", 154, NONE, "EPERM"],
  // The machine's.
  ["reboot", 169, 142, "EPERM"],
  ["swapon", 167, 224, "EPERM"],
  ["swapoff", 168, 225, "EPERM"],
  ["acct", 163, 89, "EPERM"],
  ["quotactl", 179, 60, "EPERM"],
  ["quotactl_fd", 443, 443, "EPERM"],
  ["vhangup", 153, 58, "EPERM"],
  ["sethostname", 170, 161, "EPERM"],
  ["setdomainname", 171, 162, "EPERM"],
  // Clocks.
  ["settimeofday", 164, 170, "EPERM"],
  ["clock_settime", 227, 112, "EPERM"],
  ["clock_adjtime", 305, 266, "EPERM"],
  // Keyrings.
  ["add_key", 248, 217, "EPERM"],
  ["request_key", 249, 218, "EPERM"],
  ["keyctl", 250, 219, "EPERM"],
  // Files past the mounts.
  ["open_by_handle_at", 304, 265, "EPERM"],
  ["fanotify_init", 300, 262, "EPERM"],
  // Terminals: TIOCSTI and TIOCLINUX.
  ["ioctl", 16, 29, "EPERM", [0n, 0x5412n]],
  ["ioctl", 16, 29, "EPERM", [0n, 0x541cn]],
  // Address families: ALG, VSOCK, PACKET, BLUETOOTH; of netlink AUDIT, NETFILTER and KOBJECT_UEVENT.
  ["socket", 41, 198, "EAFNOSUPPORT", [38n]],
  ["socket", 41, 198, "EAFNOSUPPORT", [40n]],
  ["socket", 41, 198, "EAFNOSUPPORT", [17n]],
  ["socket", 41, 198, "EAFNOSUPPORT", [31n]],
  ["socket", 41, 198, "EAFNOSUPPORT", [16n, 3n, 9n]],
  ["socket", 41, 198, "EAFNOSUPPORT", [16n, 3n, 12n]],
  ["socket", 41, 198, "EAFNOSUPPORT", [16n, 3n, 15n]],
  // READ_IMPLIES_EXEC and ADDR_COMPAT_LAYOUT.
  ["personality", 135, 92, "EPERM", [0x0040_0000n]],
  ["personality", 135, 92, "EPERM", [0x0020_0000n]],
  ["prlimit64", 302, 261, "EPERM", [1n]],
  ["prlimit64", 302, 261, "EPERM", [2n]],
  // Priority and processors of PID 1 and the forker; of all processes of a user.
  ["sched_setscheduler", 144, 119, "EPERM", [2n]],
  ["sched_setparam", 142, 118, "EPERM", [2n]],
  ["sched_setattr", 314, 274, "EPERM", [1n]],
  ["sched_setaffinity", 203, 122, "EPERM", [2n]],
  ["setpriority", 141, 140, "EPERM", [0n, 2n]],
  ["setpriority", 141, 140, "EPERM", [1n, 1n]],
  ["setpriority", 141, 140, "EPERM", [2n, 1000n]],
  ["ioprio_set", 251, 30, "EPERM", [1n, 2n]],
  ["ioprio_set", 251, 30, "EPERM", [3n, 0n]],
  // F_SETLEASE and F_SETDELEG.
  ["fcntl", 72, 25, "EPERM", [3n, 1024n]],
  ["fcntl", 72, 25, "EPERM", [3n, 1040n]],
];

/** What every program does: read, write, open, execve, fork, threads, sockets, a terminal's size. */
const PASSES: readonly (readonly [string, number, number, Arguments?])[] = [
  ["read", 0, 63],
  ["write", 1, 64],
  ["openat", 257, 56],
  ["execve", 59, 221],
  ["clone with SIGCHLD", 56, 220, [17n]],
  ["clone of a thread", 56, 220, [0x3d_0f00n]],
  ["socket AF_UNIX", 41, 198, [1n]],
  ["socket AF_INET6", 41, 198, [10n]],
  ["socket NETLINK_ROUTE", 41, 198, [16n, 3n, 0n]],
  ["ioctl TIOCGWINSZ", 16, 29, [0n, 0x5413n]],
  ["personality that is asked for", 135, 92, [0xffff_ffffn]],
  ["fcntl F_GETLEASE", 72, 25, [3n, 1025n]],
  ["fcntl F_SETLK", 72, 25, [3n, 6n]],
  ["prlimit64 of the caller", 302, 261, [0n]],
  ["sched_setaffinity of the caller", 203, 122, [0n]],
  ["sched_setscheduler of another process", 144, 119, [25n]],
  ["setpriority of the caller (nice)", 141, 140, [0n, 0n]],
  ["setpriority of a process group", 141, 140, [1n, 25n]],
  ["ioprio_set of the caller (ionice)", 251, 30, [1n, 0n]],
  ["prlimit64 of another process", 302, 261, [25n]],
];

const ARCHITECTURES = ["x64", "arm64"] as const;

/** The rows that these filters, one after the other as the kernel asks them, do not answer as written. */
function wrong(
  filters: readonly Uint8Array[],
  architecture: Architecture,
  refusals: readonly number[] = [],
): readonly string[] {
  return REFUSED.flatMap(([call, x64, arm64, answer, values = []]) => {
    const number = architecture === "x64" ? x64 : arm64;
    if (number === null) return [];
    const answers = filters.map((filter) => run(filter, architecture, { number, arguments: values }));
    const expected = [0x0005_0000 | constants.errno[answer], ...refusals];
    return answers.some((one) => expected.includes(one)) ? [] : [`${call}(${values.join(", ")})`];
  });
}

function filtersOf({ filter, commandFilter }: SeccompPrograms): readonly Uint8Array[] {
  return commandFilter === undefined ? [filter] : [filter, commandFilter];
}

describe.each(ARCHITECTURES)("on %s", (architecture) => {
  const programs = seccompPrograms(architecture);
  const [enforce, log] = [programs("closed"), programs("log")];

  test("each of these calls is refused by its number, with cgroups and without", () => {
    for (const { plain, recording } of [enforce.withCgroup, enforce.withoutCgroup])
      for (const each of [plain, recording]) expect(wrong(filtersOf(each), architecture)).toEqual([]);
  });

  test("log mode is told of each, or refuses it", () => {
    for (const { plain, recording } of [log.withCgroup, log.withoutCgroup])
      for (const each of [plain, recording])
        expect(wrong(filtersOf(each), architecture, [NOTIFY])).toEqual([]);
  });

  test("a world open to namespaces lets these through and no other", () => {
    const namespaces = [
      ...["chroot()", "unshare()", "clone(67108864)", "clone(134217728)", "clone(268435456)"],
      ...["clone(536870912)", "clone(1073741824)"],
    ];
    const mounts = ["mount()", "umount2()", "pivot_root()", ...namespaces, "clone(131072)"];
    for (const [mode, passes] of [
      ["namespaces", namespaces],
      ["mounts", mounts],
    ] as const) {
      for (const each of [programs(mode).withCgroup.plain, programs(mode).withoutCgroup.recording]) {
        const answered = wrong(filtersOf(each), architecture, [0x0005_0000 | constants.errno.ENOSYS]);
        expect([...answered].sort()).toEqual([...passes].sort());
      }
    }
  });

  test("what every program does passes", () => {
    const [filter = Buffer.alloc(0)] = filtersOf(enforce.withoutCgroup.plain);
    for (const [call, x64, arm64, values = []] of PASSES) {
      const number = architecture === "x64" ? x64 : arm64;
      expect(run(filter, architecture, { number, arguments: values }), call).toBe(ALLOW);
    }
  });
});

test("a table without any one of its rows is noticed", () => {
  const unnoticed = DENIED.filter((gone) => {
    const rest: readonly SeccompRule[] = DENIED.filter((rule) => rule !== gone);
    return wrong([assembleFilter(rest, "x64")], "x64").length === 0;
  });
  expect(unnoticed.map(({ call }) => call)).toEqual([]);
});

test("the list has every call of the table, and the table every call of the list", () => {
  const listed = new Set(REFUSED.map(([call]) => call));
  expect([...new Set(DENIED.map(({ call }) => call))].sort()).toEqual([...listed].sort());
});
