/**
 * PID 1 of a world looks for denied names a last time before a command's end is told, and answers every notification. So a command
 * that can end it, hold it up or read it has more than its own rights, although no signal and no trace reaches it (processes.test.ts).
 */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { actors, runAs } from "../support/users/users.ts";
import { TestBroker } from "../support/broker/broker.ts";
import { LEASES, LIMIT, LINGERER, STRANGER } from "../support/programs/pid-1.ts";
import { buildProgram } from "../support/programs/programs.ts";

const POLICY = `id: default
name: PID 1
mode: enforce
fs: { deny_write: ["$PROJECT/**/.vscode", "$PROJECT/sealed"] }
commands: { denied: ["factor *"], opaque: allow }
`;

/** MSG_ZEROCOPY (include/linux/socket.h). */
const ZEROCOPY = 0x400_0000;
const [EPERM, EROFS, EACCES] = ["Operation not permitted", "Read-only file system", "Permission denied"];

describe.each(actors())("PID 1 of a world, as $kind", (actor) => {
  let broker: TestBroker;
  beforeAll(async () => {
    broker = await TestBroker.start(actor, { policies: { default: POLICY } });
    broker.write(join(broker.project, "sealed"), "sealed");
    for (const [name, source] of Object.entries({
      limit: LIMIT,
      lingerer: LINGERER,
      stranger: STRANGER,
      leases: LEASES,
    }))
      buildProgram(broker, name, source);
  });
  afterAll(() => broker.stop());

  test("it outlives a limit of processor time, and so every denied name is found; a process of one's own takes the limit", async () => {
    const ran = await broker.run("./limit 1 .vscode; mkdir .vscode; echo on");
    expect(ran).toMatchObject({ exit: 0, stdout: "1\non\n" });
    expect(ran.notices.map(({ kind }) => kind)).toContain("quarantined");
    const left = readdirSync(broker.project).filter((name) =>
      existsSync(join(broker.project, name, ".vscode")),
    );
    expect([...left, existsSync(join(broker.project, ".vscode"))]).toEqual([false]);
    const own = await broker.run("./limit 0; ./limit $$; prlimit --pid $$ --cpu -o SOFT --noheadings");
    expect(own.stdout).toMatch(/^0\n0\n *1\n$/);
  });

  test("a limit on the process that later commands descend from is refused, and they run as before", async () => {
    const cmd =
      "for one in /proc/[1-9]*; do prlimit --pid ${one#/proc/} --as=1 --nofile=3 2>&1 || true; done";
    const limited = await broker.run({ cmd, shell: "sh" });
    expect(limited.stdout).toMatch(/limit/);
    // The process that was ready for the next command may have been limited: the one after it descends from none.
    await broker.run("true");
    for (let count = 0; count < 3; count += 1)
      expect(await broker.run("/bin/echo on > on; cat on; ulimit -v")).toMatchObject({
        exit: 0,
        stdout: "on\nunlimited\n",
      });
  });

  test("priority and processors cannot be taken from it and from later commands; a process of one's own gives its own", async () => {
    const before = (await broker.run("nice; taskset -cp $$ | cut -d: -f2")).stdout;
    const cmd = `for one in 1 2; do renice -n 19 -p $one; renice -n 19 -g $one; taskset -cp 0 $one; chrt -i -p 0 $one; ionice -c 3 -p $one; done; renice -n 19 -u $(id -u); ionice -c 3 -u $(id -u); true`;
    const { stdout, stderr } = await broker.run({ cmd, shell: "sh" });
    expect(`${stdout}${stderr}`.match(/Operation not permitted/g)?.length).toBe(11);
    // The process that was ready for the next command may have been meant: the one after it descends from none.
    for (let count = 0; count < 3; count += 1)
      expect((await broker.run("nice; taskset -cp $$ | cut -d: -f2")).stdout).toBe(before);
    expect(
      await broker.run("nice -n 5 nice; renice -n 7 -p $$ >/dev/null; nice; ionice -c 3 echo idle"),
    ).toMatchObject({
      exit: 0,
      stdout: "5\n7\nidle\n",
    });
  });

  test("nothing makes the kernel prefer it when memory is short; a process of one's own may go first", async () => {
    const { stdout, stderr } = await broker.run(
      "echo 999 > /proc/1/oom_score_adj; cat /proc/1/oom_score_adj; sh -c 'echo 999 > /proc/self/oom_score_adj; cat /proc/self/oom_score_adj'",
    );
    expect(stdout).toMatch(/^-?\d{1,3}\n999\n$/);
    expect(stdout).not.toMatch(/^999/);
    expect(stderr).toMatch(new RegExp(`${EROFS}|${EACCES}|${EPERM}`));
  });

  test("a lingering socket of a dead process does not hold it up", async () => {
    const held = broker.run("./lingerer 8");
    await sleep(2500);
    const before = performance.now();
    expect(await broker.run("/bin/echo on")).toMatchObject({ stdout: "on\n" });
    expect(performance.now() - before).toBeLessThan(4000);
    expect(await held).toMatchObject({ exit: 0, stdout: "waits\n" });
  });

  test("its memory is in nothing that it sends for a command; what the command sends arrives", async () => {
    const sending = broker.run(`./stranger ${ZEROCOPY}`);
    await sleep(1000);
    for (let others = 0; others < 5; others++) await broker.run("sh -c 'true; /bin/true'; /bin/true");
    expect((await sending).stdout).toMatch(/^\d+ 0\n$/);
    expect((await broker.run("./stranger")).stdout).toMatch(/^[1-9]\d+ 0\n$/);
  });

  test("no lease makes the host wait for a file, sealed or not; locks of a file's readers are given", async () => {
    const ran = broker.run("./leases sealed limit.c");
    await sleep(1500);
    const before = performance.now();
    const read = await runAs(actor, ["cat", join(broker.project, "sealed"), join(broker.project, "limit.c")]);
    expect(performance.now() - before).toBeLessThan(4000);
    expect(read.stdout).toBe(`sealed${readFileSync(join(broker.project, "limit.c"), "utf8")}`);
    expect(await ran).toMatchObject({ exit: 0, stdout: "1\n1\n" });
  });
});
