import { randomInt } from "node:crypto";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { actors, spawnAs } from "../support/users/users.ts";
import { eventually, TestBroker } from "../support/broker/broker.ts";
import { processesWith } from "../support/processes/processes.ts";
import { buildProgram } from "../support/programs/programs.ts";
import { DAEMON, REACH } from "../support/programs/processes.ts";

/** Of the world's own processes that are no command's: PID 1, the forker, the leaders. */
const OURS = "for p in /proc/[0-9]*; do grep -Eq '^PPid:.[01]$' $p/status && echo ${p#/proc/}; done";

/** A number of seconds that no other sleep on this machine has. */
function uniqueSeconds(): string {
  return `${randomInt(100_000, 1_000_000)}`;
}

describe.each(actors())("processes of a world, as $kind", (actor) => {
  let broker: TestBroker;
  beforeAll(async () => {
    broker = await TestBroker.start(actor);
    buildProgram(broker, "reach", REACH);
    buildProgram(broker, "daemon", DAEMON);
  });
  afterAll(() => broker.stop());

  test("PID 1, the forker and the leaders give away neither memory nor descriptors, and cannot be traced; a child of one's own can", async () => {
    const { stdout } = await broker.run(`for p in $(${OURS}); do ./reach $p; done`);
    const lines = stdout.trim().split("\n");
    expect(lines.length).toBeGreaterThanOrEqual(3);
    for (const line of lines) expect(line).toMatch(/^(\w+:(1|13|30) ?){6}$/);
    expect((await broker.run("./reach self")).stdout).toBe(
      "read:0 write:0 mem:0 descriptor:0 seize:0 attach:0 \n",
    );
  });

  test("the environment, maps, descriptors, root and memory of those cannot be read; a command's own can", async () => {
    const files = "environ maps auxv mem fd/0 root/ cwd/ exe syscall stack personality task/$p/environ";
    const tries = `for p in $(${OURS}); do for f in ${files}; do head -c 1 /proc/$p/$f; ls /proc/$p/$f/; done; readlink /proc/$p/fd/* /proc/$p/map_files/*; done 2>/dev/null; true`;
    expect((await broker.run(tries)).stdout).toBe("");
    const own = await broker.run({ cmd: "tr '\\0' '\\n' < /proc/self/environ", env: { MARK: "mine" } });
    expect(own.stdout).toContain("MARK=mine");
    for (const secret of ["SUBSTRATE_HOME", broker.home]) expect(own.stdout).not.toContain(secret);
  });

  test("no process of the host can be seen, signalled, traced, or asked about; one's own can", async () => {
    const seconds = uniqueSeconds();
    const victim = spawnAs(actor, ["sleep", seconds], { stdio: "ignore" });
    try {
      const pid = victim.pid ?? 0;
      const { stdout } = await broker.run(
        `ls -d /proc/${pid}; kill -9 ${pid}; kill -STOP ${pid}; ./reach ${pid} | grep -o ':0'; renice 19 ${pid} >/dev/null; prlimit --pid ${pid} --nofile=1 ; taskset -p 1 ${pid}; (kill -9 -1) ; true`,
      );
      expect(stdout).toBe("");
      expect([victim.exitCode, victim.signalCode]).toEqual([null, null]);
      expect(processesWith(seconds)).toContain(pid);
    } finally {
      victim.kill("SIGKILL");
    }
    expect(await broker.run("sleep 60 & kill -9 $!; wait $!; echo $?")).toMatchObject({ stdout: "137\n" });
  });

  test("the broker, of the same user, gets no signal from inside", async () => {
    const pid = broker.process.pid ?? 0;
    await broker.run(`kill -9 ${pid}; kill -9 $(seq 2 400) 2>/dev/null; true`);
    expect(broker.process.exitCode).toBe(null);
    expect(await broker.run("echo here")).toMatchObject({ stdout: "here\n" });
  });

  test("a daemon that does everything to stay is gone when the reply is there; one that was to be kept stays, and ends with its world", async () => {
    const seconds = uniqueSeconds();
    const ran = await broker.run({ argv: ["./daemon", seconds] });
    expect(ran.exit).toBe(0);
    expect(processesWith(seconds)).toEqual([]);
    await broker.run({ argv: ["./daemon", seconds], background: "keep" });
    expect(await eventually(() => processesWith(seconds).length > 0, 2000)).toBe(true);
    const restart = { agent_id: "test", cwd: broker.project, force: true };
    expect((await broker.operator("POST", "/v1/world/restart", restart)).status).toBe(200);
    expect(processesWith(seconds)).toEqual([]);
  });

  test("the world's own cgroup cannot be written, and no other one", async () => {
    const { stdout } = await broker.run(
      "find /sys/fs/cgroup -name cgroup.procs 2>/dev/null | head -40 | while read f; do (echo $$ > $f) 2>/dev/null && echo moved $f; done; find /sys/fs/cgroup -maxdepth 2 -type d | while read d; do mkdir $d/x 2>/dev/null && echo made $d; done; true",
    );
    expect(stdout).toBe("");
  });

  test("nothing that acts on the machine can be written below /proc and /sys, and nothing of its memory be read", async () => {
    const writable =
      "find /proc /sys -not -path '/proc/[0-9]*' -not -path '/proc/self*' -not -path '/proc/thread-self*' -type f -writable 2>/dev/null | grep -v '^/proc/pressure/'; true";
    expect((await broker.run(writable)).stdout).toBe("");
    const secret = [
      "kcore",
      "kmsg",
      "keys",
      "kallsyms",
      "slabinfo",
      "vmallocinfo",
      "kpageflags",
      "kpagecount",
    ];
    const read = `for f in ${secret.join(" ")}; do timeout 2 head -c 1 /proc/$f 2>/dev/null | wc -c; done | sort -u`;
    expect((await broker.run(read)).stdout).toBe("0\n");
    expect(
      (await broker.run("head -c 9 /proc/meminfo; grep -o '^ *[a-z0-9]*:' /proc/net/dev | tr -d ' '")).stdout,
    ).toBe("MemTotal:lo:\n");
  });

  test("the broker's folder is nobody's working folder or root inside", async () => {
    const { stdout } = await broker.run("for p in /proc/[0-9]*; do readlink $p/cwd $p/root; done; true");
    expect(stdout).not.toContain(join(broker.home));
    expect(stdout).toContain(broker.project);
  });
});
