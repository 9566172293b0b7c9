#define _GNU_SOURCE
#include "seals/settle.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "deny/calls_in_progress.h"
#include "deny/closings.h"
#include "deny/denials.h"
#include "deny/denied_names.h"
#include "deny/late_names.h"
#include "deny/new_repositories.h"
#include "deny/rules.h"
#include "deny/scan.h"
#include "deny/scan_roots.h"
#include "lib/callers.h"
#include "lib/channel.h"
#include "lib/credentials.h"
#include "lib/failure.h"
#include "lib/fields.h"
#include "lib/frames.h"
#include "seals/fresh_copies.h"

/* Names in a single repository; a submodule has two. */
#define NAMES_MAX 512
/* Waiting time for calls per SETTLE. A call takes microseconds; a task that computes after its last call
   still looks busy in the call. */
#define PATIENCE_US 20000
#define LOOK_US 100

/* Git replaces its settings a few times within milliseconds. */
#define SEAL_TRIES 3

struct name {
  char *path;
  unsigned denies;
};

/* Names to seal in the folder under scan. */
static struct name names[NAMES_MAX];
static int name_count;
static bool too_many;

static bool on_entered(int folder, const char *path, const struct rule_states *states) {
  (void)folder, (void)path, (void)states;
  return true;
}

static bool on_found(const char *path, unsigned denies) {
  denies &= ~DENY_REPOSITORY;
  if ((denies & DENY_SEAL) == 0 || (denies & ~DENY_OF_SEALS) != 0 || denial_holds(path)) return true;
  char *copy = name_count < NAMES_MAX ? strdup(path) : NULL;
  if (copy == NULL) too_many = true;
  else names[name_count++] = (struct name){copy, denies};
  return !too_many;
}

static void forget_names(void) {
  for (int i = 0; i < name_count; i++) free(names[i].path);
  name_count = 0;
}

/* Waits for calls in progress. PID 1 answers no call meanwhile, so only calls already let go on could reopen
   the folder. */
static void wait_for_calls(int *left_us) {
  const struct timespec pause = {.tv_nsec = LOOK_US * 1000};
  names_hear();
  while (calls_may_be_in_progress() && *left_us > 0) {
    nanosleep(&pause, NULL);
    *left_us -= LOOK_US;
    names_hear();
  }
}

static int set_mode(int folder, mode_t mode) {
  char link[32];
  snprintf(link, sizeof link, "self/fd/%d", folder);
  return fchmodat(callers_proc, link, mode & 07777, 0) < 0 ? errno : 0;
}

/* Counts the names from `first` on in the same folder. */
static int count_beside(int first, size_t folder_length) {
  int last = first;
  while (last < name_count && strncmp(names[last].path, names[first].path, folder_length + 1) == 0 &&
         strchr(names[last].path + folder_length + 1, '/') == NULL)
    last++;
  return last - first;
}

/* True when the existing files may be sealed without copies: no process runs, and no file has a second name
   for a later command to write through. */
static bool may_stay(int folder, int first, int number) {
  bool may = names_nobody_runs();
  for (int i = first; may && i < first + number; i++) may = fresh_is_whole(folder, strrchr(names[i].path, '/') + 1);
  return may;
}

/* Seals an existing name. Git may remove or replace the name meanwhile: retry, and accept a missing name. */
static int seal_as_it_is(int folder, const struct name *name) {
  struct stat status;
  for (int tried = 0; tried < SEAL_TRIES; tried++) {
    if (denial_settle(name->path, name->denies)) return 0;
    if (fstatat(folder, strrchr(name->path, '/') + 1, &status, AT_SYMLINK_NOFOLLOW) < 0) return 0;
  }
  return EAGAIN;
}

static int seal_as_they_are(int folder, int first, int number) {
  int error = 0;
  for (int i = first; error == 0 && i < first + number; i++) error = seal_as_it_is(folder, &names[i]);
  return error;
}

static int seal_all(int folder, int first, int number) {
  int error = 0;
  for (int i = first; error == 0 && i < first + number; i++) {
    error = fresh_replace(folder, strrchr(names[i].path, '/') + 1);
    /* The file was removed meanwhile. */
    if (error == ENOENT) error = 0;
    else if (error == 0 && !denial_settle(names[i].path, names[i].denies)) error = EAGAIN;
  }
  return error;
}

