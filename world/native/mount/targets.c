#define _GNU_SOURCE
#include "mount/targets.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/descriptors.h"
#include "lib/mount_api.h"

bool path_is_plain(const char *path) {
  if (path[0] != '/' || strlen(path) >= PATH_MAX) return false;
  for (const char *part = path; part != NULL; part = strchr(part, '/')) {
    part += strspn(part, "/");
    size_t length = strcspn(part, "/");
    if (length == 1 && part[0] == '.') return false;
    if (length == 2 && part[0] == '.' && part[1] == '.') return false;
  }
  return true;
}

int target_open(int root, const char *path) {
  int fd = open_below(root, path, O_PATH | O_NOFOLLOW, WALK_IN_ROOT);
  if (fd < 0) return -1;
  struct stat status;
  if (fstat(fd, &status) < 0 || S_ISLNK(status.st_mode)) {
    close(fd);
    errno = ELOOP;
    return -1;
  }
  return fd;
}

/* Opens the folder `path`, and makes missing folders. */
static int open_folder(int root, const char *path, mode_t mode) {
  char prefix[PATH_MAX];
  int parent = open_below(root, "/", O_PATH | O_DIRECTORY, WALK_IN_ROOT);
  for (const char *part = path + strspn(path, "/"); parent >= 0 && *part != 0;) {
    size_t length = strcspn(part, "/");
    const char *next = part + length + strspn(part + length, "/");
    size_t end = (size_t)(part - path) + length;
    memcpy(prefix, path, end);
    prefix[end] = 0;
    int child = open_below(root, prefix, O_PATH | O_DIRECTORY, WALK_IN_ROOT);
    if (child < 0 && errno == ENOENT) {
      const char *name = prefix + (part - path);
      if (mkdirat(parent, name, *next == 0 ? mode : 0755) == 0) {
        child = open_below(root, prefix, O_PATH | O_DIRECTORY, WALK_IN_ROOT);
      }
    }
    close_keeping_errno(parent, 0);
    parent = child;
    part = next;
  }
  return parent;
}

int target_make_folder(int root, const char *path, mode_t mode) {
  int fd = open_folder(root, path, mode);
  return fd < 0 ? -1 : close(fd);
}

/* Opens the parent folder of `path` and points `name` at the last component. */
static int open_parent(int root, const char *path, const char **name) {
  char folder[PATH_MAX];
  const char *last = strrchr(path, '/') + 1;
  if (*last == 0) {
    errno = EISDIR;
    return -1;
  }
  memcpy(folder, path, (size_t)(last - path));
  folder[last - path] = 0;
  *name = last;
  return open_folder(root, folder, 0755);
}

int target_make_file(int root, const char *path, mode_t mode) {
  const char *name;
  int parent = open_parent(root, path, &name);
  if (parent < 0) return -1;
  int fd = openat(parent, name, O_RDONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
  int error = errno;
  close(parent);
  if (fd >= 0) return close(fd);
  struct stat status;
  int existing = error == EEXIST ? target_open(root, path) : -1;
  if (existing >= 0 && fstat(existing, &status) == 0 && !S_ISDIR(status.st_mode)) return close(existing);
  if (existing >= 0) close(existing);
  errno = error;
  return -1;
}

int target_make_symlink(int root, const char *text, const char *path) {
  const char *name;
  int parent = open_parent(root, path, &name);
  if (parent < 0) return -1;
  int result = symlinkat(text, parent, name);
  return close_keeping_errno(parent, result);
}
