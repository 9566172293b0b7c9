#define _GNU_SOURCE
#include "mount/spines.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/credentials.h"
#include "lib/failure.h"
#include "lib/mount_api.h"
#include "mount/mount_steps.h"
#include "mount/spine.h"
#include "mount/targets.h"
#include "mount/veil.h"

#define STEP "spine"
/* As many as CHILDREN_MAX, and some. */
#define OPTIONS "size=64k,nr_inodes=5000"

static struct spine *spines, **last = &spines;
static unsigned spine_count;
static char sources[PATH_MAX];

int spine_add(const char *path) {
  struct spine *spine = calloc(1, sizeof *spine + strlen(path) + 1);
  if (spine == NULL) return -1;
  strcpy(spine->path, path);
  spine->place = (struct spine_place){.path = spine->path, .host = -1, .view = -1, .room = -1, .masks = -1, .layer = -1};
  spine->number = spine_count++;
  *last = spine;
  last = &spine->next;
  return 0;
}

struct spine *spine_find(const char *path) {
  struct spine *spine = spines;
  while (spine != NULL && strcmp(spine->path, path) != 0) spine = spine->next;
  return spine;
}

struct spine *spine_after(const struct spine *spine) {
  return spine == NULL ? spines : spine->next;
}

bool spines_any(void) {
  return spines != NULL;
}

/* The folder itself, as commands see it and as we write it. */
static int place(const struct stage *stage, struct spine *spine) {
  char options[96];
  struct stat status;
  if (fstat(spine->place.host, &status) < 0) return -1;
  snprintf(options, sizeof options, "mode=%o,%s", status.st_mode & 0777u, OPTIONS);
  if (place_filesystem(stage, "tmpfs", options, spine->path, ATTR_NOSUID | ATTR_NODEV) < 0) return -1;
  spine->place.view = target_open(stage->world, spine->path);
  spine->place.room = spine->place.view < 0 ? -1 : mount_copy(spine->place.view);
  if (spine->place.room < 0) return -1;
  return mount_restrict(spine->place.view, ATTR_RDONLY);
}

int spine_fill(const struct stage *stage, const char **path) {
  static char failed_path[PATH_MAX];
  const char *failed = NULL;
  struct spine *spine = spine_find(*path);
  if (spine == NULL) {
    errno = EINVAL;
    return -1;
  }
  struct spine_place *own = &spine->place;
  own->host = open_below(stage->host, *path, O_RDONLY | O_DIRECTORY, WALK_NO_SYMLINKS);
  if (own->host < 0 || place(stage, spine) < 0) return -1;
  int folder = veil_folder(stage, *path) < 0 ? -1 : open_below(stage->masks, *path, O_RDONLY | O_DIRECTORY, WALK_NO_SYMLINKS);
  own->masks = stage->masks;
  own->layer = fcntl(stage->masks, F_DUPFD_CLOEXEC, 0);
  if (folder < 0 || own->layer < 0) return -1;
  int result = spine_compare(spine, false, &failed);
  if (result == 0) result = spine_reserve(spine, folder);
  int error = errno;
  close(folder);
  close(own->host);
  own->host = own->masks = -1;
  errno = error;
  if (result < 0 && failed != NULL) {
    snprintf(failed_path, sizeof failed_path, "%s/%.*s", spine->path, NAME_MAX, failed);
    *path = failed_path;
  }
  return result;
}

/* One more place in the folder of sources. */
static int add_source(const struct stage *stage, const char *target, int source) {
  if (source < 0 || target_make_folder(stage->world, target, 0755) < 0) return -1;
  return place_tree(stage, mount_copy(source), target, ATTR_NOSUID | ATTR_NODEV | ATTR_RDONLY);
}

int spines_sources(const struct stage *stage, const char *target) {
  char path[PATH_MAX];
  if (snprintf(sources, sizeof sources, "%s", target) >= (int)sizeof sources - 32) {
    errno = ENAMETOOLONG;
    return -1;
  }
  if (target_make_folder(stage->world, target, 0) < 0) return -1;
  if (place_filesystem(stage, "tmpfs", "mode=0,size=64k,nr_inodes=5000", target, ATTR_NOSUID | ATTR_NODEV) < 0) return -1;
  snprintf(path, sizeof path, "%.4000s/masks", sources);
  if (add_source(stage, path, stage->masks) < 0) return -1;
  int top = target_open(stage->world, target);
  for (struct spine *spine = spines; spine != NULL; spine = spine->next) {
    if (spine->place.view < 0) continue;
    snprintf(path, sizeof path, "%.4000s/%u", sources, spine->number);
    int host = open_below(stage->host, spine->path, O_PATH | O_DIRECTORY, WALK_NO_SYMLINKS);
    int result = add_source(stage, path, host);
    int error = errno;
    if (host >= 0) close(host);
    errno = error;
    if (result < 0) return -1;
  }
  /* Its owner could open it to others otherwise. */
  int result = top < 0 ? -1 : mount_restrict(top, ATTR_RDONLY);
  int error = errno;
  if (top >= 0) close(top);
  errno = error;
  return result;
}

void spines_let_go(void) {
  for (struct spine *spine = spines; spine != NULL; spine = spine->next) {
    if (spine->place.view < 0) continue;
    close(spine->place.view);
    close(spine->place.room);
    close(spine->place.layer);
  }
}

static int open_source(const char *name, int flags) {
  char path[PATH_MAX];
  snprintf(path, sizeof path, "%.4000s/%s", sources, name);
  int fd = open(path, flags | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) fail_world(STEP, path, errno);
  return fd;
}

void spines_start(void) {
  if (spines == NULL) return;
  for (struct spine *spine = spines; spine != NULL; spine = spine->next) {
    char name[16];
    if (spine->place.view < 0) continue;
    snprintf(name, sizeof name, "%u", spine->number);
    spine->place.host = open_source(name, O_RDONLY);
    spine->place.masks = open_source("masks", O_PATH);
  }
  spines_fix();
}

void spines_refresh(void) {
  if (spines == NULL) return;
  credentials_raise();
  for (struct spine *spine = spines; spine != NULL; spine = spine->next) {
    const char *failed = NULL;
    if (spine->place.view < 0) continue;
    if (spine_compare(spine, true, &failed) < 0) fail_world(STEP, spine->path, errno);
  }
  credentials_lower();
}
