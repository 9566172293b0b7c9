import { constants } from "node:os";
import { describe, expect, test } from "vitest";
import { FRAME_MAX_HITS } from "../../../../schemas/generated/frames.ts";
import {
  assembleFilter,
  assembleGuard,
  assembleLogFilter,
  assembleShortFilter,
} from "../../../../world/seccomp/assemble.ts";
import { FILE_CALLS, NAMING_CALLS } from "../../../../world/seccomp/file-calls.ts";
import { type Hit, hitViolation } from "../../../../world/seccomp/hit.ts";
import { callNumber, identifyCall } from "../../../../world/seccomp/numbers.ts";
import { seccompPrograms } from "../../../../world/seccomp/programs.ts";
import { SOCKET_CALLS } from "../../../../world/seccomp/socket-calls.ts";
import { START_CALLS } from "../../../../world/seccomp/start-calls.ts";
import { DENIED, dividedRows } from "../../../../world/seccomp/table.ts";
import { AUDIT, type Call, run } from "../../../support/world/bpf.ts";

const ALLOW = 0x7fff_0000;
const KILL = 0x8000_0000;
const NOTIFY = 0x7fc0_0000;
const I386 = 0x4000_0003;

function errno(name: keyof typeof constants.errno): number {
  return 0x0005_0000 | constants.errno[name];
}

describe.each(["x64", "arm64"] as const)("the filter for %s", (architecture) => {
  const filter = assembleFilter(DENIED, architecture);
  const ask = (name: string, ...words: bigint[]): number =>
    run(filter, architecture, { number: callNumber(name, architecture) ?? -1, arguments: words });

  test("answers each unconditional row of the table as the row says", () => {
    for (const rule of DENIED.filter(
      ({ when, call }) => when === undefined && callNumber(call, architecture) !== null,
    )) {
      expect(ask(rule.call), rule.call).toBe(errno(rule.action));
    }
  });

  test("allows every number that no row names", () => {
    const named = new Set(DENIED.map(({ call }) => callNumber(call, architecture)));
    for (let number = 0; number < 600; number += 1) {
      if (!named.has(number)) expect(run(filter, architecture, { number }), String(number)).toBe(ALLOW);
    }
  });

  test("refuses namespaces by clone and lets threads and processes pass", () => {
    for (const flag of [
      0x2_0000n,
      0x200_0000n,
      0x400_0000n,
      0x800_0000n,
      0x1000_0000n,
      0x2000_0000n,
      0x4000_0000n,
      0x80n,
    ]) {
      expect(ask("clone", flag | 17n)).toBe(errno("EPERM"));
    }
    for (const flags of [17n, 0x3d_0f00n, 0x4100n | 17n, 0x120_0011n])
      expect(ask("clone", flags)).toBe(ALLOW);
  });

  test("sees a terminal's ioctl through high bits that the kernel does not look at", () => {
    for (const high of [0n, 1n << 32n, 0xffff_ffffn << 32n]) {
      expect(ask("ioctl", 0n, high | 0x5412n)).toBe(errno("EPERM"));
      expect(ask("ioctl", 0n, high | 0x541cn)).toBe(errno("EPERM"));
      expect(ask("ioctl", 0n, high | 0x5413n)).toBe(ALLOW);
    }
  });

  test("opens sockets of four families, and netlink for two purposes", () => {
    for (const family of [1n, 2n, 10n]) expect(ask("socket", family, 1n, 0n)).toBe(ALLOW);
    for (const family of [3n, 17n, 38n, 40n, 44n])
      expect(ask("socket", family, 1n, 0n)).toBe(errno("EAFNOSUPPORT"));
    for (const protocol of [0n, 4n]) expect(ask("socket", 16n, 3n, protocol)).toBe(ALLOW);
    for (const protocol of [9n, 12n, 15n])
      expect(ask("socket", 16n, 3n, protocol)).toBe(errno("EAFNOSUPPORT"));
  });

  test("tells a personality that is asked for from one that undoes hardening", () => {
    for (const harmless of [0xffff_ffffn, 0n, 8n, 0x4_0000n])
      expect(ask("personality", harmless)).toBe(ALLOW);
    expect(ask("personality", 0x40_0000n)).toBe(errno("EPERM"));
  });

  test("ends a process that calls by another architecture's numbers", () => {
    expect(run(filter, architecture, { number: 1, audit: 0x4000_0003 })).toBe(KILL);
  });
});

