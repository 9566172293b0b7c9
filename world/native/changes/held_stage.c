/* Stages a change: every step that may fail for lack of space happens here, before anything in the project
   changes. */
#define _GNU_SOURCE
#include "changes/held_stage.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "changes/held_copy.h"
#include "changes/paths.h"

#define FOLDER (O_RDONLY | O_DIRECTORY)
#define LAYER "upper/"

struct staging {
  struct plan *plan;
  struct text rows;
  struct links links;
  struct parents sources;
};

static struct verdict failed(const char *path, const char *reason) {
  return (struct verdict){FAILED, path, reason, errno};
}

bool sight_matches(const struct step *step, const struct sight *now) {
  const struct sight *then = &step->expect;
  if (then->type != now->type || (then->type != TYPE_NONE && then->inode != now->inode)) return false;
  return then->type == TYPE_NONE || then->ctime == 0 || then->ctime == now->ctime;
}

/* Where the staging folder may lie, the best first: commands run as the same user, and what one could open, link or rename there would
   be theirs behind every seal. The journal is in no world. Git's hooks are sealed in each, but for the command that made the repository,
   until it ends. The folder above is read-only for the project's commands, unless a policy opens it. Versions before used the project. */
enum place { JOURNAL, HOOKS, ABOVE, PROJECT, PLACES };

/* Page of the journal: the place, and the inode of the staging folder. Commands see its name, and could make another one elsewhere. */
#define PLACE "place"

/* What cannot be looked up may be there. */
static bool may_hold(int folder, const char *name) {
  struct stat status;
  return fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT;
}

/* Whether the project has git settings of its own: commands may be sent to the folder above, and are kept from those settings alone. */
static bool has_git_folder(const struct plan *plan) {
  struct stat status;
  if (fstatat(plan->project, ".git", &status, AT_SYMLINK_NOFOLLOW) < 0) return errno != ENOENT;
  return !S_ISREG(status.st_mode);
}

/* Whether a folder above the project is, or may be, a project too, whose commands may write there. */
static bool may_be_in_project(const struct plan *plan) {
  struct stat here, above;
  int fd = openat(plan->project, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
  bool may = fd < 0 || fstat(fd, &here) < 0;
  while (!may) {
    int next = openat(fd, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
    may = next < 0 || fstat(next, &above) < 0 || may_hold(fd, ".git") || may_hold(fd, ".substrate-profile");
    close(fd);
    fd = next;
    if (!may && above.st_ino == here.st_ino && above.st_dev == here.st_dev) break;
    here = above;
  }
  if (fd >= 0) close(fd);
  return may;
}

static int open_place(const struct plan *plan, enum place place) {
  switch (place) {
    case JOURNAL: return fcntl(plan->home, F_DUPFD_CLOEXEC, 0);
    case HOOKS: return open_beneath(plan->project, ".git/hooks", FOLDER);
    case ABOVE: return openat(plan->project, "..", FOLDER | O_CLOEXEC);
    default: return fcntl(plan->project, F_DUPFD_CLOEXEC, 0);
  }
}

static void close_place(struct plan *plan) {
  int error = errno;
  if (plan->stage >= 0) close(plan->stage);
  if (plan->place >= 0) close(plan->place);
  plan->stage = plan->place = -1;
  errno = error;
}

static bool open_at(struct plan *plan, enum place place) {
  plan->place = open_place(plan, place);
  plan->stage = plan->place < 0 ? -1 : open_beneath(plan->place, plan->stage_name, FOLDER);
  if (plan->stage < 0) close_place(plan);
  return plan->stage >= 0;
}

static void open_folders(struct plan *plan) {
  plan->made = open_beneath(plan->stage, "new", FOLDER);
  plan->old = open_beneath(plan->stage, "old", FOLDER);
}

/* The place that the journal names; PLACES: it names none, as those of earlier versions, and of processes that were killed before. */
static enum place noted_place(const struct plan *plan, unsigned long long *inode) {
  struct text page = {0};
  unsigned place = PLACES;
  if (text_read(&page, plan->home, PLACE) == 0 && (page.length == 0 || sscanf(page.data, "%u %llu", &place, inode) != 2)) place = PLACES;
  text_clear(&page);
  return place < PLACES ? (enum place)place : PLACES;
}

static int note_place(const struct plan *plan, enum place place) {
  struct text page = {0};
  struct stat status;
  char words[64];
  if (fstat(plan->stage, &status) < 0) return -1;
  snprintf(words, sizeof words, "%u %llu", (unsigned)place, (unsigned long long)status.st_ino);
  text_field(&page, words);
  int result = text_write(&page, plan->home, PLACE);
  int error = errno;
  text_clear(&page);
  errno = error;
  return result;
}

bool stage_open(struct plan *plan) {
  unsigned long long inode = 0;
  struct stat status;
  enum place noted = noted_place(plan, &inode), place = noted < PLACES ? noted : JOURNAL, last = noted < PLACES ? noted : PROJECT;
  while (place <= last && !open_at(plan, place)) place++;
  if (place > last) return false;
  if (noted < PLACES && (fstat(plan->stage, &status) < 0 || status.st_ino != inode)) {
    close_place(plan);
    return false;
  }
  open_folders(plan);
  return true;
}

static int set_mtime(int fd, int64_t mtime) {
  struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = mtime / 1000000000, .tv_nsec = mtime % 1000000000}};
  return futimens(fd, times);
}

