import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { actors } from "../support/users/users.ts";
import { TestBroker } from "../support/broker/broker.ts";
import { needs } from "../support/run/needs.ts";
import { listening, tell } from "../support/broker/telemetry.ts";

const LIBRARY = "/run/substrate-preload.so";

const OPENED = 100_000;

/** Opens that many files, then says at leisure what nobody took until then: one report has room for 65,535. */
const FLOOD = `
#include <fcntl.h>
#include <unistd.h>
int main(void) {
  for (int i = 0; i < ${OPENED}; i++) close(open("/dev/null", O_WRONLY));
  for (int i = 0; i < 10; i++) { usleep(50000); unlink("not-there"); }
}
`;

/** Reports as fast as the socket takes them until it is told to stop; says how many it took, and how many it had no room for. */
const ENDLESS = `
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
int main(void) {
  struct sockaddr_un to = {.sun_family = AF_UNIX};
  const char *name = getenv("SUBSTRATE_TELEMETRY");
  memcpy(to.sun_path + 1, name, strlen(name));
  socklen_t length = offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name);
  int out = socket(AF_UNIX, SOCK_DGRAM, 0);
  char report[] = "\\2\\0\\0\\0/dev/null";
  struct iovec part = {report, sizeof report - 1};
  struct msghdr message = {.msg_name = &to, .msg_namelen = length, .msg_iov = &part, .msg_iovlen = 1};
  long took = 0, refused = 0;
  while (access("stop", F_OK) != 0)
    for (int i = 0; i < 100; i++) {
      if (sendmsg(out, &message, MSG_DONTWAIT) < 0) refused++;
      else took++;
    }
  printf("%ld %ld\\n", took, refused);
}
`;

const FORGER = `
import os, random, socket, struct
address = b"\\0" + os.environb[b"SUBSTRATE_TELEMETRY"]
out = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
def say(data, *more):
    out.sendto(data, *more, address)
for length in range(4): say(bytes(length))
for kind in (0, 6, 7, 128, 255): say(bytes([kind, 0, 0, 0]) + b"/made-up")
say(bytes([2, 0, 0, 0]) + b"x" * 1025)
say(bytes([2, 0, 0, 0]) + b"x" * 60000)
say(bytes([2, 255, 0, 0]) + b"/\\x1b[2J\\x1b]0;t\\x07\\r\\n\\xff\\xfe\\x00\\xe2\\x80\\xae/name")
say(bytes([1, 0, 0, 0]))
say(bytes([3, 0, 0, 0]))
for family in (0, 1, 2, 10, 40, 65535):
    for length in (0, 1, 5, 30): say(bytes([3, 0, 0, 0]) + struct.pack("H", family) + bytes(length))
out.sendmsg([bytes([4, 0, 0, 0]) + b"/with-a-descriptor"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, struct.pack("i", 0))], 0, address)
random.seed(7)
for _ in range(200): say(random.randbytes(random.randrange(1100)))
print("said")
`;