describe.each(["x64", "arm64"] as const)("log mode for %s", (architecture) => {
  const enforced = assembleFilter(DENIED, architecture);
  const logged = assembleLogFilter(DENIED, architecture);
  const guard = assembleGuard(DENIED, architecture);
  const words = [
    [],
    [0x1000_0000n],
    [0x400n],
    [40n],
    [38n],
    [16n, 3n, 12n],
    [0n, 0x5412n],
    [0x40_0000n],
    [(1n << 32n) | 40n],
  ];
  const calls = Array.from({ length: 600 }, (_each, number) =>
    words.map((values): Call => ({ number, arguments: values })),
  ).flat();
  const guarded = (name: string, ...values: bigint[]): number =>
    run(guard, architecture, { number: callNumber(name, architecture) ?? -1, arguments: values });

  test("asks about each call that enforce mode refuses, and about no other", () => {
    const clone3 = callNumber("clone3", architecture);
    for (const call of calls.filter(({ number }) => number !== clone3)) {
      const wanted = run(enforced, architecture, call) === ALLOW ? ALLOW : NOTIFY;
      expect(run(logged, architecture, call), String(call.number)).toBe(wanted);
    }
    expect(run(logged, architecture, { number: 1, audit: I386 })).toBe(NOTIFY);
  });

  test("answers clone3 by itself: every thread begins with it, and its flags cannot be seen", () => {
    expect(run(logged, architecture, { number: callNumber("clone3", architecture) ?? -1 })).toBe(
      errno("ENOSYS"),
    );
  });

  test("keeps refusing what would open files or the network, or hide calls", () => {
    expect(guarded("unshare", 0x1000_0000n)).toBe(errno("EPERM"));
    expect(guarded("clone", 0x1002_0011n)).toBe(errno("EPERM"));
    expect(guarded("socket", 40n, 1n, 0n)).toBe(errno("EAFNOSUPPORT"));
    for (const call of ["io_uring_setup", "io_uring_enter", "io_uring_register", "clone3"])
      expect(guarded(call), call).toBe(errno("ENOSYS"));
    expect(run(guard, architecture, { number: 20, audit: I386 })).toBe(errno("ENOSYS"));
  });

  test("lets everything else through", () => {
    expect(guarded("unshare", 0x400n)).toBe(ALLOW);
    expect(guarded("clone", 0x4000_0011n)).toBe(ALLOW);
    expect(guarded("socket", 38n, 5n, 0n)).toBe(ALLOW);
    for (const { call } of DENIED.filter(
      ({ inLogMode, call }) => inLogMode === undefined && callNumber(call, architecture) !== null,
    )) {
      if (call !== "socket") expect(guarded(call, 1n), call).toBe(ALLOW);
    }
  });

  test("never refuses what enforce mode allows", () => {
    for (const call of calls) {
      if (run(enforced, architecture, call) === ALLOW)
        expect(run(guard, architecture, call), String(call.number)).toBe(ALLOW);
    }
  });

  test("knows each call of the table by its number", () => {
    for (const { call } of DENIED) {
      const number = callNumber(call, architecture);
      if (number !== null) expect(identifyCall(number, AUDIT[architecture])).toMatchObject({ call });
    }
  });

  test("can tell all kinds of calls of one command apart", () => {
    const refusedToo = DENIED.filter(({ inLogMode }) => inLogMode?.told === true).length;
    const interfaces = 2;
    const seen = new Set(DENIED.filter(({ inLogMode }) => inLogMode?.told !== false).map(({ call }) => call));
    expect(seen.size + refusedToo + interfaces).toBeLessThanOrEqual(FRAME_MAX_HITS);
  });
});

describe.each(["x64", "arm64"] as const)("with a cgroup for each command, on %s", (architecture) => {
  const clone3 = { number: callNumber("clone3", architecture) ?? -1 };

  test.each(["closed", "log"] as const)("in %s mode only clone3 moves to the command's filter", (mode) => {
    const choice = seccompPrograms(architecture)(mode);
    const [withCgroup, withoutCgroup] = [choice.withCgroup.plain, choice.withoutCgroup.plain];
    const unshare = callNumber("unshare", architecture);
    for (let number = 0; number < 600; number += 1) {
      const moved = number === clone3.number;
      const before = run(withoutCgroup.filter, architecture, { number });
      expect(run(withCgroup.filter, architecture, { number }), String(number)).toBe(moved ? ALLOW : before);
      const own = run(withCgroup.commandFilter ?? Buffer.alloc(0), architecture, { number });
      const reported = mode === "closed" && number === unshare;
      expect(own, String(number)).toBe(reported ? errno("EPERM") : moved ? before : ALLOW);
    }
    expect(run(withoutCgroup.filter, architecture, clone3)).toBe(errno("ENOSYS"));
    expect(withCgroup.guard).toEqual(withoutCgroup.guard);
  });
});

