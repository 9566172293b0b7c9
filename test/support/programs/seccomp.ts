/** Programs for the tests of log mode. */

/**
 * `flood N` makes a call N times; `kill N` kills callers in the middle of it; `timer N` makes N calls while a timer
 * interrupts it every 2 ms.
 */
export const STORM = `
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
static void ignore(int number) { (void)number; }
static long ask(void) { return syscall(SYS_keyctl, 0, -4, 1); }
int main(int count, char **words) {
  int most = count > 2 ? atoi(words[2]) : 0;
  if (strcmp(words[1], "timer") == 0) {
    struct sigaction action = {.sa_handler = ignore, .sa_flags = SA_RESTART};
    struct itimerval often = {{0, 2000}, {0, 2000}};
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
  }
  for (int i = 0; i < most; i++) {
    if (strcmp(words[1], "kill") != 0) {
      if (ask() < 0) return printf("%d\\n", errno), 1;
      continue;
    }
    pid_t child = fork();
    while (child == 0) ask();
    usleep((useconds_t)(rand() % 700));
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
  }
  printf("done\\n");
  return 0;
}
`;

/** Makes a call from a process whose parent is gone and that leads a session of its own. */
export const DETACH = `
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int count, char **words) {
  pid_t parent = fork();
  if (parent == 0) {
    if (fork() > 0) _exit(0);
    setsid();
    usleep(50000);
    syscall(count > 1 ? atol(words[1]) : SYS_getpid, 1);
    _exit(0);
  }
  waitpid(parent, NULL, 0);
  return 0;
}
`;

/**
 * In a world whose mounts protect `sealed`, `secret` and what is below `guarded`: with a user namespace of its own it
 * detaches the mounts and replaces them on the host. The way there is that of `world/seccomp/table.ts`.
 */
export const NEST = `
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
static int cloned(void *go_on) { return go_on != NULL; }
static int enter(const char *how) {
  static char stack[65536];
  if (strcmp(how, "unshare") == 0) return unshare(CLONE_NEWUSER | CLONE_NEWNS);
  if (strcmp(how, "clone") == 0) return clone(cloned, stack + sizeof stack, CLONE_NEWUSER | CLONE_NEWNS | SIGCHLD, NULL);
  return (int)syscall(0x40000000 + 272, CLONE_NEWUSER | CLONE_NEWNS);
}
int main(int count, char **words) {
  int project = open(".", O_RDONLY | O_DIRECTORY);
  int entered = enter(count > 1 ? words[1] : "unshare");
  if (entered < 0) printf("%d\\n", errno);
  else printf("entered\\n");
  if (entered > 0) waitpid(entered, NULL, 0);
  mkdir("/tmp/n", 0755);
  mkdir("/tmp/n/old", 0755);
  mount("/tmp/n", "/tmp/n", NULL, MS_BIND, NULL);
  if (syscall(SYS_pivot_root, "/tmp/n", "/tmp/n/old") == 0 && chdir("/") == 0) umount2("/old", MNT_DETACH);
  renameat(project, "secret", project, "plain");
  renameat(project, "guarded", project, "moved");
  int file = openat(project, "mine", O_CREAT | O_WRONLY, 0644);
  if (write(file, "mine", 4) == 4) renameat(project, "mine", project, "sealed");
  return 0;
}
`;

/** By what a filter around substrate-init makes this kernel look like: argument of seccomp(2), its value, the answer. */
const KERNELS = {
  /** SECCOMP_GET_NOTIF_SIZES is EINVAL. */
  "knows no notifications": [16, 3, 22],
  /** A listener is EBUSY: this process is in somebody else's sandbox that has one. */
  "has a listener already": [24, 0x28, 16],
  /** SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV is EINVAL. */
  "is older than 5.19": [24, 0x28, 22],
} as const;

/** Becomes substrate-init on a kernel of such a kind. */
export function initOn(kernel: keyof typeof KERNELS, init: string): string {
  const [argument, value, error] = KERNELS[kernel];
  return `
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(int count, char **words) {
  struct sock_filter steps[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_seccomp, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, ${argument}),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ${value}, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ${error}),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog program = {sizeof steps / sizeof steps[0], steps};
  (void)count;
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) return 1;
  execv("${init}", words);
  return 1;
}
`;
}

/** Becomes substrate-init on a kernel that answers one system call with an error. */
export function initWithout(call: number, error: number, init: string): string {
  return `
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <unistd.h>
int main(int count, char **words) {
  struct sock_filter steps[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ${call}, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ${error}),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog program = {sizeof steps / sizeof steps[0], steps};
  (void)count;
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) return 1;
  execv("${init}", words);
  return 1;
}
`;
}
