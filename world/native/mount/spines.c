#define _GNU_SOURCE
#include "mount/spines.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "lib/credentials.h"
#include "lib/descriptors.h"
#include "lib/failure.h"
#include "lib/mount_api.h"
#include "mount/filesystems.h"
#include "mount/host_overlays.h"
#include "mount/spine_children.h"
#include "mount/targets.h"

#define STEP "spine"
/* More names than a home folder has. */
#define CHILDREN_MAX 4096
/* Time stamps have the resolution of a kernel tick: a change within the same tick may be later than the
   look. */
#define TICK_NS 20000000
/* Inodes for CHILDREN_MAX names, and some spare. */
#define OPTIONS "size=64k,nr_inodes=5000"

struct spine {
  struct spine *next;
  struct spine_place place;
  struct timespec looked; /* mtime of the host's folder when last read; 0: read again */
  struct child *children;
  size_t count;
  unsigned number;
  char path[];
};

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

static struct spine *find(const char *path) {
  struct spine *spine = spines;
  while (spine != NULL && strcmp(spine->path, path) != 0) spine = spine->next;
  return spine;
}

bool spines_any(void) {
  return spines != NULL;
}

static bool is_spine(const struct spine *parent, const char *name) {
  char path[PATH_MAX];
  return snprintf(path, sizeof path, "%s/%s", parent->path, name) < (int)sizeof path && find(path) != NULL;
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

/* Reserves a bare mount point for another spine or a mount of the plan. */
static void reserve(struct spine *spine, const char *name) {
  if (child_of(spine, name) != NULL) return;
  if (child_reserve(&spine->place, name) < 0) fail_world(STEP, spine->path, errno);
  struct child *child = add(spine, name, &(struct stat){.st_mode = S_IFDIR});
  child->fixed = true;
}

/* Handles a name on the host. 0, or -1 with errno and the name in `*failed` while the world is made; with
   `made`, a failing name is left out. */
static int meet(struct spine *spine, const char *name, bool made, const char **failed) {
  struct stat status;
  if (child_hidden(&spine->place, name)) return 0;
  if (fstatat(spine->place.host, name, &status, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) < 0) return 0;
  struct child *child = child_of(spine, name);
  if (child != NULL && (child->fixed || same(&child->status, &status))) {
    child->seen = true;
    return 0;
  }
  if (child != NULL) return 0; /* replaced: swept now, and made anew by the next look */
  if (S_ISDIR(status.st_mode) && is_spine(spine, name)) return reserve(spine, name), 0;
  if (!S_ISDIR(status.st_mode) && !S_ISREG(status.st_mode) && !S_ISLNK(status.st_mode)) return 0;
  /* A running world leaves out names beyond the limit. */
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

/* Calls `meet` for the names in a folder; with `reserved`, reserves the folders in the layer of whiteouts. */
static int each(struct spine *spine, int folder, bool reserved, bool made, const char **failed) {
  int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR *stream = fd < 0 ? NULL : fdopendir(fd);
  if (stream == NULL) return close_keeping_errno(fd, -1);
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

/* Makes mount points for the plan where the host has no folder: folders in the layer of whiteouts. */
static int reserve_all(struct spine *spine, int folder) {
  return each(spine, folder, true, false, NULL);
}

/* Makes, replaces and removes children to match the host. With `made`, only if the host's folder has changed
   since the last look, leaving out children that fail. 0, or -1 with errno, and the failed child in
   `*failed`. A replacement takes two looks: the first removes the old child. */
static int compare(struct spine *spine, bool made, const char **failed) {
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

/* Handles another mount point of this namespace: fixes the child at or above the point. */
static void fix_below(const char *point) {
  for (struct spine *spine = spines; spine != NULL; spine = spine->next) {
    size_t length = strlen(spine->path);
    if (strncmp(point, spine->path, length) != 0 || point[length] != '/') continue;
    size_t name_length = strcspn(point + length + 1, "/");
    for (struct child *child = spine->children; child != NULL; child = child->next) {
      if (strlen(child->name) != name_length || strncmp(child->name, point + length + 1, name_length) != 0) continue;
      bool below = point[length + 1 + name_length] == '/';
      /* The first mount at a child's point is the child's own. */
      if (below || child->seen) child->fixed = true;
      child->seen = true;
    }
  }
}

static void unescape(char *text) {
  char *out = text;
  for (const char *in = text; *in != 0; in++) {
    unsigned code;
    if (in[0] == '\\' && sscanf(in + 1, "%3o", &code) == 1) {
      *out++ = (char)code;
      in += 3;
    } else *out++ = *in;
  }
  *out = 0;
}

/* Fixes children below other mounts, once the plan is done: such children stay unchanged. */
static void fix_all(void) {
  FILE *table = fopen("/proc/self/mountinfo", "re");
  char *line = NULL;
  size_t room = 0;
  if (table == NULL) fail_world(STEP, "/proc/self/mountinfo", errno);
  while (getline(&line, &room, table) > 0) {
    char *state, *field = strtok_r(line, " ", &state);
    for (int i = 1; i < 5 && field != NULL; i++) field = strtok_r(NULL, " ", &state);
    if (field == NULL) continue;
    unescape(field);
    fix_below(field);
  }
  free(line);
  fclose(table);
  for (struct spine *spine = spines; spine != NULL; spine = spine->next) {
    for (struct child *child = spine->children; child != NULL; child = child->next) child->seen = false;
  }
}

/* Mounts the folder: read-only for commands, writable for PID 1. */
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
  struct spine *spine = find(*path);
  if (spine == NULL) {
    errno = EINVAL;
    return -1;
  }
  struct spine_place *own = &spine->place;
  own->host = open_below(stage->host, *path, O_RDONLY | O_DIRECTORY, WALK_NO_SYMLINKS);
  if (own->host < 0 || place(stage, spine) < 0) return -1;
  int folder = host_overlay_folder(stage, *path) < 0 ? -1 : open_below(stage->masks, *path, O_RDONLY | O_DIRECTORY, WALK_NO_SYMLINKS);
  own->masks = stage->masks;
  own->layer = fcntl(stage->masks, F_DUPFD_CLOEXEC, 0);
  if (folder < 0 || own->layer < 0) return -1;
  int result = compare(spine, false, &failed);
  if (result == 0) result = reserve_all(spine, folder);
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

/* Adds a place in the folder of sources. */
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
    close_keeping_errno(host, 0);
    if (result < 0) return -1;
  }
  /* Without read-only, the owner could change the folder's mode and open its contents. */
  int result = top < 0 ? -1 : mount_restrict(top, ATTR_RDONLY);
  return close_keeping_errno(top, result);
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
  /* The folder's mode closes it to commands only as long as none has CAP_DAC_OVERRIDE, which the maker of a user
     namespace has over its own user's files. */
  if (folder_cover(sources) < 0) fail_world(STEP, sources, errno);
  fix_all();
}

void spines_refresh(void) {
  if (spines == NULL) return;
  credentials_raise();
  for (struct spine *spine = spines; spine != NULL; spine = spine->next) {
    const char *failed = NULL;
    if (spine->place.view < 0) continue;
    if (compare(spine, true, &failed) < 0) fail_world(STEP, spine->path, errno);
  }
  credentials_lower();
}
