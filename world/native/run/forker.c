#define _GNU_SOURCE
#include "run/forker.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/channel.h"
#include "lib/credentials.h"
#include "lib/failure.h"
#include "lib/jobs.h"
#include "mount/dentries.h"
#include "mount/kept_writes.h"
#include "mount/spines.h"
#include "outer/cgroup.h"
#include "outer/limits.h"
#include "run/group.h"
#include "run/leader.h"
#include "seccomp/filter.h"

/* Sets what every leader and every command inherits. */
static void prepare(int proc, int null, int socket) {
  sigset_t all;
  sigfillset(&all);
  if (sigprocmask(SIG_SETMASK, &all, NULL) < 0) fail_world("forker", "signal mask", errno);
  for (int signal = 1; signal < NSIG; signal++) {
    struct sigaction fallback = {.sa_handler = SIG_DFL};
    /* Refused for SIGKILL, SIGSTOP and the C library's own two signals, whose handlers are still the
       defaults. */
    sigaction(signal, &fallback, NULL);
  }
  for (int fd = 0; fd < 3; fd++) {
    if (dup2(null, fd) < 0) fail_world("forker", "/dev/null", errno);
  }
  umask(022);
  credentials_drop();
  limits_enter_forker(proc);
  credentials_hide();
  /* Last: the steps above need calls that the filter refuses. */
  filter_load_world(socket);
}

/* Descriptors of a leader: PID 1 gets its ends, the leader gets the others, the forker keeps no copy. */
enum { OURS_SOCKET, OURS_STDOUT, OURS_STDERR, OURS, THEIR_SOCKET = OURS, THEIR_STDOUT, THEIR_STDERR, ENDS };

static int open_ends(int *ends) {
  int pair[2];
  for (int i = 0; i < OURS; i++) {
    int made = i == OURS_SOCKET ? socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair)
                                : pipe2(pair, O_CLOEXEC);
    if (made < 0) return -1;
    ends[i] = pair[0];
    ends[OURS + i] = pair[1];
    /* PID 1 never waits for a command; the command's end blocks as programs expect. */
    if (i != OURS_SOCKET && fcntl(pair[0], F_SETFL, O_NONBLOCK) < 0) return -1;
  }
  return 0;
}

/* Makes a leader as a child of PID 1 (CLONE_PARENT), which reaps the leader and inherits its processes. Each
   leader has a socket of its own, so the end of the socket is the end of the leader. */
static void make_leader(int socket, int proc, const int *handles, int terminal) {
  struct birth birth = {0};
  int ends[ENDS] = {-1, -1, -1, -1, -1, -1};
  if (open_ends(ends) == 0) {
    birth.pid = (int32_t)syscall(SYS_clone, CLONE_PARENT | SIGCHLD, 0, 0, 0, 0);
    if (birth.pid == 0) {
      close(socket);
      for (int i = 0; i < OURS; i++) close(ends[i]);
      leader_run(ends[THEIR_SOCKET], &ends[THEIR_STDOUT], proc, handles, terminal);
    }
  }
  if (birth.pid <= 0) birth.error = errno;
  if (job_send(socket, &birth, sizeof birth, NULL, 0, ends, birth.pid > 0 ? OURS : 0, 0) < 0) _exit(1);
  for (int i = 0; i < ENDS; i++) {
    if (ends[i] >= 0) close(ends[i]);
  }
}

pid_t forker_start(int proc, int null, int *socket) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0) fail_world("forker", "", errno);
  pid_t pid = fork();
  if (pid < 0) fail_world("forker", "", errno);
  if (pid > 0 && pid != FORKER_PID) fail_world("forker", "pid", EEXIST);
  if (pid > 0) {
    close(ends[1]);
    *socket = ends[0];
    return pid;
  }
  close(ends[0]);
  prepare(proc, null, ends[1]);
  /* From here on only PID 1 talks to the broker. */
  close(CHANNEL_FD);
  cgroup_let_go(limits_kept());
  dentries_let_go();
  kept_writes_let_go();
  spines_let_go();
  close(null);
  for (;;) {
    char request;
    int fds[JOB_FDS], handles[GROUP_HANDLES] = {-1, -1};
    int count = 0;
    if (job_receive(ends[1], &request, 1, fds, &count, 0) != 1) _exit(0);
    int terminals = request == REQUEST_JOB_LEADER, grouped = count - terminals;
    if (grouped != 0 && grouped != GROUP_HANDLES) _exit(1);
    memcpy(handles, fds, (size_t)grouped * sizeof *fds);
    make_leader(ends[1], proc, handles, terminals == 1 ? fds[grouped] : -1);
    while (count > 0) close(fds[--count]);
  }
}
