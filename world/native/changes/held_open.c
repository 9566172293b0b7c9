#define _GNU_SOURCE
#include "changes/held_open.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#define NO_WAIT (O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)

/* A command may take its own rights away (`chmod 000`); the owner can give them back for as long as it takes to open. */
static int open_anyway(int folder, const char *name, int flags) {
  char link[64];
  struct stat status;
  int fd = -1;
  int held = openat(folder, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
  if (held < 0) return -1;
  snprintf(link, sizeof link, "/proc/self/fd/%d", held);
  if (fstat(held, &status) == 0 && S_ISREG(status.st_mode) && chmod(link, (status.st_mode & 07777) | 0400) == 0) {
    fd = open(link, flags & ~O_NOFOLLOW);
    int error = errno;
    if (chmod(link, status.st_mode & 07777) < 0 && fd >= 0) {
      error = errno;
      close(fd);
      fd = -1;
    }
    errno = error;
  }
  int error = errno;
  close(held);
  errno = error;
  return fd;
}

int open_plainly(int folder, const char *name, struct stat *status) {
  int fd = openat(folder, name, NO_WAIT);
  if (fd < 0) return -1;
  if (fstat(fd, status) == 0 && S_ISREG(status->st_mode)) return fd;
  close(fd);
  errno = EINVAL;
  return -1;
}

int open_readable(int folder, const char *name, struct stat *status) {
  int fd = open_plainly(folder, name, status);
  if (fd >= 0 || errno != EACCES) return fd;
  fd = open_anyway(folder, name, NO_WAIT);
  if (fd < 0 || fstat(fd, status) == 0) return fd;
  close(fd);
  return -1;
}
