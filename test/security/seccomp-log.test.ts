import { existsSync, readdirSync, readlinkSync, writeFileSync } from "node:fs";
import { release } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Span } from "../../schemas/generated/types.ts";
import { actors } from "../support/users/users.ts";
import { eventually, TestBroker } from "../support/broker/broker.ts";
import { linuxSince } from "../support/run/needs.ts";
import { descendants, innerPid } from "../support/processes/processes.ts";
import { buildProgram, hasI386Calls, PROBE } from "../support/programs/programs.ts";
import { skip } from "../support/run/skips.ts";
import { DETACH, STORM } from "../support/programs/seccomp.ts";

const LOG = `id: default
name: x
mode: enforce
world: { seccomp: log }
`;
const ENFORCE = LOG.replace("log", "enforce");

/** keyctl(KEYCTL_GET_KEYRING_ID), unshare(CLONE_FILES), personality(READ_IMPLIES_EXEC), userfaultfd(UFFD_USER_MODE_ONLY). */
const CALLS = [
  ["keyctl", [250, 0, -4, 1]],
  ["unshare", [272, 0x400]],
  ["personality", [135, 0x40_0000]],
  ["userfaultfd", [323, 1]],
] as const;
/** Kernels before 5.19 restart a notified call at any signal, and it counts twice. */
const BEFORE_PATIENCE = !linuxSince(5, 19);
const [EPERM, ENOSYS, EAFNOSUPPORT] = ["1\n", "38\n", "97\n"];

