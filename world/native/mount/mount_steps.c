#define _GNU_SOURCE
#include "mount/mount_steps.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/descriptors.h"
#include "lib/mount_api.h"
#include "mount/filesystems.h"
#include "mount/host_overlays.h"
#include "mount/kept_writes.h"
#include "mount/spines.h"
#include "mount/targets.h"

#define HOST_TREE (ATTR_NOSUID | ATTR_NODEV)

static int refuse(int error) {
  errno = error;
  return -1;
}

/* Host paths are real paths, resolved by the planner: a symlink on the path means a race. */
static int copy_host(const struct stage *stage, const char *source) {
  int fd = open_below(stage->host, source, O_PATH, WALK_NO_SYMLINKS);
  if (fd < 0) return -1;
  return close_keeping_errno(fd, mount_copy(fd));
}

static int do_root(const struct stage *stage) {
  return place_tree(stage, copy_host(stage, "/"), "/", HOST_TREE | ATTR_RDONLY);
}

static int parse_mode(const char *text, mode_t *mode) {
  char *end;
  errno = 0;
  unsigned long value = strtoul(text, &end, 8);
  if (errno != 0 || end == text || *end != 0 || value > 07777) return refuse(EINVAL);
  *mode = (mode_t)value;
  return 0;
}

static int do_bind(const struct stage *stage, const char *const *parts, const char **path) {
  uint64_t attributes = HOST_TREE;
  bool kept = strcmp(parts[3], "kept") == 0;
  if (strcmp(parts[3], "ro") == 0) attributes |= ATTR_RDONLY;
  else if (!kept && strcmp(parts[3], "rw") != 0) return refuse(EINVAL);
  *path = parts[1];
  int tree = copy_host(stage, parts[1]);
  if (tree < 0) return -1;
  if (kept && kept_writes_watch(tree) < 0) return close_keeping_errno(tree, -1);
  *path = parts[2];
  return place_tree(stage, tree, parts[2], attributes);
}

static int do_readonly(const struct stage *stage, const char *target) {
  int place = target_open(stage->world, target);
  if (place < 0) return -1;
  int tree = close_keeping_errno(place, mount_copy(place));
  return place_tree(stage, tree, target, ATTR_RDONLY);
}

static int do_device(const struct stage *stage, const char *name) {
  char path[PATH_MAX];
  struct stat status;
  if (name[0] == 0 || strchr(name, '/') != NULL || strlen(name) > NAME_MAX) return refuse(EINVAL);
  snprintf(path, sizeof path, "/dev/%s", name);
  if (!path_is_plain(path)) return refuse(EINVAL);
  int tree = copy_host(stage, path);
  if (tree < 0) return -1;
  if (fstat(tree, &status) < 0 || !S_ISCHR(status.st_mode)) return close_keeping_errno(tree, refuse(ENODEV));
  if (target_make_file(stage->world, path, 0644) < 0) return close_keeping_errno(tree, -1);
  /* Read-only keeps the node's mode and times as on the host; device reads and writes work all the same. */
  return place_tree(stage, tree, path, ATTR_NOSUID | ATTR_NOEXEC | ATTR_RDONLY);
}

int mask_place(const struct stage *stage, const char *target) {
  struct stat status;
  int place = open_below(stage->world, target, O_PATH | O_NOFOLLOW, WALK_IN_ROOT);
  /* Missing, or below a folder closed even to PID 1: commands cannot reach the file either. */
  if (place < 0) return errno == ENOENT || errno == ENOTDIR || errno == EACCES ? 0 : -1;
  if (fstat(place, &status) < 0) return close_keeping_errno(place, -1);
  int tree = mount_copy(S_ISDIR(status.st_mode) ? stage->empty_folder : stage->empty_file);
  int result = -1;
  /* Mount on the descriptor: a symlink is covered itself; its target has another name. */
  if (tree >= 0 && mount_restrict(tree, HOST_TREE | ATTR_NOEXEC | ATTR_RDONLY) == 0) {
    result = mount_place(tree, place);
  }
  result = close_keeping_errno(tree, result);
  return close_keeping_errno(place, result);
}

