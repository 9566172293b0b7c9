#define _GNU_SOURCE
#include "notify/notices.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>

#include "lib/failure.h"
#include "notify/refused_calls.h"
#include "notify/wakeups.h"
#include "seccomp/guard.h"

/* SECCOMP_USER_NOTIF_FLAG_CONTINUE, here for headers older than Linux 5.5. */
#define LET_THROUGH 1U

static const struct notice_service *services;
static struct command *(*owner_of)(pid_t task);

void notices_open(const struct notice_service *table, struct command *(*owner)(pid_t task)) {
  services = table;
  owner_of = owner;
}

/* Receives a notification; false when no caller waits. Never blocks: the kernel counts a request for each
   notification and keeps the count when the caller dies; the read then fails with ENOENT. */
static bool receive(int listener, struct seccomp_notif *notice) {
  memset(notice, 0, sizeof *notice);
  if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, notice) == 0) {
    wakeups_heard(listener, (pid_t)notice->pid);
    return true;
  }
  if (errno != ENOENT && errno != EINTR) fail_world("seccomp listener", "receive", errno);
  return false;
}

bool notice_waits(int listener, uint64_t id) {
  if (ioctl(listener, SECCOMP_IOCTL_NOTIF_ID_VALID, &id) == 0) return true;
  if (errno != ENOENT) fail_world("seccomp listener", "valid", errno);
  return false;
}

static bool send_answer(int listener, struct seccomp_notif_resp response) {
  if (ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &response) == 0) return true;
  if (errno != ENOENT) fail_world("seccomp listener", "answer", errno);
  return false;
}

bool notice_answer(int listener, uint64_t id, int refused) {
  return send_answer(listener, (struct seccomp_notif_resp){
                                   .id = id, .error = -refused, .flags = refused == 0 ? LET_THROUGH : 0});
}

bool notice_return(int listener, uint64_t id, int64_t value, int failed) {
  return send_answer(listener, (struct seccomp_notif_resp){.id = id, .val = failed == 0 ? value : 0, .error = -failed});
}

/* Refuses calls that cannot be reported: calls outside every command (the leader was killed, and its
   processes are about to be), and calls beyond the table of counts. */
static int judge(const struct seccomp_notif *notice, struct command *command) {
  if (command == NULL) return EPERM;
  int refused = guard_judge(&notice->data);
  return refused_calls_note(command, &notice->data, refused) ? refused : EPERM;
}

static bool serve(int listener, const struct seccomp_notif *notice, struct command *command, bool of_world) {
  for (const struct notice_service *service = services; service->serve != NULL; service++) {
    if ((!of_world || service->of_world) && service->serve(listener, notice, command)) return true;
  }
  return false;
}

void notice_serve(int listener, struct command *command) {
  struct seccomp_notif notice;
  if (!receive(listener, &notice)) return;
  /* bind(2) and name-creating ioctl(2) calls are only counted: no diff reports the names they create. */
  if (!serve(listener, &notice, command, false)) notice_answer(listener, notice.id, 0);
}

void notice_serve_world(int listener) {
  struct seccomp_notif notice;
  if (!receive(listener, &notice)) return;
  struct command *command = owner_of((pid_t)notice.pid);
  if (serve(listener, &notice, command, true)) return;
  /* A caller killed before the answer has not carried out its call: nothing to report. */
  if (!notice_waits(listener, notice.id)) return;
  notice_answer(listener, notice.id, judge(&notice, command));
}
