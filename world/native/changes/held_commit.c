/* Puts staged files in place: renames only, each checked before and after, then attributes. Replaced files are kept by
   rename if the journal is on the same file system, otherwise by a copy. */
#define _GNU_SOURCE
#include "changes/held_commit.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "changes/held_copy.h"
#include "changes/paths.h"

#define TRIAL "trial"
#define FOLDER (O_RDONLY | O_DIRECTORY)

static const char CHANGED[] = "the path was changed meanwhile";
static const char UNREACHED[] = "a folder on the path no longer exists, or is now a symbolic link";

static struct verdict conflict(const struct step *step, const char *reason) {
  return (struct verdict){CONFLICT, step->path, reason, 0};
}

static struct verdict failed(const struct step *step, const char *reason) {
  return (struct verdict){FAILED, step->path, reason, errno};
}

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

/* True when the file is still as expected. After the move to the staging folder nobody reaches the file by
   name, so its state is final. Ctime is not compared, because a rename changes ctime. */
static bool is_what_was_seen(int folder, const char *name, const struct step *step) {
  struct sight now, below = {0};
  if (sight_at(folder, name, &now) < 0 || now.type != step->expect.type || now.inode != step->expect.inode) return false;
  if (now.mtime != step->expect.mtime || now.size != step->expect.size || now.mode != step->expect.mode) return false;
  if (now.type != TYPE_FOLDER) return true;
  int fd = openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  bool same = fd >= 0 && walk_below(fd, "", &below, NULL) == 0 && below.count == step->expect.count &&
              below.newest == step->expect.newest;
  if (fd >= 0) close(fd);
  return same;
}

/* Checks a name again after `commit_check`. For a hard-linked file ctime is ignored: moving another of its
   names changes ctime. Changed content is found after the move (is_what_was_seen). */
static bool still_matches(const struct step *step, const struct sight *now) {
  const struct sight *then = &step->expect;
  if (then->type == TYPE_FILE && then->links > 1) return now->type == TYPE_FILE && now->inode == then->inode;
  return sight_matches(step, now);
}

static struct verdict take(struct plan *plan, const struct step *step, int parent, const char *name) {
  struct sight now;
  if (sight_at(parent, name, &now) < 0) return failed(step, "cannot read the state of the path");
  if (!still_matches(step, &now)) return conflict(step, now.type == TYPE_NONE ? "the path no longer exists" : CHANGED);
  if (move(parent, name, now.mode, plan->old, step->name, 0, RENAME_NOREPLACE) < 0) return failed(step, "cannot move the old file away");
  return is_what_was_seen(plan->old, step->name, step) ? (struct verdict){0} : conflict(step, CHANGED);
}

static struct verdict put_new(struct plan *plan, const struct step *step, int parent, const char *name) {
  if (move(plan->made, step->name, step->placed.mode, parent, name, 0, RENAME_NOREPLACE) == 0) return (struct verdict){0};
  return errno == EEXIST ? conflict(step, "another file or folder now has the path") : failed(step, "cannot put the new file in place");
}

static struct verdict replace(struct plan *plan, const struct step *step, int parent, const char *name) {
  struct sight now;
  if (sight_at(parent, name, &now) < 0) return failed(step, "cannot read the state of the path");
  if (!still_matches(step, &now)) return conflict(step, now.type == TYPE_NONE ? "the path no longer exists" : CHANGED);
  if (move(plan->made, step->name, step->placed.mode, parent, name, now.mode, RENAME_EXCHANGE) < 0) {
    /* A file system without RENAME_EXCHANGE: the name is missing for a moment. */
    if (errno != EINVAL) return errno == ENOENT ? conflict(step, CHANGED) : failed(step, "cannot put the new file in place");
    struct verdict taken = take(plan, step, parent, name);
    return taken.kind == SUCCESS ? put_new(plan, step, parent, name) : taken;
  }
  if (!is_what_was_seen(plan->made, step->name, step)) return conflict(step, CHANGED);
  int moved = move(plan->made, step->name, now.mode, plan->old, step->name, 0, RENAME_NOREPLACE);
  return moved == 0 ? (struct verdict){0} : failed(step, "cannot keep the replaced file for undo");
}

/* Finds most conflicts before staging, while nothing has been touched. */
struct verdict commit_check(struct plan *plan) {
  struct parents parents = {.root = plan->project, .fd = -1};
  struct verdict verdict = {0};
  for (size_t i = 0; i < plan->count && verdict.kind == SUCCESS; i++) {
    const struct step *step = &plan->steps[i];
    struct sight now;
    const char *name;
    if (step->kind != STEP_PUT && step->kind != STEP_TAKE) continue;
    int parent = parents_open(&parents, step->path, &name);
    if (parent < 0) verdict = conflict(step, UNREACHED);
    else if (sight_at(parent, name, &now) < 0) verdict = failed(step, "cannot read the state of the path");
    else if (step->expect.type == TYPE_NONE && now.type != TYPE_NONE) verdict = conflict(step, "another file or folder now has the path");
    else if (!sight_matches(step, &now)) verdict = conflict(step, now.type == TYPE_NONE ? "the path no longer exists" : CHANGED);
    else if (now.type == TYPE_FOLDER && !is_what_was_seen(parent, name, step)) verdict = conflict(step, CHANGED);
  }
  parents_end(&parents);
  return verdict;
}

