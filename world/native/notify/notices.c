#define _GNU_SOURCE
#include "notify/notices.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <string.h>
#include <sys/ioctl.h>

#include "run/children.h"
#include "deny/denied_names.h"
#include "notify/connects/dials.h"
#include "lib/failure.h"
#include "lib/file_calls.h"
#include "seccomp/guard.h"
#include "notify/refused_calls.h"
#include "notify/writes/lookups.h"
#include "notify/writes/refused_writes.h"
#include "seals/removals.h"
#include "seals/replacements.h"
#include "notify/starts/starts.h"
#include "notify/writes/touched.h"
#include "notify/wakeups.h"

/* SECCOMP_USER_NOTIF_FLAG_CONTINUE, here for headers older than Linux 5.5. */
#define LET_THROUGH 1U

/* False: nobody waits any more. Never blocks: the kernel counts a request for each notification and takes none back when
   its process dies; then this is ENOENT. */
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

/* Whether what is moved brings along what stands below it. */
static bool is_folder(const struct lookup *from, const struct lookup *to, bool exchanged) {
  if (!from->exists) return false;
  return S_ISDIR(from->stat.st_mode) || (exchanged && to->exists && S_ISDIR(to->stat.st_mode));
}

/* Asks the broker where the kernel would refuse to take a name away. */
static bool serve_removal(int listener, const struct seccomp_notif *notice, const struct command *command,
                          const struct file_name *names, const struct lookup *places, int count) {
  static char target[PATH_MAX];
  if (count == 0 || places[0].refused == 0) return false;
  struct removal removal = {.path = places[0].refused_path, .refused = places[0].refused};
  if (count == 1) return names[0].removes && removal_serve(listener, notice, command, &removal);
  bool is_free = !places[1].exists && places[1].refused == 0 && lookup_whole(&places[1], target);
  removal.target = target;
  return is_free && removal_serve(listener, notice, command, &removal);
}

/* A call that would make a name which no command may make is refused, and told. */
static bool serve_refusal(int listener, const struct seccomp_notif *notice, struct command *command, const struct lookup *places,
                          int count) {
  for (int i = 0; i < count; i++) {
    if (places[i].refused != EPERM) continue;
    /* Told first: with the answer the caller may end the world. */
    refused_writes_tell(command, &places[i]);
    notice_answer(listener, notice->id, EPERM);
    return true;
  }
  return false;
}

/* Looked at before the answer, kept after it: what is read of a process that is gone may be another's, and is nothing.
   But for what is refused or asked about, the call goes on whatever was found. */
static void record(int listener, const struct seccomp_notif *notice, struct file_name *names, int count,
                   struct command *command) {
  static struct lookup places[FILE_NAMES_MAX];
  enum found found[FILE_NAMES_MAX];
  if (command == NULL || !lookups_counted()) count = 0;
  for (int i = 0; i < count; i++) found[i] = lookup_find((pid_t)notice->pid, &names[i], &places[i]);
  if (count > 0) touched_settle(command, (pid_t)notice->pid);
  if (serve_refusal(listener, notice, command, places, count)) return;
  bool asked = serve_removal(listener, notice, command, names, places, count);
  if (!asked && !notice_answer(listener, notice->id, 0)) return;
  for (int i = 0; i < count; i++) {
    /* Where the broker is asked, it says itself what it refuses. */
    if (!asked && places[i].refused != 0) refused_writes_tell(command, &places[i]);
    bool empties = names[i].removes && places[i].exists && S_ISDIR(places[i].stat.st_mode);
    if (found[i] == FOUND) touched_note(command, names[i].how | (empties ? HOW_REMOVED : 0), &places[i]);
    if (found[i] == UNREADABLE) touched_unread(command);
  }
  if (count == 2 && found[0] == FOUND && found[1] == FOUND && is_folder(&places[0], &places[1], names[0].exchanged)) {
    touched_move(command, (pid_t)notice->pid, names[0].exchanged, &places[0], &places[1]);
  }
}

/* A call that belongs to no command (its leader was killed, and it will be at once), or that cannot be counted any
   more, cannot be told; and what cannot be told is not let through. */
static int judge(const struct seccomp_notif *notice, struct command *command) {
  if (command == NULL) return EPERM;
  int refused = guard_judge(&notice->data);
  return refused_calls_note(command, &notice->data, refused) ? refused : EPERM;
}

void notice_serve(int listener, struct command *command) {
  struct seccomp_notif notice;
  struct file_name names[FILE_NAMES_MAX];
  if (!receive(listener, &notice)) return;
  if (start_is(&notice.data)) return start_serve(listener, &notice, command);
  if (dial_is(&notice.data)) return dial_serve(listener, &notice, command);
  names_hear_before((pid_t)notice.pid);
  if (replacement_serve(listener, &notice, command)) return;
  int count = file_call_names(&notice.data, names);
  /* bind(2) and the calls that make a name by ioctl(2) are only counted as calls: no diff has what they make. */
  record(listener, &notice, names, count < 0 ? 0 : count, command);
}

void notice_serve_world(int listener) {
  struct seccomp_notif notice;
  struct file_name names[FILE_NAMES_MAX];
  if (!receive(listener, &notice)) return;
  struct command *command = children_owner((pid_t)notice.pid);
  if (start_is(&notice.data)) return start_serve(listener, &notice, command);
  if (dial_is(&notice.data)) return dial_serve(listener, &notice, command);
  int count = file_call_names(&notice.data, names);
  if (count >= 0) return record(listener, &notice, names, count, command);
  /* Gone before it was answered: the call was not carried out, so there is nothing to tell. */
  if (!notice_waits(listener, notice.id)) return;
  notice_answer(listener, notice.id, judge(&notice, command));
}
