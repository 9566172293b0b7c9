import { spawnSync } from "node:child_process";
import { chmodSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { HealthReply } from "../../schemas/generated/types.ts";
import { type Ran, TestBroker } from "../support/broker/broker.ts";
import { StreamClient } from "../support/broker/stream.ts";
import { FORKS, brokerMemory, named, peakOfForks, report, steady } from "../support/processes/neighbour.ts";
import { skip } from "../support/run/skips.ts";
import { actors, runAs } from "../support/users/users.ts";

// Small programs that take what they can: each in five lines of C, and no more than a machine survives.

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
  // Without an argument: a probe of mq_open and timer_create. With an argument: queues signals and opens queues up to the limits.
  counted: `#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
int main(int count, char **words) {
  (void)words;
  struct mq_attr size = {.mq_maxmsg = 10, .mq_msgsize = 8192};
  if (count == 1) {
    timer_t timer;
    mqd_t queue = mq_open("/substrate-probe", O_CREAT | O_RDWR, 0600, &size);
    printf("queue %s, ", queue < 0 ? strerror(errno) : "ok");
    if (queue >= 0) mq_unlink("/substrate-probe");
    printf("timer %s\\n", timer_create(CLOCK_MONOTONIC, NULL, &timer) < 0 ? strerror(errno) : "ok");
    return 0;
  }
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_BLOCK, &all, NULL);
  union sigval none = {0};
  while (sigqueue(getpid(), SIGRTMIN + 1, none) == 0) continue;
  char name[32];
  for (int i = 0; i < 1000; i++) {
    snprintf(name, sizeof name, "/substrate-%d", i);
    if (mq_open(name, O_CREAT | O_RDWR, 0600, &size) < 0) break;
  }
  printf("taken\\n");
  fflush(stdout);
  for (;;) pause();
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

/** Each world may have so many processes, and so many bytes in the file systems of its own. */
const PIDS = 400;
const DISK = 64 * 2 ** 20;
/** A command's own share where a cgroup counts it (world/cgroup/plan.ts), less the shell and what it starts. */
const WHOLE_BOMB = PIDS - PIDS / 8 - 2;
/** Looks at the host that see the whole bomb: the neighbour's commands run on between them. */
const LOOKS_AT_BOMB = 5;
const POLICY = `
id: default
name: Limits
mode: enforce
world:
  limits: { cpu: "1", memory: "256Mi", pids: ${PIDS}, disk: "64Mi" }
`;

/** A broker may grow by this while a neighbour is attacked: its own output buffers are 1 MiB for each stream. */
const BROKER_GROWTH = 96 * 2 ** 20;

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
    // The command ends when the host was seen with the whole bomb, however long a busy machine takes to get there.
    const attack = offender({ cmd: `mkfifo enough; ./${FORKS} & read line < enough`, timeout_ms: 45_000 });
    let looks = 0;
    const neighbour = await steady(broker, attack, (processes) => {
      if (processes >= WHOLE_BOMB && ++looks === LOOKS_AT_BOMB)
        writeFileSync(join(broker.project, "enough"), "enough\n");
    });
    report(`fork bomb as ${actor.kind}`, neighbour);
    const { exit, span_id: span } = await attack;
    expect(exit).toBe(0);
    expect(neighbour.failures).toEqual([]);
    expect(peakOfForks(neighbour)).toBeLessThanOrEqual(PIDS + 364);
    expect(looks).toBeGreaterThanOrEqual(LOOKS_AT_BOMB);
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
    const below = broker.spans().filter((line) => line.parent_span === span);
    expect(below.filter(({ event_type }) => event_type !== "exec")).toEqual([]);
    expect(new Set(below.map(({ span_id }) => span_id)).size).toBe(101);
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

  test("queued signals and message queues, which the kernel counts by user, leave the host enough", async () => {
    const probe = async (): Promise<string> =>
      (await runAs(actor, [join(broker.project, "counted")], { cwd: broker.project })).stdout;
    expect(await probe()).toBe("queue ok, timer ok\n");
    const attack = await StreamClient.open(broker, { agent_id: "offender", cmd: "./counted all" });
    await attack.shows("taken\n");
    expect(await probe()).toBe("queue ok, timer ok\n");
    attack.tell({ type: "signal", signal: "SIGKILL" });
    await attack.ended();
    // The twin: what a program usually has of them.
    expect((await broker.run({ agent_id: "twin", cmd: "./counted" })).stdout).toMatch(/timer ok/);
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

  // Opened only: a word in the wrong one would freeze or end this machine's processes.
  test("nothing in a world can be written that would lift a limit", async () => {
    const { stdout } = await offender({
      cmd: `for f in $(find /sys/fs/cgroup -name 'cgroup.*' -o -name '*.max' 2>/dev/null | head -300); do (: >> "$f") 2>/dev/null && echo "$f"; done
mkdir /sys/fs/cgroup/x /sys/fs/cgroup/unified/x 2>/dev/null && echo made
(: >> /proc/sys/kernel/pid_max) 2>/dev/null && echo pid_max
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
});

function holdsPids(limits: Readonly<Record<string, string>>): boolean {
  return limits["pids"] !== undefined;
}

async function limitsOf(broker: TestBroker): Promise<Readonly<Record<string, string>>> {
  await broker.run("true");
  const { worlds } = (await broker.call("GET", "/v1/health")).document as HealthReply;
  return worlds.find(({ agent_id: agent }) => agent === "test")?.limits ?? {};
}

/** Compiles a program into the project. */
function compile(broker: TestBroker, name: string, source: string): void {
  const program = join(broker.project, name);
  writeFileSync(`${program}.c`, source);
  const made = spawnSync("cc", ["-O1", "-static", "-o", program, `${program}.c`]);
  if (made.status !== 0) throw new Error(`'${name}' does not compile: ${made.stderr.toString()}`);
  chmodSync(program, 0o755);
}
