import { existsSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { FsDiff } from "../../schemas/generated/types.ts";
import { type Ran, TestBroker } from "../support/broker/broker.ts";
import { buildProgram } from "../support/programs/programs.ts";
import { needs } from "../support/run/needs.ts";
import { type Actor, actors } from "../support/users/users.ts";

/** C programs that attack PID 1, the recorder of file changes. */

/** Makes FOLDER/a… while another thread swaps the text of the path for one that is refused. */
const SWAP = `
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
static char good[256], bad[256];
static char path[256];
static volatile int stop;
static void *swap(void *unused) {
  (void)unused;
  while (!stop) { memcpy(path, bad, sizeof path); memcpy(path, good, sizeof path); }
  return NULL;
}
int main(int count, char **words) {
  pthread_t thread;
  if (count != 3) return 2;
  snprintf(bad, sizeof bad, "%s", words[2]);
  snprintf(good, sizeof good, "%s/a", words[1]);
  memcpy(path, good, sizeof path);
  if (pthread_create(&thread, NULL, swap, NULL) != 0) return 3;
  for (int i = 0; i < 2000; i++) {
    int fd = open(path, O_WRONLY | O_CREAT, 0644);
    if (fd >= 0) close(fd);
    unlink(path);
  }
  stop = 1;
  pthread_join(thread, NULL);
  return 0;
}
`;

/** LISTENED PROGRAM…: runs it where somebody listens already, as below another sandbox. */
const LISTENED = `
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(int count, char **words) {
  struct sock_filter allow[] = {{BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW}};
  struct sock_fprog program = {1, allow};
  if (count < 2 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0) return 2;
  long fd = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
  if (fd < 0 || fcntl((int)fd, F_SETFD, 0) < 0) return 3;
  execv(words[1], words + 1);
  return 4;
}
`;

/** FLOOD FOLDER THREADS EACH: THREADS threads make EACH files per thread at the same time. */
const FLOOD = `
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static const char *folder;
static long each;
static int failed;
static void *make(void *first) {
  char path[256];
  for (long i = 0; i < each; i++) {
    snprintf(path, sizeof path, "%s/%ld", folder, (long)first * each + i);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0644);
    if (fd < 0) failed = 1;
    else close(fd);
  }
  return NULL;
}
int main(int count, char **words) {
  static pthread_t threads[4096];
  pthread_attr_t small;
  if (count != 4) return 2;
  folder = words[1];
  long number = atol(words[2]);
  each = atol(words[3]);
  pthread_attr_init(&small);
  pthread_attr_setstacksize(&small, 65536);
  for (long i = 0; i < number; i++) if (pthread_create(&threads[i], &small, make, (void *)i) != 0) return 3;
  for (long i = 0; i < number; i++) pthread_join(threads[i], NULL);
  return failed;
}
`;

/** VANISH FOLDER ROUNDS: children that write without end, killed at any moment. */
const VANISH = `
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int count, char **words) {
  char path[256];
  if (count != 3) return 2;
  for (long round = 0; round < atol(words[2]); round++) {
    pid_t child = fork();
    if (child < 0) return 3;
    if (child == 0) {
      for (int i = 0;; i = (i + 1) % 20) {
        snprintf(path, sizeof path, "%s/%d", words[1], i);
        close(open(path, O_WRONLY | O_CREAT, 0644));
        unlink(path);
      }
    }
    usleep((unsigned)(round * 37 % 3000));
    kill(child, SIGKILL);
    if (waitpid(child, NULL, 0) != child) return 4;
  }
  return 0;
}
`;

const POLICY = `id: default
name: x
mode: enforce
`;

function diffOf(ran: Ran): FsDiff {
  if (ran.fs_diff === null) throw new Error("Expected a diff, received none");
  return ran.fs_diff;
}

/** As many as a diff lists of one folder. */
const numbered = (folder: string, count: number): readonly string[] =>
  Array.from({ length: count }, (_each, at) => `${folder}/${at}`).sort();

describe.each(actors())("what is told of direct writes, as $kind", (actor: Actor) => {
  let broker: TestBroker;
  beforeAll(async () => {
    broker = await TestBroker.start(actor, { policies: { default: POLICY } });
    buildProgram(broker, "swap", SWAP);
    buildProgram(broker, "flood", FLOOD);
    buildProgram(broker, "vanish", VANISH);
  });
  afterAll(() => broker?.stop());

  const stillTells = async (name: string): Promise<void> => {
    const ran = await broker.run(`echo 1 > ${name}`);
    expect(diffOf(ran)).toMatchObject({ writes: [name], truncated: false, summary: null });
  };

  test("a path that another thread swaps hides or misnames a change, and lets nothing through that would be refused", async () => {
    const ran = await broker.run("mkdir swapped && ./swap swapped /usr/never");
    expect(ran.exit, ran.stderr).toBe(0);
    expect(existsSync("/usr/never")).toBe(false);
    const wild = [...diffOf(ran).writes, ...diffOf(ran).mods, ...diffOf(ran).deletes].filter(
      (path) => !path.startsWith("swapped/"),
    );
    expect(wild).toEqual([]);
    await stillTells("after-swap");
  });

  test("200 threads that write are all told of, and others work meanwhile", async () => {
    const flood = broker.run("mkdir many && ./flood many 200 10");
    const meanwhile = await Promise.all(
      [1, 2, 3].map((at) => broker.run(`echo 1 > meanwhile${at} && cat meanwhile${at}`)),
    );
    for (const [at, ran] of meanwhile.entries()) {
      expect(ran.stdout).toBe("1\n");
      expect(diffOf(ran).writes).toEqual([`meanwhile${at + 1}`]);
    }
    const ran = await flood;
    expect(ran.exit, ran.stderr).toBe(0);
    expect(diffOf(ran).summary).toMatch(/^2000 files and 1 folders changed/);
    expect(diffOf(ran).writes).toEqual(numbered("many", 2000).slice(0, 1000));
  });

  test("callers that are killed while they wait harm nobody", async () => {
    const ran = await broker.run({ cmd: "mkdir vanished && ./vanish vanished 300", timeout_ms: 60_000 });
    expect(ran.exit, ran.stderr).toBe(0);
    expect(diffOf(ran).summary).toBeNull();
    expect(diffOf(ran).writes.every((path) => path.startsWith("vanished/"))).toBe(true);
    await stillTells("after-vanish");
  });

  test("a program that is not dumpable has its writes in the diff", async () => {
    needs("python3");
    const ran = await broker.run(
      `python3 -c "import ctypes; ctypes.CDLL(None).prctl(4, 0); open('hidden', 'w')"`,
    );
    expect(existsSync(join(broker.project, "hidden"))).toBe(true);
    expect(diffOf(ran)).toMatchObject({ writes: ["hidden"], truncated: false, summary: null });
    await stillTells("after-hidden");
  });

  test("paths that are no text, too long, or nowhere are the caller's own trouble", async () => {
    needs("python3");
    const ran = await broker.run(`python3 -c "
import ctypes, errno
c = ctypes.CDLL(None, use_errno=True)
def call(*a):
    return ctypes.get_errno() if c.syscall(*a) < 0 else 0
long = ctypes.create_string_buffer(b'x' * 5000)
print(call(257, -100, ctypes.c_void_p(8), 65, 0o644), call(257, -100, long, 65, 0o644), call(257, 77, b'x', 65, 0o644), call(257, -100, b'', 65, 0o644), call(257, -100, b'no/x', 65, 0o644), call(437, -100, b'x', ctypes.c_void_p(8), 24))
"`);
    expect(ran.stdout).toBe("14 36 9 2 2 14\n");
    expect(diffOf(ran).writes).toEqual([]);
    await stillTells("after-trouble");
  });

  test("below another sandbox that listens, commands run, and their diffs say that nothing is known", async () => {
    needs("python3");
    const listened = join(broker.project, "listened");
    buildProgram(broker, "listened", LISTENED);
    const inner = await TestBroker.start(actor, { policies: { default: POLICY }, wrap: () => [listened] });
    try {
      const ran = await inner.run("echo 1 > unseen; cat unseen");
      expect(ran.stdout, ran.stderr).toBe("1\n");
      expect(diffOf(ran)).toMatchObject({
        writes: [],
        truncated: true,
        summary: expect.stringContaining("not measured"),
        tree_hash: null,
      });
      const clone3 = await inner.run(
        `python3 -c "import ctypes; c = ctypes.CDLL(None, use_errno=True); print(c.syscall(435, 0, 0), ctypes.get_errno())"`,
      );
      expect(clone3.stdout).toBe("-1 38\n");
    } finally {
      await inner.stop();
    }
  });

  test("a time that is set back hides no change", async () => {
    await broker.run("echo 1 > dated; touch -d 2001-01-01 dated");
    const ran = await broker.run("echo 2 > dated; touch -d 2001-01-01 dated");
    expect(diffOf(ran).mods).toEqual(["dated"]);
    expect(diffOf(await broker.run("cat dated")).mods).toEqual([]);
  });

  test("every way by which a file can be changed is told", async () => {
    needs("python3");
    const ran =
      await broker.run(`mkdir ways && cd ways && echo 1 > o && echo 1 > t && echo 1 > m && python3 -c "
import ctypes, os
c = ctypes.CDLL(None, use_errno=True)
S = ctypes.c_char_p
def must(*a):
    r = c.syscall(*a)
    if r < 0: raise OSError(ctypes.get_errno(), str(a))
    return r
how = (ctypes.c_uint64 * 3)(0o101, 0o644, 0)
must(2, b'open', 0o101, 0o644); must(85, b'creat', 0o644); must(437, -100, b'openat2', how, 24)
must(133, b'mknod', 0o010644, 0); must(86, b'o', b'link'); must(265, -100, b'o', -100, b'linkat', 0)
must(88, b'x', b'symlink'); must(266, b'x', -100, b'symlinkat'); must(83, b'mkdir', 0o755); must(258, -100, b'mkdirat', 0o755)
must(82, b'creat', b'rename'); must(264, -100, b'open', -100, b'renameat'); must(316, -100, b'openat2', -100, b'renameat2', 1)
must(76, b't', 0); must(91, os.open('m', os.O_RDONLY), 0o600)
f = os.open('.', os.O_TMPFILE | os.O_WRONLY, 0o644); must(265, -100, ('/proc/self/fd/%d' % f).encode(), -100, b'tmpfile', 0x400)
"`);
    expect(ran.stderr).toBe("");
    expect(diffOf(ran)).toMatchObject({
      writes: [
        ...["link", "linkat", "m", "mknod", "o", "rename", "renameat", "renameat2", "symlink", "symlinkat"],
        ...["t", "tmpfile"],
      ].map((name) => `ways/${name}`),
      dirs: ["ways", "ways/mkdir", "ways/mkdirat"],
    });
    const again = await broker.run(
      `cd ways && python3 -c "import os; os.truncate('t', 3); os.fchmod(os.open('m', os.O_RDONLY), 0o640)"`,
    );
    expect(diffOf(again).mods).toEqual(["ways/m", "ways/t"]);
  });
});
