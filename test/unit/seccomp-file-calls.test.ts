import { describe, expect, test } from "vitest";
import { FILE_CALLS, NAMING_CALLS } from "../../world/seccomp/file-calls.ts";
import { callNumber } from "../../world/seccomp/numbers.ts";
import { seccompPrograms } from "../../world/seccomp/programs.ts";
import { SOCKET_CALLS } from "../../world/seccomp/socket-calls.ts";
import { START_CALLS } from "../../world/seccomp/start-calls.ts";
import { run } from "../support/world/bpf.ts";

const ALLOW = 0x7fff_0000;
const NOTIFY = 0x7fc0_0000;

describe.each(["x64", "arm64"] as const)("calls that change files, on %s", (architecture) => {
  const { enforce, log } = seccompPrograms(architecture);
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
      const before = run(plain.commandFilter ?? Buffer.alloc(0), architecture, call);
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