int stage_remove(struct plan *plan, int64_t mtime) {
  struct stat place, project;
  if (plan->place < 0) return 0;
  if (remove_tree(plan->place, plan->stage_name) < 0) return -1;
  if (fstat(plan->place, &place) < 0 || fstat(plan->project, &project) < 0) return -1;
  /* Anywhere else the removal does not show there, and a later mtime is other people's. */
  return place.st_ino == project.st_ino && place.st_dev == project.st_dev ? set_mtime(plan->project, mtime) : 0;
}

/* Hides the staging folder from git and other tools during its short life. */
static int hide_from_git(int stage) {
  int fd = openat(stage, ".gitignore", O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (fd < 0) return -1;
  int result = write_all(fd, "*\n", 2) ? 0 : -1;
  int error = errno;
  close(fd);
  errno = error;
  return result;
}

/* Whether renames lead from the stage to the project. Other mounts are told before the missing name is (renameat2 in fs/namei.c), other
   subvolumes by their device; nothing is moved, for commands would see it. */
static bool leads_to_project(const struct plan *plan) {
  struct stat stage, project;
  if (fstat(plan->stage, &stage) < 0 || fstat(plan->project, &project) < 0) return false;
  if (syscall(SYS_renameat2, plan->stage, "none", plan->project, plan->stage_name, RENAME_NOREPLACE) == 0 || errno != ENOENT) return false;
  errno = EXDEV;
  return stage.st_dev == project.st_dev;
}

static bool make_at(struct plan *plan, enum place place) {
  if (place == ABOVE && (has_git_folder(plan) || may_be_in_project(plan))) {
    errno = EXDEV;
    return false;
  }
  plan->place = open_place(plan, place);
  bool made = plan->place >= 0 && mkdirat(plan->place, plan->stage_name, 0700) == 0;
  if (made) plan->stage = open_beneath(plan->place, plan->stage_name, FOLDER);
  if (plan->stage >= 0 && leads_to_project(plan)) return true;
  int error = errno;
  if (made) unlinkat(plan->place, plan->stage_name, AT_REMOVEDIR);
  close_place(plan);
  errno = error;
  return false;
}

static const char NO_PLACE[] = "found no folder on the project's file system that its commands cannot write: Substrate's own, .git/hooks, or "
                               "the folder above where neither is in a repository. An empty folder .git/hooks is enough";

/* Whether the last place is on another mount, missing or not the user's; a full disk would be full in the next one too. */
static bool is_no_place(void) {
  static const int ERRORS[] = {EXDEV, ENOENT, ENOTDIR, ELOOP, EACCES, EPERM, EROFS};
  for (size_t i = 0; i < sizeof ERRORS / sizeof *ERRORS; i++) {
    if (errno == ERRORS[i]) return true;
  }
  return false;
}

/* Leaves open as much as was made: the rollback needs the descriptors. Returns NULL, or why not, with errno. */
static const char *make_folders(struct plan *plan) {
  enum place place = JOURNAL;
  while (!make_at(plan, place)) {
    if (!is_no_place()) return "cannot make the staging folder";
    if (++place > ABOVE) return NO_PLACE;
  }
  bool made = hide_from_git(plan->stage) == 0 && mkdirat(plan->stage, "new", 0700) == 0 && mkdirat(plan->stage, "old", 0700) == 0;
  int error = errno;
  open_folders(plan);
  errno = error;
  plan->is_reachable = place != JOURNAL;
  made = made && note_place(plan, place) == 0 && plan->made >= 0 && plan->old >= 0 && (mkdirat(plan->home, "old", 0700) == 0 || errno == EEXIST);
  return made ? NULL : "cannot make the staging folder";
}

static int open_source(struct staging *staging, const struct step *step, const char **name, struct copy *copy) {
  *copy = (struct copy){.layer = strncmp(step->source, LAYER, strlen(LAYER)) == 0, .whole = step->how == HOW_WHOLE,
                        .rows = &staging->rows, .links = &staging->links};
  return parents_open(&staging->sources, step->source, name);
}

static struct verdict stage_put(struct staging *staging, struct step *step) {
  struct copy copy;
  const char *name;
  int from = open_source(staging, step, &name, &copy);
  if (from < 0) return failed(step->path, "cannot read the held file");
  staging->links.top = step->name;
  staging->links.skip = strlen(step->path);
  if (copy_entry(&copy, from, name, staging->plan->made, step->name, step->path) < 0) return failed(step->path, "cannot copy the held file");
  return (struct verdict){0};
}

/* Stages a selected entry of a folder that is put in place with only part of its contents. */
static struct verdict stage_into(struct staging *staging, const struct step *step) {
  struct copy copy;
  const char *name, *as;
  int from = open_source(staging, step, &name, &copy);
  char *place = path_join(staging->links.top, step->path + staging->links.skip + 1);
  int to = from < 0 ? -1 : open_parent_of(staging->plan->made, place, &as);
  bool made = to >= 0 && copy_entry(&copy, from, name, to, as, step->path) == 0;
  int error = errno;
  if (to >= 0) close(to);
  free(place);
  errno = error;
  return made ? (struct verdict){0} : failed(step->path, "cannot copy the held file");
}

/* Makes an empty carrier in `old` for the attributes that are about to change. */
static struct verdict stage_attributes(const struct plan *plan, const struct step *step) {
  struct stat status;
  struct sight now;
  int target = open_beneath(plan->project, step->path, O_PATH | O_NOFOLLOW);
  if (target < 0) return (struct verdict){CONFLICT, step->path, "the path no longer exists, or leads through a symbolic link", errno};
  if (fstat(target, &status) < 0) status = (struct stat){0};
  sight_of(&status, &now);
  bool same = sight_matches(step, &now);
  int carrier = -1;
  if (same && now.type == TYPE_FOLDER && mkdirat(plan->old, step->name, 0700) == 0) carrier = openat(plan->old, step->name, FOLDER | O_NOFOLLOW | O_CLOEXEC);
  if (same && now.type == TYPE_FILE) carrier = openat(plan->old, step->name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  bool made = carrier >= 0 && copy_attributes(target, carrier) == 0;
  int error = errno;
  if (carrier >= 0) close(carrier);
  close(target);
  errno = error;
  if (!same) return (struct verdict){CONFLICT, step->path, "the path was changed meanwhile", 0};
  return made ? (struct verdict){0} : failed(step->path, "cannot keep the attributes for undo");
}

/* Sets the attributes of folders made empty, once filled; inner folders first. */
static struct verdict finish_folders(struct staging *staging) {
  struct plan *plan = staging->plan;
  struct sight sight;
  size_t top = 0;
  for (size_t i = plan->count; i-- > 0;) {
    const struct step *step = &plan->steps[i];
    if ((step->kind != STEP_PUT && step->kind != STEP_INTO) || step->how != HOW_ALONE) continue;
    for (top = i; plan->steps[top].kind == STEP_INTO;) top--;
    char *place = path_join(plan->steps[top].name, i == top ? "" : step->path + strlen(plan->steps[top].path) + 1);
    int source = open_beneath(plan->layers, step->source, O_PATH | O_NOFOLLOW);
    int made = source < 0 ? -1 : open_beneath(plan->made, place, O_PATH | O_NOFOLLOW);
    struct stat status;
    bool folder = made >= 0 && fstat(made, &status) == 0 && S_ISDIR(status.st_mode);
    bool done = made >= 0 && (!folder || (copy_attributes(source, made) == 0 && fstat(made, &status) == 0));
    int error = errno;
    if (source >= 0) close(source);
    if (made >= 0) close(made);
    free(place);
    errno = error;
    if (!done) return failed(step->path, "cannot set the attributes");
    if (!folder) continue;
    sight_of(&status, &sight);
    text_field(&staging->rows, step->path);
    sight_write(&staging->rows, &sight);
  }
  return (struct verdict){0};
}

static struct verdict stage_steps(struct staging *staging) {
  struct plan *plan = staging->plan;
  struct verdict verdict = {0};
  for (size_t i = 0; i < plan->count && verdict.kind == SUCCESS; i++) {
    struct step *step = &plan->steps[i];
    if (step->kind == STEP_PUT) verdict = stage_put(staging, step);
    if (step->kind == STEP_INTO) verdict = stage_into(staging, step);
    if (step->kind == STEP_ATTRIBUTES) verdict = stage_attributes(plan, step);
  }
  if (verdict.kind == SUCCESS) verdict = finish_folders(staging);
  for (size_t i = 0; i < plan->count && verdict.kind == SUCCESS; i++) {
    struct step *step = &plan->steps[i];
    if (step->kind == STEP_PUT && sight_at(plan->made, step->name, &step->placed) < 0) verdict = failed(step->path, "the staged file has disappeared");
  }
  return verdict;
}

/* Writes `placed`: the staged state of each step, then a row for every file, as source of the record. */
static struct verdict write_placed(struct staging *staging) {
  struct plan *plan = staging->plan;
  struct text page = {0};
  for (size_t i = 0; i < plan->count; i++) sight_write(&page, &plan->steps[i].placed);
  text_add(&page, staging->rows.data, staging->rows.length);
  int result = text_write(&page, plan->home, "placed");
  int error = errno;
  text_clear(&page);
  errno = error;
  return result < 0 ? failed("", "cannot write the journal") : (struct verdict){0};
}

struct verdict stage_make(struct plan *plan) {
  struct staging *staging = held_grow(NULL, sizeof *staging);
  *staging = (struct staging){.plan = plan, .sources = {.root = plan->layers, .fd = -1}};
  const char *wrong = make_folders(plan);
  if (wrong != NULL) {
    struct verdict verdict = failed(wrong == NO_PLACE ? "" : plan->stage_name, wrong);
    free(staging);
    return verdict;
  }
  staging->links.home = plan->made;
  struct verdict verdict = stage_steps(staging);
  if (verdict.kind == SUCCESS) verdict = write_placed(staging);
  parents_end(&staging->sources);
  links_end(&staging->links);
  text_clear(&staging->rows);
  free(staging);
  return verdict;
}
