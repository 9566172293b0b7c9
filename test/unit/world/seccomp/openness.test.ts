import { constants } from "node:os";
import { describe, expect, test } from "vitest";
import { callNumber } from "../../../../world/seccomp/numbers.ts";
import { namespaceState, namespaceViolation, opennessOf } from "../../../../world/seccomp/openness.ts";
import { type SeccompMode, seccompPrograms } from "../../../../world/seccomp/programs.ts";
import { DENIED, deniedIn } from "../../../../world/seccomp/table.ts";
import { run } from "../../../support/world/bpf.ts";

const ALLOW = 0x7fff_0000;
const NOTIFY = 0x7fc0_0000;

function errno(name: keyof typeof constants.errno): number {
  return 0x0005_0000 | constants.errno[name];
}

const [DIRECT, OVERLAY] = [{ kind: "direct" }, { kind: "overlay", layers: "/l" }] as const;
const SPEC = {
  project: "/p",
  identity: "1",
  access: OVERLAY,
  files: { read: [], denyRead: [], write: [], denyWrite: [], seal: [] },
  hidden: [],
  sealed: [],
  limits: {},
  seccomp: "enforce",
  namespaces: "allow",
  network: { ports: [], ranges: [] },
} as const;
const FACTS = { userNamespace: true, isDirect: true, overlayKeepsMasks: true };

describe("a world opens", () => {
  const state = (spec: object = {}, facts: object = {}): string =>
    namespaceState({ ...SPEC, ...spec }, { ...FACTS, ...facts });

  test("to mounts only over an overlay, without a bound git folder, on a kernel whose overlays keep masks", () => {
    expect(state()).toBe("mounts");
    expect(state({ access: DIRECT })).toBe("namespaces");
    expect(state({ gitFolder: "/git" })).toBe("namespaces");
    expect(state({}, { overlayKeepsMasks: false })).toBe("namespaces");
  });

  test("not at all without the key, in log mode, in a container, or for root", () => {
    const { namespaces: _left, ...closed } = SPEC;
    expect(namespaceState(closed, FACTS)).toBe("denied");
    expect(state({ seccomp: "log" })).toBe("log");
    expect(state({}, { isDirect: false })).toBe("container");
    expect(state({}, { userNamespace: false })).toBe("root");
    for (const closed of ["denied", "log", "container", "root"] as const)
      expect(opennessOf(closed)).toBe("closed");
  });
});

test.each([
  [0x1000_0000n, "denied", "'world.namespaces: allow', or without its sandbox"],
  [0x1002_0000n, "namespaces", "isolated commands alone"],
  [0x1200_0000n, "namespaces", "cgroup and time namespaces"],
  [0x1200_0000n, "mounts", "cgroup and time namespaces"],
  [0x1000_0000n, "root", "runs as root"],
] as const)("what a person reads of unshare(%s) where the state is %s", (flags, state, words) => {
  const hit = { number: 272, audit: 0xc000_003e, arguments: [flags], count: 3, refused: 1 };
  const violation = namespaceViolation(hit, state);
  expect(violation).toMatchObject({ kind: "namespace", subject: "unshare" });
  expect(violation.message).toMatch(
    /^The system call unshare\(CLONE_NEW[A-Z]+( \| CLONE_NEW[A-Z]+)*\) was refused with EPERM: /,
  );
  expect(violation.message).toContain(words);
});

