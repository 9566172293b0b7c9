/* Rolls a change back. The files' locations show how far the change came, also after a kill, when people may
   have gone on working. */
#define _GNU_SOURCE
#include "changes/held_rollback.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "changes/held_commit.h"
#include "changes/held_copy.h"

struct back {
  struct plan *plan;
  struct text *notes;
  struct text restored; /* rows of the restored files: renames change their ctime */
  int64_t staged; /* end of staging: files in a staged folder last changed before */
  bool whole;
};

static void note(struct back *back, const struct step *step, const char *what) {
  text_field(back->notes, step->path);
  text_field(back->notes, what);
}

static void stuck(struct back *back, const struct step *step) {
  note(back, step, strerror(errno));
  back->whole = false;
}

/* True when the file in the project is still the staged file, unchanged. */
static bool is_ours(const struct back *back, const struct step *step, int parent, const char *name, const struct sight *now) {
  struct sight below = {0};
  if (now->type == TYPE_NONE || now->type != step->placed.type || now->inode != step->placed.inode) return false;
  if (now->type != TYPE_FOLDER) return now->mtime == step->placed.mtime && now->size == step->placed.size;
  int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  /* An unreadable folder was already unreadable when staged. */
  bool same = fd < 0 || (walk_below(fd, "", &below, NULL) == 0 && below.newest <= back->staged);
  if (fd >= 0) close(fd);
  return same;
}

static bool holds(int folder, const struct step *step, const struct sight *which) {
  struct sight now;
  return which->type != TYPE_NONE && sight_at(folder, step->name, &now) == 0 && now.type == which->type && now.inode == which->inode;
}

/* Records a restored file in its expected state. A file changed by others must look changed to the next
   apply. */
static void tell_restored(struct back *back, const struct step *step, const struct sight *now) {
  const struct sight *then = &step->expect;
  if (now->inode != then->inode || now->mtime != then->mtime || now->size != then->size || now->mode != then->mode) return;
  text_field(&back->restored, step->path);
  sight_write(&back->restored, now);
}

/* Puts back the earlier file, which is in `folder`. */
static void put_back(struct back *back, const struct step *step, int folder, int parent, const char *name) {
  struct sight now;
  if (sight_at(parent, name, &now) < 0) return stuck(back, step);
  unsigned flags = now.type == TYPE_NONE ? RENAME_NOREPLACE : RENAME_EXCHANGE;
  if (now.type == TYPE_NONE || (step->kind == STEP_PUT && is_ours(back, step, parent, name, &now))) {
    if (move(folder, step->name, step->expect.mode, parent, name, now.mode, flags) == 0) return;
    if (errno != EINVAL || now.type == TYPE_NONE) return stuck(back, step);
    /* The file system has no RENAME_EXCHANGE. */
    if (move(parent, name, now.mode, back->plan->made, step->name, 0, RENAME_NOREPLACE) < 0 ||
        move(folder, step->name, step->expect.mode, parent, name, 0, RENAME_NOREPLACE) < 0) {
      stuck(back, step);
    }
    return;
  }
  if (folder != back->plan->old && move(folder, step->name, step->expect.mode, back->plan->old, step->name, 0, 0) < 0) return stuck(back, step);
  if (keep_one(back->plan, step->name) < 0) return stuck(back, step);
  note(back, step, "left as it is, because somebody changed it meanwhile; the earlier file is kept");
}

static void take_away(struct back *back, const struct step *step, int parent, const char *name) {
  struct sight now;
  if (sight_at(parent, name, &now) < 0) return stuck(back, step);
  if (now.type == TYPE_NONE || now.inode != step->placed.inode) return;
  if (!is_ours(back, step, parent, name, &now)) return note(back, step, "left as it is, because somebody changed it meanwhile");
  if (move(parent, name, now.mode, back->plan->made, step->name, 0, RENAME_NOREPLACE) < 0) stuck(back, step);
}

/* Restores a mode that a killed process had widened for a moment. True when restored: that changes ctime. */
static bool settle_mode(const struct step *step, int parent, const char *name) {
  struct sight now;
  char link[64];
  if (step->expect.type != TYPE_FOLDER || sight_at(parent, name, &now) < 0) return false;
  if (now.inode != step->expect.inode || now.mode == step->expect.mode) return false;
  int fd = openat(parent, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return false;
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  bool settled = chmod(link, step->expect.mode & 07777) == 0;
  close(fd);
  return settled;
}

static void undo_rename(struct back *back, const struct step *step) {
  struct plan *plan = back->plan;
  const char *name;
  bool replaced = step->expect.type != TYPE_NONE;
  bool in_old = replaced && holds(plan->old, step, &step->expect);
  bool in_made = replaced && !in_old && holds(plan->made, step, &step->expect);
  bool placed = !replaced && step->placed.type != TYPE_NONE && !holds(plan->made, step, &step->placed);
  int parent = open_parent_of(plan->project, step->path, &name);
  if (parent < 0 && !in_old && !in_made) return;
  if (parent < 0) {
    int error = errno;
    if (in_old && keep_one(plan, step->name) == 0) return note(back, step, "not put back, because its folder is gone; the earlier file is kept");
    errno = error;
    return stuck(back, step);
  }
  if (in_old) put_back(back, step, plan->old, parent, name);
  else if (in_made) put_back(back, step, plan->made, parent, name);
  else if (placed) take_away(back, step, parent, name);
  bool settled = settle_mode(step, parent, name);
  struct sight now;
  if ((in_old || in_made || settled) && sight_at(parent, name, &now) == 0) tell_restored(back, step, &now);
  close(parent);
}

static void undo_attributes(struct back *back, const struct step *step) {
  struct stat status;
  int carrier = openat(back->plan->old, step->name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
  /* The change was killed before this step. */
  if (carrier < 0) return;
  int target = open_beneath(back->plan->project, step->path, O_PATH | O_NOFOLLOW);
  bool same = target >= 0 && fstat(target, &status) == 0 && status.st_ino == step->expect.inode;
  struct sight now;
  if (same && copy_attributes(carrier, target) < 0) stuck(back, step);
  else if (same && fstat(target, &status) == 0) {
    sight_of(&status, &now);
    tell_restored(back, step, &now);
  }
  close(carrier);
  if (target >= 0) close(target);
}

bool roll_back(struct plan *plan, struct text *notes) {
  struct stat status;
  struct back back = {.plan = plan, .notes = notes, .whole = true};
  /* Without this page no file was put in place yet. */
  if (plan->made < 0 || plan->old < 0 || fstatat(plan->home, "placed", &status, AT_SYMLINK_NOFOLLOW) < 0) return true;
  back.staged = (int64_t)status.st_mtim.tv_sec * 1000000000 + status.st_mtim.tv_nsec;
  for (size_t i = plan->count; i-- > 0;) {
    const struct step *step = &plan->steps[i];
    if (step->kind == STEP_PUT || step->kind == STEP_TAKE) undo_rename(&back, step);
  }
  for (size_t i = plan->count; i-- > 0;) {
    if (plan->steps[i].kind == STEP_ATTRIBUTES) undo_attributes(&back, &plan->steps[i]);
  }
  /* Without this file a later apply mistakes the rollback's renames for other people's changes, and refuses:
     harmless. */
  if (back.restored.length > 0) text_write(&back.restored, plan->home, "restored");
  text_clear(&back.restored);
  return back.whole;
}
