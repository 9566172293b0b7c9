import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { TestBroker } from "../support/broker/broker.ts";
import { listening, tell } from "../support/broker/telemetry.ts";
import { actors } from "../support/users/users.ts";

/** A program that says what each call answered: with the library in it and without, it must say the same. */
const ANSWERS = `
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;
static char *volatile nothing = NULL;
static char *volatile bad = (char *)8;
static char long_name[5000];

#define SAY(call) do { errno = 77; long said = (long)(call); printf("%-60s %ld %d\\n", #call, said, errno); } while (0)
#define SAY_NULL(call) do { errno = 77; int is = (call) != NULL; printf("%-60s %d %d\\n", #call, is, errno); } while (0)

static int status_of(pid_t child) {
  int status = -1;
  waitpid(child, &status, 0);
  return status;
}

static int by_vfork(const char *path) {
  volatile int kept = 5;
  pid_t child = vfork();
  if (child == 0) {
    execl(path, path, "-c", "exit 7", NULL);
    _exit(errno);
  }
  return status_of(child) + kept;
}

static int by_spawn(int (*spawn)(pid_t *, const char *, const posix_spawn_file_actions_t *, const posix_spawnattr_t *,
                                 char *const[], char *const[]), const char *path) {
  pid_t child = 0;
  char *words[] = {"sh", "-c", "exit 9", NULL};
  int error = spawn(&child, path, NULL, NULL, words, environ);
  return error != 0 ? -error : status_of(child);
}

static int by_fork(int (*exec)(void)) {
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) { exec(); _exit(errno); }
  return status_of(child);
}

static char *const FIVE[] = {"sh", "-c", "exit 5", NULL};
static char *const SIX_VARIABLES[] = {"SIX=6", NULL};
static int le(void) { return execle("/bin/sh", "sh", "-c", "exit $SIX", NULL, SIX_VARIABLES); }
static int lp(void) { return execlp("sh", "sh", "-c", "exit 4", NULL); }
static int vp(void) { return execvp("sh", FIVE); }
static int vpe(void) { return execvpe("sh", FIVE, SIX_VARIABLES); }
static int fd_exec(void) { return fexecve(open("/bin/sh", O_RDONLY), FIVE, environ); }
static int missing(void) { return execvp("no-such-program", FIVE); }
static int faulty(void) { return execve(bad, FIVE, environ); }

static void *work(void *name) {
  char path[32];
  snprintf(path, sizeof path, "thread-%s", (char *)name);
  long sum = 0;
  for (int i = 0; i < 200; i++) {
    int fd = open(path, O_WRONLY | O_CREAT, 0600);
    sum += fd < 0;
    close(fd);
    sum += unlink(path) != 0;
  }
  return (void *)sum;
}

static volatile sig_atomic_t handled;
static void on_signal(int number) {
  (void)number;
  int fd = open("by-signal", O_WRONLY | O_CREAT, 0600);
  handled = fd >= 0 && close(fd) == 0 && unlink("by-signal") == 0;
}

static int signal_on_small_stack(void) {
  static char memory[8192];
  stack_t stack = {.ss_sp = memory, .ss_size = sizeof memory};
  struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK};
  sigaltstack(&stack, NULL);
  sigaction(SIGUSR1, &action, NULL);
  raise(SIGUSR1);
  return handled;
}

static int cancelled(void) {
  pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
  pthread_cancel(pthread_self());
  /* No point of cancellation. */
  int answer = unlink("not-there");
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
  return answer;
}
static void *cancel_me(void *unused) { (void)unused; return (void *)(long)cancelled(); }

/* Whoever makes a socket now is killed. */
static void sandbox(void) {
  struct sock_filter rules[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  struct sock_fprog filter = {4, rules};
  SAY(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter));
}

int main(void) {
  struct sockaddr_un here = {.sun_family = AF_UNIX, .sun_path = "no-socket"};
  struct rlimit few = {8, 8};
  pthread_t threads[4];
  void *sum;
  memset(long_name, 'x', sizeof long_name - 1);
  for (int fd = 3; fd < 1024; fd++) close(fd);
  SAY(open("made", O_WRONLY | O_CREAT, 0640));
  SAY(open("made", O_RDWR));
  SAY(open64("made", O_WRONLY | O_APPEND));
  SAY(openat(AT_FDCWD, "made", O_WRONLY));
  SAY(open(".", O_TMPFILE | O_RDWR, 0600));
  for (int fd = 3; fd < 1024; fd++) close(fd);
  SAY(open("not-there", O_WRONLY));
  SAY(open("no/folder", O_WRONLY | O_CREAT, 0600));
  SAY(open(".", O_WRONLY));
  SAY(open("/proc/version", O_WRONLY));
  SAY(open("made/below", O_WRONLY));
  SAY(open(long_name, O_WRONLY));
  SAY(open("", O_WRONLY));
  SAY(open(nothing, O_WRONLY));
  SAY(open(bad, O_WRONLY | O_CREAT, 0600));
  SAY(openat(-5, "made", O_WRONLY));
  SAY(openat(999, "made", O_WRONLY));
  SAY(creat(bad, 0600));
  SAY_NULL(fopen("no/folder", "w"));
  SAY_NULL(fopen(bad, "w"));
  SAY(fclose(fopen("made", "a+")));
  SAY(rename("made", "moved"));
  SAY(rename("made", "moved"));
  SAY(rename(bad, bad));
  SAY(unlink("made"));
  SAY(unlink(bad));
  SAY(unlinkat(AT_FDCWD, "moved", AT_REMOVEDIR));
  SAY(remove("moved"));
  SAY(rmdir("/"));
  SAY(connect(-1, (struct sockaddr *)&here, sizeof here));
  SAY(connect(socket(AF_UNIX, SOCK_STREAM, 0), (struct sockaddr *)&here, sizeof here));
  SAY(connect(3, (struct sockaddr *)bad, sizeof here));
  SAY(connect(3, (struct sockaddr *)&here, 1));
  SAY(connect(3, (struct sockaddr *)&here, 100000));
  close(3);
  SAY(by_vfork("/bin/sh"));
  SAY(by_vfork("/not/there"));
  SAY(by_spawn(posix_spawn, "/bin/sh"));
  SAY(by_spawn(posix_spawn, "/not/there"));
  SAY(by_spawn(posix_spawnp, "sh"));
  SAY(by_fork(le));
  SAY(by_fork(lp));
  SAY(by_fork(vp));
  SAY(by_fork(vpe));
  SAY(by_fork(fd_exec));
  SAY(by_fork(missing));
  SAY(by_fork(faulty));
  SAY(system("exit 3"));
  SAY(system(NULL));
  SAY(pclose(popen("exit 2", "r")));
  for (long i = 0; i < 4; i++) pthread_create(&threads[i], NULL, work, (char *[]){"a", "b", "c", "d"}[i]);
  for (int i = 0; i < 4; i++) { pthread_join(threads[i], &sum); SAY((long)sum); }
  pthread_create(&threads[0], NULL, cancel_me, NULL);
  pthread_join(threads[0], &sum);
  SAY((long)sum);
  SAY(signal_on_small_stack());
  setrlimit(RLIMIT_NOFILE, &few);
  for (int i = 0; i < 6; i++) SAY(open("/dev/null", O_WRONLY));
  for (int fd = 3; fd < 8; fd++) close(fd);
  sandbox();
  SAY(open("/dev/null", O_WRONLY));
  SAY(unlink("not-there"));
  SAY(access("/proc/self/fd/4", F_OK));
  return 0;
}
`;

