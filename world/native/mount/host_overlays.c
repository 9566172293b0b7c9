#define _GNU_SOURCE
#include "mount/host_overlays.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "lib/descriptors.h"
#include "lib/mount_api.h"
#include "mount/dentries.h"
#include "mount/filesystems.h"
#include "mount/kept_writes.h"

/* Copies the host's attributes: a merged folder shows the attributes of its topmost layer. An owner without
   mapping in this user namespace cannot be set: the folder then seems to be the user's own, read-only. A
   folder missing on the host is also the user's own. */
static int look_like(int folder, const struct stat *host) {
  if (fchown(folder, host->st_uid, host->st_gid) < 0 && errno != EPERM && errno != EINVAL) return -1;
  if (fchmod(folder, host->st_mode & 07777) < 0) return -1;
  const struct timespec times[2] = {host->st_atim, host->st_mtim};
  return futimens(folder, times);
}

/* Overlayfs leaves whiteouts out of a listing where two layers are merged, or where this attribute says that a folder was
   once merged (ovl_path_check_origin_xattr, asked by ovl_get_inode in fs/overlayfs/inode.c; an empty value is 'origin
   unknown'). A folder that the host does not have, or removes later, is in one layer: `ls -l ~/.config` showed the names of
   hidden files as '?', and failed. Overlays of root read the first attribute, and show the second one to commands; an
   ordinary user may set the second alone. Not set, ignoring: before Linux 6.6 a tmpfs has none, and the names are listed. */
static void leave_whiteouts_out(int folder) {
  if (fsetxattr(folder, "trusted.overlay.origin", "", 0, 0) < 0) fsetxattr(folder, "user.overlay.origin", "", 0, 0);
}

static int take_after(const struct stage *stage, int folder, const char *path) {
  struct stat status;
  leave_whiteouts_out(folder);
  int host = open_below(stage->host, path, O_PATH | O_DIRECTORY, WALK_NO_SYMLINKS);
  if (host < 0) return errno == ENOENT ? fchmod(folder, 0755) : -1;
  if (close_keeping_errno(host, fstat(host, &status)) < 0) return -1;
  return look_like(folder, &status);
}