/* Makes a file in the staging tmpfs, which goes with the old root; the file's mount stays. */
static int make_text(const char *text) {
  size_t length = strlen(text);
  int fd = open("/text", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
  if (fd < 0) return -1;
  int written = write(fd, text, length) == (ssize_t)length ? 0 : -1;
  int tree = written < 0 ? -1 : mount_copy(fd);
  return close_keeping_errno(fd, tree);
}

/* Covers a name with a text file, or the symlink itself. Where the name is missing and cannot be made, the
   tree is the host's, read-only, and stays unchanged. */
static int do_text(const struct stage *stage, const char *target, const char *text) {
  int place = open_below(stage->world, target, O_PATH | O_NOFOLLOW, WALK_IN_ROOT);
  if (place < 0 && errno == ENOENT) {
    if (target_make_file(stage->world, target, 0444) < 0) return errno == EROFS || errno == EACCES ? 0 : -1;
    place = open_below(stage->world, target, O_PATH | O_NOFOLLOW, WALK_IN_ROOT);
  }
  if (place < 0) return -1;
  int tree = make_text(text);
  int result = -1;
  if (tree >= 0 && mount_restrict(tree, HOST_TREE | ATTR_NOEXEC | ATTR_RDONLY) == 0) {
    result = mount_place(tree, place);
  }
  result = close_keeping_errno(tree, result);
  /* Unlink only now: an unlinked file cannot be mounted. */
  if (unlink("/text") < 0 && result == 0) result = -1;
  return close_keeping_errno(place, result);
}

/* Restricts the new root alone, without mounts on top: writes to a root tmpfs would be lost unseen. */
static int do_closed(const struct stage *stage) { return mount_restrict_one(stage->world, ATTR_RDONLY); }

enum operation {
  ROOT,
  TMPFS,
  DIR,
  FILE_,
  BIND,
  READONLY,
  PROC,
  DEVICE,
  DEVPTS,
  SYMLINK,
  MASK,
  OVERLAY,
  HIDE,
  VEIL,
  TEXT,
  SHOW,
  FOLDER,
  SPINE,
  FILL,
  SOURCES,
  CLOSED
};

/* `target`: index of the part with a path in the world (0: no such part). */
static const struct {
  const char *name;
  enum operation operation;
  int least, most, target;
} OPERATIONS[] = {
    {"root", ROOT, 1, 1, 0},         {"tmpfs", TMPFS, 2, 3, 1},   {"dir", DIR, 2, 3, 1},
    {"file", FILE_, 2, 3, 1},        {"bind", BIND, 4, 4, 2},     {"readonly", READONLY, 2, 2, 1},
    {"proc", PROC, 2, 2, 1},         {"device", DEVICE, 2, 2, 0}, {"devpts", DEVPTS, 2, 2, 1},
    {"symlink", SYMLINK, 3, 3, 2},   {"mask", MASK, 2, 2, 1},     {"overlay", OVERLAY, 5, 6, 4},
    {"hide", HIDE, 2, 2, 1},         {"veil", VEIL, 3, 6, 2},
    {"text", TEXT, 3, 3, 1},         {"show", SHOW, 3, 3, 1},    {"folder", FOLDER, 2, 2, 1},
    {"spine", SPINE, 2, 2, 1},       {"fill", FILL, 2, 2, 1},     {"sources", SOURCES, 2, 2, 1},
    {"closed", CLOSED, 1, 1, 0},
};

static int apply(const struct stage *stage, enum operation operation, const struct mount_step *step,
                 const char **path) {
  const char *const *parts = step->parts;
  mode_t mode = 0755;
  switch (operation) {
    case ROOT:
      return do_root(stage);
    case TMPFS:
      return place_filesystem(stage, "tmpfs", step->count > 2 ? parts[2] : "", parts[1], HOST_TREE);
    case DIR:
      if (step->count > 2 && parse_mode(parts[2], &mode) < 0) return -1;
      return target_make_folder(stage->world, parts[1], mode);
    case FILE_:
      mode = 0644;
      if (step->count > 2 && parse_mode(parts[2], &mode) < 0) return -1;
      return target_make_file(stage->world, parts[1], mode);
    case BIND:
      return do_bind(stage, parts, path);
    case READONLY:
      return do_readonly(stage, parts[1]);
    case PROC:
      return place_filesystem(stage, "proc", "", parts[1], HOST_TREE | ATTR_NOEXEC);
    case DEVICE:
      return do_device(stage, parts[1]);
    case DEVPTS:
      return place_filesystem(stage, "devpts", "newinstance,ptmxmode=0666,mode=0620,max=256", parts[1],
                              ATTR_NOSUID | ATTR_NOEXEC);
    case SYMLINK:
      return target_make_symlink(stage->world, parts[1], parts[2]);
    case MASK:
      return mask_place(stage, parts[1]);
    case OVERLAY:
      return place_overlay(stage, step, path);
    case HIDE:
      return host_overlay_hide(stage, parts[1]);
    case VEIL:
      return host_overlay_place(stage, step, path);
    case TEXT:
      return do_text(stage, parts[1], parts[2]);
    case SHOW:
      return host_overlay_show(stage, parts[1], parts[2]);
    case FOLDER:
      return host_overlay_folder(stage, parts[1]);
    case SPINE:
      return spine_add(parts[1]);
    case FILL:
      return spine_fill(stage, path);
    case SOURCES:
      return spines_sources(stage, parts[1]);
    case CLOSED:
      return do_closed(stage);
  }
  return refuse(ENOSYS);
}

int mount_step_apply(const struct stage *stage, const struct mount_step *step, const char **path) {
  *path = step->count > 1 ? step->parts[1] : "";
  for (size_t i = 0; i < sizeof OPERATIONS / sizeof OPERATIONS[0]; i++) {
    if (strcmp(OPERATIONS[i].name, step->parts[0]) != 0) continue;
    if (step->count < OPERATIONS[i].least || step->count > OPERATIONS[i].most) return refuse(EINVAL);
    int target = OPERATIONS[i].target;
    if (target > 0) *path = step->parts[target];
    if (target > 0 && !path_is_plain(*path)) return refuse(EINVAL);
    return apply(stage, OPERATIONS[i].operation, step, path);
  }
  return refuse(ENOSYS);
}