const ROOT = join(import.meta.dirname, "../..");

/** What leaves a world that listens: its programs see what they would see without. */
const AS_WITHOUT = "env -u LD_PRELOAD -u SUBSTRATE_TELEMETRY";

const STATIC = `
#include <fcntl.h>
#include <unistd.h>
int main(void) { return open("by-static", O_WRONLY | O_CREAT, 0600) < 0 || unlink("by-static") < 0; }
`;

const MAKEFILE = `
all: a.o b.o c.o d.o
%.o: %.c
\tcc -c $<
`;

describe.each(actors())("a program that reports, as $kind,", (actor) => {
  let broker: TestBroker;
  let quiet: TestBroker;

  beforeAll(async () => {
    broker = await TestBroker.start(actor, { policies: { default: listening(true) } });
    quiet = await TestBroker.start(actor, { policies: { default: listening(false) } });
    for (const { project } of [broker, quiet]) {
      writeFileSync(join(project, "answers.c"), ANSWERS);
      writeFileSync(join(project, "static.c"), STATIC);
      execFileSync("cc", ["-O2", "-D_FORTIFY_SOURCE=2", "-w", "-pthread", "-o", "answers", "answers.c"], {
        cwd: project,
      });
      execFileSync("cc", ["-static", "-o", "static", "static.c"], { cwd: project });
    }
  }, 60_000);
  afterAll(async () => {
    await broker?.stop();
    await quiet?.stop();
  });

  test("gets the same answers, errors and descriptors as without, from the world and on the host", async () => {
    const plain = await quiet.run("./answers");
    const told = await tell(broker, "./answers");
    expect(plain.stdout.split("\n").length).toBe(65);
    expect(told.stdout).toBe(plain.stdout);
    expect(told.stderr).toBe(plain.stderr);
    expect(told.exit).toBe(plain.exit);
    expect(told.counts?.write).toBeGreaterThan(100);
    const { stdout } = await tell(broker, `${AS_WITHOUT} ./answers`);
    expect(stdout).toBe(plain.stdout);
  });

  test("is the same when the library is loaded where nobody listens", () => {
    const library = join(ROOT, ".build/substrate-preload.so");
    const run = (env: Record<string, string>): string =>
      execFileSync("./answers", [], {
        cwd: quiet.project,
        env: { PATH: "/usr/bin:/bin", ...env },
        encoding: "utf8",
      });
    const alone = run({});
    expect(run({ LD_PRELOAD: library })).toBe(alone);
    expect(run({ LD_PRELOAD: library, SUBSTRATE_TELEMETRY: "substrate-nobody" })).toBe(alone);
  });

  test("is not there, and nor is a variable, a file or a socket of it, where no policy asks", async () => {
    const { stdout, span_id: id } = await quiet.run(
      "env; ls -a /run; grep -c @substrate- /proc/net/unix; : >made; rm made",
    );
    expect(stdout).not.toMatch(/LD_PRELOAD|SUBSTRATE_TELEMETRY|substrate-preload/);
    expect(stdout).toMatch(/^0$/m);
    expect((await quiet.span(id)).telemetry).toBeUndefined();
    const heard = await tell(broker, "env; ls -a /run; grep -c @substrate- /proc/net/unix");
    expect(heard.stdout).toMatch(/^LD_PRELOAD=\/run\/substrate-preload\.so$/m);
    expect(heard.stdout).toMatch(/^1$/m);
  });

  test("that clears its environment, or is static, is not seen, and is not told to be", async () => {
    const cleared = await tell(broker, "exec env -i /bin/sh -c ': >unseen; rm unseen; env'");
    expect(cleared.stdout).not.toContain("PRELOAD");
    // The shell tries each folder of PATH in turn.
    expect([...new Set(cleared.programs?.map((path) => basename(path)))]).toEqual(["env", "sh"]);
    expect(cleared).toMatchObject({ written: [], unlinked: [] });
    const { exit, counts, programs } = await tell(broker, "exec ./static");
    expect(exit).toBe(0);
    expect(programs).toEqual([join(broker.project, "static")]);
    expect(counts).toMatchObject({ write: 0, unlink: 0 });
  });

  test("builds with make -j2, and what make starts is seen", async () => {
    writeFileSync(join(broker.project, "Makefile"), MAKEFILE);
    for (const name of ["a", "b", "c", "d"])
      writeFileSync(join(broker.project, `${name}.c`), `int ${name};\n`);
    const built = await tell(broker, "make -j2 && ls *.o");
    expect(built.exit, built.stderr).toBe(0);
    expect(built.stdout).toMatch(/a\.o\nb\.o\nc\.o\nd\.o/);
    expect(built.programs?.join(" ")).toMatch(/cc1/);
    expect(built.programs?.join(" ")).toMatch(/\bas\b/);
    expect(built.written).toContain(join(broker.project, "d.o"));
  });

  test("keeps a library of its own, which stands before", async () => {
    const own = "/nowhere/own.so";
    const { stdout } = await tell(broker, { cmd: "env", env: { LD_PRELOAD: own } });
    expect(stdout).toContain(`LD_PRELOAD=${own}:/run/substrate-preload.so\n`);
  });

  test("in the background that outlives its command is listened to until that has ended, and goes on", async () => {
    const told = await tell(broker, {
      cmd: "(sleep 0.3; : >late; mv late later) & : >early",
      background: "keep",
    });
    expect(told.written).toContain(join(broker.project, "early"));
    expect(told.written).not.toContain(join(broker.project, "late"));
    const wait = "i=0; until [ -e later ] || [ $i -gt 100 ]; do i=$((i+1)); sleep 0.1; done; ls later";
    expect((await broker.run(wait)).stdout).toBe("later\n");
  });
});
