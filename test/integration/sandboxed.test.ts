import { describe, expect, test } from "vitest";
import { TestBroker } from "../support/broker/broker.ts";
import { installationFor } from "../support/broker/installation.ts";
import { actorsWith } from "../support/run/needs.ts";
import { runAs } from "../support/users/users.ts";

/** Numbers of system calls (include/uapi/asm-generic/unistd.h; arch/x86/entry/syscalls/syscall_64.tbl). */
const CALLS = { x64: { connect: 42, unshare: 272 }, arm64: { connect: 203, unshare: 97 } } as const;

/**
 * Becomes its words behind a filter that refuses one system call with EPERM, as Codex's sandbox has one around its commands.
 * prctl(2): PR_SET_NO_NEW_PRIVS is 38, PR_SET_SECCOMP 22, SECCOMP_MODE_FILTER 2.
 */
const SANDBOX = `
import ctypes, os, struct, sys
filters = [(0x20, 0, 0, 0), (0x15, 0, 1, int(sys.argv[1])), (0x06, 0, 0, 0x00050001), (0x06, 0, 0, 0x7FFF0000)]
program = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *each) for each in filters))
class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_void_p)]
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, ctypes.byref(Program(len(filters), ctypes.addressof(program))), 0, 0) == 0
os.execvp(sys.argv[2], sys.argv[2:])
`;

function sandboxWithout(call: "connect" | "unshare"): readonly string[] {
  const numbers = process.arch === "arm64" ? CALLS.arm64 : CALLS.x64;
  return ["/usr/bin/python3", "-c", SANDBOX, String(numbers[call])];
}

describe.each(actorsWith("python3"))("a sandbox around us, as $kind", (actor) => {
  test("a command line that may not connect says so in one sentence, with the setting", async () => {
    const broker = await TestBroker.start(actor);
    try {
      const { node, launcher } = await installationFor(actor);
      for (const words of [["exec", "--", "true"], ["broker", "start"], ["status"]]) {
        const ended = await runAs(actor, [...sandboxWithout("connect"), node, launcher, ...words], {
          cwd: broker.project,
          env: { SUBSTRATE_HOME: broker.home },
          stdin: "",
        });
        expect(ended).toMatchObject({ code: 125, stdout: "" });
        expect(ended.stderr).toMatch(
          /^substrate: A sandbox around this process refuses the connection to '.*' \(EPERM\)\. In Codex, 'network_access = true'.*\n$/,
        );
      }
      expect(await broker.cli(["exec", "--", "echo outside"])).toMatchObject({
        code: 0,
        stdout: "outside\n",
      });
    } finally {
      await broker.stop();
    }
  });

  test("a broker that may make no namespaces says whose fault it is, and what to set", async () => {
    const broker = await TestBroker.start(actor, {
      wrap: () => sandboxWithout("unshare"),
      environment: { SUBSTRATE_BACKEND: "linux" },
    });
    try {
      const { code, stderr } = await broker.cli(["exec", "--", "true"]);
      expect(code).toBe(125);
      expect(stderr).toContain("A sandbox around the broker (a seccomp filter with no_new_privs)");
      expect(stderr).toContain('sandbox_mode = "danger-full-access"');
    } finally {
      await broker.stop();
    }
  });
});
