/* Puts staged files in place: renames only, each checked before and after, then attributes. */
#define _GNU_SOURCE
#include "changes/held_commit.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "changes/held_copy.h"
#include "changes/held_keep.h"
#include "changes/held_paths.h"

static const char CHANGED[] = "it was changed meanwhile";
static const char UNREACHED[] = "its folder is there no more, or a link leads to it";

static struct verdict conflict(const struct step *step, const char *reason) {
  return (struct verdict){'c', step->path, reason, 0};
}

static struct verdict failed(const struct step *step, const char *reason) {
  return (struct verdict){'f', step->path, reason, errno};
}

/* True when the file is still as expected. After the move to the staging folder nobody reaches the file by
   name, so its state is final. Ctime is not compared, because a rename changes ctime. */
static bool is_what_was_seen(int folder, const char *name, const struct step *step) {
  struct sight now, below = {0};
  if (sight_at(folder, name, &now) < 0 || now.type != step->expect.type || now.inode != step->expect.inode) return false;
  if (now.mtime != step->expect.mtime || now.size != step->expect.size || now.mode != step->expect.mode) return false;
  if (now.type != 'd') return true;
  int fd = openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  bool same = fd >= 0 && walk_below(fd, "", &below, NULL, NULL) == 0 && below.count == step->expect.count &&
              below.newest == step->expect.newest;
  if (fd >= 0) close(fd);
  return same;
}

/* Checks a name again after `commit_check`. For a hard-linked file ctime is ignored: moving another of its
   names changes ctime. Changed content is found after the move (is_what_was_seen). */
static bool still_matches(const struct step *step, const struct sight *now) {
  const struct sight *then = &step->expect;
  if (then->type == 'f' && then->links > 1) return now->type == 'f' && now->inode == then->inode;
  return sight_matches(step, now);
}

static struct verdict take(struct plan *plan, const struct step *step, int parent, const char *name) {
  struct sight now;
  if (sight_at(parent, name, &now) < 0) return failed(step, "it cannot be looked at");
  if (!still_matches(step, &now)) return conflict(step, now.type == 0 ? "it is there no more" : CHANGED);
  if (move(parent, name, now.mode, plan->old, step->name, 0, RENAME_NOREPLACE) < 0) return failed(step, "it cannot be moved away");
  return is_what_was_seen(plan->old, step->name, step) ? (struct verdict){0} : conflict(step, CHANGED);
}

static struct verdict put_new(struct plan *plan, const struct step *step, int parent, const char *name) {
  if (move(plan->made, step->name, step->placed.mode, parent, name, 0, RENAME_NOREPLACE) == 0) return (struct verdict){0};
  return errno == EEXIST ? conflict(step, "something is there now") : failed(step, "it cannot be put in place");
}

static struct verdict replace(struct plan *plan, const struct step *step, int parent, const char *name) {
  struct sight now;
  if (sight_at(parent, name, &now) < 0) return failed(step, "it cannot be looked at");
  if (!still_matches(step, &now)) return conflict(step, now.type == 0 ? "it is there no more" : CHANGED);
  if (move(plan->made, step->name, step->placed.mode, parent, name, now.mode, RENAME_EXCHANGE) < 0) {
    /* A file system without RENAME_EXCHANGE: the name is missing for a moment. */
    if (errno != EINVAL) return errno == ENOENT ? conflict(step, CHANGED) : failed(step, "it cannot be put in place");
    struct verdict taken = take(plan, step, parent, name);
    return taken.kind == 0 ? put_new(plan, step, parent, name) : taken;
  }
  if (!is_what_was_seen(plan->made, step->name, step)) return conflict(step, CHANGED);
  int moved = move(plan->made, step->name, now.mode, plan->old, step->name, 0, RENAME_NOREPLACE);
  return moved == 0 ? (struct verdict){0} : failed(step, "what it replaces cannot be kept");
}

/* Finds most conflicts before staging, while nothing has been touched. */
struct verdict commit_check(struct plan *plan) {
  struct parents parents = {.root = plan->project, .fd = -1};
  struct verdict verdict = {0};
  for (size_t i = 0; i < plan->count && verdict.kind == 0; i++) {
    const struct step *step = &plan->steps[i];
    struct sight now;
    const char *name;
    if (step->kind != 'p' && step->kind != 't') continue;
    int parent = parents_open(&parents, step->path, &name);
    if (parent < 0) verdict = conflict(step, UNREACHED);
    else if (sight_at(parent, name, &now) < 0) verdict = failed(step, "it cannot be looked at");
    else if (step->expect.type == 0 && now.type != 0) verdict = conflict(step, "something is there now");
    else if (!sight_matches(step, &now)) verdict = conflict(step, now.type == 0 ? "it is there no more" : CHANGED);
    else if (now.type == 'd' && !is_what_was_seen(parent, name, step)) verdict = conflict(step, CHANGED);
  }
  parents_end(&parents);
  return verdict;
}

