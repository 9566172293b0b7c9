#define _GNU_SOURCE
#include "descriptors.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

int above_standard(int fd) {
  if (fd < 0 || fd > STDERR_FILENO) return fd;
  int above = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  int error = errno;
  close(fd);
  errno = error;
  return above;
}

bool write_all(int fd, const char *bytes, size_t length) {
  while (length > 0) {
    ssize_t written = write(fd, bytes, length);
    struct pollfd room = {.fd = fd, .events = POLLOUT};
    if (written < 0 && errno == EAGAIN && poll(&room, 1, -1) < 0 && errno != EINTR) return false;
    if (written < 0 && errno != EAGAIN && errno != EINTR) return false;
    if (written <= 0) continue;
    bytes += written;
    length -= (size_t)written;
  }
  return true;
}
