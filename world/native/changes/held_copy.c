/* Copies trees by descriptors. Every file is created anew (O_EXCL), in folders closed to others. */
#define _GNU_SOURCE
#include "changes/held_copy.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "changes/overlay_marks.h"
#include "changes/paths.h"
#include "changes/text.h"

struct linked {
  struct linked *next;
  dev_t device;
  ino_t inode;
  char *path; /* below `home` */
};

/* Links `as` in `to` to the earlier copy of the same inode. Returns 1 when linked, 0 without an earlier copy,
   -1 with errno. */
static int link_again(const struct links *links, const struct stat *status, int to, const char *as) {
  const char *name;
  for (const struct linked *one = links->buckets[status->st_ino % LINK_BUCKETS]; one != NULL; one = one->next) {
    if (one->device != status->st_dev || one->inode != status->st_ino) continue;
    /* Resolve the path step by step: a folder on the path could be replaced by a link meanwhile. */
    int parent = open_parent_of(links->home, one->path, &name);
    int result = parent < 0 ? -1 : linkat(parent, name, to, as, 0);
    int error = errno;
    if (parent >= 0) close(parent);
    errno = error;
    return result < 0 ? -1 : 1;
  }
  return 0;
}

static void link_remember(struct links *links, const struct stat *status, const char *path) {
  struct linked **bucket = &links->buckets[status->st_ino % LINK_BUCKETS];
  struct linked *one = held_grow(NULL, sizeof *one);
  *one = (struct linked){.next = *bucket, .device = status->st_dev, .inode = status->st_ino};
  if (asprintf(&one->path, "%s%s", links->top, path + links->skip) < 0) abort();
  *bucket = one;
}

void links_end(struct links *links) {
  for (unsigned i = 0; i < LINK_BUCKETS; i++) {
    while (links->buckets[i] != NULL) {
      struct linked *one = links->buckets[i];
      links->buckets[i] = one->next;
      free(one->path);
      free(one);
    }
  }
}

#define PIECE (128 * 1024)

static int copy_range(int from, int to, off_t at, off_t end) {
  static char piece[PIECE];
  if (at > 0 && lseek(to, at, SEEK_SET) < 0) return -1;
  while (at < end) {
    size_t wanted = end - at < PIECE ? (size_t)(end - at) : PIECE;
    ssize_t got = pread(from, piece, wanted, at);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 || !write_all(to, piece, (size_t)got)) return -1;
    if (got == 0) return 0;
    at += got;
  }
  return 0;
}

static int copy_sparse(int from, int to, off_t size) {
  off_t at = 0;
  while (at < size) {
    off_t data = lseek(from, at, SEEK_DATA);
    if (data < 0 && errno == ENXIO) break;
    if (data < 0) return copy_range(from, to, at, size);
    off_t hole = lseek(from, data, SEEK_HOLE);
    if (hole < 0 || copy_range(from, to, data, hole) < 0) return -1;
    at = hole;
  }
  return ftruncate(to, size);
}

/* Copies a file's bytes, keeping holes. -1 with errno. */
static int copy_bytes(int from, int to, const struct stat *status) {
  if (status->st_size == 0) return 0;
  /* Shares blocks where the file system can (Btrfs, XFS); not worth the call for small files. */
  if (status->st_size > PIECE && ioctl(to, FICLONE, from) == 0) return 0;
  bool sparse = status->st_blocks * 512 < status->st_size;
  return sparse ? copy_sparse(from, to, status->st_size) : copy_range(from, to, 0, status->st_size);
}

/* Copies attributes. The mode is set after the owner: chown clears set-id bits. */
static int finish(int source, int made, const struct stat *status) {
  char from[64], to[64];
  struct timespec times[2] = {status->st_atim, status->st_mtim};
  struct stat now;
  snprintf(from, sizeof from, "/proc/self/fd/%d", source);
  snprintf(to, sizeof to, "/proc/self/fd/%d", made);
  if (fstat(made, &now) < 0) return -1;
  bool foreign = now.st_uid != status->st_uid || now.st_gid != status->st_gid;
  /* A user without the right to give files away keeps them, as cp does. */
  if (foreign && chown(to, status->st_uid, status->st_gid) < 0 && errno != EPERM && errno != EINVAL) return -1;
  if (attributes_copy(from, to) < 0 || chmod(to, status->st_mode & 07777) < 0) return -1;
  return utimensat(AT_FDCWD, to, times, 0);
}

/* Copies attributes by descriptors open for reading or writing (not O_PATH). Most files have no extended
   attributes: a third of the system calls, and no procfs path. */
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

int copy_attributes_as(int source, int to, const struct stat *status) {
  return finish(source, to, status);
}

int copy_mtime(int source, int to) {
  char link[64];
  struct stat status;
  if (fstat(source, &status) < 0) return -1;
  struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, status.st_mtim};
  snprintf(link, sizeof link, "/proc/self/fd/%d", to);
  return utimensat(AT_FDCWD, link, times, 0);
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
  /* Times last: filling the folder changes its mtime. */
  if (result == 0 && copy->whole) result = finish_open(source, made, status);
  int error = errno;
  close(source);
  if (made >= 0) close(made);
  errno = error;
  return result;
}

/* Returns 1 for an entry to leave out, -1 with EPERM for a forbidden entry. */
static int look(const struct copy *copy, const struct stat *status, int from, const char *name) {
  struct marks marks = {0};
  if (!copy->layer) return 0;
  if (!S_ISCHR(status->st_mode) && marks_of(from, name, &marks) < 0) return -1;
  if (is_whiteout(status, &marks, true)) return 1;
  if (refusal_of(status, &marks) == NULL) return 0;
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
