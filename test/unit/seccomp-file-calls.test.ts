import { describe, expect, test } from "vitest";
import { FILE_CALLS } from "../../world/seccomp/file-calls.ts";
import { callNumber } from "../../world/seccomp/numbers.ts";
import { seccompPrograms } from "../../world/seccomp/programs.ts";
import { START_CALLS } from "../../world/seccomp/start-calls.ts";
import { run } from "../bpf.ts";

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
    const told = new Set([...FILE_CALLS, ...START_CALLS].map(({ call }) => number(call)));
    const { plain, recording } = enforce.withCgroup;
    for (let each = 0; each < 600; each += 1) {
      if (told.has(each)) continue;
      const call = { number: each };
      const before = run(plain.commandFilter ?? Buffer.alloc(0), architecture, call);
      expect(run(recording.recordFilter ?? Buffer.alloc(0), architecture, call), String(each)).toBe(before);
      expect(run(log.withCgroup.recording.filter, architecture, call), String(each)).toBe(
        run(log.withCgroup.plain.filter, architecture, call),
      );
    }
  });

  test("are not asked about where an overlay holds what is changed", () => {
    const { recordFilter } = enforce.withCgroup.plain;
    for (const filter of [recordFilter ?? Buffer.alloc(0), log.withCgroup.plain.filter]) {
      expect(run(filter, architecture, { number: number("unlinkat") ?? -1 })).toBe(ALLOW);
      for (const { call } of START_CALLS)
        expect(run(filter, architecture, { number: number(call) ?? -1 })).toBe(NOTIFY);
    }
  });
});