describe.each(["x64", "arm64"] as const)("a world open to namespaces, on %s", (architecture) => {
  const number = (call: string): number => callNumber(call, architecture) ?? -1;
  const answers = (mode: "namespaces" | "mounts", call: string, ...words: bigint[]): readonly number[] => {
    const { filter, commandFilter, recordFilter } = seccompPrograms(architecture)(mode).withCgroup.plain;
    return [filter, commandFilter, recordFilter].map((program) =>
      run(program ?? Buffer.alloc(0), architecture, { number: number(call), arguments: words }),
    );
  };
  const FREE = [ALLOW, ALLOW, ALLOW];
  const REPORTED = [ALLOW, errno("EPERM"), NOTIFY];
  const CHROMIUM = 0x7000_0011n;
  const [MOUNT, CGROUP, TIME] = [0x2_0000n, 0x200_0000n, 0x80n];

  test.each(["namespaces", "mounts"] as const)("(%s) lets through what Chromium's sandbox calls", (mode) => {
    expect(answers(mode, "clone", CHROMIUM)).toEqual(FREE);
    expect(answers(mode, "unshare", CHROMIUM)).toEqual(FREE);
    expect(answers(mode, "chroot")).toEqual(FREE);
  });

  test("leaves mounts to the kernel in the one that keeps them, and refuses them in the other", () => {
    for (const call of ["mount", "umount2", "pivot_root"]) {
      expect(answers("mounts", call), call).toEqual(FREE);
      expect(answers("namespaces", call)[0], call).toBe(errno("EPERM"));
    }
    for (const call of ["clone", "unshare"]) {
      expect(answers("mounts", call, CHROMIUM | MOUNT)).toEqual(FREE);
      expect(answers("namespaces", call, CHROMIUM | MOUNT)).toEqual(REPORTED);
    }
    expect(answers("mounts", "fsopen")[0]).toBe(errno("ENOSYS"));
  });

  test.each(["namespaces", "mounts"] as const)("(%s) reports cgroup and time namespaces", (mode) => {
    for (const flag of [CGROUP, TIME])
      for (const call of ["clone", "unshare"]) expect(answers(mode, call, CHROMIUM | flag)).toEqual(REPORTED);
  });

  test.each(["namespaces", "mounts"] as const)(
    "(%s) closes the packet tables, and keeps every other row",
    (mode) => {
      for (const level of [0n, 41n]) {
        for (const option of [64n, 65n, 96n, 97n, 128n, 129n])
          expect(answers(mode, "setsockopt", 3n, level, option)[0]).toBe(errno("EPERM"));
        expect(answers(mode, "setsockopt", 3n, level, 2n)).toEqual(FREE);
      }
      expect(answers(mode, "setsockopt", 3n, 1n, 64n)).toEqual(FREE);
      const kept = new Set(deniedIn(mode).map(({ call }) => call));
      const opened = DENIED.map(({ call }) => call).filter((call) => !kept.has(call));
      expect([...new Set(opened)].sort()).toEqual(
        mode === "mounts" ? ["chroot", "mount", "pivot_root", "umount2"] : ["chroot"],
      );
    },
  );
});

describe.each(["x64", "arm64"] as const)(
  "a world whose user namespace maps one user, on %s",
  (architecture) => {
    const programs = seccompPrograms(architecture);
    const answer = (mode: SeccompMode, call: string, ...words: number[]): number | undefined => {
      const number = callNumber(call, architecture);
      if (number === null) return undefined;
      const { filter } = programs(mode, { oneUser: { uid: 1000, gid: 100 } }).withCgroup.plain;
      return run(filter, architecture, { number, arguments: words.map(BigInt) });
    };
    const SAME = 0xffff_ffff;

    test("refuses other ids as the kernel refuses them outside, and lets its own pass", () => {
      for (const call of ["chown", "lchown", "fchown"]) {
        if (callNumber(call, architecture) === null) continue;
        expect(answer("closed", call, 0, 1000, 100), call).toBe(ALLOW);
        expect(answer("closed", call, 0, SAME, SAME), call).toBe(ALLOW);
        expect(answer("closed", call, 0, 0, SAME), call).toBe(errno("EPERM"));
        expect(answer("closed", call, 0, SAME, 1000), call).toBe(errno("EPERM"));
      }
      expect(answer("closed", "fchownat", 0, 0, 1000, 0)).toBe(errno("EPERM"));
      expect(answer("closed", "fchownat", 0, 0, 1000, 100)).toBe(ALLOW);
      expect(answer("closed", "setresuid", 1000, SAME, 0)).toBe(errno("EPERM"));
      expect(answer("closed", "setresuid", 1000, SAME, 1000)).toBe(ALLOW);
      expect(answer("closed", "setregid", 100, 1000)).toBe(errno("EPERM"));
      expect(answer("closed", "setuid", 0)).toBe(errno("EPERM"));
      expect(answer("closed", "setgid", 100)).toBe(ALLOW);
    });

    test.each(["namespaces", "mounts", "log"] as const)("(%s) leaves them to the kernel", (mode) => {
      expect(answer(mode, "fchown", 3, 0, 0)).toBe(ALLOW);
      expect(answer(mode, "setuid", 0)).toBe(ALLOW);
    });
  },
);