test("the log filter asks about x32, and the guard refuses it", () => {
  const call = { number: 39 | 0x4000_0000 };
  expect(run(assembleLogFilter(DENIED, "x64"), "x64", call)).toBe(NOTIFY);
  expect(run(assembleGuard(DENIED, "x64"), "x64", call)).toBe(errno("ENOSYS"));
});

test("what nobody is told of is refused as a whole: the filter cannot do one half and a listener the other", () => {
  for (const { call, inLogMode } of DENIED) {
    if (inLogMode?.told === false) expect(inLogMode.when, call).toBeUndefined();
  }
});
test.each(["x64", "arm64"] as const)(
  "the commands' own filter for %s refuses clone3, unshare and namespaces by clone, and nothing else that is the architecture's",
  (architecture) => {
    const filter = assembleShortFilter(dividedRows(DENIED, true).commands, architecture);
    const [clone, clone3, unshare] = ["clone", "clone3", "unshare"].map((call) =>
      callNumber(call, architecture),
    );
    expect(run(filter, architecture, { number: clone ?? -1, arguments: [0x1000_0011n] })).toBe(
      errno("EPERM"),
    );
    for (let number = 0; number < 600; number += 1) {
      const expected = number === clone3 ? errno("ENOSYS") : number === unshare ? errno("EPERM") : ALLOW;
      expect(run(filter, architecture, { number }), String(number)).toBe(expected);
    }
  },
);

test("the x32 interface is refused", () => {
  expect(run(assembleFilter(DENIED, "x64"), "x64", { number: 39 | 0x4000_0000 })).toBe(errno("ENOSYS"));
});

test("every row gives a reason, and another where it holds in log mode too", () => {
  for (const { call, reason, inLogMode } of DENIED) {
    expect(reason.length, call).toBeGreaterThan(10);
    if (inLogMode !== undefined) expect(inLogMode.reason.length, call).toBeGreaterThan(10);
  }
});

describe.each(["x64", "arm64"] as const)("calls that change files, on %s", (architecture) => {
  const programs = seccompPrograms(architecture);
  const [enforce, log] = [programs("closed"), programs("log")];
  const filters = [
    enforce.withCgroup.recording.recordFilter,
    enforce.withoutCgroup.recording.recordFilter,
    log.withCgroup.recording.filter,
    log.withoutCgroup.recording.filter,
  ].map((filter) => filter ?? Buffer.alloc(0));
  const number = (call: string): number | null => callNumber(call, architecture);

  test("are told whatever they ask, and opening a file when it is for writing or making it", () => {
    for (const { call, when } of FILE_CALLS) {
      const called = number(call);
      if (called === null) continue;
      const at = when?.[0]?.argument ?? 0;
      const ask = (flags: bigint) =>
        filters.map((filter) =>
          run(filter, architecture, { number: called, arguments: [...Array<bigint>(at).fill(0n), flags] }),
        );
      for (const flags of [1n, 2n, 0o101n, 0o1000n, 0o20200002n])
        expect(new Set(ask(flags))).toEqual(new Set([NOTIFY]));
      // O_RDONLY with O_CLOEXEC, O_DIRECTORY and O_PATH.
      for (const flags of [0n, 0o2000000n, 0o200000n, 0o10000000n])
        expect(new Set(ask(flags)), call).toEqual(new Set([when === undefined ? NOTIFY : ALLOW]));
    }
  });

  test("are all that a command's filter asks about, and what it refuses stays refused", () => {
    const told = new Set([...FILE_CALLS, ...START_CALLS, ...SOCKET_CALLS].map(({ call }) => number(call)));
    const naming = new Set(NAMING_CALLS.map(({ call }) => number(call)));
    const { plain, recording } = enforce.withCgroup;
    for (let each = 0; each < 600; each += 1) {
      if (told.has(each)) continue;
      const call = { number: each };
      // PID 1 refuses and reports unshare.
      const refused = run(plain.commandFilter ?? Buffer.alloc(0), architecture, call);
      const before = each === number("unshare") ? NOTIFY : refused;
      if (!naming.has(each))
        expect(run(recording.recordFilter ?? Buffer.alloc(0), architecture, call), String(each)).toBe(before);
      expect(run(log.withCgroup.recording.filter, architecture, call), String(each)).toBe(
        run(log.withCgroup.plain.filter, architecture, call),
      );
    }
  });

  test("are told where they bind a socket or make a subvolume, and other ioctls are not", () => {
    const filter = enforce.withCgroup.recording.recordFilter ?? Buffer.alloc(0);
    const ioctl = (request: bigint): number =>
      run(filter, architecture, { number: number("ioctl") ?? -1, arguments: [3n, request] });
    expect(run(filter, architecture, { number: number("bind") ?? -1 })).toBe(NOTIFY);
    // A snapshot, a subvolume and their second versions on btrfs; a subvolume on bcachefs; a reflink on OCFS2.
    for (const request of [0x50009401n, 0x5000940en, 0x50009417n, 0x50009418n, 0x4020bc10n, 0x40186f04n])
      for (const high of [0n, 1n << 32n]) expect(ioctl(high | request)).toBe(NOTIFY);
    // TCGETS, and a copy of a file's data on btrfs.
    for (const request of [0x5401n, 0x40049409n]) expect(ioctl(request)).toBe(ALLOW);
  });

  test("are not asked about where an overlay holds what is changed", () => {
    const { recordFilter } = enforce.withCgroup.plain;
    for (const filter of [recordFilter ?? Buffer.alloc(0), log.withCgroup.plain.filter]) {
      expect(run(filter, architecture, { number: number("unlinkat") ?? -1 })).toBe(ALLOW);
      for (const { call } of START_CALLS)
        expect(run(filter, architecture, { number: number(call) ?? -1 })).toBe(NOTIFY);
    }
  });

  test("connect is asked about in every world, and sendto where it has an address", () => {
    const every = [enforce, log].flatMap(({ withCgroup, withoutCgroup }) =>
      [withCgroup, withoutCgroup].flatMap(({ plain, recording }) => [
        plain.recordFilter ?? plain.filter,
        recording.recordFilter ?? recording.filter,
      ]),
    );
    // The address at a place whose low half is 0: its length is what counts.
    const named = [3n, 0n, 5n, 0n, 0x7000_0000_0000n, 16n];
    const unnamed = [3n, 0n, 5n, 0n, 0x7fff_1234_5678n, 0n];
    for (const filter of every) {
      expect(run(filter, architecture, { number: number("connect") ?? -1 })).toBe(NOTIFY);
      const send = number("sendto") ?? -1;
      expect(run(filter, architecture, { number: send, arguments: named })).toBe(NOTIFY);
      expect(run(filter, architecture, { number: send, arguments: unnamed })).toBe(ALLOW);
    }
  });
});

