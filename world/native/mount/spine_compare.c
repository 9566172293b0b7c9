#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/failure.h"
#include "mount/spine.h"

#define STEP "spine"
/* More names than a home folder has. */
#define CHILDREN_MAX 4096
/* A time stamp is as old as a tick of the kernel: what changed in the same one may have come after we looked. */
#define TICK_NS 20000000

static bool is_spine(const struct spine *parent, const char *name) {
  char path[PATH_MAX];
  return snprintf(path, sizeof path, "%s/%s", parent->path, name) < (int)sizeof path && spine_find(path) != NULL;
}

static struct child *child_of(const struct spine *spine, const char *name) {
  struct child *child = spine->children;
  while (child != NULL && strcmp(child->name, name) != 0) child = child->next;
  return child;
}

static bool same(const struct stat *one, const struct stat *other) {
  return one->st_dev == other->st_dev && one->st_ino == other->st_ino && (one->st_mode & S_IFMT) == (other->st_mode & S_IFMT);
}

static struct child *add(struct spine *spine, const char *name, const struct stat *status) {
  if (spine->count == CHILDREN_MAX) fail_world(STEP, spine->path, E2BIG);
  struct child *child = calloc(1, sizeof *child);
  if (child == NULL) fail_world(STEP, spine->path, ENOMEM);
  child->status = *status;
  strcpy(child->name, name);
  child->next = spine->children;
  spine->children = child;
  spine->count++;
  return child;
}

/* What another spine or a mount of the plan stands in is a mount point and nothing more. */
static void reserve(struct spine *spine, const char *name) {
  if (child_of(spine, name) != NULL) return;
  if (child_reserve(&spine->place, name) < 0) fail_world(STEP, spine->path, errno);
  struct child *child = add(spine, name, &(struct stat){.st_mode = S_IFDIR});
  child->fixed = true;
}

/* A name that the host has now. 0, or -1 with errno and its name in `*failed` while the world is made; later it is left out. */
static int meet(struct spine *spine, const char *name, bool made, const char **failed) {
  struct stat status;
  if (child_hidden(&spine->place, name)) return 0;
  if (fstatat(spine->place.host, name, &status, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) < 0) return 0;
  struct child *child = child_of(spine, name);
  if (child != NULL && (child->fixed || same(&child->status, &status))) {
    child->seen = true;
    return 0;
  }
  if (child != NULL) return 0; /* replaced: it goes, and comes back with the next look */
  if (S_ISDIR(status.st_mode) && is_spine(spine, name)) return reserve(spine, name), 0;
  if (!S_ISDIR(status.st_mode) && !S_ISREG(status.st_mode) && !S_ISLNK(status.st_mode)) return 0;
  /* A running world goes on without what there is no room for. */
  if (made && spine->count == CHILDREN_MAX) return 0;
  child = add(spine, name, &status);
  child->seen = true;
  if (child_make(&spine->place, child) == 0 || errno == ENOENT) return 0;
  *failed = child->name;
  return made ? 0 : -1;
}

static void sweep(struct spine *spine) {
  for (struct child **link = &spine->children; *link != NULL;) {
    struct child *child = *link;
    bool gone = !child->seen && !child->fixed;
    child->seen = false;
    if (!gone) {
      link = &child->next;
      continue;
    }
    if (child_remove(&spine->place, child) < 0 && errno != ENOENT) fail_world(STEP, child->name, errno);
    *link = child->next;
    spine->count--;
    free(child);
  }
}

/* Calls `meet` for the names of a folder, or reserves those that are folders in the layer of whiteouts. */
static int each(struct spine *spine, int folder, bool reserved, bool made, const char **failed) {
  int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR *stream = fd < 0 ? NULL : fdopendir(fd);
  if (stream == NULL) {
    int error = errno;
    if (fd >= 0) close(fd);
    errno = error;
    return -1;
  }
  int result = 0;
  for (struct dirent *entry; result == 0 && (entry = readdir(stream)) != NULL;) {
    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
    if (!reserved) result = meet(spine, entry->d_name, made, failed);
    else if (child_reserved(&spine->place, entry->d_name)) reserve(spine, entry->d_name);
  }
  int error = errno;
  closedir(stream);
  errno = error;
  return result;
}

static void remember(struct spine *spine, const struct stat *status) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  int64_t age = (int64_t)(now.tv_sec - status->st_mtim.tv_sec) * 1000000000 + now.tv_nsec - status->st_mtim.tv_nsec;
  spine->looked = age > TICK_NS ? status->st_mtim : (struct timespec){0};
}

int spine_reserve(struct spine *spine, int folder) {
  return each(spine, folder, true, false, NULL);
}

/* Twice where something was replaced: the first look takes the old one away. */
int spine_compare(struct spine *spine, bool made, const char **failed) {
  struct stat status;
  if (fstat(spine->place.host, &status) < 0) return -1;
  if (made && spine->looked.tv_sec != 0 && spine->looked.tv_sec == status.st_mtim.tv_sec &&
      spine->looked.tv_nsec == status.st_mtim.tv_nsec) {
    return 0;
  }
  for (int look = 0; look < 2; look++) {
    if (each(spine, spine->place.host, false, made, failed) < 0) return -1;
    size_t met = spine->count;
    sweep(spine);
    if (spine->count == met) break;
  }
  remember(spine, &status);
  return 0;
}
