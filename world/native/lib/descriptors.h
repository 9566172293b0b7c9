#ifndef SUBSTRATE_LIB_DESCRIPTORS_H
#define SUBSTRATE_LIB_DESCRIPTORS_H

#include <errno.h>
#include <unistd.h>

/* Closes a descriptor (-1 allowed) and returns `result`, with errno as it was. */
static inline int close_keeping_errno(int fd, int result) {
  int error = errno;
  if (fd >= 0) close(fd);
  errno = error;
  return result;
}

#endif