static struct verdict put_in_place(struct plan *plan, const struct step *step, struct parents *parents) {
  const char *name;
  int parent = parents_open(parents, step->path, &name);
  if (parent < 0) return conflict(step, UNREACHED);
  if (step->kind == STEP_TAKE) return take(plan, step, parent, name);
  return step->expect.type == TYPE_NONE ? put_new(plan, step, parent, name) : replace(plan, step, parent, name);
}

static struct verdict set_attributes(struct plan *plan, const struct step *step) {
  struct stat status;
  if (step->how == HOW_NOTHING) return (struct verdict){0};
  int target = open_beneath(plan->project, step->path, O_PATH | O_NOFOLLOW);
  if (target < 0) return conflict(step, UNREACHED);
  int source = open_beneath(plan->layers, step->source, O_PATH | O_NOFOLLOW);
  bool same = fstat(target, &status) == 0 && status.st_ino == step->expect.inode;
  int set = -1;
  if (same && source >= 0) set = step->how == HOW_WHOLE ? copy_attributes(source, target) : copy_mtime(source, target);
  int error = errno;
  close(target);
  if (source >= 0) close(source);
  errno = error;
  if (!same) return conflict(step, CHANGED);
  return set == 0 ? (struct verdict){0} : failed(step, "cannot set the attributes");
}

/* How many single files of the plan are one file. */
static uint64_t names_of_file(const struct plan *plan, const struct sight *file) {
  uint64_t names = 0;
  for (size_t i = 0; i < plan->count; i++) names += plan->steps[i].kind == STEP_PUT && plan->steps[i].placed.inode == file->inode;
  return names;
}

/* Looks a step's result up again by its whole path: a folder on the path may have been moved during the
   commit. */
static struct verdict look_again(struct plan *plan, const struct step *step, struct parents *parents, struct text *record) {
  struct sight now = {0};
  const char *name;
  struct stat status;
  if (step->kind == STEP_ATTRIBUTES) {
    int fd = open_beneath(plan->project, step->path, O_PATH | O_NOFOLLOW);
    bool seen = fd >= 0 && fstat(fd, &status) == 0 && status.st_ino == step->expect.inode;
    if (fd >= 0) close(fd);
    if (!seen) return conflict(step, UNREACHED);
    sight_of(&status, &now);
  } else {
    int parent = parents_open(parents, step->path, &name);
    if (parent < 0) return conflict(step, UNREACHED);
    if (sight_at(parent, name, &now) < 0) return failed(step, "cannot read the state of the path");
    if (step->kind == STEP_TAKE) return now.type == TYPE_NONE ? (struct verdict){0} : conflict(step, "another file or folder now has the path");
    if (now.inode != step->placed.inode) return conflict(step, CHANGED);
    if (plan->is_reachable && now.type == TYPE_FILE && now.links > names_of_file(plan, &now)) return conflict(step, "somebody gave the new file another name");
  }
  text_field(record, step->path);
  sight_write(record, &now);
  return (struct verdict){0};
}

static struct verdict write_record(struct plan *plan, struct parents *parents) {
  struct text record = {0}, placed = {0};
  struct verdict verdict = {0};
  if (text_read(&placed, plan->home, "placed") < 0) verdict = (struct verdict){FAILED, "", "cannot read the journal", errno};
  struct text_reader reader = {placed.data, placed.data + placed.length};
  for (size_t i = 0; i < plan->count && verdict.kind == SUCCESS; i++) text_next(&reader);
  if (verdict.kind == SUCCESS) text_add(&record, reader.at, (size_t)(reader.end - reader.at));
  for (size_t i = 0; i < plan->count && verdict.kind == SUCCESS; i++) {
    if (plan->steps[i].kind != STEP_INTO) verdict = look_again(plan, &plan->steps[i], parents, &record);
  }
  if (verdict.kind == SUCCESS && text_write(&record, plan->home, "record") < 0) verdict = (struct verdict){FAILED, "", "cannot write the journal", errno};
  int error = errno;
  text_clear(&record);
  text_clear(&placed);
  errno = error;
  return verdict;
}

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

/* Copies replaced files into the journal's folder when the journal is on another file system. */
static int keep_elsewhere(struct plan *plan) {
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

struct verdict commit(struct plan *plan) {
  struct parents parents = {.root = plan->project, .fd = -1};
  struct verdict verdict = {0};
  for (size_t i = 0; i < plan->count && verdict.kind == SUCCESS; i++) {
    const struct step *step = &plan->steps[i];
    if (step->kind == STEP_PUT || step->kind == STEP_TAKE) verdict = put_in_place(plan, step, &parents);
  }
  for (size_t i = 0; i < plan->count && verdict.kind == SUCCESS; i++) {
    if (plan->steps[i].kind == STEP_ATTRIBUTES) verdict = set_attributes(plan, &plan->steps[i]);
  }
  if (verdict.kind == SUCCESS && plan->keeps && keep_elsewhere(plan) < 0) verdict = (struct verdict){FAILED, "", "cannot keep the replaced files for undo", errno};
  parents_end(&parents);
  if (verdict.kind == SUCCESS) verdict = write_record(plan, &parents);
  parents_end(&parents);
  return verdict;
}

/* Returns the mtime that the plan wants for the project's own folder; default: the earlier mtime. */
static int64_t wanted_time(struct plan *plan) {
  struct stat status;
  struct sight sight = plan->project_seen;
  for (size_t i = 0; i < plan->count; i++) {
    const struct step *step = &plan->steps[i];
    if (step->kind != STEP_ATTRIBUTES || *step->path != 0) continue;
    int source = step->how == HOW_NOTHING ? dup(plan->project) : open_beneath(plan->layers, step->source, O_PATH | O_NOFOLLOW);
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
