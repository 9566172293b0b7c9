#define _GNU_SOURCE
#include "mount/spine_children.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "lib/descriptors.h"
#include "lib/mount_api.h"
#include "mount/dentries.h"
#include "mount/host_overlays.h"

#define CHILD (ATTR_NOSUID | ATTR_NODEV | ATTR_RDONLY)

/* Reads the status of a name in the layer of whiteouts. */
static bool in_layer(const struct spine_place *place, const char *name, struct stat *status) {
  char path[PATH_MAX];
  if (snprintf(path, sizeof path, "%s/%s", place->path + 1, name) >= (int)sizeof path) return false;
  return fstatat(place->layer, path, status, AT_SYMLINK_NOFOLLOW) == 0;
}

bool child_hidden(const struct spine_place *place, const char *name) {
  struct stat status;
  return in_layer(place, name, &status) && S_ISCHR(status.st_mode) && status.st_rdev == makedev(0, 0);
}

bool child_reserved(const struct spine_place *place, const char *name) {
  struct stat status;
  return in_layer(place, name, &status) && S_ISDIR(status.st_mode);
}

/* Moves a detached mount onto the child's place. */
static int put(const struct spine_place *place, const char *name, int tree) {
  if (tree < 0) return -1;
  int point = openat(place->view, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
  int result = point < 0 ? -1 : mount_place(tree, point);
  result = close_keeping_errno(point, result);
  return close_keeping_errno(tree, result);
}

static int make_file(const struct spine_place *place, const char *name, int source) {
  int file = openat(place->room, name, O_RDONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0);
  if (file < 0) return -1;
  close(file);
  int tree = mount_copy(source);
  if (tree >= 0 && mount_restrict(tree, CHILD) < 0) return close_keeping_errno(tree, -1);
  return put(place, name, tree);
}

static int make_link(const struct spine_place *place, const char *name, int source) {
  char text[PATH_MAX];
  ssize_t length = readlinkat(source, "", text, sizeof text - 1);
  if (length < 0) return -1;
  text[length] = 0;
  return symlinkat(text, place->room, name);
}

/* Makes a host overlay like the plan's, but from descriptors. */
static int make_folder(const struct spine_place *place, const struct child *child, int source) {
  char path[PATH_MAX];
  struct statvfs mount;
  if (snprintf(path, sizeof path, "%s/%s", place->path, child->name) >= (int)sizeof path) return -1;
  if (fstatvfs(source, &mount) < 0 || mkdirat(place->room, child->name, 0755) < 0) return -1;
  uint64_t attributes = CHILD | ((mount.f_flag & ST_NOEXEC) != 0 ? ATTR_NOEXEC : 0);
  int layer = host_overlay_layer(place->layer, path, &child->status);
  if (layer < 0) return -1;
  close(layer);
  int masks = openat(place->masks, path + 1, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  int tree = masks < 0 ? -1 : host_overlay_of(masks, source, attributes);
  if (tree >= 0 && host_overlay_watch(tree, source) < 0) tree = close_keeping_errno(tree, -1);
  int result = put(place, child->name, tree);
  return close_keeping_errno(masks, result);
}

int child_make(const struct spine_place *place, const struct child *child) {
  int result = 0;
  int source = openat(place->host, child->name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
  if (source < 0) return -1;
  if (S_ISREG(child->status.st_mode)) result = make_file(place, child->name, source);
  else if (S_ISLNK(child->status.st_mode)) result = make_link(place, child->name, source);
  else if (S_ISDIR(child->status.st_mode)) result = make_folder(place, child, source);
  return close_keeping_errno(source, result);
}

static int copy_folder(int from, int to, const char *name);

/* Copies folders only: whiteouts and files are not mount points. */
static int copy_folders(int from, int to) {
  int result = 0;
  struct stat status;
  DIR *names = fdopendir(from);
  if (names == NULL) return close_keeping_errno(from, -1);
  for (struct dirent *each; result == 0 && (each = readdir(names)) != NULL;) {
    if (strcmp(each->d_name, ".") == 0 || strcmp(each->d_name, "..") == 0) continue;
    result = fstatat(from, each->d_name, &status, AT_SYMLINK_NOFOLLOW);
    if (result == 0 && S_ISDIR(status.st_mode)) result = copy_folder(from, to, each->d_name);
  }
  int error = errno;
  closedir(names);
  errno = error;
  return result;
}

static int copy_folder(int from, int to, const char *name) {
  if (mkdirat(to, name, 0755) < 0) return -1;
  int source = openat(from, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  int made = source < 0 ? -1 : openat(to, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (made < 0) return close_keeping_errno(source, -1);
  return close_keeping_errno(made, copy_folders(source, made));
}

/* Reserves a mount point and makes the folders that the plan has put in the layer: no host overlay covers
   this name and shows these folders, and mounts on them would have no place. */
int child_reserve(const struct spine_place *place, const char *name) {
  char path[PATH_MAX];
  struct stat status;
  if (!in_layer(place, name, &status)) return mkdirat(place->room, name, 0755);
  snprintf(path, sizeof path, "%s", place->path + 1);
  int layer = openat(place->layer, path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  return layer < 0 ? -1 : close_keeping_errno(layer, copy_folder(layer, place->room, name));
}

int child_remove(const struct spine_place *place, const struct child *child) {
  char link[64];
  struct stat root;
  bool folder = S_ISDIR(child->status.st_mode);
  if (folder || S_ISREG(child->status.st_mode)) {
    int mounted = openat(place->view, child->name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (mounted < 0) return -1;
    if (folder && fstat(mounted, &root) == 0) dentries_unwatch(root.st_dev);
    snprintf(link, sizeof link, "/proc/self/fd/%d", mounted);
    /* EINVAL: the child's mount failed earlier, and only its mount point exists. */
    int result = umount2(link, MNT_DETACH);
    if (close_keeping_errno(mounted, result) < 0 && errno != EINVAL) return -1;
  }
  return unlinkat(place->room, child->name, folder ? AT_REMOVEDIR : 0);
}