/* Seals names in a folder inside the git folder `whole`. Returns 0 or the errno. */
static int settle_beside(const char *whole, int first, int number, int *patience) {
  char path[PATH_MAX];
  struct stat before, after;
  snprintf(path, sizeof path, "%.*s", (int)(strrchr(names[first].path, '/') - names[first].path), names[first].path);
  int folder = denial_open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW);
  if (folder < 0) return errno;
  if (may_stay(folder, first, number)) {
    int failed = seal_as_they_are(folder, first, number);
    close(folder);
    return failed;
  }
  /* A read-only folder takes no copy. */
  closing_end(whole);
  /* Wait before clearing the mode: calls already let go on must end as usual. */
  wait_for_calls(patience);
  int error = fstat(folder, &before) < 0 ? errno : set_mode(folder, 0);
  if (error == 0) {
    credentials_raise();
    error = seal_all(folder, first, number);
    if (error == 0 && (fstat(folder, &after) < 0 || (after.st_mode & 07777) != 0)) error = EBUSY;
    int opened = set_mode(folder, before.st_mode);
    if (error == 0) error = opened;
  }
  close(folder);
  return error;
}

static bool is_git_folder(const char *folder) {
  size_t length = strlen(folder);
  return length >= 4 && strcmp(folder + length - 4, ".git") == 0;
}

/* Returns 0, or an errno: the content of the folder cannot be trusted. */
static int settle(const char *folder, struct field_writer *writer, int *patience) {
  unsigned denied;
  int error = 0;
  const struct rule_states *states = rule_states_at(folder, DENY_IN_ROOTS, &denied);
  const struct scan scan = {.root = denials_root(), .enter = on_entered, .found = on_found};
  too_many = false;
  if (states != NULL) scan_below(&scan, folder, states);
  if (too_many) error = E2BIG;
  /* From now on commands cannot create the folder's missing names. Close before sealing: this mount would
     cover existing seals, and git's settings could not be changed any more (denial_under). */
  if (error == 0 && is_git_folder(folder) && names_nobody_runs() && !closing_is_over(folder))
    closing_begin(scan_root_of(folder)->path, folder);
  for (int at = 0; error == 0 && at < name_count;) {
    size_t length = (size_t)(strrchr(names[at].path, '/') - names[at].path);
    int number = count_beside(at, length);
    error = settle_beside(folder, at, number, patience);
    at += number;
  }
  if (error == 0 && (name_count > 0 || is_git_folder(folder))) denial_remember(folder);
  for (int i = 0; error == 0 && i < name_count; i++) field_put_string(writer, TAG_PATH, names[i].path);
  forget_names();
  return error;
}

/* True when SETTLE names this folder. The fields of the frame are parsed again for each folder: a frame has
   few. */
static bool is_named(const struct frame *frame, const char *folder) {
  struct field_reader reader = {frame->payload, frame->payload + frame->length};
  struct field field;
  int got;
  bool named = false;
  while ((got = field_next(&reader, &field)) > 0) {
    if (field.tag != TAG_PATH || !field_is_string(&field, 1)) fail_protocol("SETTLE: bad field");
    named |= field.length == strlen(folder) && memcmp(field.data, folder, field.length) == 0;
  }
  if (got < 0) fail_protocol("SETTLE: malformed");
  return named;
}

/* Reports all names of a folder, or the folder as unsealed. */
static void settle_and_tell(const char *folder, struct field_writer *writer, int *patience) {
  size_t begun = writer->length;
  credentials_raise();
  int error = new_repository_is_gone(folder) ? 0 : settle(folder, writer, patience);
  credentials_lower();
  if (error == 0 && !writer->full) return;
  writer->length = begun;
  writer->full = false;
  field_put_string(writer, TAG_TARGET, folder);
  field_put_u64(writer, TAG_ERRNO, (uint64_t)(error == 0 ? E2BIG : error));
}

/* Settles git folders that only SETTLE names: inotify reports nothing for unwatched folders, but the broker
   knows them. */
static void settle_named(const struct frame *frame, struct field_writer *writer, int *patience) {
  struct field_reader reader = {frame->payload, frame->payload + frame->length};
  struct field field;
  char folder[PATH_MAX];
  while (field_next(&reader, &field) > 0) {
    if (field.length >= sizeof folder) continue;
    memcpy(folder, field.data, field.length);
    folder[field.length] = 0;
    if (folder[0] == '/' && scan_root_of(folder) != NULL && !denial_known(folder)) settle_and_tell(folder, writer, patience);
  }
}

void new_repositories_settle(const struct frame *frame) {
  static uint8_t payload[FRAME_MAX_SETTLED];
  struct field_writer writer = {.data = payload, .capacity = sizeof payload};
  int patience = PATIENCE_US;
  (void)is_named(frame, "");
  if (names_guarded()) names_look();
  bool all = !late_commands_run();
  const char *folder;
  for (int at = 0; (folder = new_repository_at(at)) != NULL;) {
    if (!all && !is_named(frame, folder)) {
      at++;
      continue;
    }
    settle_and_tell(folder, &writer, &patience);
    new_repository_drop(at);
  }
  if (new_repositories_overflowed()) fail_world("denied names", "too many new repositories to seal", E2BIG);
  if (names_guarded()) settle_named(frame, &writer, &patience);
  channel_send(FRAME_SETTLED, frame->id, payload, writer.length);
}