static struct verdict put_in_place(struct plan *plan, const struct step *step, struct parents *parents) {
  const char *name;
  int parent = parents_open(parents, step->path, &name);
  if (parent < 0) return conflict(step, UNREACHED);
  if (step->kind == 't') return take(plan, step, parent, name);
  return step->expect.type == 0 ? put_new(plan, step, parent, name) : replace(plan, step, parent, name);
}

static int set_times(int source, int target) {
  char link[64];
  struct stat status;
  if (fstat(source, &status) < 0) return -1;
  struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, status.st_mtim};
  snprintf(link, sizeof link, "/proc/self/fd/%d", target);
  return utimensat(AT_FDCWD, link, times, 0);
}

static struct verdict set_attributes(struct plan *plan, const struct step *step) {
  struct stat status;
  if (step->how == 'n') return (struct verdict){0};
  int target = open_beneath(plan->project, step->path, O_PATH | O_NOFOLLOW);
  if (target < 0) return conflict(step, UNREACHED);
  int source = open_beneath(plan->layers, step->source, O_PATH | O_NOFOLLOW);
  bool same = fstat(target, &status) == 0 && status.st_ino == step->expect.inode;
  int set = -1;
  if (same && source >= 0) set = step->how == 'w' ? copy_attributes(source, target) : set_times(source, target);
  int error = errno;
  close(target);
  if (source >= 0) close(source);
  errno = error;
  if (!same) return conflict(step, CHANGED);
  return set == 0 ? (struct verdict){0} : failed(step, "its attributes cannot be set");
}

/* Looks a step's result up again by its whole path: a folder on the path may have been moved during the
   commit. */
static struct verdict look_again(struct plan *plan, const struct step *step, struct parents *parents, struct text *record) {
  struct sight now = {0};
  const char *name;
  struct stat status;
  if (step->kind == 'a') {
    int fd = open_beneath(plan->project, step->path, O_PATH | O_NOFOLLOW);
    bool seen = fd >= 0 && fstat(fd, &status) == 0 && status.st_ino == step->expect.inode;
    if (fd >= 0) close(fd);
    if (!seen) return conflict(step, UNREACHED);
    sight_of(&status, &now);
  } else {
    int parent = parents_open(parents, step->path, &name);
    if (parent < 0) return conflict(step, UNREACHED);
    if (sight_at(parent, name, &now) < 0) return failed(step, "it cannot be looked at");
    if (step->kind == 't') return now.type == 0 ? (struct verdict){0} : conflict(step, "something is there now");
    if (now.inode != step->placed.inode) return conflict(step, CHANGED);
  }
  text_field(record, step->path);
  sight_write(record, &now);
  return (struct verdict){0};
}

static struct verdict write_record(struct plan *plan, struct parents *parents) {
  struct text record = {0}, placed = {0};
  struct verdict verdict = {0};
  if (text_read(&placed, plan->home, "placed") < 0) verdict = (struct verdict){'f', "", "the journal cannot be read", errno};
  struct text_reader reader = {placed.data, placed.data + placed.length};
  for (size_t i = 0; i < plan->count && verdict.kind == 0; i++) text_next(&reader);
  if (verdict.kind == 0) text_add(&record, reader.at, (size_t)(reader.end - reader.at));
  for (size_t i = 0; i < plan->count && verdict.kind == 0; i++) {
    if (plan->steps[i].kind != 'i') verdict = look_again(plan, &plan->steps[i], parents, &record);
  }
  if (verdict.kind == 0 && text_write(&record, plan->home, "record") < 0) verdict = (struct verdict){'f', "", "the record cannot be written", errno};
  int error = errno;
  text_clear(&record);
  text_clear(&placed);
  errno = error;
  return verdict;
}

struct verdict commit(struct plan *plan) {
  struct parents parents = {.root = plan->project, .fd = -1};
  struct verdict verdict = {0};
  for (size_t i = 0; i < plan->count && verdict.kind == 0; i++) {
    const struct step *step = &plan->steps[i];
    if (step->kind == 'p' || step->kind == 't') verdict = put_in_place(plan, step, &parents);
  }
  for (size_t i = 0; i < plan->count && verdict.kind == 0; i++) {
    if (plan->steps[i].kind == 'a') verdict = set_attributes(plan, &plan->steps[i]);
  }
  if (verdict.kind == 0 && plan->keeps && keep_elsewhere(plan) < 0) verdict = (struct verdict){'f', "", "what was there before cannot be kept for undo", errno};
  parents_end(&parents);
  if (verdict.kind == 0) verdict = write_record(plan, &parents);
  parents_end(&parents);
  return verdict;
}