const X64 = 0xc000_003e;

describe("what a person reads of a call that log mode tells of", () => {
  const say = (hit: Partial<Hit>): { readonly subject: string; readonly message: string } =>
    hitViolation({ number: 250, audit: X64, arguments: [], count: 1, refused: 0, ...hit });

  test("names the call, that it was let through and why, and the table's reason", () => {
    expect(say({})).toEqual({
      kind: "system_call",
      subject: "keyctl",
      message:
        "The system call keyctl was allowed because the policy's world.seccomp is log. By default the call is refused: keyrings have no namespace, so they would be shared with the host",
    });
  });

  test("counts, and says what was refused all the same", () => {
    expect(say({ count: 10_000 }).message).toContain("log, 10000 times so far. By default");
    expect(say({ number: 272, arguments: [0x1000_0000n], refused: 1 }).message).toMatch(
      /^The system call unshare was refused with EPERM although the policy's world.seccomp is log: a nested user namespace can detach/,
    );
  });

  test("picks the row by the arguments that decided, without their high halves", () => {
    expect(say({ number: 41, arguments: [(7n << 32n) | 38n, 5n, 0n] }).message).toMatch(
      /^The system call socket \(argument 1: 0x26\) was allowed .*address families/,
    );
    expect(say({ number: 41, arguments: [16n, 3n, 12n] }).message).toMatch(
      /^The system call socket \(argument 1: 0x10, argument 3: 0xc\) was allowed .*of netlink/,
    );
    expect(say({ number: 16, arguments: [0n, 0x5412n] }).message).toContain("argument 2: 0x5412");
  });

  test("says which other interface a call came by", () => {
    expect(say({ number: 20, audit: 0x4000_0003, refused: 38 })).toMatchObject({
      subject: "i386:20",
      message: expect.stringMatching(
        /^The system call 20 of the i386 interface was refused with ENOSYS although/,
      ),
    });
    expect(say({ number: 0x4000_0027, refused: 38 }).subject).toBe("x32:39");
    expect(say({ number: 117, audit: 0xc000_00b7 }).subject).toBe("arm64:117");
    expect(say({ number: 217, audit: 0xc000_00b7 }).subject).toBe("add_key");
  });
});