describe.each(actors().filter(() => process.arch === "x64"))("seccomp: log, as $kind", (actor) => {
  let broker: TestBroker;
  let strict: TestBroker;
  beforeAll(async () => {
    [broker, strict] = (await Promise.all(
      [LOG, ENFORCE].map((policy) => TestBroker.start(actor, { policies: { default: policy } })),
    )) as [TestBroker, TestBroker];
    for (const each of [broker, strict]) {
      buildProgram(each, "probe", PROBE);
    }
    buildProgram(broker, "storm", STORM);
    buildProgram(broker, "detach", DETACH);
  });
  afterAll(() => Promise.all([broker?.stop(), strict?.stop()]));

  const probe = (...words: readonly (string | number)[]) =>
    broker.run({ argv: ["./probe", ...words.map(String)] });
  const told = (span: string, by = broker): readonly Span[] =>
    by.spans().filter((each) => each.event_type === "violation" && each.parent_span === span);
  const subjects = (span: string): readonly (string | undefined)[] =>
    told(span).map(({ violation }) => violation?.subject);

  test.each(CALLS)(
    "%s goes through and leaves one violation below its command; enforce refuses it and leaves none",
    async (name, words) => {
      const ran = await probe(...words);
      expect(ran.stdout).toBe("ok\n");
      expect(told(ran.span_id)).toMatchObject([
        {
          component: "world",
          world_id: ran.world_id,
          violation: { kind: "system_call", subject: name },
          message: expect.stringMatching(/was allowed because .* log\. By default the call is refused: /),
        },
      ]);
      const refused = await strict.run({ argv: ["./probe", ...words.map(String)] });
      expect(refused.stdout).toBe(EPERM);
      expect(told(refused.span_id, strict)).toEqual([]);
    },
  );

  test("commands that ask for nothing leave nothing: threads, processes, a build of C", async () => {
    const threads = `new (require("node:worker_threads").Worker)("require('node:worker_threads').parentPort.postMessage('thread')", { eval: true }).on("message", (m) => console.log(m))`;
    const one = await broker.run({ argv: [process.execPath, "-e", threads] });
    const two = await broker.run(
      "cc -o again probe.c && ./again 39 && (sleep 5 & kill $!; wait $!; echo ended)",
    );
    expect([one.stdout, two.stdout]).toEqual(["thread\n", "ok\nended\n"]);
    // The event loop of Node 24 asks for io_uring, and goes on without it.
    expect(subjects(one.span_id).filter((call) => call !== "io_uring_setup")).toEqual([]);
    expect(told(two.span_id)).toEqual([]);
  });

  test("commands of one world that run at once are told apart, also by what they left without a parent", async () => {
    const [one, two] = await Promise.all([
      broker.run("for i in 1 2 3 4; do ./probe 250 0 -4 1; sleep 0.02; done; ./detach 250 && sleep 0.2"),
      broker.run("for i in 1 2 3 4; do ./probe 272 0x400; sleep 0.02; done; ./detach 323 && sleep 0.2"),
    ]);
    expect(one.world_id).toBe(two.world_id);
    expect(new Set(subjects(one.span_id))).toEqual(new Set(["keyctl"]));
    expect(new Set(subjects(two.span_id))).toEqual(new Set(["unshare", "userfaultfd"]));
    expect(told(one.span_id).at(-1)?.message).toContain("5 times");
  });

  test("a kept process is told of below the command that left it, also after the reply", async () => {
    const ran = await broker.run({
      cmd: "(sleep 0.3; ./probe 250 0 -4 1; touch kept-done; sleep 1) & true",
      background: "keep",
    });
    expect(told(ran.span_id)).toEqual([]);
    expect(await eventually(() => existsSync(join(broker.project, "kept-done")), 5000)).toBe(true);
    expect(await eventually(() => subjects(ran.span_id).length === 1, 2000)).toBe(true);
  });

  test("a flood leaves a handful of violations with the whole count, and others work meanwhile", async () => {
    const flood = broker.run({ argv: ["./storm", "flood", "30000"] });
    const other = await broker.run("echo other");
    const { span_id, stdout } = await flood;
    expect(other.stdout).toBe("other\n");
    expect(stdout).toBe("done\n");
    expect(told(span_id).map(({ message }) => /log(?:, (\d+) times)?/.exec(message ?? "")?.[1])).toEqual([
      undefined,
      "100",
      "10000",
      "30000",
    ]);
  });

  test("killing callers while they wait for an answer harms nobody: the world goes on and still tells", async () => {
    const storm = await broker.run({ argv: ["./storm", "kill", "150"] });
    expect(storm.stdout).toBe("done\n");
    const after = await probe(...CALLS[0][1]);
    expect(after).toMatchObject({ stdout: "ok\n", world_id: storm.world_id });
    expect(subjects(after.span_id)).toEqual(["keyctl"]);
  });

  test("timers in the caller neither stop its calls nor make them count twice", async () => {
    if (BEFORE_PATIENCE)
      skip("seccomp: log counts once under timers", `it needs Linux 5.19, and this is ${release()}`);
    const ran = await broker.run({ argv: ["./storm", "timer", "2000"] });
    expect(ran.stdout).toBe("done\n");
    expect(told(ran.span_id).at(-1)?.message).toContain("2000 times");
  });

  test("what would hide other calls or leave the network stays refused, and is told", async () => {
    const i386 = hasI386Calls(broker, "probe") ? ([["i386:20", ENOSYS, "i386"]] as const) : [];
    for (const [subject, answer, ...words] of [
      ["io_uring_setup", ENOSYS, 425, 8, 0],
      ["socket", EAFNOSUPPORT, 41, 40, 1, 0],
      ["x32:39", ENOSYS, 39 + 0x4000_0000],
      ...i386,
    ] as const) {
      const ran = await probe(...words);
      expect(ran.stdout, subject).toBe(answer);
      expect(told(ran.span_id)).toMatchObject([
        { violation: { subject }, message: expect.stringContaining("was refused with E") },
      ]);
    }
    const clone3 = await probe(435, 0, 0);
    expect(clone3.stdout).toBe(ENOSYS);
    expect(told(clone3.span_id)).toEqual([]);
  });

  test("the vector does not say on, and a policy that requires the filter gets no world", async () => {
    expect((await broker.run("true")).isolation.seccomp).toMatch(/^degraded: log mode refuses only calls/);
    const policy = join(broker.home, "policies/default.yaml");
    writeFileSync(policy, LOG.replace("log", "log, require: [seccomp]"));
    try {
      expect(await broker.refused({ cmd: "touch ran" })).toMatchObject({
        status: 503,
        code: "isolation_unavailable",
        message: expect.stringContaining("seccomp is 'degraded: log mode"),
      });
      expect(existsSync(join(broker.project, "ran"))).toBe(false);
    } finally {
      writeFileSync(policy, LOG);
    }
  });

  test("the recorded filter is another one than in enforce mode", async () => {
    const [log, enforce] = [await broker.run("true"), await strict.run("true")];
    const of = async (by: TestBroker, span: string) =>
      (await by.span(span)).replay_context?.world_image?.filter_hash;
    expect(await of(broker, log.span_id)).toMatch(/^sha256:/);
    expect(await of(broker, log.span_id)).not.toBe(await of(strict, enforce.span_id));
  });

  test("PID 1 alone holds listeners, also in enforce mode", async () => {
    if (process.getuid?.() !== 0)
      return skip("who holds a listener", "the descriptors of PID 1 can be read by root only");
    for (const by of [broker, strict]) {
      const { world_id } = await by.run("true");
      const holders = () => {
        const pids = descendants(by.process.pid ?? 0);
        expect(pids.length, world_id ?? "").toBeGreaterThan(2);
        return pids.filter((pid) => holdsListener(pid)).map((pid) => innerPid(pid));
      };
      // The next command's leader is made after a reply, and has its listener until PID 1 has taken it.
      await expect.poll(holders, { timeout: 5000 }).toEqual([1]);
    }
  });
});

function holdsListener(pid: number): boolean {
  return readdirSync(`/proc/${pid}/fd`).some((fd) => {
    try {
      return readlinkSync(`/proc/${pid}/fd/${fd}`) === "anon_inode:seccomp notify";
    } catch {
      // Closed meanwhile.
      return false;
    }
  });
}

if (process.arch !== "x64")
  skip("seccomp: log by number", `the probe knows x64 only, and this is ${process.arch}`);
