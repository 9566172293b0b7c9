#define _GNU_SOURCE
#include "notify/listener.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/commands.h"
#include "lib/failure.h"
#include "lib/jobs.h"
#include "lib/watch.h"
#include "notify/notices.h"
#include "notify/wakeups.h"

static int world = -1;
static void (*const *forgets)(int);
static bool given; /* the kernel gave the first command its listener */

void listeners_open(void (*const forget[])(int listener)) {
  forgets = forget;
}

void listener_take(int forker_socket) {
  char word;
  int fds[JOB_FDS];
  int count = 0;
  ssize_t length = job_receive(forker_socket, &word, sizeof word, fds, &count, 0);
  /* The forker has reported the cause itself: the broker believes the first FAILED. */
  if (length != sizeof word || count != 1) fail_world("seccomp log", "listener", length < 0 ? errno : ECHILD);
  world = fds[0];
}

void listener_watch(void) {
  if (world < 0) return;
  watch_add(world, EPOLLIN, SOURCE_LISTENER, 0);
}

static void add(struct leader *leader, int fd) {
  listener_remove(leader);
  leader->listener = fd;
  watch_add(fd, EPOLLIN, SOURCE_LISTENER, (uint32_t)leader->pid);
}

/* A kernel grants listeners to all commands or to no command. Once a command has a listener, a command
   without a listener does not run. */
bool listener_take_report(struct leader *leader, const int *fds, int count) {
  if (count != 1) return !given;
  add(leader, fds[0]);
  given = true;
  return true;
}

bool listener_hear(struct leader *leader) {
  struct report report;
  int fds[JOB_FDS];
  int count = 0;
  ssize_t length = job_receive(leader->socket, &report, sizeof report, fds, &count, MSG_DONTWAIT);
  if (length < 0 && errno == EAGAIN) return true;
  if (length != sizeof report || report.kind != REPORT_LISTENER) return false;
  return listener_take_report(leader, fds, count);
}

void listener_remove(struct leader *leader) {
  if (leader->listener < 0) return;
  for (void (*const *each)(int) = forgets; *each != NULL; each++) (*each)(leader->listener);
  wakeups_forget(leader->listener);
  close(leader->listener);
  leader->listener = -1;
}

/* Serves one call per event, so that a flood of calls takes turns with outputs and endings. A hang-up means
   that no process is left to call. */
void listener_serve(struct leader *leader, uint32_t events) {
  if (leader == NULL) return notice_serve_world(world);
  if (leader->listener < 0) return;
  if ((events & EPOLLIN) != 0) notice_serve(leader->listener, leader->command);
  else if ((events & (EPOLLHUP | EPOLLERR)) != 0) listener_remove(leader);
}
