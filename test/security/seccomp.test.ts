import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { actors } from "../support/users/users.ts";
import { TestBroker } from "../support/broker/broker.ts";
import { buildProgram, hasI386Calls, PROBE } from "../support/programs/programs.ts";
import { skip } from "../support/run/skips.ts";

const [EPERM, ENOSYS, EAFNOSUPPORT] = ["1\n", "38\n", "97\n"];

describe.each(actors().filter(() => process.arch === "x64"))("system calls, as $kind", (actor) => {
  let broker: TestBroker;
  beforeAll(async () => {
    broker = await TestBroker.start(actor);
    buildProgram(broker, "probe", PROBE);
  });
  afterAll(() => broker.stop());

  const probe = async (...words: readonly (string | number)[]): Promise<string> =>
    (await broker.run({ argv: ["./probe", ...words.map(String)] })).stdout;

  test("the filter is on, and the vector says so", async () => {
    const reply = await broker.run("grep -E '^Seccomp:' /proc/self/status");
    expect(reply.stdout).toBe("Seccomp:\t2\n");
    expect(reply.isolation.seccomp).toBe("on");
  });

  test("nested namespaces are refused, for root's worlds too, by unshare, clone and clone3", async () => {
    expect(await probe(272, 0x1000_0000)).toBe(EPERM);
    expect(await probe(56, 0x1000_0011)).toBe(EPERM);
    expect(await probe(435, 0, 0)).toBe(ENOSYS);
    expect((await broker.run("unshare --user true")).exit).not.toBe(0);
  });

  test("io_uring, keyrings, bpf, perf and userfaultfd are not there", async () => {
    expect(await probe(425, 8, 0)).toBe(ENOSYS);
    expect(await probe(250, 0, -3, 0)).toBe(EPERM);
    for (const call of [321, 298, 323]) expect(await probe(call, 0, 0, 0)).toBe(EPERM);
  });

  test("nothing is typed into a terminal, with or without high bits; other ioctls get the kernel's own answer", async () => {
    expect(await probe(16, 0, 0x5412, 0)).toBe(EPERM);
    expect(await probe(16, 0, "0x100005412", 0)).toBe(EPERM);
    for (const paste of ["0x541c", "0x10000541c", "0xffffffff0000541c"])
      expect(await probe(16, 0, paste, 0)).toBe(EPERM);
    expect(await probe(16, 0, 0x5401, 0)).toBe("25\n");
  });

  test("sockets of families that nobody needs are not there; those that programs need are", async () => {
    for (const family of [38, 40, 17]) expect(await probe(41, family, 3, 0)).toBe(EAFNOSUPPORT);
    expect(await probe(41, 16, 3, 12)).toBe(EAFNOSUPPORT);
    for (const words of [
      [1, 1, 0],
      [2, 1, 0],
      [10, 1, 0],
      [16, 3, 0],
    ])
      expect(await probe(41, ...words)).toBe("ok\n");
  });

  test("the x32 and i386 interfaces are no way around", async () => {
    expect(await probe(39 + 0x4000_0000)).toBe(ENOSYS);
    const ran = await broker.run({ argv: ["./probe", "i386"] });
    const signal = hasI386Calls(broker, "probe") ? "SIGSYS" : "SIGSEGV";
    expect(ran).toMatchObject({ signal, stdout: "" });
  });

  test("threads, processes, signals and a build of C run as ever", async () => {
    const threads = `new (require("node:worker_threads").Worker)("require('node:worker_threads').parentPort.postMessage('thread')", { eval: true }).on("message", (m) => console.log(m))`;
    expect(await broker.run({ argv: [process.execPath, "-e", threads] })).toMatchObject({
      stdout: "thread\n",
      exit: 0,
    });
    expect(
      await broker.run("cc -o again probe.c && ./again 39 && (sleep 5 & kill $!; wait $!; echo ended)"),
    ).toMatchObject({ stdout: "ok\nended\n" });
  });
});

if (process.arch !== "x64")
  skip("system calls by number", `the probe knows x64 only, and this is ${process.arch}`);
