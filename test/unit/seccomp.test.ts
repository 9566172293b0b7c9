import { constants } from "node:os";
import { describe, expect, test } from "vitest";
import { FRAME_MAX_HITS } from "../../schemas/generated/frames.ts";
import {
  assembleFilter,
  assembleGuard,
  assembleLogFilter,
  assembleShortFilter,
} from "../../world/seccomp/assemble.ts";
import { callNumber, identifyCall } from "../../world/seccomp/numbers.ts";
import { seccompPrograms } from "../../world/seccomp/programs.ts";
import { DENIED, DENIED_TO_COMMANDS } from "../../world/seccomp/table.ts";
import { AUDIT, type Call, run } from "../support/world/bpf.ts";

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
    expect(new Set(DENIED.map(({ call }) => call)).size + refusedToo + interfaces).toBeLessThanOrEqual(
      FRAME_MAX_HITS,
    );
  });
});

describe.each(["x64", "arm64"] as const)("with a cgroup for each command, on %s", (architecture) => {
  const clone3 = { number: callNumber("clone3", architecture) ?? -1 };

  test.each(["enforce", "log"] as const)("in %s mode only clone3 moves to the command's filter", (mode) => {
    const choice = seccompPrograms(architecture)[mode];
    const [withCgroup, withoutCgroup] = [choice.withCgroup.plain, choice.withoutCgroup.plain];
    for (let number = 0; number < 600; number += 1) {
      const moved = number === clone3.number;
      const before = run(withoutCgroup.filter, architecture, { number });
      expect(run(withCgroup.filter, architecture, { number }), String(number)).toBe(moved ? ALLOW : before);
      const own = run(withCgroup.commandFilter ?? Buffer.alloc(0), architecture, { number });
      expect(own, String(number)).toBe(moved ? before : ALLOW);
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
  "the commands' own filter for %s refuses clone3 and nothing else that is the architecture's",
  (architecture) => {
    const filter = assembleShortFilter(DENIED_TO_COMMANDS, architecture);
    for (let number = 0; number < 600; number += 1) {
      const expected = number === callNumber("clone3", architecture) ? errno("ENOSYS") : ALLOW;
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
