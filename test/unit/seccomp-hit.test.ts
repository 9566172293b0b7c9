import { describe, expect, test } from "vitest";
import { type Hit, hitViolation } from "../../world/seccomp/hit.ts";

const X64 = 0xc000_003e;

describe("what a person reads of a call that log mode tells of", () => {
  const say = (hit: Partial<Hit>): { readonly subject: string; readonly message: string } =>
    hitViolation({ number: 250, audit: X64, arguments: [], count: 1, refused: 0, ...hit });

  test("names the call, that it was let through and why, and the table's reason", () => {
    expect(say({})).toEqual({
      kind: "system_call",
      subject: "keyctl",
      message:
        "The system call keyctl was allowed because the policy's world.seccomp is log. By default it is refused: keyrings are not namespaced",
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
