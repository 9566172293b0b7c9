#define _GNU_SOURCE
#include "standard.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <unistd.h>

bool standard_is_open(void) {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
    if (fcntl(fd, F_GETFD) < 0) return false;
  }
  return true;
}

bool standard_open(void) {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
    /* open(2) takes the lowest free number. */
    if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) < 0) return false;
  }
  return true;
}

static bool is_null_device(int fd) {
  struct stat file;
  return fstat(fd, &file) == 0 && S_ISCHR(file.st_mode) && file.st_rdev == makedev(1, 3);
}

bool standard_has_input(void) {
  return isatty(STDIN_FILENO) != 1 && !is_null_device(STDIN_FILENO);
}

bool standard_outputs_are_one(void) {
  struct stat out, error;
  return fstat(STDOUT_FILENO, &out) == 0 && fstat(STDERR_FILENO, &error) == 0 && out.st_dev == error.st_dev && out.st_ino == error.st_ino;
}

static bool is_file(int fd) {
  struct stat file;
  return fstat(fd, &file) == 0 && S_ISREG(file.st_mode);
}

/* Whether an open file knows no RWF_NOWAIT: terminals, and pipes before Linux 6.4. */
static bool is_unable(ssize_t done) {
  return done < 0 && (errno == EOPNOTSUPP || errno == ENOSYS || errno == EINVAL);
}

ssize_t read_now(int fd, char *to, size_t size) {
  struct iovec part = {to, size};
  /* A file waits for its disk at most. With RWF_NOWAIT an uncached page would be EAGAIN for ever. */
  if (is_file(fd)) return read(fd, to, size);
  ssize_t got = preadv2(fd, &part, 1, -1, RWF_NOWAIT);
  return is_unable(got) ? read(fd, to, size) : got;
}

ssize_t write_now(int fd, const char *bytes, size_t length) {
  struct iovec part = {(char *)bytes, length};
  if (is_file(fd)) return write(fd, bytes, length);
  ssize_t written = pwritev2(fd, &part, 1, -1, RWF_NOWAIT);
  /* A pipe that poll(2) calls ready has room for as much (pipe(7)), unless another process takes the room first. */
  return is_unable(written) ? write(fd, bytes, length < PIPE_BUF ? length : PIPE_BUF) : written;
}
