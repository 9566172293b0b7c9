/* The outer process: enters the namespaces, starts PID 1 inside, and exits as PID 1 does. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "changes/changes.h"
#include "changes/held.h"
#include "deny/find_names.h"
#include "deny/rules.h"
#include "deny/scan_roots.h"
#include "files/files.h"
#include "lib/channel.h"
#include "lib/credentials.h"
#include "lib/failure.h"
#include "lib/frames.h"
#include "network/network.h"
#include "notify/connects/own_sockets.h"
#include "notify/writes/opened.h"
#include "outer/cgroup.h"
#include "outer/entrance.h"
#include "outer/namespaces.h"
#include "outer/setup.h"
#include "probe/probe.h"
#include "run/supervisor.h"
#include "seals/exchange.h"
#include "seccomp/filter.h"
#include "seccomp/guard.h"

/* Above the standard descriptors, the channel and the cgroup. */
#define FIRST_FREE_FD (CGROUP_FD + 1)

static int open_null(void) {
  int fd = open("/dev/null", O_RDWR | O_CLOEXEC);
  if (fd < 0) fail_world("open", "/dev/null", errno);
  int high = fcntl(fd, F_DUPFD_CLOEXEC, FIRST_FREE_FD);
  if (high < 0) fail_world("open", "/dev/null", errno);
  if (fd > 2) close(fd);
  return high;
}

/* Waits for PID 1 with only two descriptors open: the world's cgroup, and `alive`, whose closing tells PID 1
   of this process's death. */
_Noreturn static void wait_outside(pid_t pid, int alive, const struct limits *limits) {
  int status;
  syscall(SYS_close_range, 0U, CGROUP_FD - 1U, 0U);
  if (alive > CGROUP_FD + 1) syscall(SYS_close_range, CGROUP_FD + 1U, (unsigned)alive - 1, 0U);
  syscall(SYS_close_range, (unsigned)alive + 1, ~0U, 0U);
  while (waitpid(pid, &status, 0) < 0) {
    if (errno != EINTR) _exit(1);
  }
  /* Remove the cgroup here: the broker may already be dead. */
  cgroup_remove(limits);
  if (WIFEXITED(status)) _exit(WEXITSTATUS(status));
  /* Die of the same signal, without a core dump. */
  struct rlimit none = {0, 0};
  setrlimit(RLIMIT_CORE, &none);
  signal(WTERMSIG(status), SIG_DFL);
  raise(WTERMSIG(status));
  _exit(128 + WTERMSIG(status));
}

/* Handlers for fields of SETUP beyond outer/setup.h. */
static const struct setup_taker TAKERS[] = {
    {TAG_DENY, rules_add}, {TAG_ZONE, scan_roots_take}, {TAG_OPENED, opened_take}, {TAG_SOCKET, own_sockets_share}, {0, NULL}};

/* Closes descriptors of the broker that were not meant for this program: LMDB opens its data file without close-on-exec. */
static bool close_from(unsigned first) {
  return syscall(SYS_close_range, first, ~0U, 0U) == 0;
}

/* Programs outside every world, and how many descriptors Node gives each. Not the probes: they tell of kernels without close_range. */
static const struct {
  const char *word;
  unsigned given;
} OUTSIDE[] = {{"network", 4}, {"changes", 3}, {"held", 3}, {"exchange", 5}, {"find", 3}};

static bool close_ungiven(const char *word) {
  for (size_t i = 0; i < sizeof OUTSIDE / sizeof *OUTSIDE; i++) {
    if (strcmp(word, OUTSIDE[i].word) == 0) return close_from(OUTSIDE[i].given);
  }
  return true;
}

int main(int count, char **words) {
  struct frame frame;
  struct setup setup;
  int alive[2];
  if (count > 1 && !close_ungiven(words[1])) return 1;
  if (count == 3 && strcmp(words[1], "network") == 0) network_run(words[2]);
  if (count == 2 && strcmp(words[1], "changes") == 0) return changes_run();
  if (count == 2 && strcmp(words[1], "held") == 0) return held_run();
  if (count > 2 && strcmp(words[1], "exchange") == 0) return exchange_run(count - 2, words + 2);
  if (count == 2 && strcmp(words[1], "find") == 0) find_names_run();
  if (count == 2 && strcmp(words[1], "file") == 0) return files_run();
  /* A path is the host's tree inside a container; any other word names a probe. */
  if (count > 1 && words[1][0] != '/') return probe_run(count - 1, words + 1);
  entrance_take(count, words);
  if (!close_from(FIRST_FREE_FD)) return 1;
  channel_open();
  int null = open_null();
  while (!channel_next(&frame)) channel_receive(true);
  if (frame.type != FRAME_SETUP || frame.id != 0) fail_protocol("the first frame must be SETUP");
  const char *wrong = setup_parse(frame.payload, frame.length, TAKERS, &setup);
  if (wrong != NULL) fail_protocol(wrong);
  guard_keep(setup.guard, setup.guard_length);
  filter_keep(FILTER_WORLD, setup.filter, setup.filter_length);
  filter_keep(FILTER_COMMAND, setup.command_filter, setup.command_filter_length);
  filter_keep(FILTER_RECORD, setup.record_filter, setup.record_filter_length);
  limits_keep(&setup.limits);
  cgroup_take(&setup.limits);
  /* Fails for a process group leader, which is fine. */
  if (setsid() < 0 && errno != EPERM) fail_world("setsid", "", errno);
  namespaces_enter(&setup);
  /* After the identity maps: an undumpable process cannot write its own. */
  credentials_hide();
  if (pipe2(alive, O_CLOEXEC) < 0) fail_world("pipe", "", errno);
  pid_t pid = cgroup_fork_init(&setup.limits);
  if (pid < 0) fail_world(setup.limits.cgroup[0] == 0 ? "fork" : "cgroup", "init", errno);
  if (pid > 0) close(alive[0]);
  if (pid > 0) wait_outside(pid, alive[1], &setup.limits);
  close(alive[1]);
  supervisor_run(&setup, alive[0], null);
}
