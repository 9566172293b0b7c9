/* Overlay marks of the kernel: Documentation/filesystems/overlayfs.rst, "whiteouts and opaque
   directories". */
#define _GNU_SOURCE
#include "changes/change_walk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "changes/change_content.h"
#include "changes/change_folders.h"

struct walk {
  struct walk_result *result;
  struct folders waiting;
  uint64_t hashable, comparable; /* remaining budgets in bytes */
};

/* An entry in both trees; `below` counts only with `has_below`. */
struct entry {
  const char *path;
  struct named_file above, below;
  bool has_below;
};

static struct change *add(struct walk *walk, char kind, const struct entry *entry) {
  struct change *change = change_add(&walk->result->changes, kind, entry->path);
  if (change == NULL) return NULL;
  if (entry->has_below) change->before = entry->below.status->st_mode;
  if (kind == CHANGE_DELETE) return change;
  change->after = entry->above.status->st_mode;
  change->size = (uint64_t)entry->above.status->st_size;
  return change;
}

static void add_unread(struct walk *walk, const char *path) {
  change_add(&walk->result->changes, CHANGE_UNREAD, path);
  walk->result->unhashed = true;
}

static void add_with_content(struct walk *walk, char kind, const struct entry *entry) {
  struct change *change = add(walk, kind, entry);
  if (change == NULL) return;
  switch (content_hash(&entry->above, &walk->hashable, change->content)) {
    case CONTENT_TAKEN:
      change->hashed = true;
      return;
    case CONTENT_NONE:
      return;
    case CONTENT_UNREADABLE:
      add_unread(walk, entry->path);
      return;
    case CONTENT_TOO_MUCH:
      walk->result->unhashed = true;
  }
}

/* Queues a deleted lower folder, to list its contents as deleted. */
static void delete_below(struct walk *walk, const char *path) {
  folders_add(&walk->waiting, path, FOLDER_GONE);
}

static void take_deleted(struct walk *walk, const struct entry *entry) {
  if (!entry->has_below) return;
  add(walk, CHANGE_DELETE, entry);
  if (S_ISDIR(entry->below.status->st_mode)) delete_below(walk, entry->path);
}

static void take_folder(struct walk *walk, const struct entry *entry, enum folder_kind parent) {
  bool merged = entry->has_below && S_ISDIR(entry->below.status->st_mode);
  if (!merged) {
    add(walk, CHANGE_FOLDER, entry);
    folders_add(&walk->waiting, entry->path, FOLDER_NEW);
    return;
  }
  /* With equal modes the folder was copied up only because of a change inside. */
  if (entry->above.status->st_mode != entry->below.status->st_mode) add(walk, CHANGE_MOD, entry);
  folders_add(&walk->waiting, entry->path, parent == FOLDER_OPAQUE ? FOLDER_OPAQUE : FOLDER_MERGED);
}

static void take_other(struct walk *walk, const struct entry *entry) {
  if (!entry->has_below) {
    add_with_content(walk, CHANGE_WRITE, entry);
    return;
  }
  if (entry->above.status->st_mode == entry->below.status->st_mode &&
      content_same(&entry->above, &entry->below, &walk->comparable)) {
    return;
  }
  add_with_content(walk, CHANGE_MOD, entry);
  if (S_ISDIR(entry->below.status->st_mode)) delete_below(walk, entry->path);
}

/* True for a whiteout: a character device 0:0, or (Linux 6.7) a marked empty file in a folder with such a
   mark. */
static bool is_whiteout(const struct open_folder *folder, const struct named_file *place) {
  const struct stat *status = place->status;
  if (S_ISCHR(status->st_mode)) return status->st_rdev == 0;
  return folder->marks_whiteouts && S_ISREG(status->st_mode) && status->st_size == 0 &&
         folder_has_whiteout(place->folder, place->name);
}

/* Joins the path; false when longer than any system call accepts. */
static bool path_of(const struct open_folder *folder, const char *name, char *path) {
  int length = snprintf(path, PATH_MAX + 1, "%s%s%s", folder->path, *folder->path == 0 ? "" : "/", name);
  return length >= 0 && length <= PATH_MAX;
}

static void take(struct walk *walk, const struct open_folder *folder, const char *name) {
  char path[PATH_MAX + 1];
  struct stat above, below;
  /* Deeper entries are held, and reported as unread. */
  if (!path_of(folder, name, path) || fstatat(folder->upper, name, &above, AT_SYMLINK_NOFOLLOW) < 0) {
    add_unread(walk, path);
    return;
  }
  struct entry entry = {.path = path, .above = {folder->upper, name, &above}, .below = {folder->lower, name, &below}};
  entry.has_below = folder->lower >= 0 && fstatat(folder->lower, name, &below, AT_SYMLINK_NOFOLLOW) == 0;
  if (is_whiteout(folder, &entry.above)) take_deleted(walk, &entry);
  else if (S_ISDIR(above.st_mode)) take_folder(walk, &entry, folder->kind);
  else take_other(walk, &entry);
}

/* Handles a lower name that its upper folder hides. */
static void take_hidden(struct walk *walk, const struct open_folder *folder, const char *name) {
  char path[PATH_MAX + 1];
  struct stat above, below;
  if (!path_of(folder, name, path)) return;
  if (folder->upper >= 0 && fstatat(folder->upper, name, &above, AT_SYMLINK_NOFOLLOW) == 0) return;
  if (fstatat(folder->lower, name, &below, AT_SYMLINK_NOFOLLOW) < 0) return;
  const struct entry entry = {.path = path, .below = {folder->lower, name, &below}, .has_below = true};
  take_deleted(walk, &entry);
}

typedef void (*taker)(struct walk *walk, const struct open_folder *folder, const char *name);

static void each_name(struct walk *walk, const struct open_folder *folder, int fd, taker take_name) {
  int own = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR *names = own < 0 ? NULL : fdopendir(own);
  if (names == NULL) {
    if (own >= 0) close(own);
    add_unread(walk, folder->path);
    return;
  }
  struct dirent *entry;
  while (!walk->result->changes.full && (entry = readdir(names)) != NULL) {
    if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) take_name(walk, folder, entry->d_name);
  }
  closedir(names);
}

static void visit(struct walk *walk, int upper, int lower, const struct waiting_folder *waiting) {
  struct open_folder folder;
  if (!folder_open(upper, lower, waiting, &folder)) {
    add_unread(walk, waiting->path);
    return;
  }
  if (folder.upper >= 0) each_name(walk, &folder, folder.upper, take);
  bool hides = folder.kind == FOLDER_GONE || folder.kind == FOLDER_OPAQUE;
  if (hides && folder.lower >= 0) each_name(walk, &folder, folder.lower, take_hidden);
  folder_close(&folder);
}

void change_walk(int upper, int lower, struct walk_result *result) {
  struct walk walk = {.result = result, .hashable = CONTENT_MAX, .comparable = CONTENT_MAX};
  struct waiting_folder *waiting;
  *result = (struct walk_result){0};
  folders_add(&walk.waiting, "", FOLDER_MERGED);
  while ((waiting = folders_next(&walk.waiting)) != NULL) {
    if (!result->changes.full) visit(&walk, upper, lower, waiting);
    free(waiting);
  }
  if (walk.waiting.full) result->changes.full = true;
}
