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
#include "changes/overlay_marks.h"

#define TRIAL "trial"
/* A rename reads the clock for each of its folders: more than a tick, or a busy machine's pause, lies between. */
#define STAMP_NS 50000000LL

struct back {
  struct plan *plan;
  struct text *notes;
  struct text restored; /* rows of the restored files: renames change their ctime */
  int64_t staged;  /* end of staging: files in a staged folder last changed before */
  int64_t renamed; /* the last rename of the change */
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

/* Restores a mode that a killed process had widened for a moment (`loosen` of held_commit.c), and no other. True when restored: that
   changes ctime. */
static bool settle_mode(const struct step *step, int parent, const char *name) {
  struct sight now;
  char link[64];
  if (step->expect.type != TYPE_FOLDER || sight_at(parent, name, &now) < 0) return false;
  if (now.inode != step->expect.inode || now.mode == step->expect.mode || now.mode != (step->expect.mode | S_IWUSR)) return false;
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

static bool owner_is(const struct stat *one, const struct stat *other) {
  return one->st_uid == other->st_uid && one->st_gid == other->st_gid;
}

/* Whether this process may give files to an owner; where it may not, neither the change nor its carrier did. */
static bool can_give(const struct plan *plan, const struct stat *owner) {
  if (mkdirat(plan->stage, TRIAL, 0700) < 0 && errno != EEXIST) return true;
  bool can = fchownat(plan->stage, TRIAL, owner->st_uid, owner->st_gid, AT_SYMLINK_NOFOLLOW) == 0;
  unlinkat(plan->stage, TRIAL, AT_REMOVEDIR);
  return can;
}

/* Ours are the states before, after and, as the kernel may have cleared bits or a kill come between, mixtures of both. */
static bool mode_is_ours(const struct step *step, mode_t now, mode_t kept, mode_t set) {
  mode_t before = step->expect.mode, special = now & 07000;
  if ((now & 0777) != (kept & 0777) && (now & 0777) != (set & 0777)) return false;
  return (special & ~(before | kept | set)) == 0 && (before & kept & set & 07000 & ~special) == 0;
}

struct attributes {
  int carrier, target, source; /* as before, as now, as the change sets: open, the last one possibly the first */
  struct stat kept, now, set;
};

static bool open_attributes(const struct plan *plan, const struct step *step, struct attributes *open) {
  *open = (struct attributes){.carrier = -1, .target = -1, .source = -1};
  open->carrier = openat(plan->old, step->name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
  /* The change was killed before this step. */
  if (open->carrier < 0) return false;
  open->target = open_beneath(plan->project, step->path, O_PATH | O_NOFOLLOW);
  if (open->target < 0 || fstat(open->target, &open->now) < 0 || open->now.st_ino != step->expect.inode) return false;
  if (step->how != HOW_NOTHING) open->source = open_beneath(plan->layers, step->source, O_PATH | O_NOFOLLOW);
  if (open->source < 0) open->source = fcntl(open->carrier, F_DUPFD_CLOEXEC, 0);
  return fstat(open->carrier, &open->kept) == 0 && open->source >= 0 && fstat(open->source, &open->set) == 0;
}

static void close_attributes(const struct attributes *open) {
  close_keeping_errno(open->carrier);
  close_keeping_errno(open->target);
  close_keeping_errno(open->source);
}

/* Marks what somebody else wrote since: a file with another size or mtime; a folder with an mtime that is not of this change's renames.
   Before the rollback, whose own renames set the mtimes of folders. */
static void mark_touched(const struct back *back, struct step *step) {
  struct attributes open;
  struct sight kept, now, set;
  if (open_attributes(back->plan, step, &open)) {
    sight_of(&open.kept, &kept);
    sight_of(&open.now, &now);
    sight_of(&open.set, &set);
    bool renamed = now.type == TYPE_FOLDER && now.mtime >= back->staged - STAMP_NS && now.mtime <= back->renamed + STAMP_NS;
    step->touched = now.mtime != kept.mtime && now.mtime != set.mtime && !renamed;
    if (now.type != TYPE_FOLDER && now.size != step->expect.size) step->touched = true;
  }
  close_attributes(&open);
}

/* `as`: the attributes to put back. False: somebody else set them since. */
static bool are_ours(const struct back *back, const struct step *step, const struct attributes *open, struct stat *as) {
  char now[64], kept[64], set[64];
  *as = open->kept;
  if (step->touched && !S_ISDIR(open->now.st_mode)) return false;
  if (step->touched) as->st_mtim = open->now.st_mtim;
  if (!owner_is(&open->now, &open->kept)) {
    if (can_give(back->plan, &open->now)) {
      if (!owner_is(&open->now, &open->set)) return false;
    } else {
      as->st_uid = open->now.st_uid, as->st_gid = open->now.st_gid;
    }
  }
  snprintf(now, sizeof now, "/proc/self/fd/%d", open->target);
  snprintf(kept, sizeof kept, "/proc/self/fd/%d", open->carrier);
  snprintf(set, sizeof set, "/proc/self/fd/%d", open->source);
  return mode_is_ours(step, open->now.st_mode, open->kept.st_mode, open->set.st_mode) && attributes_are_of(now, kept, set);
}

/* Where the change sets times alone, modes and access lists are other people's: they stay, and look changed to the next apply. */
static bool is_as_kept(const struct attributes *open) {
  char now[64], kept[64];
  snprintf(now, sizeof now, "/proc/self/fd/%d", open->target);
  snprintf(kept, sizeof kept, "/proc/self/fd/%d", open->carrier);
  return attributes_are_of(now, kept, kept);
}

static void undo_attributes(struct back *back, const struct step *step) {
  struct attributes open;
  struct stat as;
  struct sight now;
  bool found = open_attributes(back->plan, step, &open);
  if (found) sight_of(&open.now, &now);
  bool untouched = found && step->expect.ctime != 0 && now.ctime == step->expect.ctime;
  if (found && !untouched) {
    bool whole = step->how == HOW_WHOLE, tell = whole || is_as_kept(&open);
    int result = 0;
    if (whole && !are_ours(back, step, &open, &as)) {
      note(back, step, "left as it is, because somebody changed it meanwhile");
      tell = false;
    } else if (whole) {
      result = copy_attributes_as(open.carrier, open.target, &as);
    } else if (!step->touched) {
      result = copy_mtime(open.carrier, open.target);
    }
    if (result < 0) stuck(back, step);
    else if (tell && fstat(open.target, &open.now) == 0) {
      sight_of(&open.now, &now);
      tell_restored(back, step, &now);
    }
  }
  close_attributes(&open);
}

/* When the change made its last rename: each one leads into the staging folder or out of it. */
static int64_t last_rename(const struct plan *plan) {
  struct stat made, old;
  struct sight one, other;
  if (fstat(plan->made, &made) < 0 || fstat(plan->old, &old) < 0) return 0;
  sight_of(&made, &one);
  sight_of(&old, &other);
  return one.mtime > other.mtime ? one.mtime : other.mtime;
}

bool roll_back(struct plan *plan, struct text *notes) {
  struct stat status;
  struct back back = {.plan = plan, .notes = notes, .whole = true};
  /* Without this page no file was put in place yet. */
  if (plan->made < 0 || plan->old < 0 || fstatat(plan->home, "placed", &status, AT_SYMLINK_NOFOLLOW) < 0) return true;
  back.staged = (int64_t)status.st_mtim.tv_sec * 1000000000 + status.st_mtim.tv_nsec;
  back.renamed = last_rename(plan);
  for (size_t i = 0; i < plan->count; i++) {
    if (plan->steps[i].kind == STEP_ATTRIBUTES) mark_touched(&back, &plan->steps[i]);
  }
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
