/* Copying trees by descriptors. What is made is made anew (O_EXCL), in folders that are ours. */
#define _GNU_SOURCE
#include "changes/held_copy.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "changes/held_bytes.h"
#include "changes/held_links.h"
#include "changes/held_marks.h"
#include "changes/held_open.h"
#include "changes/held_paths.h"

/* A mode is set after the owner: a change of owner takes set-id bits away. */
static int finish(int source, int made, const struct stat *status) {
  char from[64], to[64];
  struct timespec times[2] = {status->st_atim, status->st_mtim};
  struct stat now;
  snprintf(from, sizeof from, "/proc/self/fd/%d", source);
  snprintf(to, sizeof to, "/proc/self/fd/%d", made);
  if (fstat(made, &now) < 0) return -1;
  bool foreign = now.st_uid != status->st_uid || now.st_gid != status->st_gid;
  /* Whoever may not give files away keeps them, as cp does. */
  if (foreign && chown(to, status->st_uid, status->st_gid) < 0 && errno != EPERM && errno != EINVAL) return -1;
  if (attributes_copy(from, to) < 0 || chmod(to, status->st_mode & 07777) < 0) return -1;
  return utimensat(AT_FDCWD, to, times, 0);
}

/* Both are open for more than their path (no O_PATH), and most have no extended attributes: a third of the calls, and none
   through procfs. */
static int finish_open(int source, int made, const struct stat *status) {
  struct timespec times[2] = {status->st_atim, status->st_mtim};
  struct stat now;
  if (flistxattr(source, NULL, 0) != 0 || flistxattr(made, NULL, 0) != 0) return finish(source, made, status);
  if (fstat(made, &now) < 0) return -1;
  bool foreign = now.st_uid != status->st_uid || now.st_gid != status->st_gid;
  if (foreign && fchown(made, status->st_uid, status->st_gid) < 0 && errno != EPERM && errno != EINVAL) return -1;
  return fchmod(made, status->st_mode & 07777) < 0 ? -1 : futimens(made, times);
}

int copy_attributes(int source, int to) {
  struct stat status;
  return fstat(source, &status) < 0 ? -1 : finish(source, to, &status);
}

static int copy_file(int from, const char *name, int to, const char *as) {
  struct stat status;
  int source = open_readable(from, name, &status);
  if (source < 0) return -1;
  int made = openat(to, as, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  int result = made < 0 || copy_bytes(source, made, &status) < 0 ? -1 : finish_open(source, made, &status);
  int error = errno;
  close(source);
  if (made >= 0) close(made);
  errno = error;
  return result;
}

static int copy_special(const struct stat *status, int from, const char *name, int to, const char *as) {
  char text[PATH_MAX];
  struct timespec times[2] = {status->st_atim, status->st_mtim};
  if (S_ISLNK(status->st_mode)) {
    ssize_t length = readlinkat(from, name, text, sizeof text);
    if (length < 0 || length == sizeof text) return -1;
    text[length] = 0;
    if (symlinkat(text, to, as) < 0) return -1;
  } else if (mknodat(to, as, status->st_mode, status->st_rdev) < 0) {
    return -1;
  }
  if (fchownat(to, as, status->st_uid, status->st_gid, AT_SYMLINK_NOFOLLOW) < 0 && errno != EPERM && errno != EINVAL) return -1;
  return utimensat(to, as, times, AT_SYMLINK_NOFOLLOW);
}

static int copy_below(struct copy *copy, int source, int made, const char *path) {
  struct text names = {0};
  int result = names_of(source, &names);
  struct text_reader reader = {names.data, names.data + names.length};
  for (char *name = text_next(&reader); name != NULL && result == 0; name = text_next(&reader)) {
    char *below = path_join(path, name);
    result = copy_entry(copy, source, name, made, name, below);
    int error = errno;
    free(below);
    errno = error;
  }
  int error = errno;
  text_clear(&names);
  errno = error;
  return result;
}

static int copy_folder(struct copy *copy, const struct stat *status, int from, const char *name, int to, const char *as,
                       const char *path) {
  int source = openat(from, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (source < 0 || mkdirat(to, as, 0700) < 0) {
    int error = errno;
    if (source >= 0) close(source);
    errno = error;
    return -1;
  }
  int made = openat(to, as, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  int result = made < 0 ? -1 : 0;
  if (result == 0 && copy->whole) result = copy_below(copy, source, made, path);
  /* Times last: what was put in changed them. */
  if (result == 0 && copy->whole) result = finish_open(source, made, status);
  int error = errno;
  close(source);
  if (made >= 0) close(made);
  errno = error;
  return result;
}

/* 1 for what is to be left out. */
static int look(const struct copy *copy, const struct stat *status, int from, const char *name) {
  struct marks marks;
  if (!copy->layer) return 0;
  if (S_ISCHR(status->st_mode) && status->st_rdev == makedev(0, 0)) return 1;
  bool plain = S_ISREG(status->st_mode) || S_ISDIR(status->st_mode) || S_ISLNK(status->st_mode);
  if (marks_of(from, name, &marks) < 0) return -1;
  if (marks.whiteout && S_ISREG(status->st_mode) && status->st_size == 0) return 1;
  bool set_id = (status->st_mode & S_ISUID) != 0 || (S_ISREG(status->st_mode) && (status->st_mode & S_ISGID) != 0);
  if (plain && !set_id && !marks.capability && !marks.elsewhere && !marks.forged) return 0;
  errno = EPERM;
  return -1;
}

static int make(struct copy *copy, const struct stat *status, int from, const char *name, int to, const char *as,
                const char *path) {
  if (S_ISDIR(status->st_mode)) return copy_folder(copy, status, from, name, to, as, path);
  bool several = status->st_nlink > 1 && S_ISREG(status->st_mode);
  int linked = several ? link_again(copy->links, status, to, as) : 0;
  if (linked != 0) return linked < 0 ? -1 : 0;
  int result = S_ISREG(status->st_mode) ? copy_file(from, name, to, as) : copy_special(status, from, name, to, as);
  if (result == 0 && several) link_remember(copy->links, status, path);
  return result;
}

int copy_entry(struct copy *copy, int from, const char *name, int to, const char *as, const char *path) {
  struct stat status;
  struct sight sight;
  if (fstatat(from, name, &status, AT_SYMLINK_NOFOLLOW) < 0) return -1;
  int left_out = look(copy, &status, from, name);
  if (left_out != 0) return left_out < 0 ? -1 : 0;
  if (make(copy, &status, from, name, to, as, path) < 0) return -1;
  if (copy->rows == NULL || (S_ISDIR(status.st_mode) && !copy->whole)) return 0;
  if (sight_at(to, as, &sight) < 0) return -1;
  text_field(copy->rows, path);
  sight_write(copy->rows, &sight);
  return 0;
}
