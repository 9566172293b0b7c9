/* Keeps replaced files: by rename if the journal is on the same file system, otherwise by an earlier copy. */
#define _GNU_SOURCE
#include "changes/held_keep.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "changes/held_copy.h"
#include "changes/held_stage.h"

/* Makes a folder writable for its owner: moving a folder rewrites its `..`, which needs write permission for
   an ordinary user (rename(2), EACCES). */
static int loosen(int folder, const char *name, unsigned mode) {
  char link[64];
  if (!S_ISDIR(mode) || (mode & S_IWUSR) != 0 || geteuid() == 0) return -1;
  int fd = openat(folder, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return -1;
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  if (chmod(link, (mode & 07777) | S_IWUSR) == 0) return fd;
  close(fd);
  return -1;
}

static void tighten(int fd, unsigned mode) {
  char link[64];
  int error = errno;
  if (fd < 0) return;
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  chmod(link, mode & 07777);
  close(fd);
  errno = error;
}

int move(int from, const char *name, unsigned mode, int to, const char *as, unsigned other, unsigned flags) {
  int result = (int)syscall(SYS_renameat2, from, name, to, as, flags);
  if (result == 0 || errno != EACCES) return result;
  int here = loosen(from, name, mode), there = loosen(to, as, other);
  result = (int)syscall(SYS_renameat2, from, name, to, as, flags);
  tighten(here, mode);
  tighten(there, other);
  return result;
}

#define TRIAL "trial"
#define FOLDER (O_RDONLY | O_DIRECTORY)

/* Tries a move: two mounts of the same file system have equal device numbers but refuse renames. */
static int can_move(struct plan *plan) {
  if (mkdirat(plan->stage, TRIAL, 0700) < 0) return -1;
  int moved = renameat(plan->stage, TRIAL, plan->home, TRIAL);
  if (moved == 0) return unlinkat(plan->home, TRIAL, AT_REMOVEDIR) < 0 ? -1 : 1;
  return errno == EXDEV ? 0 : -1;
}

static int copy_all(struct plan *plan, int kept) {
  struct text names = {0};
  struct links *links = held_grow(NULL, sizeof *links);
  *links = (struct links){.home = kept};
  struct copy copy = {.whole = true, .links = links};
  int result = names_of(plan->old, &names);
  struct text_reader reader = {names.data, names.data + names.length};
  for (char *name = text_next(&reader); name != NULL && result == 0; name = text_next(&reader)) {
    links->top = name;
    result = copy_entry(&copy, plan->old, name, kept, name, "");
  }
  int error = errno;
  links_end(links);
  free(links);
  text_clear(&names);
  errno = error;
  return result;
}

int keep_elsewhere(struct plan *plan) {
  int movable = can_move(plan);
  if (movable != 0) return movable < 0 ? -1 : 0;
  int kept = openat(plan->home, "old", FOLDER | O_NOFOLLOW | O_CLOEXEC);
  if (kept < 0) return -1;
  int result = copy_all(plan, kept);
  int error = errno;
  close(kept);
  errno = error;
  return result;
}

int keep_one(struct plan *plan, const char *name) {
  int kept = openat(plan->home, "old", FOLDER | O_NOFOLLOW | O_CLOEXEC);
  struct sight sight;
  if (kept < 0) return -1;
  int result = sight_at(plan->old, name, &sight);
  if (result == 0) result = move(plan->old, name, sight.mode, kept, name, 0, 0);
  if (result < 0 && errno == EXDEV) {
    struct links *links = held_grow(NULL, sizeof *links);
    *links = (struct links){.home = kept, .top = name};
    struct copy copy = {.whole = true, .links = links};
    result = remove_tree(kept, name) < 0 ? -1 : copy_entry(&copy, plan->old, name, kept, name, "");
    links_end(links);
    free(links);
  }
  int error = errno;
  close(kept);
  errno = error;
  return result;
}

/* Returns the mtime that the plan wants for the project's own folder; default: the earlier mtime. */
static int64_t wanted_time(struct plan *plan) {
  struct stat status;
  struct sight sight = plan->project_seen;
  for (size_t i = 0; i < plan->count; i++) {
    const struct step *step = &plan->steps[i];
    if (step->kind != 'a' || *step->path != 0) continue;
    int source = step->how == 'n' ? dup(plan->project) : open_beneath(plan->layers, step->source, O_PATH | O_NOFOLLOW);
    if (source >= 0 && fstat(source, &status) == 0) sight_of(&status, &sight);
    if (source >= 0) close(source);
  }
  return sight.mtime;
}

int commit_finish(struct plan *plan) {
  struct text nothing = {0};
  int64_t mtime = wanted_time(plan);
  /* Renames over the empty folder made before. EXDEV: already copied; ENOENT: already moved. */
  if (plan->keeps && plan->stage >= 0 && renameat(plan->stage, "old", plan->home, "old") < 0 && errno != EXDEV && errno != ENOENT) return -1;
  if (stage_remove(plan, mtime) < 0) return -1;
  return text_write(&nothing, plan->home, "finished");
}