int host_overlay_layer(int masks, const char *path, const struct stat *host) {
  bool made = mkdirat(masks, path + 1, 0700) == 0;
  if (!made && errno != EEXIST) return -1;
  int folder = openat(masks, path + 1, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (folder >= 0 && made && look_like(folder, host) < 0) return close_keeping_errno(folder, -1);
  return folder;
}

/* Opens the folder of the mask layer for the host folder `path`, and makes missing folders. -1 with ENOTDIR
   below a whiteout. */
static int open_masks(const struct stage *stage, const char *path) {
  char prefix[PATH_MAX];
  int folder = open_below(stage->masks, path, O_RDONLY | O_DIRECTORY, WALK_NO_SYMLINKS);
  /* Usually the folder was made for another name already. */
  if (folder >= 0 || errno != ENOENT) return folder;
  folder = open_below(stage->masks, "/", O_RDONLY | O_DIRECTORY, WALK_NO_SYMLINKS);
  for (const char *part = path + strspn(path, "/"); folder >= 0 && *part != 0;) {
    size_t length = strcspn(part, "/");
    size_t end = (size_t)(part - path) + length;
    memcpy(prefix, path, end);
    prefix[end] = 0;
    bool made = mkdirat(folder, prefix + (part - path), 0700) == 0;
    int child = made || errno == EEXIST
                    ? openat(folder, prefix + (part - path), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
                    : -1;
    if (child >= 0 && made && take_after(stage, child, prefix) < 0) child = close_keeping_errno(child, -1);
    close_keeping_errno(folder, 0);
    folder = child;
    part += length + strspn(part + length, "/");
  }
  return folder;
}

int host_overlay_hide(const struct stage *stage, const char *path) {
  static unsigned replaced;
  char parent[PATH_MAX];
  char aside[32];
  const char *name = strrchr(path, '/') + 1;
  snprintf(parent, sizeof parent, "%.*s", (int)(name - path), path);
  int folder = open_masks(stage, parent);
  if (folder < 0) return errno == ENOTDIR ? 0 : -1;
  int result = mknodat(folder, name, S_IFCHR, 0);
  if (result < 0 && errno == EEXIST) {
    /* A whiteout already, or a folder above other whiteouts: replace the whole folder. */
    snprintf(aside, sizeof aside, "%u", replaced++);
    result = renameat(folder, name, stage->aside, aside);
    if (result == 0) result = mknodat(folder, name, S_IFCHR, 0);
  }
  return close_keeping_errno(folder, result);
}

int host_overlay_show(const struct stage *stage, const char *path, const char *text) {
  char parent[PATH_MAX];
  const char *name = strrchr(path, '/') + 1;
  snprintf(parent, sizeof parent, "%.*s", (int)(name - path), path);
  int folder = open_masks(stage, parent);
  /* Below a whiteout, or in a folder just removed: no place for the file. */
  if (folder < 0) return errno == ENOTDIR || errno == ENOENT ? 0 : -1;
  int file = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0444);
  close_keeping_errno(folder, 0);
  /* A whiteout exists already: a denied name stays denied. */
  if (file < 0) return errno == EEXIST ? 0 : -1;
  size_t length = strlen(text);
  ssize_t written = write(file, text, length);
  if (written >= 0 && (size_t)written < length) errno = ENOSPC;
  return close_keeping_errno(file, written == (ssize_t)length ? 0 : -1);
}

int host_overlay_folder(const struct stage *stage, const char *path) {
  int folder = open_masks(stage, path);
  if (folder < 0) return errno == ENOTDIR ? 0 : -1;
  return close_keeping_errno(folder, 0);
}

/* Opens SOURCE on the host, and keeps noexec of its mount. */
static int open_source(const struct stage *stage, const char *source, uint64_t *attributes) {
  struct statvfs status;
  int host = open_below(stage->host, source, O_PATH | O_DIRECTORY, WALK_NO_SYMLINKS);
  if (host < 0) return -1;
  if (fstatvfs(host, &status) < 0) return close_keeping_errno(host, -1);
  if ((status.f_flag & ST_NOEXEC) != 0) *attributes |= ATTR_NOEXEC;
  return host;
}

/* False for read-only images: nothing to refresh there, and a desktop has dozens (snap). */
static bool changes(int host) {
  struct statfs status;
  if (fstatfs(host, &status) < 0) return true;
  return status.f_type != SQUASHFS_MAGIC && status.f_type != EROFS_SUPER_MAGIC_V1 && status.f_type != ISOFS_SUPER_MAGIC;
}

int host_overlay_watch(int tree, int host) {
  return changes(host) ? dentries_watch(tree) : 0;
}

static int add_lower_layers(int context, int masks, int host) {
  char layers[64];
  snprintf(layers, sizeof layers, "/proc/self/fd/%d:/proc/self/fd/%d", masks, host);
  return filesystem_option(context, "lowerdir", layers);
}

/* Written files are lost with the world, so syncing them to disk is useless (volatile). */
static int configure(int context, bool userxattr, bool writable) {
  if (writable && filesystem_option(context, "volatile", NULL) < 0) return -1;
  if (filesystem_option(context, "index", "off") < 0) return -1;
  if (filesystem_option(context, "metacopy", "off") < 0) return -1;
  return userxattr ? filesystem_option(context, "userxattr", NULL) : 0;
}

static int make_read_only(int masks, int host, bool userxattr, uint64_t attributes) {
  int tree = -1;
  int context = filesystem_begin("overlay");
  if (context < 0) return -1;
  if (add_lower_layers(context, masks, host) == 0 && configure(context, userxattr, false) == 0)
    tree = filesystem_mount(context, attributes);
  return close_keeping_errno(context, tree);
}

int host_overlay_of(int masks, int host, uint64_t attributes) {
  return make_read_only(masks, host, true, attributes);
}

/* The host overlay over the host's root, in the staging area: an O_PATH descriptor, or NO_ROOT. */
#define NO_ROOT (-1)
static int root_overlay = NO_ROOT;
static bool root_tried;

static int place_root_overlay(const struct stage *stage, bool userxattr) {
  if (mkdir("/trees", 0700) < 0) return NO_ROOT;
  int tree = make_read_only(stage->masks, stage->host, userxattr, ATTR_NOSUID | ATTR_NODEV | ATTR_RDONLY);
  if (tree < 0) return NO_ROOT;
  int place = open("/trees", O_PATH | O_DIRECTORY | O_CLOEXEC);
  int result = place < 0 || mount_place(tree, place) < 0 ? -1 : host_overlay_watch(tree, stage->host);
  close_keeping_errno(place, 0);
  return result < 0 ? close_keeping_errno(tree, NO_ROOT) : tree;
}

static bool is_in_mount_of_root(const struct stage *stage, int host) {
  struct statx root, tree;
  return statx(stage->host, "", AT_EMPTY_PATH, STATX_MNT_ID, &root) == 0 &&
         statx(host, "", AT_EMPTY_PATH, STATX_MNT_ID, &tree) == 0 && root.stx_mnt_id == tree.stx_mnt_id;
}

/* Takes a part of a single overlay over the host's root, shared by all trees in the root's mount: PID 1 then
   refreshes a single file system after each command instead of a dozen. The kernel refuses an overlay over a
   root with locked mounts (an ordinary user's): then each tree gets its own host overlay, with the same
   contents. Returns a detached tree, or -1. */
static int part_of_root_overlay(const struct stage *stage, int host, const char *path, bool userxattr) {
  if (!is_in_mount_of_root(stage, host)) return -1;
  if (!root_tried) root_overlay = place_root_overlay(stage, userxattr);
  root_tried = true;
  int part = root_overlay < 0 ? -1 : open_below(root_overlay, path, O_PATH | O_DIRECTORY, WALK_NO_SYMLINKS);
  return part < 0 ? -1 : close_keeping_errno(part, mount_copy(part));
}

void host_overlay_finish(void) {
  if (root_overlay >= 0) close(root_overlay);
  root_overlay = NO_ROOT;
}

/* Makes a host overlay that keeps no writes. Returns a detached tree, or -1 with errno. */
static int read_only_tree(const struct stage *stage, int masks, int host, const char *path, bool userxattr,
                          uint64_t attributes) {
  int part = part_of_root_overlay(stage, host, path, userxattr);
  if (part >= 0) return part;
  int tree = make_read_only(masks, host, userxattr, attributes);
  return tree < 0 || host_overlay_watch(tree, host) == 0 ? tree : close_keeping_errno(tree, -1);
}

/* Makes a host overlay with an upper layer. Returns a detached tree, or -1 with errno. */
static int writable_tree(const struct stage *stage, int masks, int host, const struct mount_step *step, bool userxattr,
                         uint64_t attributes) {
  int upper = -1, work = -1, tree = -1;
  int context = filesystem_begin("overlay");
  if (context < 0) return -1;
  if (add_lower_layers(context, masks, host) == 0)
    upper = overlay_layer(stage, context, "upperdir", step->parts[3]);
  if (upper >= 0) work = overlay_layer(stage, context, "workdir", step->parts[4]);
  if (work >= 0 && configure(context, userxattr, true) == 0) tree = filesystem_mount(context, attributes);
  if (tree >= 0 && (host_overlay_watch(tree, host) < 0 || kept_writes_watch(upper) < 0)) tree = close_keeping_errno(tree, -1);
  const int opened[] = {context, upper, work};
  for (size_t i = 0; i < sizeof opened / sizeof opened[0]; i++) close_keeping_errno(opened[i], 0);
  return tree;
}

int host_overlay_place(const struct stage *stage, const struct mount_step *step, const char **path) {
  const char *const *parts = step->parts;
  bool userxattr = strcmp(parts[step->count - 1], "userxattr") == 0;
  bool writable = step->count - userxattr == 5;
  int tree = -1;
  uint64_t attributes = ATTR_NOSUID | ATTR_NODEV | (writable ? 0 : ATTR_RDONLY);
  if (!writable && step->count - userxattr != 3) {
    errno = EINVAL;
    return -1;
  }
  *path = parts[1];
  int host = open_source(stage, parts[1], &attributes);
  int masks = host < 0 ? -1 : open_masks(stage, parts[1]);
  if (masks >= 0 && writable) tree = writable_tree(stage, masks, host, step, userxattr, attributes);
  else if (masks >= 0) tree = read_only_tree(stage, masks, host, parts[1], userxattr, attributes);
  int result = tree < 0 ? -1 : place_tree(stage, tree, parts[2], attributes);
  close_keeping_errno(masks, 0);
  return close_keeping_errno(host, result);
}
