import { spawnSync } from "node:child_process";
import { chmodSync, existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { HealthReply } from "../../schemas/generated/types.ts";
import { actors } from "../actors.ts";
import { eventually, type Ran, TestBroker } from "../broker.ts";
import { skip } from "../skips.ts";

/** Each world may have so many processes, and so many bytes in the file systems of its own. */
const PIDS = 400;
const DISK = 64 * 2 ** 20;
const POLICY = `
id: default
name: Limits
mode: enforce
world:
  limits: { cpu: "1", memory: "256Mi", pids: ${PIDS}, disk: "64Mi" }
`;

/** A broker may grow by this while a neighbour is attacked: its own output buffers are 1 MiB for each stream. */
const BROKER_GROWTH = 96 * 2 ** 20;

/** What a memory bomb of these tests touches at the most, on whatever machine. */
const BOMB = 2 ** 30;

const PROGRAMS = {
  forks: `#include <unistd.h>
int main(void) { for (;;) { if (fork() < 0) usleep(10000); } }`,
  memory: `#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(void) {
  for (long done = 0; done < ${BOMB}L; done += 1 << 20) {
    char *part = malloc(1 << 20);
    if (part == NULL) return 3;
    memset(part, 1, 1 << 20);
  }
  return 0;
}`,
  descriptors: `#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>
int main(void) {
  for (int i = 0; i < 8; i++) if (fork() == 0) break;
  long opened = 0;
  while (open("/dev/null", O_RDONLY) >= 0) opened++;
  int why = errno;
  fprintf(stderr, "%ld %d\\n", opened, why);
  sleep(1);
  return 0;
}`,
  spin: `#include <unistd.h>
int main(void) { for (int i = 0; i < 15; i++) if (fork() == 0) break; for (;;) continue; }`,
  detach: `#include <stdio.h>
#include <unistd.h>
int main(int count, char **words) {
  (void)count;
  if (fork() != 0) return 0;
  setsid();
  if (fork() != 0) return 0;
  execlp("sleep", words[1], "600", (char *)0);
  return 1;
}`,
} as const;

/** The fork bomb's program by a name that nobody else's has (15 bytes are shown). */
const FORKS = `forks-${process.pid}`;

describe.each(actors())("the limits of a world, as $kind", (actor) => {
  let broker: TestBroker;
  beforeAll(async () => {
    broker = await TestBroker.start(actor, { policies: { default: POLICY } });
    for (const [name, source] of Object.entries(PROGRAMS)) compile(broker, name, source);
    compile(broker, FORKS, PROGRAMS.forks);
  });
  afterAll(() => broker.stop());

  const offender = (body: Readonly<Record<string, unknown>>): Promise<Ran> =>
    broker.run({ agent_id: "offender", ...body });

  test("health tells the limits that hold, and a policy without any still has one for processes", async () => {
    await broker.run("true");
    const { worlds, isolation } = (await broker.call("GET", "/v1/health")).document as HealthReply;
    const limits = worlds.find(({ agent_id: agent }) => agent === "test")?.limits ?? {};
    expect(limits["disk"]).toBe(String(DISK));
    if (isolation.cgroup === "on")
      expect(limits).toMatchObject({ cpu: "1", memory: "268435456", pids: `${PIDS}` });
    else expect(limits).not.toHaveProperty("memory");
    const plain = await TestBroker.start(actor);
    try {
      await plain.run("true");
      const health = (await plain.call("GET", "/v1/health")).document as HealthReply;
      if (holdsPids(limits)) expect(health.worlds[0]?.limits?.["pids"]).toMatch(/^4096/);
    } finally {
      await plain.stop();
    }
  });

  test("a fork bomb stops at the limit, its span names it, and a neighbour's commands run on", async () => {
    if (!holdsPids(await limitsOf(broker)))
      skip(`a fork bomb in a world, as ${actor.kind}`, "nothing on this host limits a world's processes");
    const before = brokerMemory(broker);
    const attack = offender({ cmd: `exec ./${FORKS}`, timeout_ms: 3000 });
    const neighbour = await steady(broker, attack);
    report(`fork bomb as ${actor.kind}`, neighbour);
    const { timed_out: timedOut, span_id: span } = await attack;
    expect(timedOut).toBe(true);
    expect(neighbour.failures).toEqual([]);
    expect(peakOfForks(neighbour)).toBeLessThanOrEqual(PIDS + 364);
    expect(peakOfForks(neighbour)).toBeGreaterThan(PIDS / 4);
    expect(await broker.span(span)).toMatchObject({ violation: { kind: "limit", subject: "pids" } });
    expect(broker.spans()).toContainEqual(
      expect.objectContaining({
        parent_span: span,
        event_type: "violation",
        violation: { kind: "limit", subject: "pids" },
      }),
    );
    expect(brokerMemory(broker) - before).toBeLessThan(BROKER_GROWTH);
    expect((await offender({ cmd: "echo again" })).stdout).toBe("again\n");
  });

  test("as many processes as a build has are no bomb", async () => {
    const { stdout, span_id: span } = await offender({
      cmd: "for i in $(seq 100); do sleep 0.3 & done; wait; echo built",
    });
    expect(stdout).toBe("built\n");
    expect(broker.spans().filter((line) => line.parent_span === span)).toEqual([]);
  });

  test("a memory bomb is ended by its limit, and a neighbour's commands run on", async () => {
    const limits = await limitsOf(broker);
    if (limits["memory"] === undefined)
      skip(
        `a memory bomb of one world, as ${actor.kind}`,
        "this host gives a world no memory controller, so the bomb would be the machine's to survive",
      );
    const attack = offender({ argv: ["./memory"] });
    const neighbour = await steady(broker, attack);
    report(`memory bomb as ${actor.kind}`, neighbour);
    const { signal, span_id: span } = await attack;
    expect(signal).toBe("SIGKILL");
    expect(neighbour.failures).toEqual([]);
    expect(await broker.span(span)).toMatchObject({ violation: { kind: "limit", subject: "memory" } });
  });

  test("commands are offered to the kernel's last resort before the broker is", async () => {
    const { stdout } = await broker.run("cat /proc/self/oom_score_adj");
    const own = Number(readFileSync(`/proc/${broker.process.pid}/oom_score_adj`, "utf8"));
    expect(Number(stdout)).toBeGreaterThanOrEqual(500);
    expect(Number(stdout)).toBeGreaterThan(own);
  });

  test("a descriptor flood ends at each process's limit, and a neighbour's commands run on", async () => {
    const attack = offender({ cmd: "./descriptors; ulimit -Hn" });
    const neighbour = await steady(broker, attack);
    report(`descriptor flood as ${actor.kind}`, neighbour);
    const { stderr, stdout } = await attack;
    const [EMFILE, most] = [24, Number(stdout)];
    expect(most).toBeLessThanOrEqual(65_536);
    for (const line of stderr.trim().split("\n")) {
      const [opened, errno] = line.split(" ").map(Number);
      expect(errno).toBe(EMFILE);
      expect(opened).toBeLessThan(most);
    }
    expect(neighbour.failures).toEqual([]);
  });

  test("filling what a world may write of its own ends at the disk limit, in bytes and in files", async () => {
    const fill = (folder: string): string =>
      `head -c 200000000 /dev/zero > ${folder}/full; stat -c %s ${folder}/full`;
    const attack = offender({ cmd: ["/tmp", "/var/tmp", "/dev/shm"].map(fill).join("; ") });
    const neighbour = await steady(broker, attack);
    report(`disk fill as ${actor.kind}`, neighbour);
    const sizes = (await attack).stdout.trim().split("\n").map(Number);
    expect(sizes).toHaveLength(3);
    expect(sizes.reduce((sum, size) => sum + size)).toBeLessThanOrEqual(DISK);
    expect(neighbour.failures).toEqual([]);
    expect((await offender({ cmd: "head -c 8192 /dev/zero > /tmp/more" })).exit).not.toBe(0);
    await offender({ cmd: "rm /tmp/* /var/tmp/* /dev/shm/*" });
    const files =
      "i=0; while [ $i -lt 9000 ] && true > /tmp/f$i; do i=$((i+1)); done 2>/dev/null; echo $i; rm -f /tmp/f*";
    const made = Number((await offender({ cmd: files })).stdout);
    expect(made).toBeGreaterThan(500);
    expect(made).toBeLessThan(DISK / 16_384);
    expect((await offender({ cmd: "echo fits > /tmp/a && cat /tmp/a" })).stdout).toBe("fits\n");
  });

  test("sixteen spinners in one world leave a neighbour's commands running", async () => {
    const attack = offender({ argv: ["./spin"], timeout_ms: 3000 });
    const neighbour = await steady(broker, attack);
    report(`CPU spinners as ${actor.kind}`, neighbour);
    expect((await attack).timed_out).toBe(true);
    expect(neighbour.failures).toEqual([]);
    expect(neighbour.times.length).toBeGreaterThan(5);
  });

  test("nothing in a world can be written that would lift a limit", async () => {
    const { stdout } = await offender({
      cmd: `for f in $(find /sys/fs/cgroup -name 'cgroup.*' -o -name '*.max' 2>/dev/null | head -300); do (echo 1 > "$f") 2>/dev/null && echo "$f"; done
mkdir /sys/fs/cgroup/x /sys/fs/cgroup/unified/x 2>/dev/null && echo made
(echo 4194304 > /proc/sys/kernel/pid_max) 2>/dev/null && echo pid_max
(ulimit -Hn 1048576) 2>/dev/null && echo nofile
true`,
    });
    expect(stdout).toBe("");
  });

  test("what forks twice and leads a session of its own is gone when the command is", async () => {
    const name = `detached-${actor.uid}-${process.pid}`;
    const { exit } = await offender({ cmd: `./detach ${name} & ./detach ${name}; sleep 0.2` });
    expect(exit).toBe(0);
    expect(named(name)).toEqual([]);
    const kept = await offender({ cmd: `./detach ${name}; sleep 0.2`, background: "keep" });
    expect(kept.exit).toBe(0);
    expect(named(name)).toHaveLength(1);
  });

  test("its command's group is what a command is in, beside init's", async () => {
    const { isolation, stdout } = await offender({ cmd: "grep ^0:: /proc/self/cgroup" });
    if (isolation.cgroup.startsWith("off"))
      skip(`a cgroup for each command, as ${actor.kind}`, `cgroup is '${isolation.cgroup}'`);
    expect(stdout).toMatch(/\/\d+-\d+-\d+-\d+\/commands\/\d+\n$/);
    const folder = groupFolder(stdout);
    expect(existsSync(join(folder, "../../init"))).toBe(true);
    expect(await eventually(() => groupIsEmpty(folder), 2000)).toBe(true);
  });
});

describe.each(actors())("the groups of worlds, as $kind", (actor) => {
  test.each([["the broker"], ["init"], ["both"]])("are gone soon after kill -9 of %s", async (victim) => {
    const broker = await TestBroker.start(actor, { policies: { default: POLICY } });
    try {
      const { stdout, isolation } = await broker.run("grep ^0:: /proc/self/cgroup");
      if (isolation.cgroup.startsWith("off"))
        skip(`removing groups after kill -9, as ${actor.kind}`, `cgroup is '${isolation.cgroup}'`);
      const world = join(groupFolder(stdout), "../..");
      const waiting = broker.post({ cmd: "sleep 600" }).catch(() => "cut");
      expect(await eventually(() => readdirSync(join(world, "commands")).length > 0, 2000)).toBe(true);
      const init = childrenOf(broker.process.pid ?? 0);
      expect(init).toHaveLength(1);
      if (victim !== "the broker") for (const pid of init) process.kill(pid, "SIGKILL");
      if (victim !== "init") await broker.kill("SIGKILL");
      await waiting;
      if (victim === "both") {
        const next = await broker.again();
        await next.run("true");
        await next.kill("SIGTERM");
      }
      expect(await eventually(() => !existsSync(world), 3000)).toBe(true);
    } finally {
      await broker.stop();
    }
  });
});

type Steady = {
  readonly times: readonly number[];
  readonly failures: readonly unknown[];
  readonly processes: readonly number[];
};

/** Another agent's world runs a command every 20 ms for as long as the attack lasts. */
async function steady(broker: TestBroker, attack: Promise<unknown>): Promise<Steady> {
  const [times, failures, processes]: [number[], unknown[], number[]] = [[], [], []];
  let over = false;
  const settled = attack.then(
    () => (over = true),
    () => (over = true),
  );
  while (!over) {
    const begin = performance.now();
    try {
      const { exit, stdout } = await broker.run({ agent_id: "neighbour", cmd: "echo here" });
      if (exit !== 0 || stdout !== "here\n") failures.push({ exit, stdout });
    } catch (error) {
      failures.push(error);
    }
    times.push(performance.now() - begin);
    if (times.length % 10 === 0)
      processes.push(pids().filter((pid) => readOf(pid, "comm") === `${FORKS}\n`).length);
    await sleep(20);
  }
  await settled;
  return { times, failures, processes };
}

function peakOfForks({ processes }: Steady): number {
  return Math.max(...processes);
}

function report(what: string, { times }: Steady): void {
  const sorted = [...times].sort((a, b) => a - b);
  const at = (part: number): string => (sorted[Math.floor((sorted.length - 1) * part)] ?? 0).toFixed(1);
  process.stdout.write(
    `${what}: the neighbour ran ${times.length} commands, median ${at(0.5)} ms, p99 ${at(0.99)} ms\n`,
  );
}

function holdsPids(limits: Readonly<Record<string, string>>): boolean {
  return limits["pids"] !== undefined;
}

async function limitsOf(broker: TestBroker): Promise<Readonly<Record<string, string>>> {
  await broker.run("true");
  const { worlds } = (await broker.call("GET", "/v1/health")).document as HealthReply;
  return worlds.find(({ agent_id: agent }) => agent === "test")?.limits ?? {};
}

function brokerMemory(broker: TestBroker): number {
  const status = readFileSync(`/proc/${broker.process.pid}/status`, "utf8");
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]) * 1024;
}

