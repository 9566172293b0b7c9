#define _GNU_SOURCE
#include "seals/fresh_copies.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/callers.h"
#include "lib/frames.h"

/* Entries copied per folder; git has 14 sample hooks. */
#define ENTRIES_MAX 256
/* A process inside the old folder may create names while PID 1 empties the folder; the rest stays after so
   many tries. */
#define EMPTY_TRIES 3

static const char NEW[] = "substrate-new";
static const char OLD[] = "substrate-old";

static int copy_bytes(int from, int to) {
  char bytes[16384];
  size_t copied = 0;
  for (;;) {
    ssize_t count = read(from, bytes, sizeof bytes);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return count < 0 ? errno : 0;
    copied += (size_t)count;
    if (copied > FRAME_MAX_REPLACEMENT) return EFBIG;
    for (ssize_t at = 0, put; at < count; at += put) {
      put = write(to, bytes + at, (size_t)(count - at));
      if (put < 0 && errno != EINTR) return errno;
      if (put < 0) put = 0;
    }
  }
}

static int keep_looks(int fd, const struct stat *status) {
  const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, status->st_mtim};
  return fchmod(fd, status->st_mode & 0777) < 0 || futimens(fd, times) < 0 ? errno : 0;
}

static int copy_file(int from_folder, const char *leaf, int to_folder, const char *name) {
  struct stat status;
  int from = openat(from_folder, leaf, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  if (from < 0) return errno;
  int error = fstat(from, &status) < 0 ? errno : S_ISREG(status.st_mode) ? 0 : ENOTSUP;
  int to = error != 0 ? -1 : openat(to_folder, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (error == 0 && to < 0) error = errno;
  if (error == 0) error = copy_bytes(from, to);
  if (error == 0) error = keep_looks(to, &status);
  if (to >= 0) close(to);
  close(from);
  return error;
}

static int copy_link(int from_folder, const char *leaf, int to_folder) {
  char target[PATH_MAX];
  ssize_t length = readlinkat(from_folder, leaf, target, sizeof target - 1);
  if (length < 0) return errno;
  target[length] = 0;
  return symlinkat(target, to_folder, leaf) < 0 ? errno : 0;
}

static int copy_entry(int from, const char *leaf, int to) {
  struct stat status;
  if (fstatat(from, leaf, &status, AT_SYMLINK_NOFOLLOW) < 0) return errno == ENOENT ? 0 : errno;
  if (S_ISREG(status.st_mode)) return copy_file(from, leaf, to, leaf);
  if (S_ISLNK(status.st_mode)) return copy_link(from, leaf, to);
  return S_ISDIR(status.st_mode) ? EISDIR : ENOTSUP;
}

/* Calls `act` for each entry of the folder. Returns the first error; E2BIG: too many entries. */
static int for_each(int folder, int to, int (*act)(int folder, const char *leaf, int to)) {
  int error = 0, seen = 0;
  int again = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR *names = again < 0 ? NULL : fdopendir(again);
  if (names == NULL) {
    error = errno;
    if (again >= 0) close(again);
    return error;
  }
  const struct dirent *each;
  while (error == 0 && (each = readdir(names)) != NULL) {
    if (callers_is_dots(each->d_name)) continue;
    error = seen++ == ENTRIES_MAX ? E2BIG : act(folder, each->d_name, to);
  }
  closedir(names);
  return error;
}

static int remove_entry(int folder, const char *leaf, int unused) {
  (void)unused;
  return unlinkat(folder, leaf, 0) < 0 && errno != ENOENT ? errno : 0;
}

/* Removes a folder as far as possible. Remains are harmless: git does not use such a name. */
static void remove_folder(int parent, const char *name) {
  int folder = openat(parent, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (folder < 0) return;
  for (int tried = 0; tried < EMPTY_TRIES; tried++) {
    for_each(folder, -1, remove_entry);
    if (unlinkat(parent, name, AT_REMOVEDIR) == 0) break;
  }
  close(folder);
}

static int copy_folder(int folder, const char *leaf, const struct stat *status) {
  if (mkdirat(folder, NEW, 0700) < 0) return errno;
  int from = openat(folder, leaf, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  int to = openat(folder, NEW, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  int error = from < 0 || to < 0 ? errno : for_each(from, to, copy_entry);
  if (error == 0) error = keep_looks(to, status);
  if (from >= 0) close(from);
  if (to >= 0) close(to);
  return error;
}

/* Swaps the folders in a single exchange: the name always exists, and other worlds see a replaced folder, not
   a removal and a creation. */
static int exchange_folders(int folder, const char *leaf, const char *old) {
  if (renameat2(folder, NEW, folder, leaf, RENAME_EXCHANGE) == 0) return renameat(folder, NEW, folder, old) < 0 ? errno : 0;
  if (errno != EINVAL) return errno;
  /* The file system has no RENAME_EXCHANGE. */
  if (renameat(folder, leaf, folder, old) < 0) return errno;
  return renameat(folder, NEW, folder, leaf) < 0 ? errno : 0;
}

static int replace_folder(int folder, const char *leaf, const struct stat *status) {
  char old[sizeof OLD + 24];
  snprintf(old, sizeof old, "%s-%llu", OLD, (unsigned long long)status->st_ino);
  int error = copy_folder(folder, leaf, status);
  if (error == 0) error = exchange_folders(folder, leaf, old);
  remove_folder(folder, error == 0 ? old : NEW);
  return error;
}

static int replace_file(int folder, const char *leaf) {
  int error = copy_file(folder, leaf, folder, NEW);
  if (error == 0 && renameat(folder, NEW, folder, leaf) < 0) error = errno;
  if (error != 0) unlinkat(folder, NEW, 0);
  return error;
}

static int look_for_second_name(int folder, const char *leaf, int unused) {
  struct stat status;
  (void)unused;
  if (fstatat(folder, leaf, &status, AT_SYMLINK_NOFOLLOW) < 0) return errno == ENOENT ? 0 : errno;
  if (S_ISLNK(status.st_mode)) return 0;
  /* Count 0: git replaced the file during fstatat(2). */
  return S_ISREG(status.st_mode) && status.st_nlink <= 1 ? 0 : EMLINK;
}

bool fresh_is_whole(int folder, const char *leaf) {
  int opened = openat(folder, leaf, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (opened < 0) return look_for_second_name(folder, leaf, -1) == 0;
  int error = for_each(opened, -1, look_for_second_name);
  close(opened);
  return error == 0;
}

int fresh_replace(int folder, const char *leaf) {
  struct stat status;
  if (fstatat(folder, leaf, &status, AT_SYMLINK_NOFOLLOW) < 0) return errno;
  /* A link has no content of its own. */
  if (S_ISLNK(status.st_mode)) return 0;
  if (S_ISREG(status.st_mode)) return replace_file(folder, leaf);
  return S_ISDIR(status.st_mode) ? replace_folder(folder, leaf, &status) : ENOTSUP;
}
