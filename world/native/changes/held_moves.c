#define _GNU_SOURCE
#include "changes/held_moves.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Moving a folder writes its `..`, for which an ordinary user needs the right to write it (rename(2), EACCES). */
static int loosen(int folder, const char *name, unsigned mode) {
  char link[64];
  if (!S_ISDIR(mode) || (mode & S_IWUSR) != 0 || geteuid() == 0) return -1;
  int fd = openat(folder, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return -1;
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  if (chmod(link, (mode & 07777) | S_IWUSR) == 0) return fd;
  close(fd);
  return -1;
}

static void tighten(int fd, unsigned mode) {
  char link[64];
  int error = errno;
  if (fd < 0) return;
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  chmod(link, mode & 07777);
  close(fd);
  errno = error;
}

int move(int from, const char *name, unsigned mode, int to, const char *as, unsigned other, unsigned flags) {
  int result = (int)syscall(SYS_renameat2, from, name, to, as, flags);
  if (result == 0 || errno != EACCES) return result;
  int here = loosen(from, name, mode), there = loosen(to, as, other);
  result = (int)syscall(SYS_renameat2, from, name, to, as, flags);
  tighten(here, mode);
  tighten(there, other);
  return result;
}