describe.each(actors())("reports that nobody can trust, as $kind", (actor) => {
  let broker: TestBroker;

  beforeAll(async () => {
    broker = await TestBroker.start(actor, {
      policies: { default: listening(true, "commands: { opaque: allow, isolated: ['sh isolated.sh'] }\n") },
    });
    const write = (name: string, text: string): void => writeFileSync(join(broker.project, name), text);
    write("flood.c", FLOOD);
    write("endless.c", ENDLESS);
    write(
      "many.sh",
      `i=0; while [ $i -lt 3000 ]; do : >many/$i; i=$((i+1)); done; rm -r many; : >last; rm last`,
    );
    write("forge.py", FORGER);
    write("isolated.sh", ": >held; /bin/true\n");
    for (const name of ["flood", "endless"])
      execFileSync("cc", ["-O2", "-w", "-o", name, `${name}.c`], { cwd: broker.project });
  }, 60_000);
  afterAll(() => broker?.stop());

  test(`a flood of ${OPENED} is counted to the last one, and no more of it is kept than has room`, async () => {
    const told = await tell(broker, "exec ./flood");
    expect(told.exit).toBe(0);
    expect((told.counts?.write ?? 0) + (told.dropped ?? 0)).toBe(OPENED);
    expect(told.written).toEqual(["/dev/null"]);
    expect(told.unlisted).toBe(0);
    expect(told.unlinked).toEqual([join(broker.project, "not-there")]);
  });

  test("of many different ones some of each kind are listed, and all are counted", async () => {
    const told = await tell(broker, "mkdir many; sh many.sh");
    expect(told.exit, told.stderr).toBe(0);
    // What the last report of a process says of those before it nobody hears where it was not taken itself.
    expect((told.counts?.write ?? 0) + (told.counts?.unlink ?? 0)).toBeLessThanOrEqual(6003);
    expect(told.written).toHaveLength(50);
    expect(told.unlinked).toHaveLength(50);
    expect(told.unlisted).toBeGreaterThan(100);
    expect(told.programs?.join(" ")).toMatch(/mkdir.*sh.*rm/);
  });

  test("a flood without end keeps no other command from running, being heard and ending", async () => {
    const flood = tell(broker, "exec ./endless");
    for (let turn = 0; turn < 10; turn += 1) {
      const other = await tell(broker, `: >a; mv a other-${turn}; rm other-${turn}; echo ${turn}`);
      expect(other.stdout).toBe(`${turn}\n`);
      expect(other.unlinked).toEqual([join(broker.project, `other-${turn}`)]);
      expect(other.renamed).toEqual(other.unlinked);
      expect(other).toMatchObject({ dropped: 0, unlisted: 0 });
    }
    await broker.run(": >stop");
    const told = await flood;
    expect(told.exit).toBe(0);
    expect(told.written).toEqual(["/dev/null"]);
    const [took, refused] = told.stdout.split(" ").map(Number);
    // How many are taken depends on the machine. More came than there was room for, and none that was taken is lost.
    expect(refused).toBeGreaterThan(0);
    expect(told.counts?.write).toBe(took);
  });

  test("what is no report is counted, and nothing in a forged one rules a terminal", async () => {
    needs("python3");
    const told = await tell(broker, "/usr/bin/python3 forge.py");
    expect(told.stdout).toBe("said\n");
    expect(told.dropped).toBeGreaterThan(10);
    expect(told.unlinked).toContain("/with-a-descriptor");
    expect(told.written?.some((path) => path.startsWith("/\u001b[2J"))).toBe(true);
    const shown = await broker.cli(["trace", told.span.span_id]);
    expect(shown.code, shown.stderr).toBe(0);
    expect(shown.stdout).toMatch(/telemetry reported by the programs themselves; .* dropped/);
    expect(shown.stdout).not.toMatch(/\p{Cf}|(?!\n)\p{Cc}/u);
    const json = await broker.cli(["trace", told.span.span_id, "--json"]);
    expect(JSON.parse(json.stdout)).toMatchObject({ span: { telemetry: { state: "on" } } });
    const after = await tell(broker, ": >after");
    expect(after.written).toEqual([join(broker.project, "after")]);
    expect(after.span.world_id).toBe(told.span.world_id);
  });

  test("a report that names another command's socket, or one that is over, changes nothing", async () => {
    const over = (await tell(broker, "echo $SUBSTRATE_TELEMETRY")).stdout.trim();
    const late = await tell(broker, `SUBSTRATE_TELEMETRY=${over} sh -c ': >nobody' && echo went on`);
    expect(late.stdout).toBe("went on\n");
    expect(late.written).toEqual([]);
  });

  test("the library stays what it is, whatever a command does to it", async () => {
    const sum = (await tell(broker, `md5sum <${LIBRARY}`)).stdout;
    const { stdout } = await tell(
      broker,
      `cp /bin/true other; for try in "rm -f ${LIBRARY}" "mv ${LIBRARY} /run/x" "mv other ${LIBRARY}" "mv /run /tmp/run" ` +
        `"ln -sf other ${LIBRARY}" "mount --bind other ${LIBRARY}" "umount ${LIBRARY}" "chmod 777 ${LIBRARY}" ` +
        `"cp -f other ${LIBRARY}" "truncate -s 0 ${LIBRARY}"; do $try 2>/dev/null && echo "did $try"; done; md5sum <${LIBRARY}`,
    );
    expect(stdout).toBe(sum);
    expect(sum).toMatch(/^[0-9a-f]{32}/);
  });

  test("a secret of the command is in no list", async () => {
    const secret = "hunter2-hunter2-hunter2";
    const told = await tell(broker, {
      cmd: ': >"$API_TOKEN.txt"; rm "$API_TOKEN.txt"',
      env: { API_TOKEN: secret },
    });
    expect(told.written).toEqual([join(broker.project, "[redacted:env.API_TOKEN].txt")]);
    expect(JSON.stringify(told.span)).not.toContain(secret);
    expect(told.span.redacted).toContainEqual({ kind: "env.API_TOKEN", place: "telemetry" });
  });

  test("an isolated command reports as well, also from a world that was made ahead of it", async () => {
    for (let turn = 0; turn < 4; turn += 1) {
      const told = await tell(broker, "sh isolated.sh");
      expect(told.span.decision?.verdict).toBe("isolate");
      expect(told.written).toEqual([join(broker.project, "held")]);
      expect(told.programs).toContain("/bin/true");
    }
  });
});
