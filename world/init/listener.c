#define _GNU_SOURCE
#include "listener.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "children.h"
#include "failure.h"
#include "guard.h"
#include "hits.h"
#include "jobs.h"
#include "watch.h"

/* SECCOMP_USER_NOTIF_FLAG_CONTINUE, here for headers older than Linux 5.5. */
#define LET_THROUGH 1U

static int listener = -1;

void listener_take(int forker_socket) {
  char word;
  int fds[JOB_FDS];
  int count = 0;
  ssize_t length = job_receive(forker_socket, &word, sizeof word, fds, &count, 0);
  /* The forker has said itself what went wrong: the broker believes the first FAILED. */
  if (length != sizeof word || count != 1) fail_world("seccomp log", "no listener", length < 0 ? errno : ECHILD);
  listener = fds[0];
}

void listener_watch(void) {
  if (listener >= 0) watch_add(listener, EPOLLIN, SOURCE_LISTENER, 0);
}

/* True when the process that asked still waits, so its number cannot have come to stand for another one. */
static bool still_waits(uint64_t id) {
  if (ioctl(listener, SECCOMP_IOCTL_NOTIF_ID_VALID, &id) == 0) return true;
  if (errno != ENOENT) fail_world("seccomp log", "valid", errno);
  return false;
}

/* A call that belongs to no command (its leader was killed, and it will be at once), or that cannot be counted any
   more, cannot be told; and what cannot be told is not let through. */
static int judge(const struct seccomp_notif *notice, struct command *command) {
  if (command == NULL) return EPERM;
  int refused = guard_judge(&notice->data);
  return hits_note(command, &notice->data, refused) ? refused : EPERM;
}

static void answer(uint64_t id, int refused) {
  struct seccomp_notif_resp response = {
      .id = id, .error = -refused, .flags = refused == 0 ? LET_THROUGH : 0};
  if (ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &response) == 0) return;
  /* Killed meanwhile. Any other way of not being answered would leave a process waiting for ever. */
  if (errno != ENOENT) fail_world("seccomp log", "answer", errno);
}

/* One call for each event, so that a flood of them waits its turn behind outputs and endings. Never blocks: the kernel
   counts a request for each notification and takes none back when its process dies; then this is ENOENT. */
void listener_serve(void) {
  struct seccomp_notif notice;
  memset(&notice, 0, sizeof notice);
  if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &notice) < 0) {
    if (errno == ENOENT || errno == EINTR) return;
    fail_world("seccomp log", "receive", errno);
  }
  struct command *command = children_owner((pid_t)notice.pid);
  /* Gone before it was answered: the call was not carried out, so there is nothing to tell. */
  if (!still_waits(notice.id)) return;
  answer(notice.id, judge(&notice, command));
}