function compile(broker: TestBroker, name: string, source: string): void {
  const program = join(broker.project, name);
  writeFileSync(`${program}.c`, source);
  const made = spawnSync("cc", ["-O1", "-static", "-o", program, `${program}.c`]);
  if (made.status !== 0) throw new Error(`'${name}' does not compile: ${made.stderr.toString()}`);
  chmodSync(program, 0o755);
}

/** Host pids whose first word is that name. */
function named(word: string): readonly number[] {
  return pids().filter((pid) => firstWord(pid) === word);
}

function childrenOf(parent: number): readonly number[] {
  return pids().filter(
    (pid) =>
      Number(
        readOf(pid, "stat")
          .replace(/^.*\) . /, "")
          .split(" ")[0],
      ) === parent,
  );
}

function pids(): readonly number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number);
}

function firstWord(pid: number): string {
  return readOf(pid, "cmdline").split("\0")[0] ?? "";
}

function readOf(pid: number, file: string): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, "utf8");
  } catch {
    // It has ended meanwhile.
    return "";
  }
}

/** The folder of the group in a line of `/proc/self/cgroup`, wherever v2 is mounted. */
function groupFolder(line: string): string {
  const mounted = /^\S+ \S+ \S+ \/ (\S+) .* - cgroup2 /m.exec(
    readFileSync("/proc/self/mountinfo", "utf8"),
  )?.[1];
  return join(mounted ?? "/sys/fs/cgroup", line.trim().slice("0::".length));
}

function groupIsEmpty(folder: string): boolean {
  return !existsSync(folder) || readFileSync(join(folder, "cgroup.procs"), "utf8") === "";
}
