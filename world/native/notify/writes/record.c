#define _GNU_SOURCE
#include "notify/writes/record.h"

#include <errno.h>
#include <limits.h>

#include "deny/denied_names.h"
#include "lib/callers.h"
#include "lib/file_calls.h"
#include "notify/notices.h"
#include "notify/writes/locks.h"
#include "notify/writes/lookups.h"
#include "notify/writes/refused_writes.h"
#include "notify/writes/touched.h"

static removal_asker asks_removal;

void record_open(removal_asker ask) {
  asks_removal = ask;
}

/* True when the rename moves a folder with its contents. */
static bool is_folder(const struct lookup *from, const struct lookup *to, bool exchanged) {
  if (!from->exists) return false;
  return S_ISDIR(from->stat.st_mode) || (exchanged && to->exists && S_ISDIR(to->stat.st_mode));
}

/* Asks the broker about a rename or removal that the kernel would refuse. */
static bool serve_removal(int listener, const struct seccomp_notif *notice, const struct command *command,
                          const struct file_name *names, const struct lookup *places, int count) {
  static char target[PATH_MAX];
  if (count == 0 || places[0].refused == 0 || callers_nested((pid_t)notice->pid)) return false;
  struct removal removal = {.path = places[0].refused_path, .refused = places[0].refused};
  if (count == 1) return names[0].removes && asks_removal(listener, notice, command, &removal);
  bool is_free = !places[1].exists && places[1].refused == 0 && lookup_whole(&places[1], target);
  removal.target = target;
  return is_free && asks_removal(listener, notice, command, &removal);
}

/* A refused link changes nothing, and `cp -al` of a folder tries one for each file: its own error tells that. */
static void tell_refused(struct command *command, const struct lookup *place) {
  if (place->refused != 0 && place->refused != EXDEV) refused_writes_tell(command, place);
}

/* Refuses a call that would create a name which no command may create, or change a sealed file. */
static bool serve_refusal(int listener, const struct seccomp_notif *notice, struct command *command, const struct lookup *places,
                          int count) {
  for (int i = 0; i < count; i++) {
    if (!places[i].held) continue;
    /* Report first: after the answer the caller may end the world. */
    tell_refused(command, &places[i]);
    notice_answer(listener, notice->id, places[i].refused);
    return true;
  }
  return false;
}

/* Refuses a path that PID 1 cannot follow, through links of procfs that stand for the reader or in a root of the call's own
   (RESOLVE_IN_ROOT): it may lead to a sealed file at the moment when a person's git replaces that file. */
static bool serve_unknown(int listener, const struct seccomp_notif *notice, const struct lookup *places, int count) {
  for (int i = 0; i < count; i++) {
    if (!places[i].unknown || !names_guarded()) continue;
    notice_answer(listener, notice->id, ELOOP);
    return true;
  }
  return false;
}

/* Looks names up before the answer and records them after: names read from a process that has died may be
   another's, and are dropped. Except for refused and asked calls, the call goes on whatever was found. */
static void record(int listener, const struct seccomp_notif *notice, struct file_name *names, int count,
                   struct command *command) {
  static struct lookup places[FILE_NAMES_MAX];
  enum found found[FILE_NAMES_MAX];
  if (command == NULL || !lookups_counted()) count = 0;
  for (int i = 0; i < count; i++) found[i] = lookup_find((pid_t)notice->pid, &names[i], &places[i]);
  if (count > 0) touched_settle(command, (pid_t)notice->pid);
  if (serve_unknown(listener, notice, places, count)) {
    if (command != NULL) touched_unread(command);
    return;
  }
  enum lock_answer lock = lock_serve(listener, notice, places, count);
  if (lock == LOCK_REFUSED) {
    for (int i = 0; i < count; i++) tell_refused(command, &places[i]);
    return;
  }
  bool done = lock == LOCK_DONE;
  bool asked = !done && serve_removal(listener, notice, command, names, places, count);
  if (!done && !asked && serve_refusal(listener, notice, command, places, count)) return;
  if (!done && !asked && !notice_answer(listener, notice->id, 0)) return;
  for (int i = 0; i < count; i++) {
    /* Where the broker is asked, the broker itself reports the refusal. */
    if (!asked) tell_refused(command, &places[i]);
    bool empties = names[i].removes && places[i].exists && S_ISDIR(places[i].stat.st_mode);
    if (found[i] == FOUND) touched_note(command, names[i].how | (empties ? HOW_REMOVED : 0), &places[i]);
    if (found[i] == UNREADABLE) touched_unread(command);
  }
  if (count == 2 && found[0] == FOUND && found[1] == FOUND && is_folder(&places[0], &places[1], names[0].exchanged)) {
    touched_move(command, (pid_t)notice->pid, names[0].exchanged, &places[0], &places[1]);
  }
}

bool record_serve(int listener, const struct seccomp_notif *notice, struct command *command) {
  struct file_name names[FILE_NAMES_MAX];
  int count = file_call_names(&notice->data, names);
  if (count >= 0) record(listener, notice, names, count, command);
  return count >= 0;
}
