/* Probes for `substrate world doctor` beyond Node's reach. Changes nothing on the host. */
#define _GNU_SOURCE
#include "probe/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "outer/namespaces.h"
#include "outer/setup.h"
#include "probe/probe_dial.h"
#include "probe/probe_notify.h"

/* Needs of a busy broker: a few instances, and a folder watch for each denied name. */
#define INSTANCES 8
#define WATCHES_EACH 128

/* The kernel's overflow user, an identity without rights (proc_sys_fs(5)). */
#define NOBODY 65534

/* A valid pid_max that no host uses: the kernel's least is 301. */
#define ODD_PID_MAX "4242"

static int failed(const char *step, int error) {
  printf("failed %s %d\n", step, error);
  return 1;
}

static int probe_inotify(void) {
  int files[WATCHES_EACH];
  int watches = 0;
  for (int i = 0; i < WATCHES_EACH; i++) {
    files[i] = memfd_create("substrate-probe", MFD_CLOEXEC);
    if (files[i] < 0) return failed("memfd_create", errno);
  }
  for (int instance = 0; instance < INSTANCES; instance++) {
    int fd = inotify_init1(IN_CLOEXEC);
    if (fd < 0) return failed("inotify_init", errno);
    for (int i = 0; i < WATCHES_EACH; i++, watches++) {
      char path[64];
      snprintf(path, sizeof path, "/proc/self/fd/%d", files[i]);
      if (inotify_add_watch(fd, path, IN_MODIFY) < 0) return failed("inotify_add_watch", errno);
    }
  }
  printf("ok %d %d\n", INSTANCES, watches);
  return 0;
}

/* Runs in the new pid namespace. Where pid_max belongs to the whole machine, nobody may write it. */
static int write_pid_max(void) {
  char text[32] = "";
  int fd = open("/proc/sys/kernel/pid_max", O_RDWR | O_CLOEXEC);
  if (fd < 0) return failed("open pid_max", errno);
  if (write(fd, ODD_PID_MAX, strlen(ODD_PID_MAX)) < 0) return failed("write pid_max", errno);
  if (pread(fd, text, sizeof text - 1, 0) < 0) return failed("read pid_max", errno);
  if (strncmp(text, ODD_PID_MAX "\n", sizeof text) != 0) return failed("pid_max", EIO);
  printf("ok\n");
  return 0;
}

static int probe_pid_max(void) {
  /* Drop root first: where namespaces have no pid_max of their own, root could change the machine's. */
  if (geteuid() == 0 && (setgroups(0, NULL) < 0 || setresgid(NOBODY, NOBODY, NOBODY) < 0 ||
                         setresuid(NOBODY, NOBODY, NOBODY) < 0)) {
    return failed("setresuid", errno);
  }
  if (unshare(CLONE_NEWUSER | CLONE_NEWPID) < 0) return failed("unshare", errno);
  pid_t child = fork();
  if (child < 0) return failed("fork", errno);
  if (child == 0) {
    int code = prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 ? failed("pdeathsig", errno) : write_pid_max();
    fflush(stdout);
    _exit(code);
  }
  int status;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return failed("wait", errno);
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : failed("child", EINTR);
}

/* Probes a whiteout at `where`, a path that does not exist yet; with `own`, in a new user namespace. */
static int probe_whiteout(const char *where, bool own) {
  struct setup setup = {.uid = getuid(), .gid = getgid(), .has_uid = true, .has_gid = true};
  if (own) setup.namespaces = CLONE_NEWUSER;
  /* Ends the process without a line when the host forbids namespaces, which another probe has reported. */
  namespaces_enter(&setup);
  if (mknod(where, S_IFCHR | 0600, 0) < 0) return failed("mknod", errno);
  struct stat status;
  if (lstat(where, &status) < 0) return failed("stat", errno);
  if (!S_ISCHR(status.st_mode) || status.st_rdev != 0) return failed("stat", EIO);
  if (unlink(where) < 0) return failed("unlink", errno);
  printf("ok\n");
  return 0;
}

int probe_run(int count, char *const *words) {
  if (count == 1 && strcmp(words[0], "notify") == 0) return probe_notify();
  if (count == 1 && strcmp(words[0], "inotify") == 0) return probe_inotify();
  if (count == 1 && strcmp(words[0], "pid-max") == 0) return probe_pid_max();
  if (count == 3 && strcmp(words[0], "whiteout") == 0) {
    return probe_whiteout(words[2], strcmp(words[1], "user") == 0);
  }
  if (count == 3 && strcmp(words[0], "dial") == 0) return probe_dial(words[1], words[2]);
  return failed("words", EINVAL);
}
