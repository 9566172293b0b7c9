/** A program that says what each call answered: with the library in it and without, it must say the same. */
export const ANSWERS = `
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
