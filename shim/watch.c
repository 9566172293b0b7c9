#define _GNU_SOURCE
#include "watch.h"

#include <errno.h>
#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/broker.h"
#include "client/descriptors.h"
#include "question.h"

/* Missing in older headers: PIDFD_GET_INFO came with Linux 6.13, PIDFD_INFO_EXIT with 6.15
   (include/uapi/linux/pidfd.h). */
struct info {
  uint64_t mask, cgroup;
  uint32_t ids[11]; /* pid, tgid, ppid, and eight user and group ids */
  int32_t exit_code;
};
#define GET_INFO _IOWR(0xFF, 11, struct info)
#define INFO_EXIT (1ULL << 3)

#define ANSWER_SECONDS 10

/* Wait for the parent to reap the program: before reaping, the kernel gives no exit code. Some parents never
   reap. */
#define REAPED_MS 60000

/* A span id has 40 bytes. */
#define SPAN_MAX 128

static int status_of(int pidfd) {
  struct pollfd poll_it = {.fd = pidfd, .events = POLLIN};
  struct info info = {.mask = INFO_EXIT};
  while (poll(&poll_it, 1, -1) < 0 && errno == EINTR) {
  }
  /* Without PIDFD_GET_INFO the status stays unknown. Do not poll either: before Linux 6.9 a pidfd does not
     report reaping. */
  if (ioctl(pidfd, GET_INFO, &info) < 0 && errno != ESRCH) return -1;
  poll_it.events = 0; /* POLLHUP: the program is reaped, and PIDFD_INFO_EXIT available */
  while (poll(&poll_it, 1, REAPED_MS) < 0 && errno == EINTR) {
  }
  info = (struct info){.mask = INFO_EXIT};
  if (ioctl(pidfd, GET_INFO, &info) < 0 || (info.mask & INFO_EXIT) == 0) return -1;
  return info.exit_code;
}

/* Reads the span until the shim closes the socket. False for an empty span: no program starts. */
static bool read_span(int fd, char span[SPAN_MAX]) {
  size_t length = 0;
  for (;;) {
    ssize_t got = read(fd, span + length, SPAN_MAX - 1 - length);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    length += (size_t)got;
  }
  span[length] = 0;
  return length > 0;
}

static void watch(int pidfd, int told, const char *socket, const char *agent) {
  sigset_t all;
  struct broker broker;
  char span[SPAN_MAX];
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, NULL);
  setsid();
  /* Hold no inherited descriptor or folder: readers of an open pipe get no end of file, and a folder in use
     cannot be unmounted. `pidfd` and `told` are above 2 (watch_start), so dup2(2) overwrites neither. */
  if (dup2(pidfd, 0) < 0 || dup2(told, 1) < 0 || syscall(SYS_close_range, 2, ~0U, 0) < 0 || chdir("/") < 0) return;
  if (!read_span(1, span)) return;
  close(1);
  int status = status_of(0);
  struct buffer end = question_end(agent, span, status);
  if (!broker_open(&broker, socket)) return;
  if (broker_send(&broker, "/v1/report", &end)) broker_answer(&broker, ANSWER_SECONDS);
}

/* Forks a child whose end sends no SIGCHLD: a pending SIGCHLD would be delivered to the program. */
static pid_t fork_silently(void) {
  return (pid_t)syscall(SYS_clone, 0, NULL, NULL, NULL, NULL);
}

/* Forks a child, which forks the watcher and exits with the errno of the second fork. */
static pid_t fork_twice(int pidfd, int told, const char *socket, const char *agent) {
  pid_t child = fork_silently();
  if (child != 0) return child;
  pid_t watcher = fork_silently();
  int error = watcher < 0 ? errno : 0;
  if (watcher == 0) watch(pidfd, told, socket, agent);
  _exit(error);
}

/* Returns 0 with a running watcher, else the errno. */
static int start(int pidfd, int told, const char *socket, const char *agent) {
  int reaper = 0, status = 0;
  /* Orphan the watcher with the subreaper flag off: a subreaper would adopt the watcher as the program's
     child, and a program waiting for all children would never end. */
  if (prctl(PR_GET_CHILD_SUBREAPER, &reaper) == 0 && reaper != 0) prctl(PR_SET_CHILD_SUBREAPER, 0);
  pid_t child = fork_twice(pidfd, told, socket, agent);
  int error = errno;
  while (child > 0 && waitpid(child, &status, __WALL) < 0 && errno == EINTR) {
  }
  if (reaper != 0) prctl(PR_SET_CHILD_SUBREAPER, 1);
  return child > 0 ? WEXITSTATUS(status) : error;
}

static void close_if(int fd) {
  if (fd >= 0) close(fd);
}

int watch_start(const char *socket, const char *agent) {
  int ends[2];
  /* PID 1 adopts the watcher. A program with PID 1 would be the watcher's parent, and its end would kill the
     watcher before the report. */
  if (getpid() == 1) {
    errno = ENOTSUP;
    return -1;
  }
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0) return -1;
  int pidfd = above_standard((int)syscall(SYS_pidfd_open, getpid(), 0));
  ends[0] = above_standard(ends[0]);
  ends[1] = above_standard(ends[1]);
  int error = pidfd < 0 || ends[0] < 0 || ends[1] < 0 ? errno : start(pidfd, ends[0], socket, agent);
  close_if(pidfd);
  close_if(ends[0]);
  if (error == 0) return ends[1];
  close_if(ends[1]);
  errno = error;
  return -1;
}

bool watch_for(int watcher, const char *span) {
  size_t length = strlen(span);
  bool told = send(watcher, span, length, MSG_NOSIGNAL) == (ssize_t)length;
  int error = errno;
  close(watcher);
  errno = error;
  return told;
}
