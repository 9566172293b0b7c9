#define _GNU_SOURCE
#include "changes/held_parents.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "changes/held_paths.h"

int parents_open(struct parents *parents, const char *path, const char **name) {
  const char *last = strrchr(path, '/');
  size_t length = last == NULL ? 0 : (size_t)(last - path);
  if (parents->path != NULL && strlen(parents->path) == length && memcmp(parents->path, path, length) == 0) {
    *name = last == NULL ? path : last + 1;
    return parents->fd;
  }
  parents_end(parents);
  int fd = open_parent_of(parents->root, path, name);
  if (fd < 0) return -1;
  parents->fd = fd;
  parents->path = strndup(path, length);
  if (parents->path == NULL) abort();
  return fd;
}

void parents_end(struct parents *parents) {
  if (parents->path == NULL) return;
  int error = errno;
  close(parents->fd);
  free(parents->path);
  parents->path = NULL;
  errno = error;
}
